#!/usr/bin/env bash
# rfa data import: texts and token ids, one document and two, labels as numbers and names, bad input.
. "$SOURCE/tests/cli/lib.sh"
fresh

cat >make.py <<'PY'
import csv
import gzip
import random
draw = random.Random(11)
kinds = ("spam", "ham", "news")
rows = []
for i in range(200):
    text = f"{i} " + "".join(draw.choice('ab "\'é€😀,;') for _ in range(draw.randint(0, 60)))
    other = f"o{i}" + "".join(draw.choice('xyz "\'') for _ in range(draw.randint(0, 30)))
    ids = " ".join(str(draw.randint(1, 300)) for _ in range(draw.randint(1, 40)))
    rows.append((kinds[i % 3], text, other, ids, "7  9"))
open("names.tsv", "w", newline="").write("".join(f"{r[0]}\t{r[1]}\n" for r in rows))
open("windows.tsv", "w", newline="").write("\ufeff" + "".join(f"{r[0]}\t{r[1]}\r\n" for r in rows))
with gzip.open("names.csv.gz", "wt", newline="") as f:
    w = csv.writer(f)
    w.writerow(("Text", "number", "Label"))
    w.writerows((r[1], i, r[0]) for i, r in enumerate(rows))
number = {"ham": 0, "news": 1, "spam": 2}
open("pairs.tsv", "w", newline="").write("".join(f"{number[r[0]]}\t{i}\t{r[1]}\t{r[2]}\n" for i, r in enumerate(rows)))
open("ids.tsv", "w").write("label\tids\n" + "".join(f"{number[r[0]]}\t{r[3]}\n" for r in rows))
open("idpairs.tsv", "w").write("label\tids1\tids2\n" + "".join(f"{number[r[0]]}\t{r[3]}\t{r[4]}\n" for r in rows))
PY
python make.py

cat >check.py <<'PY'
import sys
import h5py
path, table, documents, ids, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].split(",")
lines = open(table, "rb").read().replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf").split(b"\n")[:-1]
first = 1
if lines[0].startswith(b"label"):
    lines, first = lines[1:], 2
