"""rfa-analysis report: runs as one page that needs nothing but itself.

Other modules add to it: figures.for_report(runs) gives (title, description, matplotlib Figure)s,
table.for_report(runs) gives HTML.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import quote

import numpy as np

from . import curves, show, style, svg
from .cli import add_paths, load_paths
from .groups import Group, group
from .html import Cell, escape, link, sortable, tag
from .load import Bench, Runs
from .run import Run
from .runs import steps_of, table
from .text import duration, interval, missing, percent, plain, rate, size
from .watch import write_whole

EPILOG = """examples:
  rfa-analysis report runs/ -o report.html
  rfa-analysis report runs/ bench/ --title "ListOps, November" -o report.html

The page holds no link to the network. Its links to run files are relative to where it stands: move
both together.
"""
DETAILED = 200  # runs that are shown one by one; more would make a page that browsers choke on


@dataclass
class Page:
    """What is written: the runs, their groups, and where the page will stand."""

    runs: Runs
    groups: list[Group]
    out: str
    title: str
    command: str

    def anchor(self, run: Run) -> str:
        """The id of a run's section."""
        return f"run-{self.runs.items.index(run)}" if len(self.runs) <= DETAILED else ""

    def file(self, path: str) -> str:
        """A link's address of a file, relative to the page."""
        folder = os.path.dirname(os.path.abspath(self.out))
        return quote(os.path.relpath(os.path.abspath(path), folder))

    def number(self, run: Run, text: str) -> str:
        """A number of a run, linked to its section, which has file and commands."""
        if not text:
            return ""
        anchor = self.anchor(run)
        return link(f"#{anchor}" if anchor else self.file(run.path), text, title=repeat(run))


def repeat(run: Run) -> str:
    """The command that repeats a run."""
    return show.commands(run)[-1]


def dot(kind: str) -> str:
    """The kind's colour, before its name."""
    colour = style.colour(kind)
    colour = "currentColor" if colour == "#000000" else colour
    return f'<span class="dot" style="--c: {colour}"></span>'


def cards(page: Page) -> str:
    """The most telling numbers of each task."""
    states = [run.state for run in page.runs]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    items = [("runs", str(len(states)), counts)]
    for task in dict.fromkeys(one.task for one in page.groups):
        tested = [run for run in page.runs if run.task == task and run.test]
        if not tested:
            continue
        best = max(tested, key=lambda run: run.test["accuracy"])
        fast = max(tested, key=lambda run: np.nan_to_num(run.tokens_per_second))
        row = best.summary()
        within = interval(row["test_low"], row["test_high"])
        what = f"{style.name(best.kind)}, seed {plain(best.seed)}; {within}"
        name = task or "unknown task"
        items.append(
            (f"{name}: best test accuracy", page.number(best, percent(row["test_accuracy"])), what)
        )
        speed = page.number(fast, rate(fast.tokens_per_second) + " tokens/s")
        items.append((f"{name}: fastest", speed, f"{style.name(fast.kind)}, {fast.name}"))
    body = "".join(
        f'<dl class="card"><dt>{escape(head)}</dt><dd>{value}</dd><dd>{escape(more)}</dd></dl>'
        for head, value, more in items
    )
    return f'<div class="cards">{body}</div>'


