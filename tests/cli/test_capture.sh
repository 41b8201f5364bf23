#!/usr/bin/env bash
# rfa capture and rfa probe: vectors that agree with the parameters and with the run's own attention,
# the same bits on any number of ranks; read-outs that training improves; what is refused.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out d.h5 --train 300 --val 60 --test 60 --min-length 30 --max-length 80 --max-depth 4
expect_code 0
cat >quick.yaml <<'YAML'
data: {file: d.h5, max_length: 80}
model: {layers: 2, width: 32, heads: 2, feed_forward: 32, head: 16, pooling: first}
attention: {kind: softmax}
parallel: {segments: 4}
train: {steps: 60, batch: 30, warmup: 5, rate: 0.003}
YAML
run 2 train quick.yaml --out a.h5
expect_code 0
for ranks in 1 2 3 4; do
    run $ranks capture a.h5 --split val --examples 3 --tokens 40 --out c$ranks.h5
    expect_code 0
    expect_out "c$ranks.h5: 12 heads of 40 tokens"
done
run 4 capture a.h5 --split val --examples 3 --tokens 40 --layer 1 --set parallel.sequence=2 --set train.batch=2 \
    --out grouped.h5
expect_code 0
run 1 capture a.h5 --split val --example 5 --out five.h5
expect_code 0
python - <<'PYTHON'
import h5py, numpy as np
one = h5py.File("c1.h5")
arrays = ("q", "k", "v", "out", "example", "layer", "head")
for n in (2, 3, 4):
    other = h5py.File(f"c{n}.h5")
    for name in arrays:
        assert one[name][...].tobytes() == other[name][...].tobytes(), (n, name)
grouped, last = h5py.File("grouped.h5"), one["layer"][...] == 1
for name in arrays:
    assert grouped[name][...].tobytes() == one[name][...][last].tobytes(), name
assert [d[0].name for d in one["q"].dims] == ["/place", "/token", "/component"]
assert one["q"].dtype == "<f4" and one.attrs["split"] == "val" and one.attrs["step"] == 60
for name in one:
    assert name == "config" or (one[name].attrs["units"] and one[name].attrs["long_name"]), name

data, state = h5py.File("d.h5"), h5py.File("a.ckpt")
p = {name: state["parameters"][name][...].astype("f8") for name in state["parameters"]}
lengths, offsets = data["val/lengths"][...], data["val/offsets"][...]
want = [i for i in range(60) if lengths[i] >= 40][:3]
assert list(one["example"]) == list(np.repeat(want, 4)) and list(one["head"]) == [0, 1] * 6
five = h5py.File("five.h5")
assert set(five["example"]) == {5} and five["q"].shape == (4, lengths[5], 16)

def ids(i, n):
    stored = data["val/tokens"]
    return stored[offsets[i]:offsets[i] + n].astype(int) + int(stored.attrs.get("first_id", 0))
def close(a, b, terms):
    # float32 products of so many terms, of numbers as large as b's
    assert np.abs(a - b).max() <= 4 * terms * 2.0 ** -24 * np.abs(b).max(), np.abs(a - b).max()
for place, i in enumerate(want):
    t = ids(i, 40)
    x = p["embedding.tokens"][t]
    if "embedding.positions" in p:
        x = x + p["embedding.positions"][:40]
    else:
        continue
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    x = x * p["layer0.norm1.scale"] + p["layer0.norm1.shift"]
    y = x @ p["layer0.attention.qkv.weight"].T + p["layer0.attention.qkv.bias"]
    for h in range(2):
        for j, name in enumerate("qkv"):
            close(one[name][place * 4 + h], y[:, j * 32 + h * 16:j * 32 + (h + 1) * 16], 32)
assert "embedding.positions" in p
for h in range(12):
    q, k, v, out = (one[name][h].astype("f8") for name in ("q", "k", "v", "out"))
    s = q @ k.T / 4
    s = np.exp(s - s.max(1, keepdims=True))
    close(out, s / s.sum(1, keepdims=True) @ v, 40)
PYTHON

# Which half of the alphabet has the majority: a linear rule of the counts of 64 letters, of which an
# embedding of 16 numbers that was not trained shows a part.
mkdir raw
python - <<'PY'
import random
draw = random.Random(3)
for split, n in (("train", 600), ("val", 200), ("test", 200)):
    with open(f"raw/{split}.tsv", "w") as f:
        for i in range(n):
            label = i % 2
            text = "".join(chr(48 + 2 * draw.randrange(32) + (draw.random() < (0.67 if label else 0.33))) for _ in range(24))
            f.write(f"{label}\t{text}\n")
PY
run 1 data text --from raw --out t.h5
expect_code 0
cat >letters.yaml <<'YAML'
data: {file: t.h5, max_length: 32}
model: {layers: 2, width: 16, heads: 1, feed_forward: 16, head: 8, pooling: mean}
attention: {kind: softmax}
parallel: {segments: 4}
train: {steps: 200, batch: 30, warmup: 5, rate: 0.01}
YAML
run 1 train letters.yaml --out b.h5
expect_code 0
run 1 probe b.h5 --untrained --out p1.h5
expect_code 0
cp "$out" table
for ranks in 2 4; do
    run $ranks probe b.h5 --untrained --set train.batch=25 --out p$ranks.h5
    expect_code 0
    cmp -s "$out" table || fail "another table on $ranks ranks"
done
run 1 probe b.h5 --examples 40 --ridge 0.1,1 --out few.h5
expect_code 0
python - <<'PYTHON'
import h5py, numpy as np
one, few = h5py.File("p1.h5"), h5py.File("few.h5")
for n in (2, 4):
    assert (one["accuracy"][...] == h5py.File(f"p{n}.h5")["accuracy"][...]).all(), n
a, best = one["accuracy"][...], one["best"][...]
assert a.shape == (2, 3, 2, 8, 2) and [d[0].name for d in one["accuracy"].dims] == [
    "/model", "/layer", "/pooling", "/ridge", "/split"]
assert (best[..., 0] == a[..., 0].max(3)).all()
assert best[0, 2, 0, 1] > best[1, 2, 0, 1] + 0.03 and best[0, 2, 0, 1] > 0.9, best[:, 2, 0]
assert few["accuracy"].shape == (1, 3, 2, 2, 2) and few.attrs["examples"] == 40
data = h5py.File("t.h5")
labels = np.bincount(data["train/labels"][...], minlength=2)
for i, split in enumerate(("val", "test")):
    assert one["majority"][i] == np.mean(data[split + "/labels"][...] == labels.argmax())
PYTHON

# What is refused, with nothing left behind.
refused() # CODE REGEX ARGS...
{
    run 2 "${@:3}"
    expect_code "$1"
    expect_line "$2"
    [ ! -e x.h5 ] && [ ! -e x.h5.tmp ] || fail "a file is left"
}
refused 2 'layers 0 to 1' capture a.h5 --layer 2 --out x.h5
refused 2 '--split dev' capture a.h5 --split dev --out x.h5
refused 2 'have 81 tokens|at most 80' capture a.h5 --tokens 81 --out x.h5
refused 2 'only 60 examples' capture a.h5 --examples 61 --out x.h5
refused 2 'exists' capture a.h5 --out c1.h5
refused 2 "can't change the trained model" capture a.h5 --set model.heads=4 --out x.h5
refused 2 'ascending' probe a.h5 --ridge 1,0.1
refused 2 'only 300 examples' probe a.h5 --examples 301 --out x.h5
mkdir none && cp a.h5 none/
refused 3 'none/a' capture none/a.h5 --data d.h5 --out x.h5
