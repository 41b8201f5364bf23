#!/usr/bin/env bash
# rfa data pathfinder and pathx: the same on any number of ranks, stopped and resumed; released files.
. "$SOURCE/tests/cli/lib.sh"
export PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1
fresh

small=(--train 1500 --val 100 --test 100)
digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data pathfinder --out "n$ranks.h5" "${small[@]}"
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^train 1500 examples, 1536000 tokens, lengths 1024 to 1024, mean 1024; labels 0 to 1'
    expect_out '^duplicates 0 within splits, 0 across splits'
done
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
run 0 data pathfinder --out few.h5 --train 100 --val 50 --test 100
few=$(value digest)
run 0 data pathfinder --out seed.h5 "${small[@]}" --seed 2
[ "$(value digest)" != "${digests[0]}" ] || fail "seed 2 gave the pictures of seed 1"
run 2 data pathx --out x.h5 --train 8 --val 4 --test 4
expect_code 0
expect_out '^train 8 examples, 131072 tokens, lengths 16384 to 16384'
python - <<'PY'
import h5py
import numpy as np
with h5py.File("n1.h5") as f, h5py.File("few.h5") as g, h5py.File("x.h5") as x:
    a = f.attrs
    assert a["contour"] == 14 and a["distractor"] == 4 and a["distractors"] == 5 and a["source"] == "generated"
    assert a["padding_id"] == 0 and len(f["vocabulary"]) == 257
    pixels = f["train/tokens"][:].reshape(-1, 32, 32)
    assert f["train/tokens"].attrs["first_id"] == 1 and f["train/tokens"].dtype == np.uint8
    assert 0.6 < (pixels == 0).mean() < 0.7 and pixels.max() == 255
    # The pictures of a split don't depend on the size of another.
    assert (g["train/tokens"][:] == f["train/tokens"][: 100 * 1024]).all()
    assert (g["test/tokens"][:] == f["test/tokens"][:]).all()
    assert x.attrs["width"] == 128 and x["train/tokens"].shape == (8 * 16384,)
    np.savez("own", pixels=pixels[:200], labels=f["train/labels"][:200])
PY

# Stopped by a signal: exit code 85, what is finished stays, and the same call goes on from there.
slow=(data pathx --train 3000 --val 64 --test 64)
"$MPIRUN" -q -n 2 --oversubscribe "$RFA" "${slow[@]}" --out stop.h5 >out 2>err &
job=$!
for _ in $(seq 200); do
    [ ! -e stop.h5.parts/part-000003 ] || break
    sleep 0.1
done
kill -TERM "$(pgrep -P "$job" -x rfa | head -n 1)"
code=0
wait "$job" || code=$?
[ "$code" = 85 ] || fail "exit code $code of a stopped call"
grep -q 'stopped by SIGTERM after [0-9]* of 3128 examples; the same command goes on' err || fail "no word"
[ ! -e stop.h5 ] && [ ! -e stop.h5.tmp ] && [ -e stop.h5.parts/part-000003 ] || fail "wrong files are left"
short=(data pathx --train 192 --val 64 --test 64)
mv stop.h5.parts short.h5.parts
rm -f short.h5.parts/part-00000[4-9] short.h5.parts/part-0000[1-9]*
run 3 "${short[@]}" --out short.h5
expect_code 0
resumed=$(value digest)
grep -q '3 of 5 parts were there already' "$err" || fail "finished parts are not taken over"
[ ! -e short.h5.parts ] || fail "parts are left"

# The released form: text in metadata/K.npy, pictures in imgs/K; one is empty.
cat >make.py <<'PY'
import os
import numpy as np
from png import png
d = np.load("own.npz")
top = "pf/lra_release/pathfinder32/curv_contour_length_14"
for k in (0, 2, 10):
    os.makedirs(f"{top}/imgs/{k}")
