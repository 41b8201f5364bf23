#!/usr/bin/env bash
# rfa train --profile: the same digests, a table at the end, the same on record and in inspect.
. "$SOURCE/tests/cli/lib.sh"
fresh

run 1 data listops --out d.h5 --train 60 --val 20 --test 20 --min-length 20 --max-length 60 \
    --max-depth 4
expect_code 0
cat >quick.yaml <<'YAML'
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8}
attention: {features: 8, pool: 4}
parallel: {segments: 4}
train: {steps: 12, batch: 4, warmup: 2, evaluate_every: 5, checkpoint_every: 6}
YAML
run 2 train quick.yaml --out runs/plain.h5
expect_code 0
digest=$(value digest)
grep -q '^phase ' "$err" && fail "a profile that nobody asked for"
python -c 'import h5py; f = h5py.File("runs/plain.h5"); assert "profile" not in f and "profile_steps" not in f.attrs'

# check FILE RANKS THREADS STEPS: the record says the same as rfa inspect --json, and adds up.
check()
{
    run 0 inspect "$1" --json
    expect_code 0
    python - "$out" "$@" <<'PY'
import json, sys, h5py, numpy as np
d, f = json.load(open(sys.argv[1])), h5py.File(sys.argv[2])
ranks, threads, steps = map(int, sys.argv[3:6])
p = {name: column[:] for name, column in f["profile"].items()}
phase = f["profile/phase"].asstr()[:].tolist()
assert [r["phase"] for r in d["profile"]] == phase and f.attrs["profile_steps"] == steps
for name in p:
    assert name == "phase" or [r[name] for r in d["profile"]] == p[name].tolist(), name
assert abs(p["share"].sum() - 1) < 1e-12 and (p["share"] >= -1e-6).all()
assert np.allclose(p["share"], p["seconds"] / p["seconds"].sum(), rtol=1e-12)
assert (p["seconds_least"] <= p["seconds"] * (1 + 1e-12)).all()
assert (p["seconds"] <= p["seconds_most"] * (1 + 1e-12)).all()
last = f["steps/step"][:] > f["steps/step"][-1] - steps
whole, wall = p["seconds"].sum(), f["steps/seconds"][:][last].sum()
assert 0.5 * threads * wall < whole < 2 * threads * wall + 0.5, (whole, wall)
at = {name: i for i, name in enumerate(phase)}
for name in "attention features products norm gelu dropout embedding sums optimiser data".split():
    assert p["seconds"][at[name]] > 0, name
# One layer: q, k, v (3 E), out (E) and feed-forward (2 M), forward, and twice that backward.
assert p["flops"][at["products"]] > 0 and p["flops"][at["attention"]] > 0
assert p["flops"][at["features"]] > 0 and p["flops"][at["norm"]] == 0
assert f["profile/seconds"].attrs["units"] == "s" and len(f["profile/seconds"].dims[0]) == 1
PY
}

run 2 train quick.yaml --out runs/a.h5 --profile
expect_code 0
[ "$(value digest)" = "$digest" ] || fail "another digest with --profile"
grep -q '^profile of 12 steps, ranks x threads = 2 x 1' "$err" || fail "no profile on stderr"
grep -Eq '^products +[0-9.]+ %( +[0-9.e+-]+){5}$' "$err" || fail "no row of products"
grep '^phase ' -A 20 "$err" | grep -E '^[a-z]+ +-?[0-9.]+ %' >table
check runs/a.h5 2 1 12
run 0 inspect runs/a.h5
expect_code 0
[ "$(grep -cFxf table "$out")" = "$(wc -l <table)" ] ||
    fail "inspect shows another table than the run"

# Threads; a stop and going on: the profile is that of the newest profiled start.
run 1 train quick.yaml --out runs/t.h5 --profile --set parallel.threads=2
expect_code 0
[ "$(value digest)" = "$digest" ] || fail "another digest with two threads"
check runs/t.h5 1 2 12
run 2 train quick.yaml --out runs/b.h5 --profile --set train.max_minutes=0.0001
expect_code 85
check runs/b.h5 2 1 1
run 2 train quick.yaml --out runs/b.h5 --resume --profile --set train.max_minutes=0.0001
expect_code 85
check runs/b.h5 2 1 1
run 1 train quick.yaml --out runs/b.h5 --resume --set train.max_minutes=0
expect_code 0
[ "$(value digest)" = "$digest" ] || fail "another digest after stops"
run 0 inspect runs/b.h5
expect_out '^products +[0-9.]+ %'

# Every kind and its exchanges: shares add up, digests stay.
for kind in softmax ra lara eva; do
    run 2 train quick.yaml --out runs/$kind.h5 --set attention.kind=$kind --set train.steps=3
    expect_code 0
    digest=$(value digest)
    run 2 train quick.yaml --out runs/$kind-p.h5 --set attention.kind=$kind --set train.steps=3 \
        --set parallel.threads=2 --profile
    expect_code 0
    [ "$(value digest)" = "$digest" ] || fail "$kind: another digest with --profile"
    python -c 'import h5py, sys
f = h5py.File(sys.argv[1])["profile"]; at = f["phase"].asstr()[:].tolist().index
assert abs(f["share"][:].sum() - 1) < 1e-12 and f["share"][at("rest")] > -1e-6
assert f["seconds"][at("attention")] > 0 and f["seconds"][at("exchange")] > 0
assert f["flops"][at("attention")] > 0' runs/$kind-p.h5
done
