#!/usr/bin/env bash
# What a run is judged by: every example once (P20), intervals and baselines beside the accuracy (P28), the
# same after a reload in a new process (P6), early stopping, the best parameters, warnings (P8, P12, P27),
# seeds (P22).
. "$SOURCE/tests/cli/lib.sh"
fresh
yaml=$SOURCE/configs/lra/listops/quickstart.yaml
run 2 data listops --out d.h5 --train 300 --val 37 --test 41 --min-length 20 --max-length 120 --max-depth 6
expect_code 0
small=(--set data.file=d.h5 --set train.batch=8 --set train.warmup=5 --set train.evaluate_every=5
    --set train.checkpoint_every=10)

# Splits that neither ranks nor batches divide: n is the split's, whoever looks.
run 2 train "$yaml" "${small[@]}" --set train.steps=20 --out a.h5
expect_code 0
expect_out '^test accuracy 0\.[0-9]{4} \([0-9]+/41\)$'
expect_out '^test interval 0\.[0-9]{4} to [01]\.[0-9]{4} \(95 %, Wilson\)$'
expect_out '^test macro F1 '
expect_out '^test majority class '
grep -q 'listops, at most [0-9]* tokens of a sequence' "$err" || fail "the cap is not told (P18)"
result=$(value 'test accuracy')
said=$(grep '^rule\|^root\|^depth\|^length\|^test' "$out")
grep -q '^rule: root operator and its digits ' <<<"$said" || fail "no rule beside the result (P28)"
run 1 inspect a.h5
grep '^test' <<<"$said" | while read -r line; do
    grep -qF "$line" "$out" || fail "inspect doesn't show: $line"
done || exit 1
for ranks in 1 2 3 4; do
    run "$ranks" eval a.h5 --split test --set train.batch=$((ranks + 4))
    expect_code 0
    [ "$(value 'test accuracy')" = "$result" ] || fail "another accuracy on $ranks ranks"
    run "$ranks" eval a.h5 --split val
    expect_out '^val accuracy 0\.[0-9]{4} \([0-9]+/37\)$'
