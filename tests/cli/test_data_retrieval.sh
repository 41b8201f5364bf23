#!/usr/bin/env bash
# rfa data retrieval: five-column tables, papers with pairs, two documents of each example, bad input.
. "$SOURCE/tests/cli/lib.sh"
fresh
export LC_ALL=C # sed on bytes that are no text

# The same pairs in both forms. Texts hold quotes, zero and other odd bytes, several bytes a character;
# some are longer than 10 000 bytes, which the original cuts first.
cat >make.py <<'PY'
import os
import random
draw = random.Random(5)
words = [b"citation", b'"quoted"', b"'", b"caf\xc3\xa9", b"\xe2\x82\xac", b"\x00", b"\xff", b",", b"the", b"of"]
papers = {f"P{i:02d}-1{i:03d}": b" ".join(draw.choice(words) for _ in range(draw.choice((1, 40, 700, 3000)))) for i in range(60)}
assert max(map(len, papers.values())) > 10000
os.makedirs("lra/lra_release/tsv_data"), os.makedirs("own")
open("own/papers.tsv", "wb").write(b"".join(k.encode() + b"\t" + t + b"\n" for k, t in papers.items()))
ids = list(papers)
for split, n in (("train", 900), ("eval", 60), ("test", 80)):
    five, three = [], []
    for i in range(n):
        a, b = draw.choice(ids), draw.choice(ids)
        five.append(b"\t".join((b"%d.0" % (i % 2), a.encode(), b.encode(), papers[a], papers[b])) + b"\n")
        three.append(f"{i % 2}\t{a}\t{b}\n")
    open(f"lra/lra_release/tsv_data/new_aan_pairs.{split}.tsv", "wb").write(b"".join(five))
    open(f"own/pairs.{split}.tsv", "w").write("".join(three))
PY
python make.py
digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data retrieval --from lra --out "n$ranks.h5" --max-length 4000
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^train 900 examples, .* labels 0 to 1 in %: 50.0 50.0'
    expect_out '^val 60 examples'
done
run 2 data retrieval --from own --out own.h5
expect_code 0
digests+=("$(value digest)")
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
grep -q 'texts are not valid UTF-8 and are taken as they are' "$err" || fail "UTF-8 is not told"
python - <<'PY'
import h5py
import numpy as np
with h5py.File("n2.h5") as f:
    a = f.attrs
    assert a["documents"] == 2 and a["classes"] == 2 and a["padding_id"] == 0 and a["max_length"] == 4000
    for split, name in (("train", "train"), ("val", "eval"), ("test", "test")):
        g = f[split]
        rows = [l.split(b"\t") for l in open(f"lra/lra_release/tsv_data/new_aan_pairs.{name}.tsv", "rb").read().split(b"\n")[:-1]]
        assert [int(float(r[0])) for r in rows] == list(g["labels"])
        assert list(g["line"]) == list(range(1, len(rows) + 1))
        texts = []
        for d, end in ((3, ""), (4, "2")):
            tokens, offsets = g["tokens" + end][:].tobytes(), g["offsets" + end][:]
            assert g["tokens" + end].attrs["first_id"] == 1 and (np.diff(offsets) == g["lengths" + end][:]).all()
            texts.append([tokens[x:y] for x, y in zip(offsets, offsets[1:])])
            assert texts[-1] == [r[d][:10000][:4000] for r in rows], (split, d)
        assert a["tokens_" + split] == sum(map(len, texts[0])) + sum(map(len, texts[1]))
PY
run 0 inspect n2.h5
expect_code 0
expect_out '^train +900 examples of [0-9]+ to 4000 tokens in first documents'
expect_out '^ +[0-9]+ to 4000 in second documents'
expect_out 'documents 2'
run 0 inspect n2.h5 --json
expect_out '"documents":2'
gzip lra/lra_release/tsv_data/*.tsv
run 2 data retrieval --from lra --out gz.h5
expect_code 0
[ "$(value digest)" = "${digests[0]}" ] || fail "compressed tables differ"
gunzip lra/lra_release/tsv_data/*.gz

expect_bad() # REGEX ARGS...
{
    local regex=$1
    shift
    run 0 data retrieval --out bad.h5 "$@"
    expect_code 3
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
damage() # FOLDER FILE SED_PROGRAM
{
    rm -rf bad
    cp -r "$1" bad
    sed -i "$3" "bad/$2"
}
t=lra_release/tsv_data/new_aan_pairs
damage lra $t.eval.tsv '3s/^1.0/1.5/;3s/^0.0/1.5/'
expect_bad "new_aan_pairs.eval.tsv:3: the label is '1.5', not 0 or 1" --from bad
damage lra $t.test.tsv '4s/$/\tmore/'
expect_bad 'new_aan_pairs.test.tsv:4: more than 5 columns' --from bad
damage lra $t.train.tsv '5s/\t[^\t]*$//'
expect_bad 'new_aan_pairs.train.tsv:5: 4 columns, not 5' --from bad
rm bad/$t.test.tsv
damage lra $t.train.tsv ''
rm bad/$t.test.tsv
expect_bad 'new_aan_pairs.test.tsv .* is missing' --from bad
damage own pairs.train.tsv '7s/\tP[^\t]*$/\tQ1/'
expect_bad "pairs.train.tsv:7: no paper has the id 'Q1'" --from bad
damage own papers.tsv '9s/^[^\t]*/P00-1000/'
expect_bad "papers.tsv:9: the id 'P00-1000' is that of line 1, too" --from bad
damage own papers.tsv '2s/\t.*//'
expect_bad 'papers.tsv:2: 1 column, not 2' --from bad
damage own pairs.test.tsv '2s/\t[^\t]*$//'
expect_bad 'pairs.test.tsv:2: 2 columns, not 3' --from bad
damage own pairs.test.tsv d
expect_bad 'pairs.test.tsv: no pairs in it' --from bad
damage own papers.tsv ''
gzip bad/papers.tsv && mv bad/papers.tsv.gz bad/papers.tsv
expect_bad 'papers.tsv: is compressed' --from bad
damage own papers.tsv '1s/\t.*/\t/'
run 0 data retrieval --from bad --out skip.h5
expect_code 0
grep -qE '[0-9]+ skipped; the first: bad/pairs.train.tsv:[0-9]+: document [12] is empty' "$err" || fail "not told"
mkdir empty
expect_bad 'empty: neither new_aan_pairs.train.tsv nor papers.tsv' --from empty
expect_bad 'nowhere: No such file' --from nowhere
run 0 data retrieval
expect_code 2
expect_line '--from DIR says what to import'