def group_table(page: Page) -> str:
    """A row a group: results over seeds, speed, memory."""
    heads = [
        ("configuration", False),
        ("mean test accuracy", True),
        ("95 % interval", True),
        ("seeds", True),
        ("sd over seeds", True),
        ("tokens/s", True),
        ("peak a rank", True),
        ("task", False),
        ("runs", False),
    ]
    rows = []
    for one in page.groups:
        numbers = one.statistics()
        tested = [run for run in one.runs if run.test]
        low, high, note = numbers["low"], numbers["high"], "bootstrap over seeds"
        if len(tested) == 1:
            summary = tested[0].summary()
            low, high, note = summary["test_low"], summary["test_high"], "Wilson, of the test split"
        speed = _over(np.mean, [run.tokens_per_second for run in one.runs])
        peak = _over(max, [run.attributes.get("peak_bytes_of_a_rank") for run in one.runs])
        first = (tested or one.runs)[0]
        members = ", ".join(page.number(run, run.name) for run in one.runs[:12])
        members += f" and {len(one.runs) - 12} more" if len(one.runs) > 12 else ""
        rows.append(
            [
                Cell(dot(one.kind) + escape(one.label), one.label),
                Cell(page.number(first, percent(numbers["mean"])), numbers["mean"]),
                Cell(tag("span", page.number(first, interval(low, high)), title=note), low),
                Cell(str(numbers["n"]), numbers["n"]),
                Cell(page.number(first, percent(numbers["sd"])), numbers["sd"]),
                Cell(page.number(first, rate(speed)), speed),
                Cell(page.number(first, size(peak)), peak),
                Cell(escape(one.task), one.task),
                Cell(members, first.name),
            ]
        )
    return sortable("groups", "Test accuracy of each configuration", heads, rows)


def _over(function: Callable[[list[float]], float], values: Sequence[float | None]) -> float:
    """function of the values that are there; NaN without."""
    there = [value for value in values if not missing(value)]
    return float(function(there)) if there else math.nan


