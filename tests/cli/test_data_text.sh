#!/usr/bin/env bash
# rfa data text: IMDb's folders and tables, validation by policy, restarts, and bad input.
. "$SOURCE/tests/cli/lib.sh"
fresh

# A tree as aclImdb's: 40 + 40 reviews of train, 20 + 20 of test, unlabelled ones, files beside; one
# folder deeper than asked. Texts hold quotes, tabs, line ends and several bytes a character.
python - <<'PY'
import os
import random
draw = random.Random(7)
for split, n in (("train", 40), ("test", 20)):
    for name in ("neg", "pos"):
        os.makedirs(f"raw/aclImdb/{split}/{name}")
        for i in range(n):
            text = f"{split} {name} {i} " + "".join(draw.choice('ab "\t\n\'é€😀<br />,') for _ in range(draw.randint(1, 300)))
            with open(f"raw/aclImdb/{split}/{name}/{i}_{draw.randint(1, 10)}.txt", "w", newline="") as f:
                f.write(text)
os.makedirs("raw/aclImdb/train/unsup")
open("raw/aclImdb/train/unsup/0_0.txt", "w").write("no label")
open("raw/aclImdb/train/urls_pos.txt", "w").write("a list")
open("raw/aclImdb/train/pos/README", "w").write("not a review")
open("raw/aclImdb/test/neg/99_1.txt", "w")  # empty
src = "raw/aclImdb/train/pos/3_"
text = next(open(f"raw/aclImdb/train/pos/{f}", newline="").read() for f in os.listdir("raw/aclImdb/train/pos") if f.startswith("3_"))
open("raw/aclImdb/test/pos/50_7.txt", "w", newline="").write(text)  # a leak
PY

digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data text --from raw --out "n$ranks.h5" --max-length 200
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^train 72 examples, .* labels 0 to 1 in %: 50.0 50.0'
    expect_out '^val 8 examples, .* labels 0 to 1 in %: 50.0 50.0'
    expect_out '^test 41 examples'
    expect_out '^duplicates 0 within splits, 1 across splits'
    grep -q '2 skipped; the first: raw/aclImdb' "$err" || fail "skipped files are not counted"
    [ ! -e "n$ranks.h5.parts" ] && [ ! -e "n$ranks.h5.tmp" ] || fail "something is left"
done
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"

# Bytes plus one, cut; the last tenth of the numbers is for validation; classes alternate.
cat >check.py <<'PY'
import glob
import sys
import h5py
import numpy as np
path, most, policy = sys.argv[1], int(sys.argv[2]), sys.argv[3]
want = {}
for split in ("train", "test"):
    files = [f for c in ("neg", "pos") for f in glob.glob(f"raw/aclImdb/{split}/{c}/*.txt")]
    rows = sorted((int(f.split("/")[-1].split("_")[0]), "/pos/" in f, open(f, "rb").read()) for f in files)
    want[split] = [(n, int(l), t[:most]) for n, l, t in rows if t]
if policy == "test":
    want["val"] = want["test"]
