#!/usr/bin/env bash
# rfa reproduce: a record is met on other numbers of ranks, and a record that was changed is not.
. "$SOURCE/tests/cli/lib.sh"
fresh
mkdir tmp
export TMPDIR=$PWD/tmp

data="--train 60 --val 20 --test 20 --min-length 20 --max-length 60 --max-depth 4"
run 1 data listops --out d.h5 $data
run 1 data listops --out other.h5 $data --seed 9
cat >quick.yaml <<'YAML'
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8, pooling: mean}
attention: {features: 8, pool: 4, causal: true}
parallel: {segments: 4}
train: {steps: 12, batch: 4, warmup: 2, evaluate_every: 5, checkpoint_every: 6}
YAML
run 2 train quick.yaml --out a.h5
expect_code 0
digest=$(value digest)
mkdir saved
cp -p a.* saved/

# unchanged: the record and its files are as they were, and nothing is left behind.
unchanged()
{
    local file
    for file in saved/*; do
        cmp -s "$file" "${file#saved/}" || fail "${file#saved/} was changed"
    done
    [ "$(ls a.*)" = "$(cd saved && ls a.*)" ] || fail "new files beside the record"
    [ -z "$(ls -A tmp)" ] || fail "left behind: $(ls -A tmp)"
}

# Any number of ranks: fewer, more, one that does not divide, more than segments.
for ranks in 1 2 3 5; do
    run "$ranks" reproduce a.h5
    expect_code 0
    [ "$(tail -n 1 "$out")" = "reproduced 12 of 12 steps: digest $digest" ] || fail "not reproduced"
    grep -q "the checkpoint after step 12 has the recorded digest $digest" "$err" ||
        fail "the checkpoint was not asked"
    unchanged
done

# A part of it, with keys that change no result; the schedule is still that of the whole run.
fifth=$(python -c 'import h5py; print("%016x" % h5py.File("a.h5")["steps/digest"][4])')
run 2 reproduce a.h5 --steps 5 --set parallel.threads=2 --set parallel.sequence=1 \
    --set train.micro_batch=1
expect_code 0
[ "$(cat "$out")" = "reproduced 5 of 5 steps: digest $fifth" ] || fail "not five steps"
unchanged

# Its own record, where it is wanted; never over another.
run 2 reproduce a.h5 --steps 7 --out new/b.h5
expect_code 0
run 1 diff a.h5 new/b.h5
expect_code 1
expect_out '^differ: the same for 7 steps; then B ends'
run 2 reproduce a.h5 --steps 7 --out new/b.h5
expect_code 2
for own in a.h5 a ./a.h5; do
    run 2 reproduce a.h5 --out $own
    expect_code 2
    expect_line 'a'
done
unchanged

# Changed records.
for name in digest test; do
    cp a.h5 $name.h5
done
cp a.h5 witness.h5
cp a.ckpt witness.ckpt
python - <<'PY'
import h5py, numpy as np
with h5py.File("digest.h5", "r+") as f: f["steps/digest"][8] ^= np.uint64(1)
with h5py.File("witness.h5", "r+") as f: f["steps/digest"][11] ^= np.uint64(1)
with h5py.File("test.h5", "r+") as f: f["test/loss"][0] += 1e-9
PY
run 3 reproduce digest.h5
expect_code 1
expect_out '^differs at step 9: digest [0-9a-f]{16}, recorded [0-9a-f]{16}; loss .*\(the same\)$'
[ "$(wc -l <"$out")" = 1 ] || fail "it went on after the difference"
! grep -q 'rfa: error' "$err" || fail "an error line beside the answer"
run 2 reproduce digest.h5 --steps 8
expect_code 0
run 2 reproduce witness.h5
expect_code 1
expect_out '^differs at step 12:'
grep -q 'after step 12 the checkpoint has digest .*one of them was changed' "$err" ||
    fail "the checkpoint was not asked"
run 2 reproduce test.h5
expect_code 1
expect_out '^differs on the test split: '
unchanged

# Another BLAS kernel has other last bits, and the answer says so.
if OPENBLAS_CORETYPE=Nehalem run 2 reproduce a.h5; [ "$code" != 0 ]; then
    expect_code 1
    expect_out '^differs at step [0-9]+: .*; recorded with OpenBLAS .*, this is OpenBLAS .* Nehalem$'
else
    fail "a kernel without FMA gives the same bits"
fi

# Refused: other data, keys that change the result, more steps than there are.
run 2 reproduce a.h5 --data other.h5
expect_code 2
expect_line 'a.h5 was trained on data with digest [0-9a-f]{16}, other.h5 has [0-9a-f]{16}'
mv d.h5 moved.h5
run 2 reproduce a.h5
expect_code 3
expect_line 'd.h5'
run 2 reproduce a.h5 --data moved.h5 --steps 2
expect_code 0
mv moved.h5 d.h5
run 2 reproduce a.h5 --set train.seed=5
expect_code 2
expect_line 'train.seed \(5, was 1\)'
run 2 reproduce a.h5 --set parallel.segments=8
expect_code 2
expect_line 'parallel.segments'
run 2 reproduce a.h5 --steps 13
expect_code 2
run 2 reproduce a.h5 --steps none
expect_code 2
run 2 reproduce none.h5
expect_code 3
expect_line 'none.h5'
run 2 reproduce d.h5
expect_code 3
RFA_FAULT=train.step@1 run 2 reproduce a.h5
expect_code 3
expect_line 'rank 1: injected fault'
unchanged

# A run that failed at its first checkpoint: what is recorded of it.
RFA_FAULT=checkpoint.write@0 run 1 train quick.yaml --out failed.h5 --set train.evaluate_every=0
expect_code 3
run 2 reproduce failed.h5
expect_code 0
expect_out '^reproduced 6 of 6 steps: digest [0-9a-f]{16}$'

# A forced exscan on two ranks has the bits of the tree; on three it has its own, and says so.
run 2 train quick.yaml --out two.h5 --set parallel.exchange=exscan
run 3 reproduce two.h5
expect_code 0
run 3 train quick.yaml --out three.h5 --set parallel.exchange=exscan --set train.steps=3
expect_code 0
run 3 reproduce three.h5
expect_code 0
grep -q 'warning: three.h5 was made by a forced exscan with 3 ranks' "$err" || fail "no warning"
