#!/usr/bin/env bash
# Data sets beyond 2 and 4 GiB: 7 G tokens, nearly all of them in examples of zeros that are holes in the
# file, and between and behind these a few real examples. Training cuts every example at 64 tokens, so a
# small file with the same beginnings must give the same digests, on any rank count.
. "$(dirname "$0")/lib.sh"
fresh
tiny_data
tiny 2 1 1
free=$(df --output=avail -k . | tail -n 1)
[ "$free" -gt 200000 ] || fail "only $free KiB are free here, 200000 are needed"

"$PYTHON" - <<'PYTHON'
import h5py, numpy as np

real = h5py.File("d.h5")


def write(name, kind, hole):
    """Every fourth example a hole of that many zeros; the others as in d.h5."""
    with h5py.File(name, "w") as f:
        for key, value in real.attrs.items():
            f.attrs[key] = value
        f.create_dataset("vocabulary", data=real["vocabulary"][:], dtype=h5py.string_dtype())
        for split in ("train", "val", "test"):
            tokens, offsets = real[split]["tokens"][:], real[split]["offsets"][:]
            lengths = np.diff(offsets)
            if split == "train":  # 28 examples, 7 holes
                lengths = lengths[:28]
                holes = np.arange(28) % 4 == 1
                lengths[holes] = hole
            else:
                holes = np.zeros(len(lengths), bool)
            to = np.concatenate([[0], np.cumsum(lengths)])
            g = f.create_group(split)
            g["offsets"] = to.astype("i8")
            g["lengths"] = lengths.astype("i4")
            g["labels"] = real[split]["labels"][: len(lengths)].astype("i4")
            create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            space = h5py.h5s.create_simple((int(to[-1]),))
            of = h5py.h5t.py_create(np.dtype(kind))
            d = h5py.Dataset(h5py.h5d.create(g.id, b"tokens", of, space, create))
            for i in np.flatnonzero(~holes):
                d[to[i] : to[i + 1]] = tokens[offsets[i] : offsets[i + 1]].astype(kind)


write("small.h5", "u1", 64)
write("large.h5", "u1", 1000000000)
write("wide.h5", "u2", 1000000000)
PYTHON
for file in large.h5 wide.h5; do
    [ "$(stat -c %s $file)" -gt 7000000000 ] || fail "$file has $(stat -c %s $file) bytes only"
    [ "$(du -k $file | cut -f1)" -lt 100000 ] || fail "$file takes $(du -k $file | cut -f1) KiB: no holes"
done
run 0 inspect large.h5
expect_code 0
expect_out '^train +28 examples of .*1000000000'

final=
for case in 'small 1' 'large 1' 'large 2' 'large 3' 'wide 2'; do
    read -r name ranks <<<"$case"
    run "$ranks" train quick.yaml --out "$name.$ranks.run.h5" --set data.file="$name.h5" --set train.batch=28
    expect_code 0
    rows "$name.$ranks.run.h5" >"$name.rows"
    cmp small.rows "$name.rows" || fail "$name on $ranks ranks: other rows than with the small file"
    final=${final:-$(value digest)}
    [ "$(value digest)" = "$final" ] || fail "$name on $ranks ranks: digest $(value digest), small $final"
done

# It did read what lies beyond: another token in the last example gives another digest.
"$PYTHON" -c 'import h5py
t = h5py.File("large.h5", "r+")["train/tokens"]
t[-5] = t[-5] % 9 + 1'
run 2 train quick.yaml --out changed.run.h5 --set data.file=large.h5 --set train.batch=28
expect_code 0
[ "$(value digest)" != "$final" ] || fail "the last example was not read"
rm -f large.h5 wide.h5
