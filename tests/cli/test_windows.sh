# Windows and recomputation as people use them: the same digests on any number of ranks, less memory,
# a stop between; and what --dry-run foretells is what a run then takes.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out d.h5 --train 64 --val 4 --test 4
expect_code 0
config=$SCRATCH/here/causal.yaml
cat >"$config" <<'YAML'
data: {file: d.h5}
model: {pooling: last, positions: none}
attention: {causal: true, features: 32}
train: {batch: 16, steps: 4, warmup: 1}
YAML

# peak NAME: bytes of arrays of a rank, as its record has them.
peak()
{
    python -c 'import h5py, sys; print(int(h5py.File(sys.argv[1]).attrs["peak_bytes_of_a_rank"]))' "$1"
}

# same NAME RANKS ARGS...: a run whose digest must be the one of the group.
same()
{
    local name=$1 ranks=$2
    shift 2
    run "$ranks" train "$config" --out "$name.h5" "$@"
    expect_code 0
    value digest >>digests
    [ "$(sort -u digests | wc -l)" = 1 ] || fail "the digest of $name differs: $(cat digests)"
}

same whole 2
same recompute 2 --set train.recompute=true
[ $(($(peak recompute.h5) * 10)) -lt $(($(peak whole.h5) * 8)) ] ||
    fail "recomputation takes $(peak recompute.h5) bytes of $(peak whole.h5)"
rm digests
for ranks in 1 2 3 4; do
    same window$ranks $ranks --set train.window=512
done
same grid 4 --set train.window=512 --set parallel.sequence=2 --set train.micro_batch=3
same threads 1 --set train.window=512 --set parallel.threads=2 --set train.recompute=true
[ $(($(peak window2.h5) * 10)) -lt $(($(peak whole.h5) * 9)) ] ||
    fail "windows take $(peak window2.h5) bytes of $(peak whole.h5)"

RFA_FAULT=train.step@0 run 2 train "$config" --out stop.h5 --set train.window=512 --set train.checkpoint_every=1
[ "$code" != 0 ] || fail "the fault did not strike"
run 2 train "$config" --out half.h5 --set train.window=512 --set train.max_minutes=0.0001
expect_code 85
same half 3 --set train.window=512 --resume

# States carried from step to step: one digest, also after a stop, which waits for the end of a batch.
rm digests
stateful=(--set train.window=256 --set train.carry=stateful --set train.steps=14 --set train.batch=6)
for ranks in 1 2 4; do
    same stateful$ranks $ranks "${stateful[@]}"
done
same stateful-grid 4 "${stateful[@]}" --set parallel.sequence=2
run 2 train "$config" --out stateful-stop.h5 "${stateful[@]}" --set train.max_minutes=0.0001
expect_code 85
same stateful-stop 1 "${stateful[@]}" --resume

# foretold CONFIG RANKS ARGS...: --dry-run within 20 % of what the run takes.
foretold()
{
    local file=$1 ranks=$2
    shift 2
    run "$ranks" train "$file" --dry-run "$@"
    expect_code 0
    sed -n 's/^memory of a rank: \([0-9]*\) MiB in arrays = .*/\1/p' "$out" >plan
    run "$ranks" train "$file" --out plan.h5 --overwrite "$@"
    expect_code 0
    python - "$(cat plan)" "$(peak plan.h5)" <<'PYTHON'
import sys
plan, peak = float(sys.argv[1]) * 2**20, float(sys.argv[2])
print(f"foretold {plan / 2**20:.1f} MiB, taken {peak / 2**20:.1f}")
sys.exit(not 0.8 < plan / peak < 1.2)
PYTHON
}

small=(--set data.file=d.h5 --set train.batch=16 --set train.steps=3 --set train.warmup=1)
for kind in rfa softmax eva; do
    foretold "$SOURCE/configs/lra/listops/$kind.yaml" 2 "${small[@]}"
done
foretold "$config" 1 --set train.window=512
foretold "$config" 2 --set train.recompute=true
# Many parameters, few tokens: what a checkpoint takes counts.
foretold "$config" 2 --set model.width=512 --set model.heads=8 --set train.batch=1 --set data.max_length=64
run 2 train "$config" --dry-run --set model.width=8192 --set model.feed_forward=65536 --set model.layers=40
expect_code 4
expect_line "2 ranks of this host need"
[ ! -e runs ] || fail "--dry-run has written something"

run 1 train "$config" --set train.window=100
expect_code 2
expect_line "train.window \(100\) must be a multiple of 16"
run 2 train "$SOURCE/configs/lra/listops/softmax.yaml" --set train.window=64
expect_code 2
expect_line "train.window with attention.kind softmax"
