"""rfa-analysis table: the Long Range Arena, our runs beside published numbers.

published.csv holds a number a row: task, method, value [%], protocol, check, source. Protocol A:
the models of Tay et al. 2021; B: the small models of Xiong et al. 2021 and of those that took them
over; own: models or training of a paper's own. Tables of two protocols are never mixed. check:
read (in the source itself), second (quoted by another source), unchecked (recalled).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from . import style
from .cli import add_paths, load_paths
from .errors import AnalysisError
from .groups import group
from .load import Runs
from .run import Run
from .text import Column, csv_text, markdown_table, plain, plain_table

EPILOG = """examples:
  rfa-analysis table runs/                            our runs and published numbers, as text
  rfa-analysis table runs/ --protocol B --latex       the small models alone, as LaTeX
  rfa-analysis table --csv                            the published numbers alone

All values are accuracies in %. The average is taken over the five tasks without Path-X, from the
numbers of the table; where one of the five is missing there is none. Ours: mean over seeds, their
number in brackets. Numbers that nobody has looked up stay hidden without --unchecked.
"""

FIVE = ("listops", "text", "retrieval", "image", "pathfinder")
TASKS = {
    "listops": "ListOps",
    "text": "Text",
    "retrieval": "Retrieval",
    "image": "Image",
    "pathfinder": "Pathfinder",
    "pathx": "Path-X",
}
PROTOCOLS = {
    "A": "Protocol A: the models of Tay et al. 2021",
    "B": "Protocol B: the small models of Xiong et al. 2021",
    "own": "Models and training of their own",
}
# What tells the small models and those of Tay et al. apart; with heads and layers of each task.
SMALL = {"model.layers": 2, "model.width": 64, "model.heads": 2, "model.feed_forward": 128}
OFFICIAL = {
    "listops": {"model.layers": 6, "model.width": 512, "model.heads": 8},
    "text": {"model.layers": 6, "model.width": 512, "model.heads": 8},
    "retrieval": {"model.layers": 4, "model.width": 128, "model.heads": 4},
    "image": {"model.layers": 3, "model.width": 64, "model.heads": 4},
    "pathfinder": {"model.layers": 4, "model.width": 128, "model.heads": 8},
    "pathx": {"model.layers": 4, "model.width": 128, "model.heads": 8},
}
MARKS = {"read": "", "second": "†", "unchecked": "?"}


@dataclass
class Row:
    """A line of a table: accuracies [%] by task."""

    method: str
    source: str
    check: str
    values: dict[str, float]
    seeds: dict[str, int] = field(default_factory=dict)  # task -> seeds of our runs
    note: str = ""  # settings of our runs

    @property
    def ours(self) -> bool:
        return bool(self.seeds)

    @property
    def average(self) -> float:
        """Mean of the five tasks [%]; NaN when one is missing."""
        return average(self.values)


def average(values: dict[str, float]) -> float:
    """Mean over the five tasks without Path-X; NaN when one of them is missing."""
    return math.fsum(values.get(task, math.nan) for task in FIVE) / len(FIVE)


def published(unchecked: bool = False) -> pd.DataFrame:
    """The published numbers: task, method, value [%], protocol, check, source."""
    with resources.files(__package__).joinpath("published.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file, dtype={"value": float}, keep_default_na=False)
    return frame if unchecked else frame[frame["check"] != "unchecked"].reset_index(drop=True)


def rows_of(protocol: str, unchecked: bool = False) -> list[Row]:
    """Published lines of a protocol, those of a source together, in the order of the file."""
    frame = published(unchecked)
    found = []
    for (source, method, check), part in frame[frame["protocol"] == protocol].groupby(
        ["source", "method", "check"], sort=False
    ):
        found.append(Row(method, source, check, dict(zip(part["task"], part["value"]))))
    return found


def protocol_of(run: Run) -> str:
    """A or B when the model's sizes are those of the protocol, else own."""

    def fits(wanted: dict[str, int]) -> bool:
        return all(run.config.get(key) == value for key, value in wanted.items())

    if fits(SMALL):
        return "B"
    return "A" if run.task in OFFICIAL and fits(OFFICIAL[run.task]) else "own"


def settings(run: Run) -> str:
    """What the number of a run depends on, in one line."""
    parts = [
        f"{plain(run.config.get(key))} {word}"
        for key, word in (
            ("model.layers", "layers"),
            ("model.width", "wide"),
            ("model.heads", "heads"),
            ("train.steps", "steps"),
            ("train.batch", "a batch"),
            ("data.max_length", "tokens at most"),
        )
        if key in run.config
    ]
    parts.append(f"pooling {run.config.get('model.pooling', '?')}")
    parts.append(f"rate {plain(run.config.get('train.rate'))}")
    if run.test:
        parts.append(f"{int(run.test['examples'])} test examples")
    parts.append(f"data {run.attributes.get('data_digest', '?')}")
    return ", ".join(parts)


def own_rows(runs: Runs, protocol: str) -> list[Row]:
    """Lines of our runs of a protocol: the mean over the seeds of each group.

    Groups of one kind on several tasks share a line, the first with the first and so on.
    """
    lines: dict[tuple[str, int], Row] = {}
    place: dict[tuple[str, str], int] = {}
    for one in group(run for run in runs if run.test and protocol_of(run) == protocol):
        if one.task not in TASKS:
            continue
        number = place[one.kind, one.task] = place.get((one.kind, one.task), -1) + 1
        name = f"{style.name(one.kind)} (ours{f' {number + 1}' if number else ''})"
        row = lines.setdefault((one.kind, number), Row(name, "runs of rfa", "read", {}))
        statistics = one.statistics()
        row.values[one.task] = 100 * statistics["mean"]
        row.seeds[one.task] = int(statistics["n"])
        row.note += f"; {TASKS[one.task]}: {settings(one.runs[0])}"
    return list(lines.values())