os.makedirs(f"{top}/metadata")
for n, k in enumerate((0, 2, 10)):
    with open(f"{top}/metadata/{k}.npy", "w") as f:
        for i in range(20):
            png(f"{top}/imgs/{k}/sample_{i}.png", d["pixels"][20 * n + i])
            f.write(f"imgs/{k} sample_{i}.png {i} {d['labels'][20 * n + i]} 1.0 14 4 2 0.5 1 1\n")
open(f"{top}/imgs/0/sample_7.png", "wb")
PY
python make.py
for ranks in 0 2; do
    run "$ranks" data pathfinder --from pf --out "from$ranks.h5"
    expect_code 0
    expect_out '^train 47 examples'
    expect_out '^val 6 examples'
    expect_out '^test 6 examples'
    grep -q '1 skipped; the first: pf/.*/imgs/0/sample_7.png: the file is empty' "$err" || fail "not told"
    digests[ranks]=$(value digest)
done
[ "${digests[0]}" = "${digests[2]}" ] || fail "digests: ${digests[*]}"
python - <<'PY'
import h5py
import numpy as np
d = np.load("own.npz")
keep = [i for i in range(60) if i != 7]
with h5py.File("from2.h5") as f:
    splits = ("train", "val", "test")
    pixels = np.concatenate([f[s]["tokens"][:] for s in splits]).reshape(-1, 32, 32)
    labels = np.concatenate([f[s]["labels"][:] for s in splits])
    assert (pixels == d["pixels"][keep]).all() and (labels == d["labels"][keep]).all()
    assert f.attrs["contour"] == 14 and f.attrs["skipped"] == 1 and f.attrs["generator"] == "released PNG files"
PY
run 0 data pathfinder --from pf/lra_release/pathfinder32/curv_contour_length_14 --out inner.h5
expect_code 0
[ "$(value digest)" = "${digests[0]}" ] || fail "the folder itself gives something else"

expect_bad() # REGEX ARGS...
{
    local regex=$1
    shift
    run 0 data pathfinder --out bad.h5 "$@"
    expect_code 3
    expect_line "$regex"
    [ ! -e bad.h5 ] && [ ! -e bad.h5.tmp ] && [ ! -e bad.h5.parts ] || fail "a file is left"
}
top=bad/lra_release/pathfinder32/curv_contour_length_14
damage() # SED_PROGRAM: on metadata/2.npy of a copy
{
    rm -rf bad
    cp -r pf bad
    sed -i "$1" $top/metadata/2.npy
}
damage '5s/ 14 / 9 /'
expect_bad "metadata/2.npy:5: a contour of '9' dashes, not 14: another difficulty" --from bad
damage '3s/png 2 . /png 2 2 /'
expect_bad "metadata/2.npy:3: the label is '2', not 0 or 1" --from bad
damage '4s/ 1$//'
expect_bad 'metadata/2.npy:4: 10 columns, not 11' --from bad
damage '6s/sample_5/sample_55/'
expect_bad 'metadata/2.npy:6: .*sample_55.png: No such file' --from bad
damage '1s/imgs/..\/imgs/'
expect_bad 'metadata/2.npy:1: not the name of a picture' --from bad
damage ''
truncate -s 60 $top/imgs/2/sample_3.png
expect_bad 'imgs/2/sample_3.png: not a good PNG file' --from bad
rm $top/metadata/*
expect_bad 'metadata: no file of metadata' --from bad
expect_bad "pf: no 'curv_contour_length_9' in it" --from pf --contour 9
run 0 data pathx --from pf --out bad.h5
expect_code 3
expect_line 'pictures of 32 x 32 pixels, not of Path-X'
run 0 data pathfinder --from pf --seed 2
expect_code 2
expect_line '--from imports files, so --seed'
run 0 data pathfinder --contour 1
expect_code 2
expect_line '--contour is 1, not 2 to 64'
run 0 data pathfinder --size 8
expect_code 2
expect_line '--size is 8'
run 2 data pathx --help
expect_code 0
expect_out '^Usage: rfa data pathx'
expect_out '--distractors=N'