rows = [l.split(b"\t") for l in lines]
n = len(rows)
splits = {"train": range(0, n - 2 * (n // 10)), "val": range(n - 2 * (n // 10), n - n // 10), "test": range(n - n // 10, n)}
with h5py.File(path) as f:
    a = f.attrs
    assert list(a["class_names"]) == names and a["classes"] == len(names) and a["validation"] == "last10%"
    assert a["task"] == "own" and a["padding_id"] == 0 and a["complete"] == 1
    vocabulary = f["vocabulary"].asstr()[:]
    assert vocabulary[0] == "<pad>" and len(vocabulary) == (301 if ids else 257)
    assert not ids or vocabulary[300] == "300"
    for split, places in splits.items():
        g = f[split]
        assert list(g["line"]) == [i + first for i in places], split
        for k, i in enumerate(places):
            row = rows[i]
            name = row[0].decode()
            assert g["labels"][k] == (names.index(name) if name in names else int(name))
            for d in range(documents):
                end = "2" if d else ""
                x, y = g["offsets" + end][k : k + 2]
                got = [int(t) + int(g["tokens" + end].attrs.get("first_id", 0)) for t in g["tokens" + end][x:y]]
                text = row[len(row) - documents + d]
                want = [int(t) for t in text.split()] if ids else [b + 1 for b in text]
                assert got == want, (split, k, d)
PY

digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data import --tsv names.tsv --out "n$ranks.h5"
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^train 160 examples, .* labels 0 to 2'
    expect_out '^val 20 examples'
done
python check.py n3.h5 names.tsv 1 0 ham,news,spam
run 1 data import --tsv windows.tsv --out windows.h5
digests+=("$(value digest)")
run 1 data import --tsv names.csv.gz --out csv.h5
digests+=("$(value digest)")
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
run 0 data import --tsv names.tsv --labels spam,ham,news --out listed.h5
expect_code 0
[ "$(value digest)" != "${digests[0]}" ] || fail "the order of names has no effect"
python check.py listed.h5 names.tsv 1 0 spam,ham,news
run 2 data import --tsv pairs.tsv --columns label,x,text,text2 --out pairs.h5
expect_code 0
python check.py pairs.h5 pairs.tsv 2 0 0,1,2
run 2 data import --tsv ids.tsv --out ids.h5
expect_code 0
python check.py ids.h5 ids.tsv 1 1 0,1,2
run 0 data import --tsv idpairs.tsv --out idpairs.h5
expect_code 0
python check.py idpairs.h5 idpairs.tsv 2 1 0,1,2
run 2 data import --tsv ids.tsv --max-length 5 --out cut.h5 --vocabulary 400
expect_code 0
expect_out '^train 160 examples, .* lengths 1 to 5'
run 0 inspect cut.h5
expect_out 'data set of own, 3 classes, 400 symbols'

# Own files for the splits; the test as validation is told; mixed lines are the same lines.
head -n 90 names.tsv >val.tsv
tail -n 30 names.tsv >test.tsv
run 2 data import --tsv names.tsv --val val.tsv --test test.tsv --out files.h5
expect_code 0
expect_out '^train 200 examples'
expect_out '^val 90 examples'
expect_out '^test 30 examples'
expect_out '^duplicates 0 within splits, 120 across splits'
run 0 data import --tsv names.tsv --val test --test last20% --out test.h5
expect_code 0
expect_out '^train 160 examples'
expect_out '^test 40 examples'
grep -q 'validation is test' "$err" || fail "no warning that validation is test"
sort names.tsv >sorted.tsv
run 0 data import --tsv sorted.tsv --out sorted.h5
grep -q 'split val has no example of class 0' "$err" || fail "no warning of a class that lacks"
run 0 data import --tsv sorted.tsv --out mixed.h5 --shuffle 1
expect_code 0
! grep -q 'has no example' "$err" || fail "--shuffle mixes nothing"
mixed=$(value digest)
run 2 data import --tsv sorted.tsv --out mixed2.h5 --shuffle 1
[ "$(value digest)" = "$mixed" ] || fail "mixed otherwise on two ranks"
python - <<'PY'
import h5py
with h5py.File("mixed.h5") as f:
    lines = sorted(int(l) for s in ("train", "val", "test") for l in f[s]["line"])
    assert lines == list(range(1, 201))
PY

# One of these trains: the schema is the one that the program reads.
cat >own.yaml <<'Y'
data: {file: ids.h5, max_length: 40}
model: {layers: 1, width: 16, heads: 1, feed_forward: 16, head: 16, pooling: mean}
attention: {features: 8}
train: {steps: 2, batch: 4, warmup: 1, evaluate_examples: 8}
Y
run 2 train own.yaml --out own-run.h5
expect_code 0

# So does a file that another program wrote, with no more in it than --help asks for.
python - <<'PY'
import h5py
import numpy as np
with h5py.File("foreign.h5", "w") as f:
    f["vocabulary"] = np.array(["<pad>", "a", "b"], dtype=h5py.string_dtype("utf-8"))
    for split in ("train", "val", "test"):
        lengths = np.array([3, 1, 4, 2], np.int32)
        f[split + "/tokens"] = np.array([1, 2, 1, 2, 1, 1, 2, 2, 2, 1], np.uint8)
        f[split + "/offsets"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        f[split + "/lengths"] = lengths
        f[split + "/labels"] = np.array([0, 1, 1, 0], np.int32)
    f.attrs.update({"task": "own", "classes": 2, "digest": "0123456789abcdef", "complete": 1})
PY
run 2 train own.yaml --set data.file=foreign.h5 --out foreign-run.h5
expect_code 0

expect_bad() # CODE REGEX ARGS...
{
    local expected=$1 regex=$2
    shift 2
    run 0 data import --out bad.h5 "$@"
    expect_code "$expected"
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
damage() # TABLE SED_PROGRAM
{
    LC_ALL=C sed "$2" "$1" >bad.tsv
}
pairs=(--columns label,x,text,text2)
damage names.tsv '7s/\t/ /'
expect_bad 3 'bad.tsv:7: 1 column, not 2' --tsv bad.tsv
damage pairs.tsv '7s/\t[^\t]*$//'
expect_bad 3 'bad.tsv:7: 3 columns, not 4' --tsv bad.tsv "${pairs[@]}"
damage pairs.tsv '8s/$/\tmore/'
expect_bad 3 'bad.tsv:8: more than 4 columns' --tsv bad.tsv "${pairs[@]}"
damage pairs.tsv '9s/^[0-9]*/three/'
expect_bad 3 "bad.tsv:9: the label is 'three', not a number from 0 to 1023" --tsv bad.tsv "${pairs[@]}"
damage pairs.tsv '9s/^[0-9]*/3/'
expect_bad 3 "bad.tsv:9: the label is '3', not a number from 0 to 2" --tsv bad.tsv --classes 3 "${pairs[@]}"
expect_bad 3 "bad.tsv:9: the label is '3', not a number from 0 to 2" --tsv pairs.tsv --test bad.tsv "${pairs[@]}"
damage names.tsv '5s/^[a-z]*/junk/'
expect_bad 3 "bad.tsv:5: the label is 'junk', which the training table" --tsv names.tsv --val bad.tsv
expect_bad 3 "bad.tsv:5: the label is 'junk', none of those of --labels" --tsv bad.tsv --labels ham,spam,news
damage names.tsv '5s/^[a-z]*//'
expect_bad 3 "bad.tsv:5: the label is '', a name of 0 bytes" --tsv bad.tsv
damage ids.tsv '6s/\t.*/\t3 x9 4/'
expect_bad 3 "bad.tsv:6: token 2 is 'x9', not an id from 1 to 65535" --tsv bad.tsv
damage ids.tsv '6s/\t.*/\t3 4 0/'
expect_bad 3 "bad.tsv:6: token 3 is '0', not an id from 1" --tsv bad.tsv
damage ids.tsv '6s/\t.*/\t99999999999999999999/'
expect_bad 3 "bad.tsv:6: token 1 is '99999999999999999999'" --tsv bad.tsv
expect_bad 3 "ids.tsv:[0-9]*: token [0-9]* is '[12][0-9]*', not an id from 1 to 99" --tsv ids.tsv --vocabulary 100
: >bad.tsv
expect_bad 3 'bad.tsv: no examples in it' --tsv bad.tsv
expect_bad 3 'bad.tsv: no examples in it' --tsv names.tsv --val bad.tsv
expect_bad 3 'nowhere.tsv: can.t be opened: No such file' --tsv nowhere.tsv
mkdir folder.tsv
expect_bad 3 'folder.tsv: can.t be read: Is a directory' --tsv folder.tsv
grep spam names.tsv >bad.tsv
expect_bad 3 'bad.tsv: all labels are the same' --tsv bad.tsv
printf 'a\tx\nb\ty\n' >bad.tsv
expect_bad 2 'split val is left without examples: bad.tsv has 2' --tsv bad.tsv
printf 'label,text\na,"x\nb,y\n' >bad.csv
expect_bad 3 'bad.csv:2: a quote is not closed' --tsv bad.csv
printf 'label,text\na,"x"y\n' >bad.csv
expect_bad 3 'bad.csv:2: something between a closing quote' --tsv bad.csv
expect_bad 2 '--tsv FILE says what to import'
expect_bad 2 "--columns 'label,text,ids'" --tsv names.tsv --columns label,text,ids
expect_bad 2 '--vocabulary is for token ids' --tsv names.tsv --vocabulary 9
expect_bad 2 '--labels names the classes' --tsv names.tsv --labels a,b --classes 2
# Taken or skipped, and counted: text that is not UTF-8, empty documents.
damage pairs.tsv '3s/\t[^\t]*$/\t/;4s/\t[^\t]*$/\t\xff/'
run 0 data import --tsv bad.tsv "${pairs[@]}" --out odd.h5
expect_code 0
grep -q '1 texts are not valid UTF-8 .* bad.tsv:4' "$err" || fail "UTF-8 is not told"
grep -q '1 skipped; the first: bad.tsv:3: the text is empty' "$err" || fail "skips are not told"
run 0 data import --help
expect_code 0
expect_out '/SPLIT/tokens2, offsets2, lengths2'