def collect(runs: Runs, protocols: list[str], unchecked: bool) -> dict[str, list[Row]]:
    """protocol -> lines, published ones first; protocols without any are left out."""
    found = {p: rows_of(p, unchecked) + own_rows(runs, p) for p in protocols}
    return {protocol: rows for protocol, rows in found.items() if rows}


def _cell(row: Row, task: str) -> str:
    value = row.values.get(task, math.nan)
    if math.isnan(value):
        return ""
    seeds = row.seeds.get(task)
    return f"{value:.2f}" + (f" [{seeds}]" if seeds else "")


def columns(rows: list[Row]) -> list[Column]:
    """Method, the tasks that have a number, average, source."""

    def column(task: str) -> Column:
        return Column(TASKS[task], lambda row: _cell(row, task))

    return [
        Column("method", lambda row: row.method + MARKS[row.check], right=False),
        *(column(task) for task in TASKS if task in FIVE or any(task in r.values for r in rows)),
        Column("average", lambda r: "" if math.isnan(r.average) else f"{r.average:.2f}"),
        Column("source", lambda row: row.source, right=False),
    ]


def notes(rows: list[Row], protocol: str) -> list[str]:
    """What must stand under a table."""
    said = ["Accuracies in %; average over the five tasks without Path-X."]
    if any(row.check == "second" for row in rows):
        said.append("†: as quoted by another source than the paper.")
    if any(row.check == "unchecked" for row in rows):
        said.append("?: recalled, not looked up: not to be quoted.")
    ours = [row for row in rows if row.ours]
    if ours:
        said.append("Ours: mean over seeds [number of seeds]; splits and data are the run's.")
        said += [f"{row.method}: {row.note[2:]}." for row in ours]
        if any(count < 3 for row in ours for count in row.seeds.values()):
            said.append("Fewer than three seeds say little: they spread by up to 7 points.")
        if any("retrieval" in row.values for row in ours):
            said.append("Retrieval: a data set of our own making, not that of the papers.")
    if ours and protocol != "own":
        said.append("Sizes of the model are the protocol's; schedules and splits may not be.")
    return said


def latex(text: str) -> str:
    """Text with the characters that mean something to LaTeX escaped."""
    table = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    table |= {c: "\\" + c for c in "&%$#_{}"} | {"†": r"\textdagger{}"}
    return "".join(table.get(c, c) for c in text)


def latex_table(rows: list[Row], title: str, said: list[str]) -> str:
    """A table environment for the package booktabs."""
    cols = columns(rows)
    line = [" & ".join(latex(c.cell(row)) for c in cols) + r" \\" for row in rows]
    first_ours = next((i for i, row in enumerate(rows) if row.ours), 0)
    if first_ours:
        line.insert(first_ours, r"\midrule")
    head = " & ".join(latex(c.head) for c in cols) + r" \\"
    form = "".join("r" if c.right else "l" for c in cols)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\begin{{tabular}}{{{form}}}",
            r"\toprule",
            head,
            r"\midrule",
            *line,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{latex(title + '. ' + ' '.join(said))}}}",
            r"\end{table}",
        ]
    )


def frame_of(tables: dict[str, list[Row]]) -> pd.DataFrame:
    """All lines of all protocols as a tidy frame; accuracies in %."""
    return pd.DataFrame(
        [
            {
                "protocol": protocol,
                "method": row.method,
                "ours": np.bool_(row.ours),
                **{task: row.values.get(task, math.nan) for task in TASKS},
                "average": row.average,
                "check": row.check,
                "source": row.source,
                "settings": row.note[2:],
            }
            for protocol, rows in tables.items()
            for row in rows
        ]
    )


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "table",
        help="the Long Range Arena: our runs beside published numbers",
        description="The Long Range Arena: our runs beside published numbers, by protocol.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser, "*")
    parser.add_argument(
        "--protocol", choices=list(PROTOCOLS), action="append", help="may be repeated; default: all"
    )
    parser.add_argument("--unchecked", action="store_true", help="with numbers nobody looked up")
    form = parser.add_mutually_exclusive_group()
    for name in ("markdown", "latex", "csv"):
        form.add_argument(f"--{name}", action="store_true")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args) if args.paths else Runs([])
    tables = collect(runs, args.protocol or list(PROTOCOLS), args.unchecked)
    if not tables:
        raise AnalysisError("no number of that protocol")
    if args.csv:
        print(csv_text(frame_of(tables)), end="")
        return 0
    parts = []
    for protocol, rows in tables.items():
        title, said = PROTOCOLS[protocol], notes(rows, protocol)
        if args.latex:
            parts.append(latex_table(rows, title, said))
        elif args.markdown:
            lines = "\n".join(f"- {text}" for text in said)
            parts.append(f"### {title}\n\n{markdown_table(columns(rows), rows)}\n\n{lines}")
        else:
            parts.append("\n".join([title, "", plain_table(columns(rows), rows), "", *said]))
    print("\n\n".join(parts))
    return 0
