"""rfa-analysis runs: a table of runs."""

from __future__ import annotations

import argparse
import operator
import re
from typing import Any

import pandas as pd

from .cli import add_paths, load_paths
from .errors import AnalysisError
from .load import Runs
from .run import Run
from .text import (
    Column,
    csv_text,
    interval,
    json_text,
    markdown_table,
    missing,
    percent,
    plain,
    plain_table,
    rate,
    size,
)

OPERATORS = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}

EPILOG = """examples:
  rfa-analysis runs runs/
  rfa-analysis runs runs/ --filter 'test_accuracy>0.37' --sort test_accuracy --reverse
  rfa-analysis runs 'runs/*.h5' --filter train.rate=0.001 --csv > runs.csv

Names for --filter and --sort: the columns of --csv, and configuration keys as train.rate. Text
compares with = and !=, and with ~ to a regular expression. What a run has not, passes no filter.
Units in --csv and --json: accuracies as a share of 1, losses in nat, bytes, seconds.
"""


def steps_of(row: pd.Series) -> str:
    """Steps done, and those planned when there are more."""
    planned = row["steps_planned"]
    if missing(row["steps"]):
        return ""
    done = plain(row["steps"])
    return done if missing(planned) or planned == row["steps"] else f"{done}/{plain(planned)}"


COLUMNS = (
    Column("run", lambda row: plain(row["run"]), right=False),
    Column("task", lambda row: plain(row["task"]), right=False),
    Column("kind", lambda row: plain(row["kind"]), right=False),
    Column("seed", lambda row: plain(row["seed"])),
    Column("ranks", lambda row: plain(row["ranks"])),
    Column("steps", steps_of),
    Column("test accuracy", lambda row: percent(row["test_accuracy"])),
    Column("95 % interval", lambda row: interval(row["test_low"], row["test_high"])),
    Column("tokens/s", lambda row: rate(row["tokens_per_second"])),
    Column("peak a rank", lambda row: size(row["peak_bytes_of_a_rank"])),
    Column("state", lambda row: plain(row["state"]), right=False),
)


def table(runs: Runs) -> pd.DataFrame:
    """Runs.runs with one row more for each damaged file: state "damaged", all else missing."""
    frame = runs.runs
    damaged = [problem.path for problem in runs.problems if problem.damaged]
    if damaged:
        rows = [{"run": Run.name_of(path), "state": "damaged", "path": path} for path in damaged]
        frame = pd.concat([frame, pd.DataFrame(rows)], ignore_index=True)
        frame = frame.reindex(columns=Run.SUMMARY)
    return frame


def _value(runs: Runs, row: pd.Series, name: str) -> Any:
    if name in row:
        return row[name]
    for run in runs:
        if run.path == row["path"]:
            return run.config.get(name, run.attributes.get(name))
    return None


def passes(value: Any, sign: str, wanted: str) -> bool:
    """Does value hold against a filter's sign and word?"""
    if missing(value):
        return False
    if sign == "~":
        return re.search(wanted, plain(value)) is not None
    if isinstance(value, bool):
        return OPERATORS[sign](plain(value), {"true": "yes", "false": "no"}.get(wanted, wanted))
    if isinstance(value, str):
        return OPERATORS[sign](value, wanted)
    try:
        return bool(OPERATORS[sign](float(value), float(wanted)))
    except ValueError:
        raise AnalysisError(f"--filter: '{wanted}' is no number", 2) from None


def select(
    runs: Runs,
    frame: pd.DataFrame,
    filters: list[str],
    sort: str | None = None,
    reverse: bool = False,
) -> pd.DataFrame:
    """The rows of frame that pass all filters, sorted. AnalysisError for a filter without sense."""
    known = set(Run.SUMMARY).union(*(set(run.config) | set(run.attributes) for run in runs))
    for text in filters:
        match = re.match(r"([\w.]+)\s*(<=|>=|!=|=|<|>|~)\s*(.*)$", text)
        if not match:
            raise AnalysisError(f"--filter '{text}': expected NAME=VALUE (or != < <= > >= ~)", 2)
        name, sign, wanted = match.groups()
        if name not in known:
            raise AnalysisError(f"--filter '{text}': no run has '{name}'", 2)
        keep = [passes(_value(runs, row, name), sign, wanted) for _, row in frame.iterrows()]
        frame = frame[keep]
    if sort:
        if sort not in known:
            raise AnalysisError(f"--sort: no run has '{sort}'", 2)
        keys = [_value(runs, row, sort) for _, row in frame.iterrows()]
        there = [i for i, key in enumerate(keys) if not missing(key)]
        try:
            there.sort(key=lambda i: keys[i], reverse=reverse)
        except TypeError:
            there.sort(key=lambda i: plain(keys[i]), reverse=reverse)
        frame = frame.iloc[there + [i for i, key in enumerate(keys) if missing(key)]]
    return frame


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "runs",
        help="a table of runs",
        description="A table of runs: what, how good (with Wilson's 95 %% interval), how fast.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser)
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only such runs; may be given more than once",
    )
    parser.add_argument("--sort", metavar="NAME", help="by this column, the least first")
    parser.add_argument("--reverse", action="store_true", help="the greatest first")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="all columns, full precision")
    form.add_argument("--json", action="store_true", help="all columns, full precision")
    form.add_argument("--markdown", action="store_true", help="for a README")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args)
    frame = select(runs, table(runs), args.filter, args.sort, args.reverse)
    if args.csv:
        print(csv_text(frame), end="")
    elif args.json:
        print(json_text(frame))
    else:
        rows = [row for _, row in frame.iterrows()]
        print((markdown_table if args.markdown else plain_table)(COLUMNS, rows))
    return 0
