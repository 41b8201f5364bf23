"""rfa-analysis show: one run, all that its file says."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

import numpy as np

from .cli import add_paths, load_paths
from .load import Bench
from .run import Run
from .text import (
    Column,
    duration,
    interval,
    missing,
    percent,
    plain,
    plain_table,
    plot,
    rate,
    size,
    smooth,
)

# Attributes in the order of reading; others follow by name. What is in Run.SUMMARY's own line or
# of no interest to people is left out.
PROVENANCE = (
    "task",
    "data_file",
    "data_digest",
    "program",
    "commit",
    "modified",
    "compiler",
    "cpu_level",
    "blas",
    "mpi",
    "hdf5",
    "hosts",
    "slurm_job_id",
    "ranks",
    "ranks_sequence",
    "ranks_data",
    "threads",
    "rank_independent",
    "parameters",
    "started",
    "written",
    "run",
)
HIDDEN = {"schema", "state", "profile_steps", "exchange_prefix", "exchange_total"}
UNITS = {  # of attributes, for people
    "peak_bytes_of_a_rank": size,
    "training_seconds": duration,
    "model_flops_per_second": lambda v: rate(v) + "FLOP/s",
    "sgemm_flops_per_second": lambda v: rate(v) + "FLOP/s",
    "gemm_flops": lambda v: rate(v) + "FLOP",
    "gemm_flops_of_a_rank": lambda v: rate(v) + "FLOP",
    "share_of_sgemm": lambda v: percent(v, 1),
}


def provenance(run: Run) -> list[tuple[str, str]]:
    """(name, text) of the run's attributes, as people read them."""
    names = [name for name in PROVENANCE if name in run.attributes]
    names += sorted(set(run.attributes) - set(names) - HIDDEN)
    return [(name, UNITS.get(name, plain)(run.attributes[name])) for name in names]


def exchange(run: Run) -> dict[str, Any]:
    """What crossing the ranks cost: waits of all steps [s], their share of the steps' time [1],
    median and 95th percentile of a step [s], how prefixes and totals cross. Empty without steps.
    """
    steps = run.steps
    if not len(steps):
        return {}
    wait = steps["exchange_wait"].to_numpy()
    total, seconds = float(np.nansum(wait)), float(np.nansum(steps["seconds"]))
    return {
        "seconds": total,
        "share": total / seconds if seconds > 0 else float("nan"),
        "median": float(np.nanmedian(wait)) if len(wait) else float("nan"),
        "percentile_95": float(np.nanpercentile(wait, 95)),
        "prefix": run.attributes.get("exchange_prefix"),
        "total": run.attributes.get("exchange_total"),
    }


def exchange_text(run: Run) -> str:
    """exchange(run) in a line."""
    cost = exchange(run)
    if not cost:
        return "no step yet"
    text = (
        f"wait {duration(cost['seconds'])}, {percent(cost['share'], 1)} of the steps' time;"
        f" a step {1e3 * cost['median']:.3g} ms (median),"
        f" {1e3 * cost['percentile_95']:.3g} ms (95th percentile)"
    )
    words = [f"{name}: {cost[name]}" for name in ("prefix", "total") if cost[name]]
    return "; ".join([text, *words])


