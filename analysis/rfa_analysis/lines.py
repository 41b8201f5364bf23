"""RUN.jsonl beside a run file: what has happened since the file was written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from .hdf5 import STEP_COLUMNS

NAN = float("nan")


def beside(path: str, suffix: str) -> str:
    """runs/a.h5 -> runs/a + suffix."""
    return (path.removesuffix(".h5")) + suffix


@dataclass
class Tail:
    """The lines of the newest run in a .jsonl.

    run: its identity, "" when there is no line. newer: it began after the run of the file.
    """

    run: str = ""
    newer: bool = False
    steps: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    test: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


def _number(value: Any) -> float:
    return NAN if value is None else value


def _evaluation(line: dict[str, Any], split: str) -> dict[str, Any]:
    examples = int(line["examples"])
    return {
        "step": int(line["step"]),
        "split": split,
        "loss": float(_number(line["loss"])),
        "correct": int(line["correct"]),
        "examples": examples,
        "accuracy": line["correct"] / examples if examples > 0 else NAN,
        "confusion": line.get("confusion") or None,
    }


def _step(line: dict[str, Any]) -> dict[str, Any]:
    """KeyError when a column is missing."""
    row: dict[str, Any] = {name: _number(line[name]) for name in STEP_COLUMNS}
    return {
        **row,
        "step": int(row["step"]),
        "guards": int(row["guards"]),
        "digest": int(row["digest"], 16),
    }


def read_tail(path: str, run: str) -> Tail:
    """The lines beside the run file path whose run is `run` ("" when there is no file) or newer.

    A torn last line doesn't count; other lines that are none are left out with a note.
    """
    tail = Tail()
    name = beside(path, ".jsonl")
    try:
        with open(name, "rb") as file:
            text = file.read()
    except OSError:
        return tail
    parsed: list[tuple[int, dict[str, Any] | None]] = []
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            value = json.loads(line)
            good = isinstance(value, dict) and len(value.get("run", "")) == 16
        except (ValueError, TypeError):
            good = False
        parsed.append((number, value if good else None))
    tail.run = max((value["run"] for _, value in parsed if value), default="")
    if tail.run < run:
        if tail.run:
            tail.notes.append(f"{os.path.basename(name)} is of an older run and left out")
        return Tail(notes=tail.notes)
    tail.newer = bool(run) and tail.run > run
    if tail.newer:
        tail.notes.append(f"is of an older run than {os.path.basename(name)}: read are the lines")
    damaged = []
    for number, value in parsed:
        try:
            if value is None:
                raise ValueError
            if value["run"] != tail.run:
                continue
            if "test" in value:
                tail.test = _evaluation(value, str(value["test"]))
            elif "evaluation" in value:
                tail.evaluations.append(_evaluation(value, str(value["evaluation"])))
            else:
                tail.steps.append(_step(value))
        except (KeyError, ValueError, TypeError):
            damaged.append(number)
    if damaged:
        tail.notes.append(
            f"{os.path.basename(name)}:{damaged[0]}: not a line of a run;"
            f" {len(damaged)} such left out"
        )
    return tail


def _is_locked(path: str) -> bool:
    """A program of this machine holds the lock of path (asked without taking it). Linux."""
    try:
        info = os.stat(path)
        mark = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino} "
        with open("/proc/locks", encoding="ascii") as file:
            return any("FLOCK" in line and mark in line for line in file)
    except OSError:
        return False


def is_written(path: str, quiet: float, now: float) -> bool:
    """Somebody writes the run at path: its .jsonl is locked, or changed within quiet seconds.

    On another machine only the second can be seen.
    """
    name = beside(path, ".jsonl")
    if _is_locked(name):
        return True
    times = [os.stat(file).st_mtime for file in (name, path) if os.path.exists(file)]
    return bool(times) and now - max(times) < quiet
