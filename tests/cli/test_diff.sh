#!/usr/bin/env bash
# rfa diff: runs that are the same, runs that part at a known step, checkpoints tensor by tensor,
# files that can't be read.
. "$SOURCE/tests/cli/lib.sh"
fresh

run 1 data listops --out d.h5 --train 60 --val 20 --test 20 --min-length 20 --max-length 60 \
    --max-depth 4
cat >quick.yaml <<'YAML'
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8}
attention: {features: 8, pool: 4}
parallel: {segments: 4}
train: {steps: 12, batch: 4, warmup: 2, evaluate_every: 5, checkpoint_every: 6}
YAML
# train NAME RANKS ARGS...
train()
{
    local name=$1 ranks=$2
    shift 2
    run "$ranks" train quick.yaml --out "$name.h5" "$@"
    expect_code 0
}
train a 2
digest=$(value digest)
train b 1 --set parallel.threads=2 --set train.evaluate_every=0
train seed 1 --set train.seed=2
train longer 1 --set train.steps=14

# silent_error: the answer is on stdout, there is no error line.
silent_error()
{
    ! grep -q 'rfa: error' "$err" || fail "an error line beside the answer"
}

# The same, though other keys differ that change no result.
for ranks in 0 1 3; do
    run "$ranks" diff a.h5 b.h5
    expect_code 0
    [ "$(tail -n 1 "$out")" = "same: 12 steps, digest $digest" ] || fail "not the same"
    expect_out '^neutral keys .*parallel.threads \(A 1, B 2\), train.evaluate_every \(A 5, B 0\)$'
    expect_out '^ranks +A 2, B 1$'
    ! grep -q '^configuration' "$out" || fail "a difference that there is not"
done
run 0 diff a.h5 a.h5 --tensors
expect_code 0
expect_out '^tensors +after step 12: all [0-9]+ are the same$'
[ "$(wc -l <"$out")" = 4 ] || fail "a run differs from itself"

# Another seed: all parts at the first step.
run 2 diff a.h5 seed.h5 --tensors
expect_code 1
silent_error
expect_out '^configuration +train.seed \(2, was 1\)$'
expect_out '^differ: from step 1 on: digest A [0-9a-f]{16}, B [0-9a-f]{16}; loss parts at step 1 .*rate the same in all$'
# The first tensor in the order of the table, which is not that of the names.
[ "$(grep -m 1 '^tensor ' "$out" | awk '{ print $2 }')" = parameters/embedding.tokens: ] ||
    fail "the first tensor is not the table's first"

# Another length of the schedule: the rate parts first, in the same step the parameters, then the loss.
run 0 diff a.h5 longer.h5 --tensors
expect_code 1
silent_error
expect_out '^configuration +train.steps \(14, was 12\)$'
expect_out '^tensors +not compared: the newest checkpoint of A is after step 12, of B after step 14$'
expect_out '^differ: from step 3 on: .*loss parts at step 4 .*learning rate parts at step 3 '

# Records that were changed: one digest, one loss, the last rows gone, other data.
cp a.h5 digest.h5
cp a.h5 loss.h5
cp a.h5 short.h5
cp a.h5 data.h5
cp a.h5 tensor.h5
cp a.ckpt tensor.ckpt
python - <<'PY'
import h5py, numpy as np, zlib
with h5py.File("digest.h5", "r+") as f: f["steps/digest"][6] ^= np.uint64(1)
with h5py.File("loss.h5", "r+") as f: f["steps/loss"][8] += 1e-12
with h5py.File("data.h5", "r+") as f: f.attrs["data_digest"] = "0" * 16
with h5py.File("short.h5", "r+") as f:
    for name in list(f["steps"]):
        old = f["steps"][name][:10]
        del f["steps"][name]
        f["steps"][name] = old
with h5py.File("tensor.ckpt", "r+") as f:
    d = f["parameters/norm.scale"]
    v = d[:]
    v[3] += 0.5
    v[7] -= 0.25
    d[:] = v
    d.attrs["crc32"] = np.int64(zlib.crc32(v.tobytes()))
PY
run 0 diff a.h5 digest.h5
expect_code 1
expect_out '^differ: from step 7 on: .*; loss the same in all; learning rate the same in all$'
run 0 diff loss.h5 a.h5
expect_code 1
expect_out '^differ: the digests of 12 steps are the same; loss parts at step 9 '
run 0 diff short.h5 a.h5
expect_code 1
expect_out '^differ: the same for 10 steps; then A ends, and B has 12 steps$'
run 0 diff a.h5 data.h5
expect_code 0
expect_out '^data +A [0-9a-f]{16}, B 0{16}$'
run 2 diff a.h5 tensor.h5 --tensors
expect_code 1
silent_error
expect_out '^tensor +parameters/norm.scale: 2 of 16 values differ, by 0.5 at most; first at index 3: '
expect_out '^tensors +after step 12: 1 differ, [0-9]+ were compared, by 0.5 at most$'
expect_out '^differ: the digests of 12 steps are the same, the checkpoints are not$'
run 2 diff a.h5 tensor.h5
expect_code 0

# A run that failed at its first checkpoint, after six steps.
RFA_FAULT=checkpoint.write@0 run 1 train quick.yaml --out failed.h5 --set train.evaluate_every=0
expect_code 3
run 0 diff a.h5 failed.h5
expect_code 1
expect_out '^differ: the same for 6 steps; then B ends'

# What can't be read.
run 2 diff a.h5 none.h5
expect_code 3
expect_line 'none.h5'
head -c 3000 a.h5 >cut.h5
run 2 diff cut.h5 a.h5
expect_code 3
expect_line 'cut.h5'
run 2 diff a.h5 failed.h5 --tensors
expect_code 3
expect_line 'failed.ckpt'
run 2 diff a.h5 d.h5
expect_code 3
expect_line 'd.h5'
run 1 diff a.h5
expect_code 2
run 1 diff --help
expect_code 0
expect_out '1: they differ'
code=0
"$RFA" diff a.h5 b.h5 >/dev/full 2>"$err" || code=$?
expect_code 3
expect_line 'standard output'
