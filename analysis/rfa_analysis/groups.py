"""Runs of one configuration, whose seeds differ: groups, their means and differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import style
from .intervals import bootstrap
from .run import Run
from .text import plain

# Keys that change no result (neutral in src/config/keys.c), and the seed.
NEUTRAL = {
    "data.file",
    "parallel.sequence",
    "parallel.threads",
    "parallel.exchange",
    "train.micro_batch",
    "train.recompute",
    "train.evaluate_every",
    "train.checkpoint_every",
    "train.checkpoint_minutes",
    "train.check_every",
    "train.max_minutes",
}
SEED = "train.seed"
DATA = "data digest"  # not a key: the data themselves


def settings(run: Run) -> dict[str, Any]:
    """The run's configuration, and the digest of its data."""
    return {**run.config, DATA: run.attributes.get("data_digest")}


def differences(runs: Iterable[Run]) -> dict[str, list[Any]]:
    """key -> its value in each run, for the keys in which the runs differ.

    A key that some runs don't record (a program before it knew the key) makes no difference by
    that: None stands there when others differ.
    """
    tables = [settings(run) for run in runs]
    keys = dict.fromkeys(key for table in tables for key in table)
    found = {}
    for key in keys:
        values = [table.get(key) for table in tables]
        if len({value for value in values if value is not None}) > 1:
            found[key] = values
    return found


@dataclass
class Group:
    """Runs that differ in nothing that changes results, but for their seed.

    values: the keys in which the groups at hand differ; label: the kind, and those of them that
    tell groups of one kind apart.
    """

    task: str
    kind: str
    values: dict[str, Any]
    runs: list[Run]
    label: str = ""

    def accuracies(self) -> dict[Any, float]:
        """seed -> test accuracy [1] of the runs that have one; of equal seeds the last."""
        return {run.seed: run.test["accuracy"] for run in self.runs if run.test}

    def statistics(self) -> dict[str, float]:
        """Over seeds: n, mean, sd (n - 1), and low, high: the 95 % bootstrap of the mean."""
        return spread(list(self.accuracies().values()))


def spread(values: list[float]) -> dict[str, float]:
    """n, mean, sd (n - 1; NaN for one), low, high (95 % bootstrap of the mean; NaN for one)."""
    x = np.asarray(values, dtype=float)
    low, high = bootstrap(x)
    return {
        "n": x.size,
        "mean": float(x.mean()) if x.size else math.nan,
        "sd": float(x.std(ddof=1)) if x.size > 1 else math.nan,
        "low": low,
        "high": high,
    }


def group(runs: Iterable[Run]) -> list[Group]:
    """The runs in groups, each task by itself, in the order of their first runs."""
    tasks: dict[str, list[Run]] = {}
    for run in runs:
        tasks.setdefault(run.task, []).append(run)
    groups: list[Group] = []
    for task, members in tasks.items():
        keys = [key for key in differences(members) if key not in NEUTRAL and key != SEED]
        found: dict[tuple[Any, ...], Group] = {}
        for run in members:
            table = settings(run)
            values = {key: table.get(key) for key in keys}
            place = (run.kind, *values.values())
            if place not in found:
                found[place] = Group(task, run.kind, values, [])
            found[place].runs.append(run)
        _label(list(found.values()))
        groups += found.values()
    return groups


def _label(groups: list[Group]) -> None:
    """Labels: the kind, and what tells it from other groups of that kind; when that is more than
    three keys, the name of the group's first run."""
    for one in groups:
        same = [other for other in groups if other.kind == one.kind]
        parts = []
        for key, value in one.values.items():
            found = {str(other.values[key]) for other in same if other.values[key] is not None}
            if key != "attention.kind" and len(found) > 1:
                word = "data" if key == DATA else key.rpartition(".")[2]
                parts.append(f"{word} {plain(value) or 'not recorded'}")
        if len(parts) > 3:
            parts = [one.runs[0].name]
        one.label = ", ".join([style.name(one.kind) or "unknown kind", *parts])


def paired(one: Group, other: Group) -> dict[str, Any]:
    """other minus one by seeds that both have: seeds, and spread() of the differences of test
    accuracy [1]. n is 0 when they are of other tasks or data, or share no seed.
    """
    a, b = one.accuracies(), other.accuracies()
    alike = one.task == other.task and one.values.get(DATA) == other.values.get(DATA)
    seeds = sorted(set(a) & set(b)) if alike else []
    return {"seeds": seeds, **spread([b[seed] - a[seed] for seed in seeds])}