def curves(run: Run, width: int = 76) -> str:
    """Loss and accuracy over the steps, as text."""
    steps, parts = run.steps, []
    if len(steps):
        span = max(1, len(steps) // 50)
        label = "training loss [nat]" + (f", mean of {span} steps" if span > 1 else "")
        parts.append(plot([("", steps["step"], smooth(steps["loss"], span))], width, 10, 3, label))
    rows = run.evaluations
    if len(rows):
        label = "validation accuracy [%]"
        parts.append(plot([("", rows["step"], 100 * rows["accuracy"])], width, 8, 2, label))
    return "\n\n".join(parts)


def confusion_text(matrix: np.ndarray) -> str:
    """Rows true, columns predicted; the last columns: examples, and how many of them were right."""
    total = matrix.sum(axis=1)
    cells = [Column("true", lambda i: str(i))]
    cells += [Column(str(j), lambda i, j=j: str(matrix[i, j])) for j in range(matrix.shape[1])]
    cells.append(Column("examples", lambda i: str(total[i])))
    cells.append(Column("right", lambda i: percent(matrix[i, i] / total[i], 1) if total[i] else ""))
    return plain_table(cells, range(matrix.shape[0]))


EVALUATIONS = (
    Column("step", lambda row: plain(row.step)),
    Column("split", lambda row: row.split, right=False),
    Column("loss [nat]", lambda row: f"{row.loss:.4f}"),
    Column("accuracy", lambda row: percent(row.accuracy)),
    Column("95 % interval", lambda row: interval(row.low, row.high)),
    Column("right", lambda row: f"{plain(row.correct)}/{plain(row.examples)}"),
)
PHASES = (
    Column("phase", lambda row: row.phase, right=False),
    Column("share", lambda row: percent(row.share, 1)),
    Column("seconds", lambda row: f"{row.seconds:.3f}"),
    Column("least", lambda row: f"{row.seconds_least:.3f}"),
    Column("most", lambda row: f"{row.seconds_most:.3f}"),
    Column("FLOP/s a thread", lambda row: rate(row.flops / row.seconds) if row.seconds else ""),
)
STARTS = (
    Column("after step", lambda row: plain(row.step)),
    Column("started", lambda row: plain(row.started), right=False),
    Column("ranks", lambda row: plain(row.ranks)),
    Column("threads", lambda row: plain(row.threads)),
    Column("commit", lambda row: plain(row.commit), right=False),
    Column("hosts", lambda row: plain(row.hosts), right=False),
)


def headline(run: Run) -> str:
    """The run in a line."""
    row = run.summary()
    parts = [" ".join(word for word in (run.task, run.kind) if word) or "a run", run.state]
    planned = row["steps_planned"]
    of = f" of {plain(planned)}" if not missing(planned) and planned != row["steps"] else ""
    parts.append(f"{row['steps']}{of} steps")
    if run.test:
        share = f"{plain(row['test_correct'])}/{plain(row['test_examples'])}"
        within = interval(row["test_low"], row["test_high"])
        parts.append(f"test accuracy {percent(row['test_accuracy'])} ({share}; {within})")
    if not missing(row["tokens_per_second"]):
        parts.append(f"{rate(row['tokens_per_second'])} tokens/s")
    if not missing(row["peak_bytes_of_a_rank"]):
        parts.append(f"{size(row['peak_bytes_of_a_rank'])} a rank at most")
    return ", ".join(parts)


def describe(run: Run, width: int = 76) -> str:
    """All of it as text."""

    def pairs(rows: list[tuple[str, str]]) -> str:
        widest = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:{widest}}  {value}" for name, value in rows)

    parts = [f"{run.path}\n{headline(run)}"]

    def section(title: str, body: str) -> None:
        if body:
            parts.append(f"{title}\n{'-' * len(title)}\n{body}")

    section("Curves", curves(run, width))
    rows = list(run.evaluations.itertuples())
    section("Evaluations", plain_table(EVALUATIONS, rows) if rows else "")
    matrix = run.confusion()
    where = "test" if run.test else "last validation"
    if matrix is not None and matrix.shape[0] <= 20:
        section(f"Confusion matrix ({where})", confusion_text(matrix))
    elif matrix is not None:
        section("Confusion matrix", f"of {matrix.shape[0]} classes: Run.confusion() has it")
    phases = list(run.profile.itertuples())
    steps = plain(run.attributes.get("profile_steps"))
    section(f"Phases, of {steps} profiled steps", plain_table(PHASES, phases) if phases else "")
    section("Exchange", exchange_text(run))
    starts = list(run.starts.itertuples())
    section("Starts", plain_table(STARTS, starts) if starts else "")
    section("Provenance", pairs(provenance(run)))
    section("Configuration", run.config_text.rstrip())
    section("Repeat", "\n".join(commands(run)))
    return "\n\n".join(parts)


def commands(run: Run) -> list[str]:
    """Commands that look at the run, and that repeat it."""
    ranks = plain(run.attributes.get("ranks", 1))
    path = shlex.quote(run.path)
    return [f"rfa inspect {path}", f"mpirun -n {ranks} rfa reproduce {path}"]


def bench_command(bench: Bench) -> str:
    """The command that measures again what a file of rfa bench holds."""
    ranks = plain(bench.attributes.get("ranks", 1))
    return f"mpirun -n {ranks} rfa bench CONFIG.yaml --out NEW.h5   # CONFIG: its /config text"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "show",
        help="one run: configuration, provenance, curves, confusion matrix, phases, exchange",
        description="Shows one run, or several one after the other.",
    )
    add_paths(parser)
    parser.add_argument("--width", type=int, default=76, help="columns of the curves (default: 76)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    runs = load_paths(args, whole=True)
    print("\n\n\n".join(describe(one, args.width) for one in runs))
    return 0
