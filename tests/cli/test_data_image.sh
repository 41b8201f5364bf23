#!/usr/bin/env bash
# rfa data image: CIFAR-10's binary files, PNG folders, idx files; both grey formulas; bad input.
. "$SOURCE/tests/cli/lib.sh"
fresh

# Pictures of random colours, the first one black, in all forms.
export PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1
cat >make.py <<'PY'
import gzip
import os
import struct
import numpy as np
from png import png

names = "airplane automobile bird cat deer dog frog horse ship truck".split()
draw = np.random.RandomState(3)
os.makedirs("cifar/cifar-10-batches-bin"), os.makedirs("idx"), os.makedirs("grey")
for split, n in (("train", 200), ("test", 60)):
    colours = draw.randint(0, 256, (n, 3, 32, 32)).astype(np.uint8)
    colours[0] = 0
    labels = draw.permutation(n).astype(np.uint8) % 10
    np.savez(split, colours=colours, labels=labels)
    records = b"".join(bytes([l]) + c.tobytes() for l, c in zip(labels, colours))
    if split == "train":
        for b in range(5):
            open(f"cifar/cifar-10-batches-bin/data_batch_{b + 1}.bin", "wb").write(records[b * 40 * 3073 : (b + 1) * 40 * 3073])
    else:
        open("cifar/cifar-10-batches-bin/test_batch.bin", "wb").write(records)
    file = {"train": "data_batch_1.bin", "test": "test_batch.bin"}[split]
    open(f"grey/{file}", "wb").write(b"".join(bytes([l]) + c[0].tobytes() for l, c in zip(labels, colours)))
    prefix = {"train": "train", "test": "t10k"}[split]
    open(f"idx/{prefix}-images-idx3-ubyte", "wb").write(
        struct.pack(">IIII", 0x803, n, 28, 30) + colours[:, 0, :28, :30].tobytes())
    gzip.open(f"idx/{prefix}-labels-idx1-ubyte.gz", "wb").write(struct.pack(">II", 0x801, n) + labels.tobytes())
    for i in range(n):
        os.makedirs(f"png/x/{split}/{names[labels[i]]}", exist_ok=True)
        png(f"png/x/{split}/{names[labels[i]]}/{i:04d}.png", colours[i].transpose(1, 2, 0), True)
open("png/x/train/bird/empty.png", "wb")
open("png/x/train/bird/list.txt", "w").write("not a picture")
PY
python make.py

cat >check.py <<'PY'
import sys
import h5py
import numpy as np
path, kind = sys.argv[1:]


def grey(c, kind):
    if kind == "pil":
        c = c.astype(np.int64)
        return ((19595 * c[:, 0] + 38470 * c[:, 1] + 7471 * c[:, 2] + 32768) >> 16).astype(np.uint8)
    c = c.astype(np.float32) * np.float32(1 / 255)
    g = np.float32(0.2989) * c[:, 0] + np.float32(0.587) * c[:, 1] + np.float32(0.114) * c[:, 2]
    return (g * np.float32(255.5)).astype(np.uint8)


with h5py.File(path) as f:
    a = f.attrs
    got = {}
    for split in ("train", "val", "test"):
        g = f[split]
        assert g["tokens"].attrs["first_id"] == 1 and (g["lengths"][:] == a["width"] * a["height"]).all()
        got[split] = (g["tokens"][:].reshape(-1, a["height"], a["width"]), g["labels"][:])
        if split == "train":
            assert set(g["labels"][:100]) == set(range(10)), "classes are not mixed"
    assert len(f["vocabulary"]) == 257 and a["padding_id"] == 0 and a["classes"] == 10
    pixels = {"train": np.concatenate([got["train"][0], got["val"][0]]), "test": got["test"][0]}
    labels = {"train": np.concatenate([got["train"][1], got["val"][1]]), "test": got["test"][1]}
    assert len(got["val"][0]) == 20
    for split in ("train", "test"):
        d = np.load(split + ".npz")
        c = d["colours"]
        want = {"idx": c[:, 0, :28, :30], "plain": c[:, 0]}[kind] if kind in ("idx", "plain") else grey(c, kind.split("-")[0])
        want_labels = d["labels"]
        if kind.endswith("-tree"):  # its own order
            rows = lambda p, l: sorted((x.tobytes(), int(y)) for x, y in zip(p, l))
            assert rows(pixels[split], labels[split]) == rows(want, want_labels), split
        else:
            assert (pixels[split] == want).all() and (labels[split] == want_labels).all(), split
    # Black is no padding: the black picture has all its tokens, of id 1.
    black = [i for i, p in enumerate(pixels["train"]) if not p.any()]
    assert len(black) == 1
