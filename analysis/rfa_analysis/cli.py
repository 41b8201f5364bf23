"""The command rfa-analysis: a module for each subcommand, with add_parser and run(args).

Exit codes: 0, 1 (some file could not be read, the rest was done), 2 usage, 3 nothing to work on.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import os
import sys
from collections.abc import Sequence

from .errors import AnalysisError
from .load import Runs, load

# Modules of this package, in the order of the help.
SUBCOMMANDS = (
    "runs",
    "show",
    "watch",
    "compare",
    "table",
    "figures",
    "report",
    "export",
    "predict",
)

EPILOG = """examples:
  rfa-analysis runs runs/                         what is there
  rfa-analysis report runs/ -o report.html        all of it as one page
  rfa-analysis compare runs/a.h5 runs/b.h5        what differs, and by how much
  rfa-analysis watch runs/a.h5                    a run that is going on
"""


def add_paths(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """The positional argument paths: files, patterns or folders of run files."""
    parser.add_argument(
        "paths", nargs=nargs, metavar="PATH", help="run files (.h5), patterns, or folders of them"
    )


def load_paths(args: argparse.Namespace, whole: bool = False) -> Runs:
    """Loads args.paths; each file that can't be used is one line on stderr.

    whole: reads all rows now, so that no damage comes up later. AnalysisError when nothing at all
    is left.
    """
    runs = load(args.paths)
    runs = runs.whole() if whole else runs
    for problem in runs.problems:
        print(f"rfa-analysis: {problem}", file=sys.stderr)
    args.problems = len(runs.problems)
    if not len(runs) and not runs.benches:
        raise AnalysisError("no run in " + " ".join(args.paths))
    return runs


def build_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands."""
    parser = argparse.ArgumentParser(
        prog="rfa-analysis",
        description="Looks at what rfa has written: run files, and results of rfa bench.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in SUBCOMMANDS:
        if importlib.util.find_spec(f"{__package__}.{command}"):
            importlib.import_module(f"{__package__}.{command}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that knows no UTF-8 shows "?"
        sys.stdout.reconfigure(errors="replace")
    args = build_parser().parse_args(argv)
    args.problems = 0
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code or (1 if args.problems else 0)
    except AnalysisError as error:
        print(f"rfa-analysis: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # of head, or a pager that was left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
