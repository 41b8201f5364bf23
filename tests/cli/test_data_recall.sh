#!/usr/bin/env bash
# rfa data recall: every sequence solved by an independent reader, the same on any number of ranks,
# no sequence in two splits, restarts, learnable, and wishes that can't be met.
. "$SOURCE/tests/cli/lib.sh"
fresh
small=(--train 3000 --val 300 --test 300)

cat >check.py <<'PY'
import collections
import sys
import h5py
import numpy as np
path, query, pairs, low, high = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
with h5py.File(path) as f:
    a = f.attrs
    names = f["vocabulary"].asstr()[:]
    assert a["query"] == query and a["pairs"] == pairs and a["max_length"] == high and a["min_length"] == low
    assert len(names) == 2 + a["fillers"] + a["keys"] + a["values"] and a["classes"] == a["values"]
    assert list(a["class_names"]) == [f"v{v}" for v in range(a["values"])]
    seen, lengths, places, gaps = {}, collections.Counter(), [], []
    for split in ("train", "val", "test"):
        g = f[split]
        offsets = g["offsets"][:]
        for i, label in enumerate(g["labels"][:]):
            tokens = g["tokens"][offsets[i] : offsets[i + 1]]
            assert seen.setdefault(tokens.tobytes(), split) == split, "in two splits"
            t = [names[k] for k in tokens]
            lengths[len(t)] += 1
            asked = set()
            if query != "last":
                asked.add(t[0])
                assert t[1] == "?"
                t = t[2:]
            if query != "first":
                asked.add(t[-1])
                assert t[-2] == "?"
                t = t[:-2]
            assert len(asked) == 1 and "?" not in t and "<pad>" not in t
            at = [k for k, w in enumerate(t) if w[0] == "k"]
            table = {t[k]: t[k + 1] for k in at}
            assert len(at) == len(table) == pairs, "keys differ"
            assert all(v[0] == "v" for v in table.values()) and sum(w[0] == "v" for w in t) == pairs
            key = asked.pop()
            assert table[key] == f"v{label}"
            places.append(t.index(key) / max(1, len(t) - 2))
            gaps.append(at[0] / max(1, len(t) - 2 * pairs))
    assert min(lengths) == low and max(lengths) == high
    n = len(places)
    counts = np.bincount(f["train"]["labels"][:], minlength=a["classes"])
    mean = counts.mean()
    assert (abs(counts - mean) < 6 * mean**0.5).all(), counts
    # Uniform over places: the mean of a key's place is 1/2 (its spread is at most 1/2).
    assert abs(np.mean(places) - 0.5) < 5 * 0.5 / n**0.5, np.mean(places)
    # The first of p pairs comes after 1/(p + 1) of the fillers.
    if a["fillers"]:
        assert abs(np.mean(gaps) - 1 / (pairs + 1)) < 5 * 0.5 / n**0.5, np.mean(gaps)
PY
digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data recall --out "n$ranks.h5" "${small[@]}" --length 64 --pairs 4
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^duplicates 0 within splits, 0 across splits'
done
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
python check.py n2.h5 both 4 64 64
run 0 data recall --out seed.h5 "${small[@]}" --length 64 --pairs 4 --seed 2
[ "$(value digest)" != "${digests[0]}" ] || fail "the seed has no effect"
run 2 data recall --out first.h5 "${small[@]}" --length 90 --min-length 20 --pairs 9 --keys 9 --query first
expect_code 0
python check.py first.h5 first 9 20 90
run 2 data recall --out last.h5 "${small[@]}" --length 12 --pairs 5 --fillers 0 --keys 300 --values 40 --query last
expect_code 0
python check.py last.h5 last 5 12 12
# Few different sequences: each still in one split only, those within are counted.
run 1 data recall --out few.h5 "${small[@]}" --length 6 --pairs 2 --fillers 0 --keys 4 --values 4 --query last
expect_code 0
expect_out '^duplicates [1-9][0-9]+ within splits, 0 across splits'
# Another size of one split leaves the others as they are.
run 2 data recall --out more.h5 --train 4000 --val 300 --test 300 --length 64 --pairs 4
expect_code 0
python - <<'PY'
import h5py
import numpy as np
with h5py.File("n0.h5") as a, h5py.File("more.h5") as b:
    for s in ("val", "test"):
        assert (a[s]["tokens"][:] == b[s]["tokens"][:]).all()
    assert (a["train/tokens"][:] == b["train/tokens"][: 3000 * 64]).all()
PY
RFA_FAULT=data.part@1 run 2 data recall --out stopped.h5 "${small[@]}" --length 64 --pairs 4
expect_code 3
run 3 data recall --out stopped.h5 "${small[@]}" --length 64 --pairs 4
expect_code 0
[ "$(value digest)" = "${digests[0]}" ] || fail "another file after a restart"
grep -q 'parts were there already' "$err" || fail "nothing was left to go on from"

expect_bad() # REGEX ARGS...
{
    local regex=$1
    shift
    run 0 data recall --out bad.h5 "$@"
    expect_code 2
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
expect_bad '--pairs 33: not in 1 to --keys, 32' --pairs 33
expect_bad 'lengths 10 to 10: 8 pairs and the query are 20' --length 10
expect_bad '--min-length 50 exceeds --length 40' --length 40 --min-length 50
expect_bad '--values 1' --values 1
expect_bad '--values 4097' --values 4097
expect_bad '--keys 65536' --keys 65536
expect_bad '--fillers 0: then --length is' --fillers 0
expect_bad "--query 'middle': first, last or both" --query middle
expect_bad 'too few different sequences' --train 9 --length 4 --pairs 1 --keys 1 --values 2 --fillers 0 --query last
run 0 data recall --help
expect_out 'k7 \? f2 k1 v4'