PY
digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data image --from cifar --out "c$ranks.h5"
    expect_code 0
    digests+=("$(value digest)")
done
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
expect_out '^train 180 examples, 184320 tokens, lengths 1024 to 1024'
python check.py c2.h5 tensorflow
run 0 data image --from cifar --grey pil --out pil.h5
expect_code 0
[ "$(value digest)" != "${digests[0]}" ] || fail "both formulas give the same"
python check.py pil.h5 pil
run 0 data image --from grey --out grey.h5
expect_code 0
python check.py grey.h5 plain
run 0 data image --from idx --out idx.h5
expect_code 0
python check.py idx.h5 idx
run 2 data image --from png --out png.h5
expect_code 0
digest=$(value digest)
grep -q '2 skipped; the first: png/x/train/bird/' "$err" || fail "skipped files are not counted"
python check.py png.h5 tensorflow-tree
run 0 data image --from png --out png0.h5
[ "$(value digest)" = "$digest" ] || fail "PNG folders: other bytes on another number of ranks"
run 0 inspect png.h5
expect_code 0
expect_out 'grey tensorflow'
expect_out 'skipped 2'

# Real pictures, where Debian's dataset-fashion-mnist is installed: counts, balance, digest of its 70000.
fashion=/usr/share/datasets/fashion-mnist
if [ -d $fashion ]; then
    run 2 data image --from $fashion --out fashion.h5
    expect_code 0
    expect_out '^train 54000 examples, 42336000 tokens, lengths 784 to 784'
    expect_out '^val 6000 examples'
    expect_out '^test 10000 examples, .* in %: 10.0 10.0 10.0 10.0 10.0 10.0 10.0 10.0 10.0 10.0'
    expect_out '^duplicates 0 within splits, 0 across splits'
    expect_out '^digest 718b46dd3b16f48d'
else
    echo "not run: Fashion-MNIST (Debian: dataset-fashion-mnist)"
fi

expect_bad() # REGEX ARGS...
{
    local regex=$1
    shift
    run 0 data image --out bad.h5 "$@"
    expect_code 3
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
damage() # FOLDER: a copy of it, called bad
{
    rm -rf bad
    cp -r "$1" bad
}
batch=bad/cifar-10-batches-bin
damage cifar && truncate -s -1 $batch/data_batch_3.bin
expect_bad 'data_batch_3.bin: 122919 bytes are not records' --from bad
damage cifar && printf '\012' | dd of=$batch/test_batch.bin bs=1 seek=6146 conv=notrunc status=none
expect_bad 'test_batch.bin: record 2 at byte 6146: label 10, not 0 to 9' --from bad
damage cifar && rm $batch/data_batch_2.bin
expect_bad 'data_batch_2.bin is missing' --from bad
damage cifar && rm $batch/test_batch.bin
expect_bad 'test_batch.bin is missing' --from bad
damage idx && truncate -s -1 bad/train-images-idx3-ubyte
expect_bad 'train-images-idx3-ubyte: ends at byte 168015, 1 short' --from bad
damage idx && echo >>bad/t10k-images-idx3-ubyte
expect_bad 't10k-images-idx3-ubyte: goes on after byte' --from bad
damage idx && printf '\011' | dd of=bad/train-images-idx3-ubyte bs=1 seek=2 conv=notrunc status=none
expect_bad 'begins with 00 00 09 03' --from bad
damage idx && cp bad/t10k-labels-idx1-ubyte.gz bad/train-labels-idx1-ubyte.gz
expect_bad '200 pictures, but 60 labels' --from bad
damage idx && truncate -s -9 bad/train-labels-idx1-ubyte.gz
expect_bad 'train-labels-idx1-ubyte.gz: can.t be read at byte [0-9]+: the compressed file is cut off' --from bad
damage idx && rm bad/t10k-labels-idx1-ubyte.gz
expect_bad 't10k-labels-idx1-ubyte .* is missing' --from bad
damage png && truncate -s 1000 "$(ls bad/x/test/dog/*.png | tail -n 1)"
expect_bad 'bad/x/test/dog/[0-9]+.png: not a good PNG file: the file is cut off' --from bad
damage png && python -c 'import numpy as np; from png import png
png("bad/x/train/cat/odd.png", np.zeros((32, 31), np.uint8))'
expect_bad 'bad/x/train/.*.png: (31 x 32 pixels, but the others have 32 x 32|32 x 32 .* 31 x 32)' --from bad
mkdir empty
expect_bad 'empty: neither data_batch_1.bin' --from empty
expect_bad 'nowhere: No such file' --from nowhere
run 0 data image --from png --grey red
expect_code 2
expect_line "--grey 'red': tensorflow or pil"
run 0 data image
expect_code 2
expect_line '--from DIR'
