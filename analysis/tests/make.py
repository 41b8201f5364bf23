"""Files as rfa writes them (src/storage/runfile.h), by h5py alone, nothing of the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

RUN = "18ecd0000a11ce05"  # of a file, unless told otherwise
MASK = (1 << 64) - 1


def digest(before: int, data: bytes) -> int:
    """src/storage/digest.c, word by word."""
    word_by, lane_by, end_by = 0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B

    def take(lane: int, word: int) -> int:
        x = lane ^ (word * word_by & MASK)
        return ((x << 29 | x >> 35) & MASK) * lane_by & MASK

    def avalanche(x: int) -> int:
        x = (x ^ x >> 32) * word_by & MASK
        x = (x ^ x >> 29) * end_by & MASK
        return x ^ x >> 32

    lanes = [avalanche((before + (i + 1) * end_by) & MASK) for i in range(4)]
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8].ljust(8, b"\0"), "little")
        lanes[at // 8 % 4] = take(lanes[at // 8 % 4], word)
    total = avalanche(before ^ len(data))
    for lane in lanes:
        total = take(total, avalanche(lane))
    return avalanche(total)


def seal(path: Path) -> None:
    """Appends the seal of src/storage/h5_image.h."""
    data = path.read_bytes()
    chain = 0
    for at in range(0, len(data), 1 << 20):
        chain = digest(chain, data[at : at + (1 << 20)])
    mark = b"rfa seal" + len(data).to_bytes(8, "little") + chain.to_bytes(8, "little")
    path.write_bytes(data + mark)


def steps(first: int, last: int) -> list[dict[str, Any]]:
    """Rows of steps; step s has values that tell it from all others."""
    return [
        {
            "step": s,
            "loss": 2.5 - s / 64,
            "learning_rate": 0.001 / s,
            "gradient_norm": 1.0 + s,
            "tokens_per_second": 1000.0 + s,
            "exchange_wait": 0.125 / s,
            "seconds": 0.5 + s / 32,
            "guards": 3 * s,
            "digest": MASK - s,
        }
        for s in range(first, last + 1)
    ]


def evaluation(step: int, correct: int, examples: int = 40, split: str = "val") -> dict[str, Any]:
    """An evaluation of two classes."""
    half = examples // 2
    return {
        "step": step,
        "split": split,
        "loss": 2.0 - step / 100,
        "correct": correct,
        "examples": examples,
        "confusion": [[correct, half - correct], [half, 0]] if correct <= half else None,
    }


def write_run(
    path: Path,
    rows: list[dict[str, Any]],
    evaluations: list[dict[str, Any]] = (),
    test: dict[str, Any] | None = None,
    *,
    run: str = RUN,
    state: str = "finished",
    sealed: bool = True,
    attributes: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    profile: bool = False,
) -> Path:
    """A run file of that contents."""
    root = {
        "schema": "rfa run 1",
        "state": state,
        "run": run,
        "task": "listops",
        "commit": "0123456789ab",
        "modified": False,
        "started": "2026-11-30T13:44:04Z",
        "written": "2026-11-30T14:13:02Z",
        "data_digest": "acf1e0f70282cc5b",
        "ranks": 2,
        "threads": 1,
        "peak_bytes_of_a_rank": 151851264,
        "training_seconds": 16.5,
        **(attributes or {}),
    }
    keys = {
        "attention.kind": "rfa",
        "attention.gate": "none",
        "attention.causal": False,
        "train.seed": 1,
        "train.steps": len(rows),
        "train.rate": 0.001,
        "parallel.threads": 1,
        **(config or {}),
    }
    text = h5py.string_dtype()
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, value in root.items():
            if value is not None:
                file.attrs[name] = value
        group = file.create_group("config")
        group.attrs["text"] = "train:\n  seed: 1\n"
        for name, value in keys.items():
            group.attrs[name] = value
        group = file.create_group("steps")
        for name in steps(1, 1)[0]:
            kind = {"digest": np.uint64, "step": np.int64, "guards": np.int64}.get(name, float)
            group[name] = np.array([row[name] for row in rows], dtype=kind)
        for name, given in (("evaluations", list(evaluations)), ("test", [test] if test else [])):
            if name == "test" and not given:
                continue
            group = file.create_group(name)
            for column in ("step", "correct", "examples"):
                group[column] = np.array([row[column] for row in given], dtype=np.int64)
            group["loss"] = np.array([row["loss"] for row in given], dtype=float)
            group["accuracy"] = group["correct"][:] / group["examples"][:]
            splits = [row["split"] for row in given]
            group.create_dataset("split", data=splits, dtype=text, shape=(len(splits),))
            if given and all(row["confusion"] for row in given):
                group["confusion"] = np.array([row["confusion"] for row in given], dtype=np.int64)
        group = file.create_group("starts")
        group["step"] = np.array([0], dtype=np.int64)
        group["ranks"] = np.array([2], dtype=np.int64)
        group.create_dataset("hosts", data=["node1 node2"], dtype=text)
        if profile:
            file.attrs["profile_steps"] = 12
            group = file.create_group("profile")
            group["order"] = np.array([0, 1], dtype=np.int64)
            for name, values in (
                ("seconds", [3.0, 1.0]),
                ("seconds_least", [2.5, 0.5]),
                ("seconds_most", [3.5, 1.5]),
                ("share", [0.75, 0.25]),
                ("flops", [6e9, 0.0]),
            ):
                group[name] = np.array(values)
            group.create_dataset("phase", data=["attention", "exchange"], dtype=text)
    if sealed:
        seal(path)
    return path


def lines(
    path: Path, rows: list[dict[str, Any]], run: str = RUN, torn: str = "", mode: str = "w"
) -> Path:
    """The .jsonl at path: steps, evaluations (with a split), and the test (split "test")."""
    with open(path, mode, encoding="utf-8") as file:
        for row in rows:
            if "split" not in row:
                row = {**row, "digest": f"{row['digest']:016x}"}
            else:
                row = dict(row)
                split = row.pop("split")
                key = "test" if split == "test" else "evaluation"
                confusion = row.pop("confusion") or []
                row = {key: split, **row, "classes": len(confusion), "confusion": confusion}
            loss = row["loss"]
            row["loss"] = loss if loss == loss else None
            file.write(json.dumps({**row, "run": run}, separators=(",", ":")) + "\n")
        file.write(torn)
    return path


def write_bench(path: Path) -> Path:
    """Results of rfa bench, two lines (src/storage/benchfile.h)."""
    with h5py.File(path, "w") as file:
        file.attrs["schema"] = "rfa bench 1"
        file.attrs["ranks"] = 2
        file.create_group("config").attrs["text"] = "bench:\n  repeats: 5\n"
        file["row"] = np.arange(2)
        group = file.create_group("results")
        group.create_dataset("case", data=["gemm", "attention"], dtype=h5py.string_dtype())
        group["seconds"] = np.array([0.25, 0.5])
        group["seconds"].attrs["units"] = "s"
        group["case"].attrs["units"] = "1"
        group = file.create_group("parameters")
        group["length"] = np.array([-1, 4096], dtype=np.int64)
        group["length"].attrs["units"] = "tokens"
    seal(path)
    return path
