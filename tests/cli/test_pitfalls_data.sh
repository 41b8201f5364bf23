#!/usr/bin/env bash
# What goes wrong with the data of the Long Range Arena, by the numbers of tests/PITFALLS.md.
. "$SOURCE/tests/cli/lib.sh"
export PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1
fresh

# make ARGS...: rfa data that must succeed.
make()
{
    run 0 data "$@" --force
    expect_code 0
}
# refuse CODE REGEX ARGS...: rfa data that must fail with this line.
refuse()
{
    local expected=$1 regex=$2
    shift 2
    run 0 data "$@" --out refused.h5
    expect_code "$expected"
    expect_line "$regex"
    [ ! -e refused.h5 ] || fail "a file is left"
}

cat >samples.py <<'PY'
import os
import numpy as np
from png import png

os.makedirs("black"), os.makedirs("empty")
# CIFAR-10's records of grey pixels: black pictures among others.
for name, n in (("data_batch_1.bin", 20), ("test_batch.bin", 4)):
    with open("black/" + name, "wb") as f:
        for i in range(n):
            f.write(bytes([i % 2]) + bytes(1024 if i % 4 == 0 else 512) + bytes([7] * (0 if i % 4 == 0 else 512)))
# Four known colours, as pictures of one colour each.
for split in ("train", "test"):
    for c, rgb in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255), (10, 200, 90))):
        os.makedirs(f"colours/{split}/c{c}")
        for i in range(10):
            png(f"colours/{split}/c{c}/{i}.png", np.tile(np.uint8(rgb), (4, 4, 1)), True)
# Pathfinder's files, paired by hand: a picture's grey value is 7 * file + number, and its label is 1 where
# that is a multiple of 3. Lines of metadata are in another order than names, and the folders
# 0, 2, 10, 33 in another one as numbers than as names. One picture is empty.
for n, top in (("14", "pf/x/pathfinder32/curv_contour_length_14"), ("9", "pf/x/pathfinder32/curv_contour_length_9")):
    os.makedirs(top + "/metadata")
    for k in (10, 33, 0, 2):
        os.makedirs(f"{top}/imgs/{k}")
        with open(f"{top}/metadata/{k}.npy", "w") as f:
            for i in (11, 2, 1, 10, 9, 0, 3, 4, 5, 8, 7, 6):
                v = 7 * k + i
                png(f"{top}/imgs/{k}/sample_{i}.png", np.full((32, 32), v, np.uint8))
                f.write(f"imgs/{k} sample_{i}.png {i} {int(v % 3 == 0)} 1.0 {n} 4 2 0.5 1 1\n")
    open(f"{top}/imgs/2/sample_9.png", "wb")
# Tables: texts that come again; a class after the other; many bytes a character, and quotes.
open("again.tsv", "w").write("".join(f"{i % 2}\ttext {i % 35}\n" for i in range(40)))
open("sorted.tsv", "w").write("".join(f"{i // 1500}\ttext {i}\n" for i in range(3000)))
texts = ['"', '""quoted", he said\'', "é€😀", "<br />", "a\"b", " , ; "] * 4
with open("text.tsv", "w") as f:
    f.write("".join(f"{i % 2}\t{i} {t}\n" for i, t in enumerate(texts)))
os.makedirs("pairs/tsv_data")
for split in ("train", "eval", "test"):
    with open(f"pairs/tsv_data/new_aan_pairs.{split}.tsv", "w") as f:
        f.write("".join(f"{i % 2}.0\ta{i}\tb{i}\t{'é' * 6000}{t}\t{t}\"\n" for i, t in enumerate(texts)))
os.makedirs("imdb")
for split in ("train", "test"):
    for name in ("neg", "pos"):
        os.makedirs(f"imdb/{split}/{name}")
        for i in range(40): # two reviews of each film
            open(f"imdb/{split}/{name}/{i}_5.txt", "w").write(f"{split} film {i // 2} {name} {i}")
PY
python samples.py

echo "P1: black is no padding: an all-black picture has its 1,024 tokens, of an id that is not 0"
make image --from black --out black.h5
python - <<'PY'
import h5py
import numpy as np
with h5py.File("black.h5") as f:
    assert f.attrs["padding_id"] == 0
    for s in ("train", "val", "test"):
        g = f[s]
        assert (g["lengths"][:] == 1024).all()
        ids = g["tokens"][:].astype(int) + g["tokens"].attrs["first_id"]
        assert ids.min() == 1, "a pixel is padding"
    first = f["test/tokens"][:1024].astype(int) + f["test/tokens"].attrs["first_id"]
    assert (first == 1).all() and f["vocabulary"].asstr()[1] == "0"
