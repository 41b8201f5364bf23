#!/usr/bin/env bash
# Builds the fuzz targets with clang, libFuzzer and the address and undefined-behaviour sanitizers, and
# runs each for a time, as many at once as there are cores. What is found stays in build/fuzz/found, and
# what was learnt in build/fuzz/corpus, from which the next call goes on.
#
#   bash tests/fuzz/run.sh [SECONDS [TARGET...]]     3600 s each of all: config set tsv table png part
#                                                    lines run checkpoint dataset
#   TMPDIR=/dev/shm build/fuzz/fuzz_tsv FILE         one input again
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=${here%/tests/fuzz}
cd "$top"
if [ -z "${SCRATCH:-}" ]; then
    . jobs/setup.sh tests
fi
if ! [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null)" ]; then
    echo "skipped: clang with libFuzzer is missing (Debian: clang libclang-rt-14-dev)"
    [ "${CI:-}" != true ] || exit 1
    exit 77
fi
seconds=${1:-3600}
[ $# = 0 ] || shift
targets=("$@")
[ $# -gt 0 ] || targets=(config set tsv table png part lines run checkpoint dataset)
build=$top/build/fuzz
cores=$(getconf _NPROCESSORS_ONLN) # nproc would follow OMP_NUM_THREADS
mkdir -p "$top/build"

cmake -S . -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DRFA_TESTS=OFF \
    -DCMAKE_PROJECT_rfa_INCLUDE="$top/tests/fuzz/targets.cmake" \
    -DCMAKE_C_FLAGS_DEBUG="-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=undefined \
-fsanitize=fuzzer-no-link,address,undefined" >"$build.log" 2>&1 &&
    cmake --build "$build" --target "${targets[@]/#/fuzz_}" -j "$cores" >>"$build.log" 2>&1 || {
    tail -n 40 "$build.log"
    exit 1
}

folder=$(mktemp -d /dev/shm/rfa-fuzz.XXXXXX)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 1' TERM INT HUP
export ASAN_OPTIONS=allocator_may_return_null=1:malloc_context_size=12
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$top/tests/support/lsan.supp:print_suppressions=0
export OMPI_MCA_opal_signal= # the handlers of signals are libFuzzer's

# edit FILE BYTE...: an input of hdf5_edit.h.
edit()
{
    printf "$(printf '\\x%02x' "${@:2}")" >"$1"
}

# seeds TARGET: small good inputs.
seeds()
{
    local to=$build/corpus/$1 i=0 line
    mkdir -p "$to"
    case $1 in
    config)
        find configs -name '*.yaml' | while read -r line; do
            cp "$line" "$to/$(tr / - <<<"$line")"
        done
        printf 'train: {seed: 7, rate: 1.5e-3}\nattention:\n  kind: softmax\n  causal: true\n' >"$to/flow"
        ;;
    set)
        for line in train.rate=0.5 train.seed=9007199254740992 model.pooling=mean attention.causal=true \
            data.file=x.h5 train.stepz=1 train.dropout=0 model.dropout=1e-3; do
            printf %s "$line" >"$to/$((i++))"
        done
        ;;
    tsv)
        printf 'Source\tTarget\n[MAX 2 9 [MIN 4 7 ] 0 ]\t9\n( ( ( [SM 1 ) 2 ) ] )\t3\n' >"$to/two"
        printf 'Source\tTarget\r\n[MED 1 2 X\t1\r\n' >"$to/windows"
        ;;
    table)
        printf 'x0\tone\n1\t"two"\n' >"$to/tabs"
        printf 'yReview,x,label\n"a ""b"",\n",1,0\nc,2,1\r\n' >"$to/commas"
        ;;
    png) # 2 x 2 grey pixels
        base64 -d >"$to/grey" <<<'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR4nGNg+M/Q4AAABUIBwHA2NtYAAAAASUVORK5CYII='
        ;;
    part)
        head -c 64 /dev/zero >"$to/zeros"
        printf '\0\1\2\0%28s\2\0\0\0abcd' '' >"$to/one"
        ;;
    lines)
        line='"loss":0.5,"learning_rate":0.001,"gradient_norm":null,"tokens_per_second":10,'
        line+='"exchange_wait":0,"seconds":1,"guards":0,"digest":"00000000000000ff","run":"0000000000000011"}'
        printf '{"step":1,%s\n{"step":2,%s\n' "$line" "$line" >"$to/steps"
        for i in evaluation test; do
            line='"val","step":2,"loss":1,"correct":1,"examples":2,"classes":2,"confusion":[[1,0],[1,0]]'
            printf '{"%s":%s,"run":"0000000000000011"}\n' $i "$line" >"$to/$i"
        done
        cat "$to/steps" "$to/evaluation" "$to/test" >"$to/all"
        { printf i; cat "$to/all"; } >"$to/beside"
        sed 's/"classes":2/"classes":32767/' "$to/test" >"$to/classes"
        ;;
    *) # edits of a good file, of each object in turn: five dimensions, three classes, and others
        for ((i = 0; i < 48; i++)); do
            edit "$to/five$i" $([ "$1" != run ] || echo 0) $i 0 0 1 0 9 6 1 1 1 1 1
            edit "$to/three$i" $([ "$1" != run ] || echo 0) $i 0 0 1 0 6 4 1 3 3
            edit "$to/$i" 0 $i $((i * 7 % 128)) $((i * 13 % 128)) $((i % 8)) 1 2 3 4 5 6 7 8
        done
        ;;
    esac
}

# fuzz TARGET: one line, and 1 when something was found.
fuzz()
{
    local log=$build/$1.log found=$build/found/$1 code=0 options=() leaks=1 units time=$seconds
    mkdir -p "$found" "$folder/$1"
    seeds "$1"
    case $1 in
    config | set)
        sed -n 's/.*{KEY(\([a-z]*\), \([a-z_]*\)).*/"\1"\n"\2"\n"\1.\2="/p' src/config/keys.c |
            sort -u >"$folder/$1.dict"
        options=(-dict="$folder/$1.dict" -max_len=4096)
        ;;
    lines) options=(-max_len=4096) ;;
    tsv) options=(-max_len=2048) ;;
    table | png | part) # small readers
        options=(-max_len=2048)
        time=$(((seconds + 3) / 4))
        ;;
    dataset) options=(-max_len=512) leaks=0 ;; # MPI-IO leaks; the target counts our own memory
    *) options=(-max_len=512) ;;
    esac
    TMPDIR=$folder/$1 ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=$leaks "$build/fuzz_$1" -max_total_time="$time" -timeout=60 -rss_limit_mb=4096 \
        -close_fd_mask=2 -print_final_stats=1 -artifact_prefix="$found/" "${options[@]}" \
        "$build/corpus/$1" "$found" >"$log" 2>&1 || code=$?
    units=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    printf '%-10s %9s inputs, coverage %s\n' "$1" "${units:-no}" \
        "$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1)"
    if [ $code != 0 ] || [ "${units:-0}" -lt 50 ]; then
        echo "FAILED: fuzz_$1 ended with $code; inputs are in $found, the log is $log"
        grep -vE '^#' "$log" | tail -n 60
        return 1
    fi
}

failed=0 running=0
for target in "${targets[@]}"; do
    if [ $running -ge "$cores" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
