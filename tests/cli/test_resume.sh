# Stop and go on: the same digests, rows and result as without a stop, also on other ranks; eval in a new
# process gives the same numbers to the last digit; kill -9 at any moment loses nothing.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out data.h5 --train 60 --val 20 --test 21
expect_code 0
config=(train "$SOURCE/configs/lra/listops/rfa.yaml" --set data.file=data.h5 --set train.warmup=10
    --set train.batch=8 --set train.steps=24 --set train.evaluate_every=6
    --set train.checkpoint_every=4)

# rows RUN: everything in the record that must not depend on stops.
rows()
{
    python - "$1" <<'PYTHON'
import h5py, sys
f = h5py.File(sys.argv[1])
s = f["steps"]
print(s["step"][:].tolist(), s["loss"][:].tolist(), s["learning_rate"][:].tolist())
print([hex(d) for d in s["digest"][:]])
e = f["evaluations"]
print(e["step"][:].tolist(), e["loss"][:].tolist(), e["correct"][:].tolist(), e["confusion"][:].tolist())
PYTHON
}

run 2 "${config[@]}" --out whole.h5
expect_code 0
rows whole.h5 >whole
final=$(value digest)
accuracy=$(value 'test accuracy')

# Evaluation in a new process, other ranks, other batches.
test_loss=$(python -c 'import h5py; print(repr(float(h5py.File("whole.h5")["test/loss"][()])))')
for variant in '1' '2' '3 --set train.batch=5' '4 --set train.batch=21 --set parallel.sequence=2'; do
    run ${variant%% *} eval whole.h5 --data data.h5 --split test $(cut -s -d' ' -f2- <<<"$variant")
    expect_code 0
    [ "$(value 'test accuracy')" = "$accuracy" ] || fail "another accuracy: $variant"
    [ "$(python -c "print(float('$(value 'test loss')') == $test_loss)")" = True ] || fail "another loss: $variant"
done

# Killed without warning in the middle, then on to the end on other rank counts.
for ranks in 1 2 3 4; do
    "$MPIRUN" -q -n 2 --oversubscribe "$RFA" "${config[@]}" --out part.h5 --overwrite >"$out" 2>"$err" </dev/null &
    job=$!
    for _ in $(seq 1200); do # until step 13 is on record
        grep -q '"step": *13\b' part.jsonl 2>/dev/null && break
        sleep 0.02
    done
    kill -9 $(pgrep -P "$job") "$job" # the ranks and their launcher at once
    wait "$job" || true
    run 1 inspect part.h5 --json
    expect_code 0
    python - "$out" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["state"] == "running", run["state"]
assert 13 <= max(run["steps"]["step"]) < 24, run["steps"]["step"]
PYTHON
    run "$ranks" "${config[@]}" --out part.h5 --resume
    expect_code 0
    [ "$(value digest)" = "$final" ] || fail "another digest after a kill and $ranks ranks"
    [ "$(value 'test accuracy')" = "$accuracy" ] || fail "another accuracy"
    rows part.h5 >part
    cmp -s whole part || fail "rows differ after a kill: $(diff whole part)"
    python - "$ranks" <<'PYTHON'
import h5py, sys, numpy as np
ranks, whole, part = int(sys.argv[1]), h5py.File("whole.h5"), h5py.File("part.h5")
s, seconds = part["starts"], part["steps/seconds"][:]
assert s["step"][0] == 0 and 12 <= s["step"][1] <= 24 and len(s["step"]) == 2, s["step"][:]
assert s["ranks"][:].tolist() == [2, ranks] and part.attrs["ranks"] == ranks, s["ranks"][:]
assert part.attrs["started"] == s["started"].asstr()[0] <= s["started"].asstr()[1]
# Time and speed are those of all steps, over both starts.
rate = np.where(part["steps/step"][:] > s["step"][1], *s["sgemm_flops_per_second"][:][::-1])
flops = [f.attrs["model_flops_per_second"] * f.attrs["training_seconds"] for f in (whole, part)]
assert np.isclose(part.attrs["training_seconds"], seconds.sum(), rtol=1e-12)
assert np.isclose(flops[0], flops[1], rtol=1e-12), flops
assert np.isclose(part.attrs["share_of_sgemm"], flops[1] / (seconds * rate).sum(), rtol=1e-12)
PYTHON
done