PY
make pathfinder --train 20 --val 4 --test 4 --out drawn.h5
expect_out '^train 20 examples, 20480 tokens, lengths 1024 to 1024'

echo "P4: brackets stay: trees that differ in one closing bracket are different, 15 symbols and padding"
mkdir trees
{
    printf 'Source\tTarget\n'
    printf '( ( ( ( [SM 1 ) ( ( ( [SM 2 ) 3 ) ] ) ) 4 ) ] )\t0\n'
    printf '( ( ( [SM 1 ) ( ( ( ( [SM 2 ) 3 ) 4 ) ] ) ) ] )\t0\n'
} | tee trees/basic_train.tsv trees/basic_val.tsv >trees/basic_test.tsv
make listops --from trees --out trees.h5
python - <<'PY'
import h5py
with h5py.File("trees.h5") as f:
    names = f["vocabulary"].asstr()[:]
    assert len(names) == 16 and {"]", "[MIN", "[MAX", "[MED", "[SM"} <= set(names)
    o = f["train/offsets"][:]
    a, b = (" ".join(names[t] for t in f["train/tokens"][o[i] : o[i + 1]]) for i in (0, 1))
    assert a == "[SM 1 [SM 2 3 ] 4 ]" and b == "[SM 1 [SM 2 3 4 ] ]", (a, b)
PY

echo "P5: the median of an even number of arguments"
mkdir median
printf 'Source\tTarget\n[MED 1 2 ]\t1\n[MED 0 9 ]\t4\n' | tee median/basic_{train,val}.tsv >median/basic_test.tsv
make listops --from median --out median.h5
sed -i 's/\t4/\t5/' median/basic_val.tsv
refuse 3 'basic_val.tsv:3: the label is 5, but .* 4' listops --from median

echo "P7: what comes again is counted; generated splits have nothing in common; a film stays in one split"
make import --tsv again.tsv --out again.h5
expect_out '^duplicates 0 within splits, 5 across splits'
make listops --train 400 --val 50 --test 50 --max-depth 3 --max-args 3 --min-length 3 --max-length 20 --out few.h5
make recall --train 400 --val 50 --test 50 --length 8 --pairs 2 --keys 4 --values 3 --fillers 2 --out recall.h5
make text --from imdb --out imdb.h5
python - <<'PY'
import h5py
for name in ("few.h5", "recall.h5", "drawn.h5"):
    with h5py.File(name) as f:
        sets = []
        for s in ("train", "val", "test"):
            o, t = f[s]["offsets"][:], f[s]["tokens"][:]
            sets.append({t[a:b].tobytes() for a, b in zip(o, o[1:])})
        assert not (sets[0] & sets[1] or sets[0] & sets[2] or sets[1] & sets[2]), name
