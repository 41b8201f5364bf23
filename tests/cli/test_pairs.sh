#!/usr/bin/env bash
# Models of pairs of documents: the same digests on any number of ranks, any grid, any pass size, with
# and without windows; stop and go on; evaluation elsewhere; what does not fit pairs is refused.
. "$SOURCE/tests/cli/lib.sh"
fresh
cat >make.py <<'PY'
import os
import random
draw = random.Random(4)
words = ["long", "range", "a", "caf\u00e9", "arena", "of", "the"]
text = lambda most: " ".join(draw.choice(words) for _ in range(draw.randint(1, most)))
os.makedirs("pairs")
for split, n in (("train", 30), ("eval", 9), ("test", 11)): # one document may be much the longer one
    open(f"pairs/new_aan_pairs.{split}.tsv", "w").write(
        "".join(f"{i % 2}.0\tA{i}\tB{i}\t{text(60)}\t{text(15 if i % 3 else 90)}\n" for i in range(n)))
PY
python make.py
run 2 data retrieval --from pairs --out pairs.h5
expect_code 0
run 1 data listops --out single.h5 --train 20 --val 5 --test 5
expect_code 0

settings=(--set data.file=pairs.h5 --set data.max_length=256 --set train.steps=6 --set train.warmup=2
    --set train.batch=5 --set train.evaluate_every=3 --set train.checkpoint_every=2)

# rows RUN: everything in the record that must not depend on ranks or stops.
rows()
{
    python -c 'import h5py, sys
f = h5py.File(sys.argv[1])
print([hex(d) for d in f["steps/digest"][:]], f["steps/loss"][:].tolist(), f["evaluations/loss"][:].tolist())' "$1"
}

# train NAME RANKS ARGS...: one run; its record must be that of the other runs of $config.
train()
{
    local name=$1 ranks=$2
    shift 2
    run "$ranks" train "$SOURCE/configs/lra/retrieval/$config.yaml" "${settings[@]}" --out "$name.h5" --overwrite \
        "${more[@]}" "$@"
    expect_code 0
    expect_out '^test accuracy [01]\.[0-9]{4} \([0-9]+/11\)$'
    rows "$name.h5" >>rows.$kind
    [ "$(sort -u rows.$kind | wc -l)" = 1 ] || fail "$kind, $name differs: $(cat rows.$kind)"
}

kind=nli config=small-rfa more=()
train one 1
[ "$(tr , '\n' <rows.$kind | grep -o '0x[0-9a-f]*' | sort -u | wc -l)" = 6 ] || fail "6 steps must have 6 digests"
train two 2
train three 3
train four 4
train grid 4 --set parallel.sequence=2
train micro 2 --set parallel.sequence=1 --set train.micro_batch=2 --set train.recompute=true
kind=concat config=small-softmax more=(--set model.match=concat --set model.head2=16 --set model.pooling=padded_mean)
train one 1
train three 3
train grid 4 --set parallel.sequence=2 --set train.micro_batch=1
kind=windows config=small-rfa more=(--set attention.causal=true --set train.window=64 --set model.pooling=last)
train one 1
train two 2
train micro 3 --set train.micro_batch=1

# Both documents are read: 6 steps without the second ones of the pairs give another record.
python - <<'PY'
import h5py
import shutil
shutil.copy("pairs.h5", "altered.h5")
with h5py.File("altered.h5", "r+") as f:
    f["train/tokens2"][:] = 65
PY
kind=other config=small-rfa more=(--set data.file=altered.h5)
train other 2
cmp -s rows.other rows.nli && fail "the second documents are not read"

# Stopped and gone on with on other ranks; evaluated on other ranks in other batches.
more=() config=small-rfa
run 2 train "$SOURCE/configs/lra/retrieval/$config.yaml" "${settings[@]}" --out part.h5 --set train.max_minutes=0.0001
expect_code 85
run 3 train "$SOURCE/configs/lra/retrieval/$config.yaml" "${settings[@]}" --out part.h5 --resume
expect_code 0
rows part.h5 | cmp -s - <(head -n 1 rows.nli) || fail "another record after a stop"
for variant in '1' '2 --set train.batch=3' '4 --set train.batch=11 --set parallel.sequence=2'; do
    run ${variant%% *} eval part.h5 --data pairs.h5 --split test $(cut -s -d' ' -f2- <<<"$variant")
    expect_code 0
    value 'test loss' >>losses
done
[ "$(sort -u losses | wc -l)" = 1 ] || fail "evaluations differ: $(cat losses)"
python - "$(sort -u losses)" <<'PY'
import h5py
import sys
assert float(h5py.File("part.h5")["test/loss"][()]) == float(sys.argv[1])
PY

# Whether two documents are of one kind can't be said of either alone, and is learnt.
cat >make.py <<'PY'
import os
import random
draw = random.Random(6)
text = lambda kind: "".join(draw.choice(("abc", "xyz")[kind]) for _ in range(draw.randint(10, 40)))
os.makedirs("kinds")
for split, n in (("train", 400), ("eval", 10), ("test", 100)):
    with open(f"kinds/new_aan_pairs.{split}.tsv", "w") as table:
        for i in range(n):
            a, b = i % 2, i // 2 % 2
            table.write(f"{int(a == b)}.0\tA{i}\tB{i}\t{text(a)}\t{text(b)}\n")
PY
python make.py
run 2 data retrieval --from kinds --out kinds.h5
expect_code 0
run 2 train "$SOURCE/configs/lra/retrieval/small-rfa.yaml" --out kinds-run.h5 --set data.file=kinds.h5 \
    --set data.max_length=64 --set train.steps=80 --set train.warmup=10 --set train.rate=3e-3 \
    --set train.batch=16 --set train.evaluate_every=0 --set train.checkpoint_every=0
expect_code 0
expect_out '^test accuracy (1\.|0\.9)'

# refused CODE REGEX ARGS...: one line says why.
refused()
{
    local wanted=$1 line=$2
    shift 2
    run 2 train "$SOURCE/configs/lra/retrieval/small-rfa.yaml" "${settings[@]}" --out no.h5 "$@"
    expect_code "$wanted"
    expect_line "$line"
    [ ! -e no.h5 ] || fail "a refused run left a file"
}
refused 2 'model.match nli: single.h5 is no data set of pairs' --set data.file=single.h5
refused 2 'model.vocabulary \(200\) is smaller than that of pairs.h5 \(257\)' --set model.vocabulary=200
refused 2 'train.carry stateful .* not for data sets of pairs' --set attention.causal=true \
    --set train.window=64 --set train.carry=stateful
exit 0