# Stopped after each single step, and resumed each time on other ranks, threads or another split.
variants=(1 2 3 4 '2 --set parallel.sequence=1' '4 --set parallel.sequence=2' '2 --set parallel.threads=2')
how=--overwrite
for step in $(seq 24); do
    variant=${variants[step % ${#variants[@]}]}
    run ${variant%% *} "${config[@]}" --out part.h5 $how --set train.max_minutes=0.001 \
        $(cut -s -d' ' -f2- <<<"$variant")
    expect_code $((step < 24 ? 85 : 0))
    how=--resume
done
[ "$(value digest)" = "$final" ] || fail "another digest after a stop at each step"
rows part.h5 >part
cmp -s whole part || fail "rows differ after a stop at each step: $(diff whole part)"
[ "$(python -c 'import h5py; print(h5py.File("part.h5")["starts/step"][:].tolist() == list(range(24)))')" = True ] ||
    fail "not every start is on record"

# Checkpoints by time.
for minutes in 0 1e-6; do
    run 2 "${config[@]}" --set train.checkpoint_every=0 --set train.evaluate_every=0 \
        --set train.checkpoint_minutes=$minutes --out time$minutes.h5
    expect_code 0
done
[ ! -e time0.ckpt.prev ] || fail "a checkpoint that nobody asked for"
[ "$(python -c 'import h5py; print(h5py.File("time1e-6.ckpt.prev").attrs["step"])')" = 23 ] ||
    fail "no checkpoint by time"

# A finished run is left as it is, and says its result again; an evaluation is not a training.
sha256sum part.* >before
for ranks in 1 3; do
    run "$ranks" "${config[@]}" --out part.h5 --resume --set train.checkpoint_every=2
    expect_code 0
    grep -q '^part.h5 is finished: nothing is left to do$' "$err" || fail "no word that it is finished"
    [ "$(value digest)" = "$final" ] && [ "$(value 'test accuracy')" = "$accuracy" ] || fail "another result"
    sha256sum part.* | cmp -s before - || fail "a finished run was changed"
done
run 2 "${config[@]}" --set train.warmup=30 --out short.h5
expect_code 0
[ "$(grep -c 'warning: train.warmup' "$err")" = 1 ] || fail "no warning of a warm-up beyond the end"
run 2 eval short.h5
expect_code 0
[ "$(grep -c warning "$err")" = 0 ] || fail "eval warns of the training"
run 1 "${config[@]}" --out one.h5 --set train.steps=1 --set train.warmup=1
expect_code 0
grep -qE '^1 rank = 1 x 1 .*, 8 segments, 1 thread a rank;' "$err" || fail "1 ranks"
grep -qE '^1 step: ' "$err" || fail "1 steps"

# The best checkpoint evaluates to the best validation result, and goes when the run is written over.
best=$(python -c 'import h5py; e = h5py.File("whole.h5")["evaluations"]; print(max(e["correct"][:]))')
run 2 eval whole.h5 --data data.h5 --split val --best
expect_code 0
expect_out "^val accuracy .* \($best/20\)$"
cp whole.h5 over.h5
cp whole.best.ckpt over.best.ckpt
run 2 "${config[@]}" --out over.h5 --overwrite --set train.evaluate_every=0 --set train.steps=2
cmp -s whole.best.ckpt over.best.ckpt && fail "the best checkpoint of an overwritten run is kept"

# What must be refused.
run 2 "${config[@]}" --out part.h5
expect_code 2
expect_line 'part.h5'
run 2 "${config[@]}" --out part.h5 --resume --set train.rate=0.5 --set attention.features=8
expect_code 2
expect_line 'attention.features.*train.rate'
run 2 "${config[@]}" --out missing.h5 --resume
expect_code 3
expect_line 'missing'
run 1 data listops --out other.h5 --train 60 --val 20 --test 21 --seed 5
run 2 "${config[@]}" --out part.h5 --resume --set data.file=other.h5
expect_code 2
expect_line 'digest'
