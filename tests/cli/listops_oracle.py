"""An independent look at a ListOps data set: structure, values, digest, duplicates.

    listops_oracle.py FILE                 checks everything, prints what it counted
    listops_oracle.py FILE --export DIR    also writes basic_*.tsv as the Long Range Arena does
    listops_oracle.py --same FILE FILE     the same ids, lengths and labels

Written from the rules of the task, with strings and lists.
"""
import os
import statistics
import sys

import h5py
import numpy as np

SPLITS = ("train", "val", "test")


def value(symbols):
    """The value of an expression, given as a list of strings."""
    stack = []
    for symbol in symbols:
        if symbol != "]":
            stack.append(int(symbol) if symbol.isdigit() else symbol)
            continue
        arguments = []
        while not isinstance(stack[-1], str):
            arguments.append(stack.pop())
        name = stack.pop()
        stack.append(
            {
                "[MIN": lambda: min(arguments),
                "[MAX": lambda: max(arguments),
                "[SM": lambda: sum(arguments) % 10,
                "[MED": lambda: int(statistics.median(arguments)),
            }[name]()
        )
    (result,) = stack
    return result


def binarised(symbols):
    """The expression with the parentheses of the released files."""
    stack = [[]]
    for symbol in symbols:
        if symbol == "]":
            group = stack.pop() + [symbol]
            text = group[0]
            for part in group[1:]:
                text = f"( {text} {part} )"
            stack[-1].append(text)
        elif symbol.startswith("["):
            stack.append([symbol])
        else:
            stack[-1].append(symbol)
    ((text,),) = stack
    return text


def examples(group):
    """Pairs of (ids, label) of a split, after a look at its arrays."""
    tokens, offsets = group["tokens"][:], group["offsets"][:]
    lengths, labels = group["lengths"][:], group["labels"][:]
    assert tokens.dtype == np.uint8 and offsets.dtype == np.int64
    assert lengths.dtype == np.int32 and labels.dtype == np.int32
    assert offsets[0] == 0 and offsets[-1] == len(tokens) == lengths.sum()
    assert (np.diff(offsets) == lengths).all() and (lengths > 0).all()
    assert len(labels) == len(lengths)
    for name in ("tokens", "offsets", "lengths", "labels"):
        assert isinstance(group[name].attrs["units"], str)
        assert isinstance(group[name].attrs["long_name"], str)
    for name in ("lengths", "labels"):
        scale = group[name].dims[0][0]
        assert h5py.h5ds.is_scale(scale.id) and len(scale) == len(lengths)
    return [(tokens[a:b], int(y)) for a, b, y in zip(offsets, offsets[1:], labels)]


def digest(sets):
    """FNV-1a with 64 bits over label, length (32 bits each) and ids (16 bits each)."""
    h = 0xCBF29CE484222325
    for rows in sets:
        for ids, label in rows:
            data = np.array([label, len(ids)], "<u4").tobytes() + ids.astype("<u2").tobytes()
            for byte in data:
                h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def check(path, folder=None):
    with h5py.File(path) as file:
        attributes = dict(file.attrs)
        vocabulary = [word.decode("utf-8") for word in file["vocabulary"][:]]
        sets = [examples(file[split]) for split in SPLITS]
    assert vocabulary == (
        ["<pad>"] + [str(d) for d in range(10)] + ["[MIN", "[MAX", "[MED", "[SM", "]"]
    )
    assert attributes["task"] == "listops" and attributes["complete"] == 1
    assert attributes["classes"] == 10 and attributes["commit_dirty"].dtype == bool
    for name in ("title", "source", "generator", "created", "created_by", "commit"):
        assert isinstance(attributes[name], str) and attributes[name], name
    assert attributes["created"].endswith("Z")
    seen, within, across, wrong = {}, 0, 0, 0
    for split, rows in zip(SPLITS, sets):
        counts = np.bincount([label for _, label in rows], minlength=10)
        assert (attributes[f"class_counts_{split}"] == counts).all()
        assert attributes[f"examples_{split}"] == len(rows)
        assert attributes[f"tokens_{split}"] == sum(len(ids) for ids, _ in rows)
        for ids, label in rows:
            wrong += value([vocabulary[i] for i in ids]) != label
            first = seen.setdefault(ids.tobytes(), split)
            if first == split:
                within += seen.get((split, ids.tobytes()), 0)
                seen[(split, ids.tobytes())] = 1
            else:
                across += 1
    assert attributes["duplicates_within"] == within, within
    assert attributes["duplicates_across"] == across, across
    assert wrong == 0, f"{wrong} labels are not the value of their expression"
    assert attributes["digest"] == digest(sets)
    if attributes["source"] == "generated":
        low, high = attributes["min_length"], attributes["max_length"]
        assert all(low < len(ids) < high for rows in sets for ids, _ in rows)
    if folder:
        os.makedirs(folder, exist_ok=True)
        for split, rows in zip(SPLITS, sets):
            with open(f"{folder}/basic_{split}.tsv", "w") as out:
                out.write("Source\tTarget\n")
                for ids, label in rows:
                    out.write(binarised([vocabulary[i] for i in ids]) + f"\t{label}\n")
    print(*[len(rows) for rows in sets], "examples;", within, across, "duplicates")


def same(one, two):
    with h5py.File(one) as a, h5py.File(two) as b:
        for split in SPLITS:
            for name in ("tokens", "offsets", "lengths", "labels"):
                assert (a[split][name][:] == b[split][name][:]).all(), (split, name)
        assert a.attrs["digest"] == b.attrs["digest"]


if __name__ == "__main__":
    assert value("[MED 1 2 ]".split()) == 1 and value("[MED 0 9 ]".split()) == 4
    assert value("[MAX [MIN 4 7 ] [SM 9 2 [MED 1 8 ] ] 3 ]".split()) == 5
    assert binarised("[MAX 4 7 ]".split()) == "( ( ( [MAX 4 ) 7 ) ] )"
    if sys.argv[1] == "--same":
        same(*sys.argv[2:])
    else:
        check(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--export"] else None)
