#!/usr/bin/env bash
# From a fresh clone to a trained model: sets up, builds, makes the ListOps data, trains a small
# classifier by random feature attention on RFA_RANKS (2) ranks and tests it.
#
#   bash jobs/quickstart.sh [--again]
#
# Keeps what it has made: a second call only shows the result. --again: trains anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

again=no
case ${1:-} in
'') ;;
--again) again=yes ;;
*)
    echo "usage: bash jobs/quickstart.sh [--again]" >&2
    exit 2
    ;;
esac

rfa=build/release/rfa
config=configs/lra/listops/quickstart.yaml
data=data/listops.h5
run=runs/quickstart.h5

# step TEXT: closes the step before with its time, and heads the next one.
step()
{
    if [ -n "${step_start:-}" ]; then
        echo "   $((SECONDS - step_start)) s"
    fi
    step_start=$SECONDS
    printf '\n== %s\n' "$1"
}

# quiet COMMAND...: its output is shown only when it fails.
quiet()
{
    local code=0
    "$@" >"$log" 2>&1 || code=$?
    if [ "$code" != 0 ]; then
        tail -n 60 "$log" >&2
        echo "quickstart: failed ($code): $*" >&2
        exit "$code"
    fi
}

build()
{
    cmake --preset release && cmake --build --preset release -j "$(getconf _NPROCESSORS_ONLN)"
}

# A run that ended well and is newer than everything that it came from.
finished()
{
    [ "$run" -nt "$config" ] && [ "$run" -nt "$data" ] && [ "$run" -nt "$rfa" ] &&
        "$rfa" inspect "$run" --json 2>/dev/null | grep -qE '"state": *"finished"'
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

step "1/4 set up"
. jobs/setup.sh build
ranks=${RFA_RANKS:-2}

step "2/4 build: $rfa"
quiet build

step "3/4 data: $data"
mkdir -p data runs
if [ -e "$data" ]; then
    echo "   kept"
else
    mpirun -q -n "$ranks" "$rfa" data listops --out "$data"
fi

if [ "$again" = no ] && finished; then
    step "4/4 train: kept from an earlier call (--again trains anew)"
    "$rfa" inspect "$run"
else
    step "4/4 train and test: $config on $ranks ranks"
    mpirun -q -n "$ranks" "$rfa" train "$config" --out "$run" --overwrite
fi

echo "   $((SECONDS - step_start)) s"
cat <<END

The run is $run, an HDF5 file. To look at it:
  $rfa inspect $run
  ${RFA_PYTHON:-python3} -c "import h5py; f = h5py.File('$run'); print(dict(f.attrs)); print(f['steps/loss'][-5:])"
END