done
python - "$(cat "$out")" <<'PYTHON'
import re
import sys
import h5py
text = sys.argv[1]
labels = h5py.File("d.h5")["val/labels"][:]
rows = [[int(x) for x in line.split()[1:]] for line in text.splitlines() if re.match(r" +\d+( +\d+){10}$", line)]
assert len(rows) == 10 and [sum(r) for r in rows] == [int((labels == c).sum()) for c in range(10)], rows
right = sum(r[i] for i, r in enumerate(rows))
assert f"({right}/37)" in text
p, n, z = right / 37, 37, 1.959963984540054
middle, half = p + z * z / 2 / n, z * (p * (1 - p) / n + z * z / 4 / n / n) ** 0.5
low, high = (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
assert f"val interval {low:.4f} to {high:.4f}" in text
f1 = [2 * rows[c][c] / (sum(rows[c]) + sum(r[c] for r in rows)) for c in range(10) if sum(rows[c]) + sum(r[c] for r in rows)]
assert f"val macro F1 {sum(f1) / len(f1):.4f}" in text
assert f"val majority class {max(map(sum, rows)) / 37:.4f}" in text
last = {k: v[-1] for k, v in h5py.File("a.h5")["evaluations"].items()}
assert (last["confusion"] == [r for r in rows]).all()
for name, value in ("accuracy_low", low), ("accuracy_high", high), ("macro_f1", sum(f1) / len(f1)), (
        "majority", max(map(sum, rows)) / 37), ("accuracy", right / 37):
    assert abs(last[name] - value) < 1e-12, name
PYTHON

# ListOps: by operator, depth and length, beside rules that read the same file.
run 2 eval a.h5 --split test
expect_code 0
expect_out '^rule: majority class of training +0\.'
expect_out '^rule: root operator +0\.'
expect_out '^rule: root operator and its digits +0\.'
rules=$(grep '^rule\|^root\|^depth\|^length' "$out")
[ "$rules" = "$(grep -v '^test' <<<"$said")" ] || fail "another breakdown than at the end of the run"
run 3 eval a.h5 --split test
[ "$(grep '^rule\|^root\|^depth\|^length' "$out")" = "$rules" ] || fail "another breakdown on 3 ranks"
run 1 eval a.h5 --split test --predictions p.h5
expect_code 0
run 3 eval a.h5 --split test --predictions p3.h5
expect_code 0
python - "$rules" "$SOURCE/tests/cli" <<'PYTHON'
import sys
import h5py
import numpy as np
sys.path.insert(0, sys.argv[2])
f, p, p3, run = h5py.File("d.h5"), h5py.File("p.h5"), h5py.File("p3.h5"), h5py.File("a.h5")
symbols = [s.decode() for s in f["vocabulary"][:]]
split = {s: (f[s]["tokens"][:], f[s]["offsets"][:], f[s]["labels"][:]) for s in ("train", "test")}
lines = dict(line.rsplit("  ", 1) for line in sys.argv[1].splitlines())
told = {k.strip(): v.strip() for k, v in lines.items()}
def share(hits):
    return f"{hits.mean():.4f} ({int(hits.sum())}/{len(hits)})"
t, o, l = split["train"]
root = t[o[:-1]]
best = {r: np.bincount(l[root == r], minlength=10).argmax() for r in range(11, 15)}
T, O, L = split["test"]
R = T[O[:-1]]
assert told["rule: majority class of training"] == share(L == np.bincount(l).argmax())
assert told["rule: root operator"] == share(np.array([best[r] for r in R]) == L)
def value(r, v):
    v, n = sorted(v), len(v)
    return {11: v[0], 12: v[-1], 13: (v[(n - 1) // 2] + v[n // 2]) // 2, 14: sum(v) % 10}[r]
def look(ids):
    depth = most = parts = 0
    digits = []
    for i in ids:
        if 11 <= i <= 14:
            depth += 1
            parts += depth == 2
        elif i == 15:
            depth -= 1
        elif depth == 1:
            digits.append(int(i) - 1)
        most = max(most, depth)
    r = ids[0]
    return most, value(r, digits) if digits and not (r == 14 and parts) else best[r]
depth, guess = np.array([look(T[a:b]) for a, b in zip(O, O[1:])]).T
assert told["rule: root operator and its digits"] == share(guess == L)
hits = p["prediction"][:] == p["label"][:]
assert (p["label"][:] == L).all() and (p["index"][:] == np.arange(41)).all() and p["logits"].shape == (41, 10)
assert (p["logits"][:].argmax(1) == p["prediction"][:]).all()
assert hits.sum() == run["test/correct"][0]
for name in ("index", "label", "prediction", "logits"):
    assert p[name][:].tobytes() == p3[name][:].tobytes() and p[name].attrs["units"], name
for name in "accuracy_low", "accuracy_high", "macro_f1", "majority", "accuracy", "loss":
    assert p.attrs[name] == run["test"][name][0], name
assert p.attrs["task"] == "listops" and p.attrs["split"] == "test" and p.attrs["step"] == 20
for r in range(11, 15):
    if (R == r).any():
        assert told["root " + symbols[r]] == share(hits[R == r])
for d in sorted(set(depth)):
    assert told[f"depth {d}"] == share(hits[depth == d])
PYTHON
run 1 eval a.h5 --split test --predictions p.h5
expect_code 2
expect_line 'p.h5 exists: remove it, or choose another name'

# Expressions of one digit are a kind of their own; one that is no expression is named, and ends no run.
mkdir lone
for split in train val test; do
    { printf 'Source\tTarget\n'; for i in {0..9}; do printf '( ( ( [MAX %d ) 7 ) ] )\t%d\n%d\t%d\n' \
        "$i" $((i > 7 ? i : 7)) "$i" "$i"; done; } >lone/basic_$split.tsv
done
run 1 data listops --from lone --out lone.h5
expect_code 0
tiny=(--set data.file=lone.h5 --set train.batch=4 --set train.warmup=1 --set train.steps=2)
run 2 train "$yaml" "${tiny[@]}" --out lone-run.h5
expect_code 0
# Majority: 7, eight times of [MAX and once alone; root: 7 again, and 0, the first of the digits.
expect_out '^rule: majority class of training +0\.4500 \(9/20\)$'
expect_out '^rule: root operator +0\.4500 \(9/20\)$'
expect_out '^rule: root operator and its digits +1\.0000 \(20/20\)$'
expect_out '^root a digit +[01]\.[0-9]+ \([0-9]+/10\)$'
expect_out '^root \[MAX +[01]\.[0-9]+ \([0-9]+/10\)$'
python - <<'PYTHON'
import h5py
with h5py.File("lone.h5", "r+") as f:
    f["test/tokens"][f["test/offsets"][2]] = 15  # a bracket that closes nothing
PYTHON
run 2 train "$yaml" "${tiny[@]}" --out lone-run.h5 --overwrite
expect_code 0
expect_out '^test accuracy'
grep -q 'no results by kind of expression: .*lone.h5: test: example 2: token 1 closes' "$err" || fail "not named"
run 2 eval lone-run.h5
expect_code 3
expect_line 'lone.h5: test: example 2: token 1 closes'

# A damaged checkpoint: told once, and the one before is taken.
cp a.h5 old.h5
cp a.ckpt.prev old.ckpt.prev
head -c 1000 a.ckpt >old.ckpt
run 2 eval old.h5 --split val
expect_code 0
[ "$(grep -c 'the one before, of step' "$err")" = 1 ] || fail "told $(grep -c 'the one before' "$err") times"

# The same seed gives the same number, another seed another one.
run 2 train "$yaml" "${small[@]}" --set train.steps=20 --out b.h5
[ "$(value 'test accuracy')" = "$result" ] || fail "the same seed, another accuracy"
first=$(value digest)
run 2 train "$yaml" "${small[@]}" --set train.steps=20 --set train.seed=2 --out c.h5
[ "$(value digest)" != "$first" ] || fail "another seed, the same parameters"

# Patience: a rate that changes nothing never gets better than the first validation. A stop between, on
# other ranks, ends at the same step; a finished run stays finished.
early=("${small[@]}" --set train.steps=500 --set train.rate=1e-12 --set train.patience=3)
run 2 train "$yaml" "${early[@]}" --out e.h5
expect_code 0
grep -q 'no better validation since step 5: ending early' "$err" || fail "no word of the end"
python - <<'PYTHON'
import h5py
f = h5py.File("e.h5")
assert f.attrs["best_step"] == 5
assert f["steps/step"][-1] == 20 and f.attrs["state"] == "finished" and bool(f.attrs["stopped_early"]) is True
PYTHON
first=$(value digest)
run 1 train "$yaml" "${early[@]}" --set train.max_minutes=0.0001 --out g.h5
expect_code 85
run 2 train "$yaml" "${early[@]}" --out g.h5 --resume
expect_code 0
[ "$(value digest)" = "$first" ] || fail "another end after a stop"
run 2 train "$yaml" "${early[@]}" --out g.h5 --resume
expect_code 0
grep -q 'is finished: nothing is left to do' "$err" || fail "an early end is not taken for one"
[ "$(value digest)" = "$first" ] || fail "another result of a finished run"

run 1 train "$yaml" "${early[@]}" --set train.evaluate_every=0 --set train.steps=2 --out n.h5
expect_code 0
grep -q 'warning: train.patience counts validations' "$err" || fail "patience without validations"

# The best parameters: as eval --best reads them.
run 2 train "$yaml" "${early[@]}" --set train.test=best --out best.h5
expect_code 0
grep -q 'parameters, of step 5' "$err" || fail "the best is not taken"
result=$(value 'test accuracy')
run 1 eval best.h5 --best --split test
[ "$(value 'test accuracy')" = "$result" ] || fail "another best"

run 3 reproduce best.h5
expect_code 0
grep -q 'reproduced 20 of 20 steps' "$out" "$err" || fail "an early end is not reproduced"

# Warnings, which are also on record.
run 1 train "$yaml" "${small[@]}" --set train.steps=4 --out w.h5
grep -q 'warning: train.warmup (5) exceeds train.steps (4)' "$err" || fail "P12"
grep -q 'warning: validation is of 37 examples' "$err" || fail "few examples"
python - <<'PYTHON'
import h5py
assert "warm-up exceeds the steps" in h5py.File("w.h5").attrs["warnings"]
PYTHON
mkdir texts
for split in train test; do
    for i in $(seq 200); do printf '%d\tsome text %d\n' $((i % 2)) "$i"; done >texts/$split.tsv
done
run 1 data text --from texts --validation test --out t.h5
expect_code 0
run 1 train "$SOURCE/configs/lra/text/small-rfa.yaml" --set data.file=t.h5 --set train.steps=2 --set train.warmup=1 --out t1.h5
expect_code 0
grep -q 'warning: validation is the test split' "$err" || fail "P8"
python - <<'PYTHON'
import h5py
with h5py.File("t.h5", "r+") as f:
    f["val/labels"][:] = 0
    f["test/labels"][:] = 1
assert "validation is the test split" in h5py.File("t1.h5").attrs["warnings"]
PYTHON
run 1 train "$SOURCE/configs/lra/text/small-rfa.yaml" --set data.file=t.h5 --set train.steps=2 --set train.warmup=1 --out t2.h5
expect_code 0
grep -q 'warning: class 1 of 2 is missing in val' "$err" || fail "a missing class"
grep -q 'warning: class 0 of 2 is missing in test' "$err" || fail "a missing class of the test"

# A run on data of another kind: what doesn't fit is the data, not the checkpoint.
run 2 eval b.h5 --data t.h5
expect_code 2
expect_line 'b.h5 was trained on other data than t.h5'
run 0 inspect p.h5
expect_code 3
expect_line "p.h5: 'rfa predictions 1'"

# What is missing is named as what it is.
rm -f a.ckpt a.ckpt.prev
run 1 eval a.h5
expect_code 3
expect_line 'a.ckpt'
run 1 eval none.h5
expect_code 3
expect_line 'none.h5: .*No such'
run 1 eval none.h5 --best
expect_code 3
expect_line 'none.h5: .*No such'
