"""rfa-analysis predict: per-example predictions and logits of a run as a table.

Runs `rfa eval RUN --predictions FILE`, or reads a file that it has written: /index, /label,
/prediction [n], /logits [n][classes].
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from typing import Any

import numpy as np
import pandas as pd

from . import hdf5
from .errors import AnalysisError
from .text import Column, csv_text, json_text, markdown_table, plain_table

EPILOG = """examples:
  rfa-analysis predict runs/a.h5 --split test             evaluates, prints the first rows
  rfa-analysis predict runs/a.h5 --csv >predictions.csv   all of them
  rfa-analysis predict --file predictions.h5 --wrong      of a file of rfa eval, the wrong ones

Columns: index (in the split), label, prediction, correct, confidence (the softmax's share of the
prediction, of 1), logit0, logit1, ... The program is $RFA, or rfa in PATH.
"""


def read(path: str) -> pd.DataFrame:
    """Predictions of a file: index, label, prediction, correct, confidence [1], logit0, ...

    By index. AnalysisError when it is no such file.
    """
    try:
        with hdf5.open_file(path) as file:
            try:
                found = {n: np.asarray(file[n]) for n in ("index", "label", "prediction", "logits")}
            except KeyError:
                raise AnalysisError("no predictions in it: rfa eval --predictions") from None
            except (OSError, RuntimeError) as error:
                raise hdf5.damaged(error) from None
    except AnalysisError as error:
        raise AnalysisError(f"{path}: {str(error).removeprefix(path + ': ')}") from None
    logits = found.pop("logits")
    if logits.ndim != 2 or any(values.shape != logits.shape[:1] for values in found.values()):
        raise AnalysisError(f"{path}: damaged: its arrays are not of one length")
    return as_frame(logits=logits, **found)


def as_frame(
    index: np.ndarray, label: np.ndarray, prediction: np.ndarray, logits: np.ndarray
) -> pd.DataFrame:
    """The table that read gives, of arrays."""
    shifted = logits.astype(float) - logits.max(axis=1, keepdims=True)
    share = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    prediction = prediction.astype(np.int64)
    frame = pd.DataFrame(
        {
            "index": index.astype(np.int64),
            "label": label.astype(np.int64),
            "prediction": prediction,
            "correct": label == prediction,
            "confidence": share[np.arange(len(prediction)), prediction],
            **{f"logit{c}": logits[:, c] for c in range(logits.shape[1])},
        }
    )
    return frame.sort_values("index", ignore_index=True)


def program() -> str:
    """The program's path. AnalysisError when there is none."""
    found = os.environ.get("RFA") or shutil.which("rfa")
    if not found:
        raise AnalysisError("no program: put rfa into PATH, or its path into RFA", 2)
    return found


def evaluate(run: str, split: str = "test", data: str | None = None) -> pd.DataFrame:
    """Evaluates a run on a split by the program: see read. AnalysisError with its error line."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "predictions.h5")
        words = [program(), "eval", run, "--split", split, "--predictions", file]
        words += ["--data", data] if data else []
        try:
            subprocess.run(words, check=True, capture_output=True, text=True)
        except OSError as error:
            raise AnalysisError(f"{words[0]}: {error.strerror}", 2) from None
        except subprocess.CalledProcessError as error:
            lines = [x for x in error.stderr.splitlines() if x.startswith("rfa: error: ")]
            said = lines[-1].removeprefix("rfa: error: ") if lines else f"code {error.returncode}"
            raise AnalysisError(f"rfa eval {run}: {said}") from None
        return read(file)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="per-example predictions and logits of a run",
        description="Per-example predictions and logits of a run, as a table.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="?", metavar="RUN", help="a run file with its checkpoint")
    parser.add_argument("--file", help="predictions that rfa eval has written, in place of RUN")
    parser.add_argument("--split", default="test", help="train, val or test (the default)")
    parser.add_argument("--data", help="where the data set is now")
    parser.add_argument("--wrong", action="store_true", help="only those that are wrong")
    parser.add_argument("--rows", type=int, default=20, help="of the text (20); 0: all")
    form = parser.add_mutually_exclusive_group()
    for name in ("csv", "json", "markdown"):
        form.add_argument(f"--{name}", action="store_true", help="all rows")
    parser.set_defaults(run=run)


def _column(name: str) -> Column:
    def cell(row: Any) -> str:
        value = row[name]
        if isinstance(value, (bool, np.bool_)):
            return "yes" if value else "no"
        return f"{value:.4f}" if isinstance(value, (float, np.floating)) else str(value)

    return Column(name, cell)


def run(args: argparse.Namespace) -> int:
    if bool(args.path) == bool(args.file):
        raise AnalysisError("predict takes a RUN, or --file FILE", 2)
    frame = read(args.file) if args.file else evaluate(args.path, args.split, args.data)
    right, count = int(frame["correct"].sum()), len(frame)
    frame = frame[~frame["correct"]] if args.wrong else frame
    if args.csv:
        print(csv_text(frame), end="")
        return 0
    if args.json:
        print(json_text(frame))
        return 0
    shown = frame if args.markdown or args.rows <= 0 else frame.head(args.rows)
    rows = [dict(zip(frame.columns, row)) for row in shown.itertuples(index=False)]
    form = markdown_table if args.markdown else plain_table
    print(form([_column(name) for name in frame.columns], rows))
    if not args.markdown:
        left = len(frame) - len(shown)
        print(f"\n{right} of {count} correct" + (f"; {left} rows more" if left else ""))
    return 0