with h5py.File("imdb.h5") as f:
    films = [{int(n) // 2 for n in f[s]["file_number"]} for s in ("train", "val")]
    assert films[1] and not films[0] & films[1]
PY

echo "P9: pictures and labels are paired as in the metadata, by hand; of two copies none is taken"
make pathfinder --from pf --out paired.h5
python - <<'PY'
import h5py
import numpy as np
order = (11, 2, 1, 10, 9, 0, 3, 4, 5, 8, 7, 6)
want = [7 * k + i for k in (0, 2, 10, 33) for i in order if (k, i) != (2, 9)]
with h5py.File("paired.h5") as f:
    splits = ("train", "val", "test")
    pixels = np.concatenate([f[s]["tokens"][:].reshape(-1, 1024) for s in splits])
    labels = np.concatenate([f[s]["labels"][:] for s in splits])
    assert (pixels == pixels[:, :1]).all() and list(pixels[:, 0]) == want
    assert list(labels) == [int(v % 3 == 0) for v in want]
PY
mkdir twice
cp -r pf/x/pathfinder32 twice/one
cp -r pf/x/pathfinder32 twice/two
refuse 3 "2 folders below it have 'curv_contour_length_14': which one" pathfinder --from twice

echo "P10: the difficulty is stored, another one is another file, a mix is refused"
make pathfinder --from pf --contour 9 --out nine.h5
python - <<'PY'
import h5py
for name, contour in (("paired.h5", 14), ("nine.h5", 9), ("drawn.h5", 14)):
    assert h5py.File(name).attrs["contour"] == contour, name
PY
cp -r pf mixed
cp mixed/x/pathfinder32/curv_contour_length_{9,14}/metadata/2.npy
refuse 3 "2.npy:1: a contour of '9' dashes, not 14: another difficulty" pathfinder --from mixed

echo "P11: an empty picture is survived and counted; metadata .npy are text"
make pathfinder --from pf --out paired.h5
grep -q '1 skipped; the first: pf/.*/imgs/2/sample_9.png: the file is empty' "$err" || fail "not counted"
expect_out '^train 3[0-9] examples'

echo "P13: id = byte + 1; several bytes a character, quotes; all texts before they are cut; five columns"
make import --tsv text.tsv --out text.h5
make retrieval --from pairs --out pairs.h5 --max-length 12003
python - <<'PY'
import h5py
def documents(path, split, end=""):
    g = h5py.File(path)[split]
    o, t = g["offsets" + end][:], g["tokens" + end]
    assert t.attrs["first_id"] == 1
    return [t[a:b].tobytes() for a, b in zip(o, o[1:])]
lines = open("text.tsv", "rb").read().split(b"\n")[:-1]
assert sum((documents("text.h5", s) for s in ("train", "val", "test")), []) == [l.split(b"\t")[1] for l in lines]
rows = [l.split(b"\t") for l in open("pairs/tsv_data/new_aan_pairs.train.tsv", "rb").read().split(b"\n")[:-1]]
assert documents("pairs.h5", "train") == [r[3][:12003] for r in rows]
assert documents("pairs.h5", "train", "2") == [r[4] for r in rows]
PY
sed -i '3s/\t[^\t]*$//' pairs/tsv_data/new_aan_pairs.eval.tsv
refuse 3 'eval.tsv:3: 4 columns, not 5' retrieval --from pairs

echo "P19: grey of four known colours, by both formulas; the formula is stored"
for grey in tensorflow pil; do
    make image --from colours --grey $grey --out $grey.h5
done
python - <<'PY'
import h5py
for grey, want in (("tensorflow", [76, 149, 29, 130]), ("pil", [76, 150, 29, 131])):
    with h5py.File(grey + ".h5") as f:
        got = {int(l): set(f["test/tokens"][16 * i : 16 * i + 16]) for i, l in enumerate(f["test/labels"])}
        assert f.attrs["grey"] == grey and [got[c] for c in range(4)] == [{w} for w in want], (grey, got)
PY

echo "P24: both layouts of the archive, and a clear word about what is missing"
mkdir -p deep/lra_release/lra_release
cp -r trees deep/lra_release/lra_release/listops-1000
make listops --from trees --out trees.h5
flat=$(value digest)
make listops --from deep --out deep.h5
[ "$(value digest)" = "$flat" ] || fail "another layout, other data"
make pathfinder --from pf/x/pathfinder32/curv_contour_length_14 --out inner.h5
inner=$(value digest)
make pathfinder --from pf --out paired.h5
[ "$(value digest)" = "$inner" ] || fail "another layout, other data"
rm trees/basic_val.tsv
refuse 3 'missing basic_val.tsv; found' listops --from trees
refuse 3 'new_aan_pairs.train.tsv nor papers.tsv' retrieval --from empty
refuse 3 "no 'curv_contour_length_14'" pathfinder --from empty
refuse 3 "no 'train'" text --from empty
refuse 3 'neither data_batch_1.bin' image --from empty

echo "P27: files that are sorted by class: folders are mixed, and a sorted table is told"
make image --from colours --out colours.h5
make text --from imdb --out imdb.h5
python - <<'PY'
import h5py
assert set(h5py.File("colours.h5")["train/labels"][:20]) == {0, 1, 2, 3}
assert list(h5py.File("imdb.h5")["train/labels"][:4]) == [0, 1, 0, 1]
PY
make import --tsv sorted.tsv --out sorted.h5
grep -q 'the examples seem to be sorted: the first 1000 of train lack a class' "$err" || fail "not told"
make import --tsv sorted.tsv --shuffle 1 --out sorted.h5
! grep -q 'sorted' "$err" || fail "mixed lines are taken for sorted ones"
