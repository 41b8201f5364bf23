"""rfa-analysis export: runs for other programs: CSV, TensorBoard, weights."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator
from typing import Any

from .cli import add_paths, load_paths
from .errors import AnalysisError
from .load import Runs
from .run import Run
from .text import csv_text

EPILOG = """examples:
  rfa-analysis export runs/ -o tables/                   runs.csv, metrics.csv, evaluations.csv, ...
  rfa-analysis export runs/ --tensorboard -o tb/         then: tensorboard --logdir tb
  rfa-analysis export runs/a.h5 --weights -o weights/    parameters as NumPy arrays

Units in CSV: losses in nat, times in seconds, accuracies as a share of 1, bytes; digests are
unsigned 64-bit numbers. A missing value is an empty field.
"""

# Tags of TensorBoard, and the columns of steps that they hold.
TAGS = {
    "loss/train": "loss",
    "train/learning_rate": "learning_rate",
    "train/gradient_norm": "gradient_norm",
    "speed/tokens_per_second": "tokens_per_second",
    "speed/step_seconds": "seconds",
    "speed/exchange_wait_seconds": "exchange_wait",
    "train/guards": "guards",
}


def write_csv(runs: Runs, folder: str) -> list[str]:
    """runs.csv, metrics.csv, evaluations.csv, tests.csv, and benchmarks.csv when there are any."""
    written = []
    for name in ("runs", "metrics", "evaluations", "tests", "benchmarks"):
        frame = getattr(runs, name)
        if name == "benchmarks" and not len(frame):
            continue
        path = os.path.join(folder, name + ".csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(csv_text(frame))
        written.append(path)
    return written


def scalars(run: Run) -> Iterator[tuple[str, int, float]]:
    """(tag, step, value) of all that TensorBoard can draw."""
    steps = run.steps
    for tag, name in TAGS.items():
        for step, value in zip(steps["step"], steps[name]):
            yield tag, int(step), float(value)
    for row in run.evaluations.itertuples():
        yield f"loss/{row.split}", int(row.step), float(row.loss)
        yield f"accuracy/{row.split}", int(row.step), float(row.accuracy)
    if run.test:
        yield "loss/test", int(run.test["step"]), float(run.test["loss"])
        yield "accuracy/test", int(run.test["step"]), float(run.test["accuracy"])


def folder_names(runs: Runs) -> list[str]:
    """A folder's name for each run: its own, with a number after it when two have the same."""
    seen: dict[str, int] = {}
    names = []
    for run in runs:
        seen[run.name] = seen.get(run.name, 0) + 1
        names.append(run.name if seen[run.name] == 1 else f"{run.name}-{seen[run.name]}")
    return names


def write_tensorboard(runs: Runs, folder: str) -> list[str]:
    """An event file for each run, in a folder of its name. AnalysisError without the package.

    Walls of time are those of the steps: the start of the run and the sum of their seconds.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise AnalysisError(
            "--tensorboard needs the package tensorboard, missing here: pip install tensorboard",
            2,
        )
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    written = []
    for run, name in zip(runs, folder_names(runs)):
        place = os.path.join(folder, name)
        if os.path.isdir(place) and any("tfevents" in file for file in os.listdir(place)):
            raise AnalysisError(f"{place} holds event files already: choose another -o", 2)
        walls = _walls(run)
        writer = EventFileWriter(place, max_queue_size=10000, flush_secs=600)
        for tag, step, value in scalars(run):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            wall = walls.get(step, max(walls.values(), default=0.0))
            writer.add_event(Event(wall_time=wall, step=step, summary=summary))
        writer.close()
        written.append(place)
    return written


def _walls(run: Run) -> dict[int, float]:
    """step -> seconds since 1970 at which it ended, pauses between starts left out."""
    began = int(str(run.attributes.get("run", "0")), 16) * 1e-9
    steps = run.steps
    return dict(zip(steps["step"].astype(int), began + steps["seconds"].fillna(0).cumsum()))


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        help="runs for other programs: CSV, TensorBoard, weights",
        description="Writes runs into a folder for other programs: CSV, unless told otherwise.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser)
    parser.add_argument(
        "-o", dest="out", metavar="FOLDER", required=True, help="is made when it isn't there"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="data frames as CSV (the default)")
    form.add_argument("--tensorboard", action="store_true", help="an event file a run")
    if importlib.util.find_spec(f"{__package__}.weights"):
        form.add_argument("--weights", action="store_true", help="parameters as NumPy arrays")
    parser.set_defaults(run=run, weights=False)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args, whole=True)
    try:
        os.makedirs(args.out, exist_ok=True)
        if args.weights:
            from . import weights

            written = [path for one in runs for path in weights.export(one, args.out)]
        elif args.tensorboard:
            written = write_tensorboard(runs, args.out)
        else:
            written = write_csv(runs, args.out)
    except OSError as error:
        raise AnalysisError(f"{error.filename or args.out}: {error.strerror}") from None
    print("\n".join(written))
    return 0