else:
    n = len(want["train"])
    want["train"], want["val"] = want["train"][: n - n // 10], want["train"][n - n // 10 :]
with h5py.File(path) as f:
    a = f.attrs
    assert a["validation"] == policy and a["max_length"] == most and a["padding_id"] == 0
    assert a["classes"] == 2 and list(a["class_names"]) == ["neg", "pos"] and a["complete"] == 1
    vocabulary = f["vocabulary"].asstr()[:]
    assert len(vocabulary) == 257 and vocabulary[0] == "<pad>" and vocabulary[ord("A") + 1] == "A"
    assert vocabulary[11] == "<0x0a>"
    digest = 0xCBF29CE484222325
    for split in ("train", "val", "test"):
        g = f[split]
        assert g["tokens"].dtype == np.uint8 and g["tokens"].attrs["first_id"] == 1
        tokens, offsets = g["tokens"][:].tobytes(), g["offsets"][:]
        got = [(int(n), int(l), tokens[a:b]) for n, l, a, b in
               zip(g["file_number"], g["labels"], offsets, offsets[1:])]
        assert got == want[split], split
        assert (np.diff(offsets) == g["lengths"][:]).all()
        assert list(a["class_counts_" + split]) == list(np.bincount(g["labels"][:], minlength=2))
        for _, label, text in got:
            for part in (label.to_bytes(4, "little"), len(text).to_bytes(4, "little"),
                         b"".join((c + 1).to_bytes(2, "little") for c in text)):
                for byte in part:
                    digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    assert a["digest"] == f"{digest:016x}"
PY
python check.py n2.h5 200 'last10%'
run 2 data text --from raw/aclImdb --out test.h5 --validation test
expect_code 0
grep -q 'validation is test' "$err" || fail "no warning that validation is test"
python check.py test.h5 4000 test
run 0 inspect n2.h5
expect_code 0
expect_out 'data set of text, 2 classes, 257 symbols'
expect_out 'validation last10%'

# The same as tables: tabs with text last, commas with quotes, compressed, Windows' line ends.
python - <<'PY'
import csv
import glob
import gzip
import os
os.makedirs("tsv"), os.makedirs("csv"), os.makedirs("gz")
for split in ("train", "test"):
    files = [f for c in ("neg", "pos") for f in glob.glob(f"raw/aclImdb/{split}/{c}/*.txt") if os.path.getsize(f)]
    rows = sorted((int(f.split("/")[-1].split("_")[0]), "/pos/" in f, open(f, newline="").read()) for f in files)
    lines = "".join(f"{int(l)}\tid{n}\t" + t.replace("\n", " ") + "\n" for n, l, t in rows)
    open(f"tsv/{split}.tsv", "w", newline="").write(lines)
    gzip.open(f"gz/{split}.tsv.gz", "wt", newline="").write(lines.replace("\n", "\r\n"))
    with open(f"csv/{split}.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(("Review", "x", "sentiment"))
        w.writerows((t, n, "positive" if l else "negative") for n, l, t in rows)
PY
run 2 data text --from tsv --columns label,id,text --max-length 200 --out tsv.h5
expect_code 0
tsv=$(value digest)
run 1 data text --from gz --columns label,id,text --max-length 200 --out gz.h5
expect_code 0
[ "$(value digest)" = "$tsv" ] || fail "compressed tables differ"
run 3 data text --from csv --labels negative,positive --max-length 200 --out csv.h5
expect_code 0
[ "$(value digest)" = "${digests[0]}" ] || fail "comma-separated tables differ from the tree"
cp tsv/test.tsv tsv/val.tsv
run 0 data text --from tsv --columns label,id,text --out own.h5
expect_code 0
expect_out '^val 41 examples'
run 0 inspect own.h5
expect_out 'validation file'
run 0 data text --from tsv --columns label,id,text --out own2.h5 --validation test
expect_code 2
expect_line 'tsv/val.tsv is there, so --validation'

# A call that fails on the way, is stopped or killed, goes on from the parts that it finished.
python - <<'PY'
with open("tsv/val.tsv", "w") as f:
    for i in range(5000):
        f.write(f"{i % 2}\t{i}\ttext {i}\n")
PY
args=(data text --from tsv --columns label,id,text --max-length 200)
run 1 "${args[@]}" --out whole.h5
expect_code 0
whole=$(value digest)
RFA_FAULT=data.part@1 run 2 "${args[@]}" --out part.h5
expect_code 3
[ -e part.h5.parts/part-000000 ] && [ ! -e part.h5.tmp ] || fail "no part is left"
for damage in keep cut; do
    cp -r part.h5.parts saved
    [ $damage = keep ] || truncate -s -1 part.h5.parts/part-000000
    run 3 "${args[@]}" --out part.h5 --force
    expect_code 0
    [ "$(value digest)" = "$whole" ] || fail "the digest differs after a restart"
    [ ! -e part.h5.parts ] || fail "parts are left"
    if [ $damage = keep ]; then
        grep -q '1 of 7 parts were there already' "$err" || fail "the part was made again"
        mv saved part.h5.parts
    else
        ! grep -q 'were there already' "$err" || fail "a damaged part was taken"
    fi
done
cp -r saved other.h5.parts # of the same input, but of another length
run 2 "${args[@]}" --max-length 150 --out other.h5
expect_code 0
! grep -q 'were there already' "$err" || fail "a part of other options was taken"

# What is wrong is said with its line, and nothing is left.
expect_bad() # REGEX ARGS...
{
    local regex=$1
    shift
    run 0 data text --out bad.h5 "$@"
    expect_code 3
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
mkdir bad
table() # LINES: bad/train.tsv, with a good test.tsv
{
    printf "$1" >bad/train.tsv
    printf '0\ta\n1\tb\n' >bad/test.tsv
}
table '0\ta\nX\tb\n'
expect_bad "bad/train.tsv:2: the label is 'X'" --from bad
table '0\ta\n-1\tb\n'
expect_bad "bad/train.tsv:2: the label is '-1'" --from bad
table '0\ta\n1\n'
expect_bad 'bad/train.tsv:2: 1 column, not 2' --from bad
table '0\ta\n1\000\tb\n'
expect_bad "bad/train.tsv:2: the label is '1'" --from bad
table ''
expect_bad 'bad/train.tsv: no examples' --from bad
table "$(printf '0\\ta\\n%.0s' $(seq 20))"
printf '0\ta\n' >bad/test.tsv
expect_bad 'all labels are the same' --from bad
table '0\ta\tx\n'
expect_bad 'bad/train.tsv:1: more than 2 columns' --from bad --columns text,label
rm bad/test.tsv
expect_bad 'bad: test.tsv .* is missing' --from bad
gzip -c tsv/train.tsv >bad/train.tsv.gz
truncate -s -20 bad/train.tsv.gz
rm bad/train.tsv
cp tsv/test.tsv bad/test.tsv
expect_bad 'bad/train.tsv.gz:[0-9]+: the compressed file is cut off' --from bad --columns label,id,text
expect_bad 'nowhere: No such file' --from nowhere
mkdir none
expect_bad "none: no 'train' in it" --from none
mkdir -p one/train/pos one/test/pos
echo x >one/train/pos/1_1.txt
expect_bad '1 folder of a class' --from one
mkdir -p one/train/neg one/test/bad
expect_bad 'one/train/neg: no txt file' --from one
echo x >one/train/neg/a.txt
expect_bad 'one/train/neg/a.txt: the name begins with no number' --from one
mv one/train/neg/a.txt one/train/neg/1.txt
expect_bad 'one/test/bad: there is no such class in train' --from one
# Not valid UTF-8, empty texts: taken or skipped, and counted.
python - <<'PY'
open("bad/train.tsv", "wb").write(b"".join(b"%d\tt%d\n" % (i % 2, i) for i in range(40)) + b"1\t\xff\n0\t\n")
open("bad/test.tsv", "wb").write(b"0\ta\n1\tb\n")
PY
rm bad/train.tsv.gz
run 0 data text --from bad --out odd.h5
expect_code 0
grep -q '1 texts are not valid UTF-8 .* bad/train.tsv:41' "$err" || fail "UTF-8 is not told"
grep -q '1 skipped; the first: bad/train.tsv:42: the text is empty' "$err" || fail "not told"

run 0 data text
expect_code 2
expect_line '--from DIR says what to import'
run 0 data text --from raw --validation last90%
expect_code 2
expect_line "--validation 'last90%'"
run 0 data text --from tsv --columns label,id
expect_code 2
expect_line "--columns 'label,id'"
run 2 data text --help
expect_code 0
expect_out '--validation=WHAT'