def run_table(page: Page) -> str:
    """A row a run, those that are damaged among them."""
    heads = [
        ("run", False),
        ("state", False),
        ("test accuracy", True),
        ("95 % interval", True),
        ("task", False),
        ("kind", False),
        ("seed", True),
        ("ranks", True),
        ("steps", True),
        ("tokens/s", True),
        ("peak a rank", True),
        ("time", True),
    ]
    by_path = {run.path: run for run in page.runs}
    rows = []
    for _, row in table(page.runs).iterrows():
        run = by_path.get(row["path"])
        state, kind, name = plain(row["state"]), plain(row["kind"]), plain(row["run"])
        line = [
            Cell(page.number(run, name) if run else link(page.file(row["path"]), name), name),
            Cell(f'<span class="state-{escape(state)}">{escape(state)}</span>', state),
        ]
        for column, text in (
            ("test_accuracy", percent(row["test_accuracy"])),
            ("test_low", interval(row["test_low"], row["test_high"])),
            ("task", plain(row["task"])),
            ("kind", style.name(kind)),
            ("seed", plain(row["seed"])),
            ("ranks", plain(row["ranks"])),
            ("steps", steps_of(row)),
            ("tokens_per_second", rate(row["tokens_per_second"])),
            ("peak_bytes_of_a_rank", size(row["peak_bytes_of_a_rank"])),
            ("training_seconds", duration(row["training_seconds"])),
        ):
            number = run is not None and column not in ("task", "kind")
            body = page.number(run, text) if number else escape(text)
            body = dot(kind) + body if column == "kind" and kind else body
            line.append(Cell(body, row[column]))
        rows.append(line)
    search = (
        '<p class="filter"><label>Show only runs with <input id="filter" type="search" '
        'autocomplete="off"></label> <span id="filter-count" role="status"></span></p>'
    )
    return search + sortable("runs", "All runs; a number leads to its run", heads, rows)


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values as a list."""
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    return f'<dl class="pairs">{body}</dl>'


def plain_rows(name: str, columns: Sequence[show.Column], rows: Sequence[Any]) -> str:
    """A table of text columns, sortable too."""
    heads = [(column.head, column.right) for column in columns]
    body = []
    for row in rows:
        texts = [column.cell(row) for column in columns]
        body.append([Cell(escape(text), text.split(" ")[0]) for text in texts])
    return sortable(None, name, heads, body, buttons=False)


def confusion(matrix: np.ndarray, where: str) -> str:
    """Rows true, columns predicted; the shade is the share of the true class."""
    count = matrix.shape[0]
    if count > 20:
        return f"<p>{count} classes: too many to show.</p>"
    total = matrix.sum(axis=1)
    head = "".join(f'<th scope="col">{j}</th>' for j in range(count))
    lines = []
    for i in range(count):
        shares = matrix[i] / total[i] if total[i] else np.zeros(count)
        cells = "".join(
            f'<td style="--a: {0.75 * share:.2f}">{value}</td>'
            for value, share in zip(matrix[i], shares)
        )
        right = percent(shares[i], 1) if total[i] else ""
        lines.append(f'<tr><th scope="row">{i}</th>{cells}<td>{right}</td></tr>')
    caption = (
        f"Confusion matrix, {where}: rows true, columns predicted, last column the share right"
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="confusion"><caption>{caption}</caption><thead><tr>'
        f'<td></td>{head}<th scope="col">right</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def run_section(page: Page, run: Run) -> str:
    """All of one run, folded."""
    parts = [
        f"<p>File: {link(page.file(run.path), run.path)}</p>",
        "<p>To look at it, and to repeat it and compare each step:</p>",
        f"<pre>{escape(chr(10).join(show.commands(run)))}</pre>",
    ]
    left = []
    rows = list(run.evaluations.itertuples())
    if rows:
        left.append(plain_rows("Validations", show.EVALUATIONS, rows))
    matrix = run.confusion()
    right = []
    if matrix is not None:
        right.append(confusion(matrix, "test" if run.test else "last validation"))
    parts.append(f'<div class="two"><div>{"".join(left)}</div><div>{"".join(right)}</div></div>')
    phases = list(run.profile.itertuples())
    if phases:
        steps = plain(run.attributes.get("profile_steps"))
        parts.append(plain_rows(f"Phases, of {steps} profiled steps", show.PHASES, phases))
    parts.append(f"<p>Exchange: {escape(show.exchange_text(run))}.</p>")
    starts = list(run.starts.itertuples())
    if starts:
        parts.append(plain_rows("Starts of the program", show.STARTS, starts))
    text = f"<pre>{escape(run.config_text)}</pre>" if run.config_text else "<p>Not known.</p>"
    parts.append(f"<details><summary>Configuration</summary>{text}</details>")
    inner = pairs(show.provenance(run))
    parts.append(f"<details><summary>Provenance</summary>{inner}</details>")
    head = f"<strong>{escape(run.name)}</strong> {escape(show.headline(run))}"
    return (
        f'<details class="run" id="{page.anchor(run)}"><summary>{head}</summary>'
        f"{''.join(parts)}</details>"
    )


def bench_section(page: Page, bench: Bench) -> str:
    """The results of a file of rfa bench."""
    frame = bench.results.dropna(axis="columns", how="all")
    heads, columns = [], []
    for name in frame:
        unit = bench.units.get(name, "1")
        numeric = frame[name].dtype != object
        heads.append((name if unit in ("1", "") else f"{name} [{unit}]", numeric))
        columns.append(name)
    rows = [
        [Cell(escape(plain(row[name])), row[name]) for name in columns]
        for _, row in frame.iterrows()
    ]
    file = link(page.file(bench.path), bench.path)
    command = f"<pre>{escape(show.bench_command(bench))}</pre>"
    return (
        f'<details class="run"><summary><strong>{escape(bench.name)}</strong> '
        f"{len(frame)} lines</summary><p>File: {file}</p>{command}"
        + sortable(None, bench.name, heads, rows)
        + "</details>"
    )


def own_figures(page: Page) -> list[tuple[str, str, Any]]:
    """Learning curves of each task: (title, description, figure)."""
    found = []
    for task in dict.fromkeys(one.task for one in page.groups):
        groups = [one for one in page.groups if one.task == task]
        if any(len(run.steps) or len(run.evaluations) for one in groups for run in one.runs):
            title = f"Learning curves, {task or 'unknown task'}"
            words = (
                "Training loss (mean of a fiftieth of the steps) and validation accuracy, a line "
                "a run."
            )
            found.append((title, words, curves.figure(groups, 10.0, 3.6)))
    return found


def added(module: str, runs: Runs) -> Any:
    """for_report(runs) of a module that may not be there; None then."""
    if importlib.util.find_spec(f"{__package__}.{module}") is None:
        return None
    hook: Callable[[Runs], Any] | None = getattr(
        importlib.import_module(f"{__package__}.{module}"), "for_report", None
    )
    return hook(runs) if hook else None


def figures(page: Page) -> str:
    """All figures, each with its caption and the files that it draws."""
    with style.context():
        drawn = own_figures(page) + list(added("figures", page.runs) or [])
        parts = []
        for title, words, figure in drawn:
            picture = svg.inline(figure, title, words)
            parts.append(
                f'<figure><div class="scroll" tabindex="0" role="region" '
                f'aria-label="{escape(title)}">{picture}</div>'
                f"<figcaption>{escape(title)}. {escape(words)}</figcaption></figure>"
            )
    return "".join(parts)


def build(runs: Runs, out: str, title: str, command: str) -> str:
    """The page as a text."""
    page = Page(runs, group(runs), out, title, command)
    sections: list[tuple[str, str, str]] = []
    if len(runs):
        sections.append(("summary", "Summary", cards(page) + group_table(page)))
        lra = added("table", runs)
        if lra:
            sections.append(("lra", "Long Range Arena", lra))
        drawn = figures(page)
        if drawn:
            sections.append(("figures", "Figures", drawn))
        sections.append(("runs", "Runs", run_table(page)))
        if len(runs) <= DETAILED:
            body = "".join(run_section(page, run) for run in runs)
        else:
            body = f"<p>{len(runs)} runs are too many for one page: rfa-analysis show has each.</p>"
        sections.append(("each", "Each run", body))
    if runs.benches:
        body = "".join(bench_section(page, bench) for bench in runs.benches)
        sections.append(("bench", "Benchmarks", body))
    if runs.problems:
        body = "".join(f"<li>{escape(str(problem))}</li>" for problem in runs.problems)
        sections.append(("left-out", "Left out", f"<ul>{body}</ul>"))
    return assemble(page, sections)


NOTES = (
    "Accuracies are shares of the test split. The interval of one run is Wilson's, 95 %, and says "
    "how far the size of the split lets the number wander; that of several seeds is a percentile "
    "bootstrap of their mean, 95 %, 10 000 resamples. Tokens are valid ones, of all ranks, over "
    "the time of all steps; peak is the memory of the rank that took most. A dot's colour is "
    "the kind's in every figure."
)


def assemble(page: Page, sections: Sequence[tuple[str, str, str]]) -> str:
    """Head, contents, sections, notes."""

    def read(name: str) -> str:
        return (resources.files(__package__) / name).read_text(encoding="utf-8")

    contents = "".join(f"<li>{link('#' + key, head)}</li>" for key, head, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(head)}</h2>{inner}</section>'
        for key, head, inner in sections
    )
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(page.title)}</title>\n<style>\n{read('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">To the results</a>\n<header><h1>{escape(page.title)}</h1>'
        f'<p class="quiet">Made {made} by <code>{escape(page.command)}</code></p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>\n'
        f'<main id="main">{body}</main>\n<footer><p>{NOTES}</p></footer>\n'
        f"<script>\n{read('page.js')}</script>\n</body>\n</html>\n"
    )


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "report",
        help="all of it as one page (HTML)",
        description="Writes one HTML page: summary, figures, sortable tables, each run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser)
    parser.add_argument(
        "-o", dest="out", metavar="FILE", default="report.html", help="default: report.html"
    )
    parser.add_argument("--title", default="Runs of rfa", help="of the page")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args, whole=True)
    words = ["rfa-analysis", "report", *args.paths, "-o", args.out, "--title", args.title]
    command = shlex.join(words)
    write_whole(args.out, build(runs, args.out, args.title, command))
    benches = f", files of rfa bench: {len(runs.benches)}" if runs.benches else ""
    print(f"{args.out}: runs: {len(runs)}{benches}")
    return 0
