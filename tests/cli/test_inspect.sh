#!/usr/bin/env bash
# rfa inspect: runs (finished, killed, without their file), checkpoints, data sets, wrong files; as
# text and as JSON, which must say the same as the files do.
export LC_ALL=C.UTF-8 # of the characters that curves are drawn with
. "$SOURCE/tests/cli/lib.sh"
fresh

run 1 data listops --out d.h5 --train 60 --val 20 --test 20 --min-length 20 --max-length 60 \
    --max-depth 4
expect_code 0
cat >quick.yaml <<'YAML'
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8}
attention: {features: 8, pool: 4}
parallel: {segments: 2}
train: {steps: 12, batch: 4, warmup: 2, evaluate_every: 5, checkpoint_every: 6}
YAML
run 2 train quick.yaml --out runs/a.h5
expect_code 0
digest=$(value digest)
accuracy=$(value "test accuracy")
[ ! -s runs/a.jsonl ] || fail "runs/a.jsonl is not empty after the run"

run 0 inspect runs/a.h5
expect_code 0
expect_out '^runs/a.h5: run, finished after 12 steps$'
expect_out '^model .*layers 1, width 16'
expect_out '^attention .*kind rfa'
expect_out '^data .*file d.h5'
expect_out '^provenance '
expect_out "^$(date -u +%Y)-[0-9T:-]+Z +0 +2 +1 .*$(hostname)"
expect_out '^ +12 .*'"$digest"'$'
expect_out '^ +10 +val +[0-9.]+ +[01]\.[0-9]{4} \([0-9]+/20\)$'
expect_out '^loss [0-9.]+ [▁▂▃▄▅▆▇█]+ [0-9.]+$'
expect_out '^val accuracy [01][.][0-9]{4} [▁▂▃▄▅▆▇█]{3} [01][.][0-9]{4}$'
expect_out '^test: true class by row'
[ "$(value digest)" = "$digest" ] || fail "another digest than the run printed"
[ "$(value "test accuracy")" = "$accuracy" ] || fail "another accuracy than the run printed"
[ ! -s "$err" ] || fail "something on stderr"

# The same on several ranks: once.
cp "$out" one
run 3 inspect runs/a.h5
expect_code 0
cmp -s one "$out" || fail "other output on three ranks"

run 0 inspect --json runs/a.h5
expect_code 0
python - "$out" runs/a.h5 "$digest" <<'PY'
import json, sys, h5py, numpy as np
d = json.load(open(sys.argv[1]))
f = h5py.File(sys.argv[2])
assert d["kind"] == "run" and d["state"] == "finished" == f.attrs["state"]
assert d["config_text"] == f["config"].attrs["text"] and d["config"]["train.steps"] == 12
assert d["config"]["attention.causal"] is False and d["attributes"]["ranks"] == 2
assert set(d["attributes"]) | {"schema", "state"} == set(f.attrs)
assert [s["ranks"] for s in d["starts"]] == [2] == f["starts/ranks"][:].tolist()
assert d["starts"][0]["started"] == d["attributes"]["started"] == f["starts/started"].asstr()[0]
for name, column in f["steps"].items():
    want = ["%016x" % x for x in column] if name == "digest" else column[:].tolist()
    assert d["steps"][name] == want, name
assert d["steps"]["digest"][-1] == sys.argv[3]
for i, e in enumerate(d["evaluations"]):
    for name, value in e.items():
        want = f["evaluations"][name][i]
        assert value == (want.decode() if name == "split" else want.tolist()), name
assert [e["step"] for e in d["evaluations"]] == [5, 10, 12]
assert np.sum(d["test"]["confusion"]) == d["test"]["examples"] == 20
assert np.trace(d["test"]["confusion"]) == d["test"]["correct"]
PY

for file in runs/a.ckpt runs/a.ckpt.prev; do
    step=12
    [ $file = runs/a.ckpt ] || step=6
    run 0 inspect $file
    expect_code 0
    expect_out "^$file: checkpoint after step $step, complete, [0-9]+ arrays"
    expect_out '^model .*layers 1, width 16'
    run 0 inspect $file --json
    expect_code 0
    python -c 'import json, sys
d = json.load(open(sys.argv[1])); a = d["attributes"]
assert d["kind"] == "checkpoint" and a["step"] == int(sys.argv[2]) and a["complete"] is True
assert d["arrays"] == a["arrays"] > 0 and d["values"] > 1000' "$out" $step
done

run 0 inspect d.h5
expect_code 0
expect_out '^d.h5: data set of listops, 10 classes, '
expect_out '^train +60 examples of '
expect_out "^test +20 examples of "
run 0 inspect d.h5 --json
expect_code 0
python -c 'import json, sys, h5py
d = json.load(open(sys.argv[1])); f = h5py.File("d.h5")
assert d["kind"] == "data" and d["classes"] == 10 and d["attributes"]["digest"] == f.attrs["digest"]
for name, s in d["splits"].items():
    assert s["tokens"] == f[name]["tokens"].size and s["longest"] == max(f[name]["lengths"])
    assert s["examples"] == f[name]["labels"].size and s["shortest"] == min(f[name]["lengths"])
