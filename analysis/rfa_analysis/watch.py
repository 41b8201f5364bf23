"""rfa-analysis watch: follows a run that is going on."""

from __future__ import annotations

import argparse
import html
import os
import shutil
import sys
import time
from typing import Any

from . import show
from .errors import AnalysisError
from .run import Run
from .text import duration, missing, percent, plain, rate

EPILOG = """examples:
  rfa-analysis watch runs/a.h5                    a live curve in the terminal; Ctrl-C leaves it
  rfa-analysis watch runs/a.h5 --page a.html      a page that refreshes in the browser

Reads the run file and its .jsonl, and never disturbs the run. Ends with it: exit code 0 when it
finished, 1 when it stopped otherwise.
"""


def left(run: Run) -> float:
    """Seconds to the last planned step at the pace of the last 50 steps; NaN when not known."""
    steps = run.steps
    planned = run.config.get("train.steps")
    if planned is None or not len(steps):
        return float("nan")
    return max(0, planned - run.last_step) * float(steps["seconds"].tail(50).mean())


def status(run: Run) -> str:
    """Where the run is, in two lines."""
    steps, rows = run.steps, run.evaluations
    parts = [show.headline(run)]
    if len(steps):
        last = steps.iloc[-1]
        words = [
            f"loss {last['loss']:.4f}",
            f"rate {plain(last['learning_rate'])}",
            f"gradient norm {last['gradient_norm']:.3g}",
            f"{rate(steps['tokens_per_second'].tail(50).mean())} tokens/s now",
        ]
        remains = left(run)
        if run.state == "running" and not missing(remains):
            words.append(f"{duration(remains)} left")
        parts.append(", ".join(words))
    if len(rows):
        best = rows.loc[rows["accuracy"].idxmax()] if rows["accuracy"].notna().any() else None
        if best is not None:
            parts.append(f"best validation: {percent(best['accuracy'])} at step {best['step']}")
    return "\n".join(parts)


def screen(run: Run, width: int) -> str:
    """What a terminal shows."""
    return f"{run.path}\n{status(run)}\n\n{show.curves(run, min(width, 100))}"


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{refresh}<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{
  font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem;
}}
p {{ white-space: pre-line; }}
svg {{ width: 100%; height: auto; }}
</style></head><body><main>
<h1>{title}</h1>
<p role="status">{status}</p>
{picture}
<p>{note}</p>
</main></body></html>
"""


def page(run: Run, every: float) -> str:
    """A page of its own, which asks for itself anew while the run goes on."""
    from .svg import inline_curves

    going = run.state == "running"
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return PAGE.format(
        refresh=f'<meta http-equiv="refresh" content="{max(1, round(every))}">\n' if going else "",
        title=html.escape(run.name),
        status=html.escape(status(run)),
        picture=inline_curves(run),
        note=f"As of {now}" + (f"; refreshed every {every:g} s." if going else "."),
    )


def write_whole(path: str, text: str) -> None:
    """Replaces the file at once, so that no reader sees half of it. AnalysisError."""
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise AnalysisError(f"{path}: {os.strerror(error.errno or 0).lower()}") from None


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "watch",
        help="follows a run that is going on",
        description="Follows a run: a live curve in the terminal, or a page that refreshes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="RUN", help="a run file (.h5), there already or to come")
    parser.add_argument("--every", type=float, default=2, metavar="SECONDS", help="default: 2")
    parser.add_argument("--page", metavar="FILE.html", help="writes a page instead")
    parser.add_argument("--once", action="store_true", help="as it is now, then ends")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not args.every > 0:
        raise AnalysisError("--every: seconds above 0", 2)
    path = args.path[:-6] + ".h5" if args.path.endswith(".jsonl") else args.path
    live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    told, failures = -1, 0
    while True:
        try:
            one = Run(path)
            one.steps, one.evaluations  # noqa: B018  before what is said of them
            failures = 0
        except AnalysisError as error:
            failures += 1  # it may not have begun, or be replaced at this moment
            if args.once or failures * args.every > 60:
                raise AnalysisError(f"{path}: {error}") from None
            if failures == 2:
                print(f"{path}: {error}; waiting a minute", file=sys.stderr, flush=True)
            time.sleep(args.every)
            continue
        if args.page:
            write_whole(args.page, page(one, args.every))
        elif live and not args.once:
            print("\033[H\033[2J" + screen(one, shutil.get_terminal_size().columns), flush=True)
        elif args.once:
            print(screen(one, shutil.get_terminal_size().columns))
        elif one.last_step != told:  # a pipe or a file: a line when something happened
            told = one.last_step
            print(status(one).replace("\n", "; "), flush=True)
        if args.once or one.state != "running":
            return 0 if args.once or one.state == "finished" else 1
        time.sleep(args.every)
