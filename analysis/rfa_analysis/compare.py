"""rfa-analysis compare: runs beside each other."""

from __future__ import annotations

import argparse
from typing import Any

from . import curves, style
from .cli import add_paths, load_paths
from .errors import AnalysisError
from .groups import Group, differences, group, paired
from .load import Runs
from .text import Column, missing, percent, plain, plain_table, plot

EPILOG = """examples:
  rfa-analysis compare runs/rfa-*.h5 runs/softmax-*.h5 -o compare.svg
  rfa-analysis compare runs/ --reference runs/softmax-1.h5

Runs that differ in nothing but seed (and ranks, threads, and what else changes no result) form a
group. Means and standard deviations are over its seeds; intervals are 95 % percentile bootstraps
of the mean (10 000 resamples). Differences pair equal seeds. One seed has no interval.
"""


def _points(value: float) -> str:
    """A difference of accuracies in percentage points."""
    return "" if missing(value) else f"{100 * value:+.2f}"


def _between(low: float, high: float) -> str:
    return "" if missing(low) else f"{percent(low)} to {percent(high)}"


GROUPS = (
    Column("task", lambda g: g.task, right=False),
    Column("group", lambda g: g.label, right=False),
    Column("seeds", lambda g: str(g.statistics()["n"])),
    Column("mean", lambda g: percent(g.statistics()["mean"])),
    Column("sd", lambda g: percent(g.statistics()["sd"])),
    Column("bootstrap of the mean", lambda g: _between(*_interval(g))),
    Column(
        "each seed",
        lambda g: ", ".join(f"{plain(s)}: {percent(a)}" for s, a in sorted(g.accuracies().items())),
        right=False,
    ),
)


def _interval(one: Group) -> tuple[float, float]:
    numbers = one.statistics()
    return numbers["low"], numbers["high"]


PAIRS = (
    Column("group", lambda row: row["label"], right=False),
    Column("paired seeds", lambda row: str(row["n"])),
    Column("mean difference", lambda row: _points(row["mean"])),
    Column("sd", lambda row: "" if missing(row["sd"]) else f"{100 * row['sd']:.2f}"),
    Column(
        "bootstrap of the mean",
        lambda row: (
            "" if missing(row["low"]) else f"{_points(row['low'])} to {_points(row['high'])}"
        ),
    ),
)


def differences_table(runs: Runs) -> str:
    """A row a key in which the runs differ, a column a run."""
    rows = [(key, values) for key, values in differences(runs).items()]
    if not rows:
        return "none"
    columns = [Column("key", lambda row: row[0], right=False)]
    columns += [
        Column(run.name, lambda row, i=i: plain(row[1][i]) or "-", right=False)
        for i, run in enumerate(runs)
    ]
    return plain_table(columns, rows)


def pairs(groups: list[Group], reference: Group) -> list[dict[str, Any]]:
    """paired() of each other group with the reference, and its label."""
    return [
        {"label": one.label, **paired(reference, one)} for one in groups if one is not reference
    ]


def describe(runs: Runs, groups: list[Group], reference: Group) -> str:
    """Differences, results and pairs as text."""
    parts = ["Configuration differences\n" + differences_table(runs)]
    parts.append("Test accuracy over seeds\n" + plain_table(GROUPS, groups))
    rows = [row for row in pairs(groups, reference) if row["n"]]
    if rows:
        parts.append(
            f"Against {reference.label}, by equal seeds, in percentage points\n"
            + plain_table(PAIRS, rows)
        )
    if any(row["n"] < 2 for row in rows) or all(len(g.accuracies()) < 2 for g in groups):
        parts.append(
            "One seed says nothing of how seeds differ: read a difference from two or more."
        )
    missed = [run.name for run in runs if not run.test]
    if missed:
        parts.append("Without a final result: " + ", ".join(missed))
    return "\n\n".join(parts)


def text_curves(runs: Runs) -> str:
    """Validation accuracy of all runs in one text plot."""
    series = [
        (run.name, run.evaluations["step"], 100 * run.evaluations["accuracy"]) for run in runs
    ]
    return plot(series, 76, 12, 2, "validation accuracy [%]")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="runs beside each other: what differs, curves, results over seeds",
        description="Compares runs: configuration differences, curves, final results over seeds.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser)
    parser.add_argument(
        "-o", metavar="FILE", dest="out", help="curves on one plot: .svg, .pdf or .png"
    )
    parser.add_argument(
        "--reference",
        metavar="RUN",
        help="a run of the group that the others are held against (default: the first)",
    )
    parser.set_defaults(run=run)


def find_reference(groups: list[Group], name: str | None) -> Group:
    """The group that holds the run of that name or path; the first group for None."""
    if name is None:
        return groups[0]
    for one in groups:
        if any(name in (member.name, member.path) for member in one.runs):
            return one
    raise AnalysisError(f"--reference {name}: not among the runs", 2)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args, whole=True)
    if not len(runs):
        raise AnalysisError("no run to compare")
    groups = group(runs)
    print(describe(runs, groups, find_reference(groups, args.reference)))
    if args.out:
        save(groups, args.out)
        print(f"\ncurves: {args.out}")
    elif len(runs) <= 26:
        print("\n" + text_curves(runs))
    return 0


def save(groups: list[Group], path: str) -> None:
    """Draws the curves into a file. AnalysisError when it can't be written."""
    with style.context():
        try:
            curves.figure(groups).savefig(path)
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{path}: {error}") from None