assert list(d["splits"]) == ["train", "val", "test"]' "$out"

# A run that is killed shows every step that it took, from the lines, and the checkpoint is there.
"$RFA" train quick.yaml --out runs/killed.h5 --set train.steps=1000000 \
    --set train.evaluate_every=7 >/dev/null 2>&1 &
process=$!
for ((i = 0; i < 600; i++)); do
    [ -f runs/killed.ckpt.prev ] && [ -s runs/killed.jsonl ] && break
    sleep 0.1
done
kill -9 $process
wait $process 2>/dev/null || true
run 0 inspect runs/killed.h5
expect_code 0
expect_out '^runs/killed.h5: run, running after [0-9]+ steps$'
run 0 inspect runs/killed.h5 --json
expect_code 0
cp "$out" whole.json
python -c 'import json
d = json.load(open("whole.json")); n = len(d["steps"]["step"])
assert d["steps"]["step"] == list(range(1, n + 1)) and n >= 12 and d["test"] is None
e = [e["step"] for e in d["evaluations"]]
assert e in (list(range(7, n + 1, 7)), list(range(7, n, 7))), e'

# Lines alone, the last one torn.
run 0 inspect runs/a.h5 --json
cat >runs/lines.jsonl <<'JSON'
{"step":1,"loss":2.5,"learning_rate":0.001,"gradient_norm":null,"tokens_per_second":10,"exchange_wait":0,"seconds":1,"guards":0,"digest":"00000000000000ff","run":"0000000000000001"}
{"step":2,"loss":2.25,"learning_rate":0.001,"gradient_norm":1,"tokens_per_second":10,"exchange_wait":0,"seconds":1,"guards":0,"digest":"00000000000000fe","run":"0000000000000001"}
{"step":3,"loss":2.125,"learning_rate":0.00
JSON
run 0 inspect runs/lines.h5
expect_code 0
expect_out '^runs/lines.h5: run, running after 2 steps$'
[ "$(value digest)" = 00000000000000fe ] || fail "the digest of the torn line"
run 0 inspect runs/lines.h5 --json
python -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["steps"]["loss"] == [2.5, 2.25] and d["steps"]["gradient_norm"] == [None, 1]' "$out"

# Wrong files: one line, exit code 3; wrong usage: 2.
head -c 20000 runs/a.ckpt >cut.ckpt
echo hello >text.h5
: >empty.h5
cp runs/a.h5 flipped.h5
printf 'x' | dd of=flipped.h5 bs=1 seek=3000 conv=notrunc status=none
python -c 'import h5py; h5py.File("foreign.h5", "w")["x"] = 1'
for file in none.h5 cut.ckpt text.h5 empty.h5 flipped.h5 foreign.h5 quick.yaml runs; do
    for ranks in 0 2; do
        run $ranks inspect $file
        expect_code 3
        expect_line "$file: "
    done
done
run 0 inspect
expect_code 2
expect_line 'inspect needs one file'
run 0 inspect runs/a.h5 runs/a.ckpt
expect_code 2
run 0 inspect runs/a.h5 --yaml
expect_code 2
expect_line 'yaml'
run 0 inspect --help
expect_code 0
expect_out '^usage: rfa inspect FILE'

# Output that can't be written is an error, too.
code=0
"$RFA" inspect runs/a.h5 --json >/dev/full 2>"$err" || code=$?
expect_code 3
expect_line 'standard output'

# Results of rfa bench: each case once, with the file's own medians.
run 0 bench gemm --set bench.sizes=16,32 --set bench.repeats=1 --set bench.ceiling=64 --out bench.h5
expect_code 0
run 0 inspect bench.h5
expect_code 0
expect_out '^bench.h5: 2 results of rfa bench$'
[ "$(grep -c '^gemm ' "$out")" = 2 ] || fail "not two lines of gemm"
run 0 inspect bench.h5 --json
expect_code 0
python - "$out" <<'PY'
import h5py, json, sys
said = json.load(open(sys.argv[1]))
with h5py.File("bench.h5") as file:
    assert [r["median_seconds"] for r in said["results"]] == list(file["results/median_seconds"])
    assert said["kind"] == "bench" and said["attributes"]["ranks"] == file.attrs["ranks"]
with h5py.File("bench.h5", "r+") as file:
    del file["results/phase"]
PY
run 0 inspect bench.h5
[ "$code" -ne 0 ] || fail "a damaged file is shown"
expect_line "bench.h5"
