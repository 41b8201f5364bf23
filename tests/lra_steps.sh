#!/usr/bin/env bash
# By hand, not in the test list: trains every task of the Long Range Arena in both protocols on its data
# and prints how the loss fell, and whether another number of ranks takes the same steps.
#
#   bash tests/lra_steps.sh DATA [STEPS] [BATCH]    DATA holds listops.h5, text.h5, ... (rfa data TASK)
#
# 200 steps of 8 examples on 2 ranks by default, with rates of 1e-3 after 50 steps; then 5 of them on 1
# rank. Half an hour on two cores with AVX-512. Runs stay in build/lra; a second call goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=${1:?usage: bash tests/lra_steps.sh DATA [STEPS] [BATCH]} steps=${2:-200} batch=${3:-8}
. jobs/setup.sh build
rfa=build/release/rfa
mkdir -p build/lra
printf '%-22s  %-32s  %-17s  %s\n' configuration 'loss: first, last tenth' digest 'on 1 rank'
for protocol in small base; do
    for task in listops text retrieval image pathfinder pathx; do
        name=$task-$protocol
        set -- --set "data.file=$data/$task.h5" --set "train.steps=$steps" --set train.warmup=50 --set train.rate=1e-3 \
            --set "train.batch=$batch" --set train.micro_batch=0 --set train.evaluate_every=0 --set train.evaluate_examples=64 --set train.test_examples=64
        run=build/lra/$name.h5
        resume=(--overwrite)
        [ ! -e "${run%.h5}.ckpt" ] || resume=(--resume)
        timeout 3000 mpirun -q -n 2 "$rfa" train "configs/lra/$task/$protocol-rfa.yaml" "$@" --out "$run" "${resume[@]}" \
            >"build/lra/$name.log" 2>&1 || { tail -n 3 "build/lra/$name.log"; continue; }
        same=$(timeout 3000 mpirun -q -n 1 "$rfa" reproduce "$run" --data "$data/$task.h5" --steps 5 2>&1 | tail -n 1) || true
        "$RFA_PYTHON" - "$run" "$name" "$same" <<'PYTHON'
import sys
import h5py
with h5py.File(sys.argv[1]) as f:
    loss, digest = f["steps/loss"][:], f["steps/digest"][-1]
    tenth = max(1, len(loss) // 10)
    digest = digest if isinstance(digest, (str, bytes)) else f"{int(digest) % 2**64:016x}"
    print(f"{sys.argv[2]:22s}  {loss[:tenth].mean():.4f}, {loss[-tenth:].mean():.4f} after {len(loss)} steps"
          f"  {digest:17s}  {sys.argv[3]}", flush=True)
PYTHON
    done
done
