"""One run: its file, as src/storage/runfile.h describes it, and the lines beside it.

Texts are str, flags bool, and what a file has not is NaN (None where it is no number). A run that
is going on is read with the lines that stand in its .jsonl, no step lost or doubled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from . import hdf5, lines
from .errors import AnalysisError
from .intervals import wilson

NAN = float("nan")
QUIET = 900  # seconds without a sign of life after which a running run counts as stopped


def kind_of(config: dict[str, Any]) -> str:
    """What a run is called by: attention.kind, with -gate, -decay, -arccos or -oprf after it."""
    kind = str(config.get("attention.kind", ""))
    gate = config.get("attention.gate", "none")
    feature_map = config.get("attention.map", "auto")
    if gate == "learned":
        kind += "-gate"
    elif gate != "none":
        kind += f"-{gate}"
    if feature_map in ("arccos", "oprf"):
        kind += f"-{feature_map}"
    return kind


def as_steps(columns: dict[str, Any], count: int) -> pd.DataFrame:
    """Columns of count steps as a data frame with the types of the file; what lacks is NaN."""
    table = {}
    for name in hdf5.STEP_COLUMNS:
        values = columns.get(name)
        kind = {"step": np.int64, "guards": np.int64, "digest": np.uint64}.get(name, np.float64)
        table[name] = np.full(count, NAN) if values is None else np.asarray(values, dtype=kind)
    return pd.DataFrame(table)


def as_evaluations(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows of evaluations as a data frame, with Wilson's 95 % interval as low and high."""
    frame = pd.DataFrame(rows, columns=list(hdf5.EVALUATION_COLUMNS))
    for name in ("step", "correct", "examples"):
        frame[name] = frame[name].astype(np.int64)
    for name in ("loss", "accuracy"):
        frame[name] = frame[name].astype(float)
    both = [wilson(c, n) for c, n in zip(frame["correct"], frame["examples"])]
    frame["low"] = np.array([low for low, _ in both], dtype=float)
    frame["high"] = np.array([high for _, high in both], dtype=float)
    return frame


class Run:
    """One run: its file, and the lines beside it. AnalysisError when it can't be read.

    path        of the run file
    attributes  of the root: provenance, by the names that h5dump shows
    config      "section.key" -> value, as resolved by rfa; config_text: as YAML
    test        the final result: step, loss [nat], correct, examples, accuracy; None without
    notes       what was left out in reading, one line each
    """

    # What is read when it is asked for.
    _LATER = (
        "state",
        "steps",
        "_evaluations",
        "starts",
        "profile",
        "tokens_per_second",
        "_last_in_file",
    )

    # Columns of Runs.runs, and which of them are attributes of the file.
    NUMBERS = (
        "ranks",
        "threads",
        "peak_bytes_of_a_rank",
        "training_seconds",
        "parameters",
        "share_of_sgemm",
    )
    WORDS = ("started", "written", "commit", "modified", "data_digest")
    SUMMARY = (
        "run",
        "task",
        "kind",
        "seed",
        "ranks",
        "threads",
        "steps",
        "steps_planned",
        "state",
        "test_accuracy",
        "test_low",
        "test_high",
        "test_loss",
        "test_correct",
        "test_examples",
        "tokens_per_second",
        "peak_bytes_of_a_rank",
        "training_seconds",
        "parameters",
        "share_of_sgemm",
        "started",
        "written",
        "commit",
        "modified",
        "data_digest",
        "path",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        """Reads what a table of runs needs, of the file as it is now, and forgets the rest."""
        path = self.path
        for name in Run._LATER:
            self.__dict__.pop(name, None)
        self._mark = hdf5.mark(path)
        self.attributes: dict[str, Any] = {}
        self.config: dict[str, Any] = {}
        self.config_text = ""
        self.test: dict[str, Any] | None = None
        self._in_file = os.path.exists(path)
        self._count = 0
        if self._in_file:
            self._read_head()
        self._tail = lines.read_tail(path, self.attributes.get("run", ""))
        self.notes = list(self._tail.notes)
        if not self._in_file and not self._tail.run:
            raise AnalysisError("no such file, and no line beside it")
        if self._tail.newer or not self._in_file:
            self.attributes = {"run": self._tail.run, "state": "running"}
            self.config, self.config_text, self.test, self._in_file = {}, "", None, False
        if self._tail.test is not None:
            self.test = {k: v for k, v in self._tail.test.items() if k != "confusion"}

    def _read_head(self) -> None:
        """The root, the configuration and the test."""
        with hdf5.open_file(self.path) as file:
            hdf5.expect(file, hdf5.RUN)
            try:
                self.attributes = hdf5.attributes(file)
                if not isinstance(self.attributes["state"], str) or "run" not in self.attributes:
                    raise KeyError("state")
                self.config = hdf5.attributes(file["config"])
                self.config_text = self.config.pop("text", "")
                self._count = file["steps/step"].shape[0]
                if "test" in file:
                    rows = hdf5.columns(file["test"], hdf5.EVALUATION_COLUMNS)
                    if any(len(values) != 1 for values in rows.values()):
                        raise KeyError("test")
                    self.test = {name: hdf5.plain(values[0]) for name, values in rows.items()}
            except (KeyError, OSError, RuntimeError, ValueError, TypeError) as error:
                raise hdf5.damaged(error) from None

    def _read(self, what: Callable[[Any], Any]) -> Any:
        """what(file) of the run file, with damage as an AnalysisError that names it. When the file
        has been replaced since, its head is read anew, so that both are of one file."""
        try:
            if hdf5.mark(self.path) != self._mark:
                self._begin()
            with hdf5.open_file(self.path) as file:
                return what(file)
        except (KeyError, OSError, RuntimeError, ValueError, TypeError) as error:
            raise AnalysisError(f"{self.path}: {hdf5.damaged(error)}") from None
        except AnalysisError as error:
            raise AnalysisError(f"{self.path}: {error}") from None

    # What the run is.

    @staticmethod
    def name_of(path: str) -> str:
        """The file's name without .h5."""
        return os.path.splitext(os.path.basename(path))[0]

    @property
    def name(self) -> str:
        """The file's name without .h5."""
        return Run.name_of(self.path)

    @property
    def kind(self) -> str:
        """attention.kind with -gate, -decay, -arccos or -oprf; "" when not known."""
        return kind_of(self.config)

    @property
    def task(self) -> str:
        """The data set's task, as listops; "" when not known."""
        return str(self.attributes.get("task", ""))

    @property
    def seed(self) -> float:
        """train.seed; NaN when not known."""
        return self.config.get("train.seed", NAN)

    @cached_property
    def state(self) -> str:
        """running, finished, stopped, diverged or failed.

        A file can't know that its program was killed: "running" without a writer or a sign of
        life for QUIET seconds is called stopped. It can be resumed like one.
        """
        state = self.attributes["state"]
        if state == "running" and not lines.is_written(self.path, QUIET, time.time()):
            return "stopped"
        return state

    # Its rows.

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a step, as /steps: loss [nat], seconds [s], tokens_per_second [1/s], ..."""
        frame = as_steps({}, 0)
        if self._in_file:
            columns = self._read(lambda file: hdf5.columns(file["steps"], hdf5.STEP_COLUMNS))
            frame = as_steps(columns, len(columns["step"]))
        last = frame["step"].iloc[-1] if len(frame) else 0
        fresh = []
        for row in self._tail.steps:
            if row["step"] > last:
                fresh.append(row)
                last = row["step"]
        if fresh:
            columns = {name: [row[name] for row in fresh] for name in fresh[0]}
            frame = pd.concat([frame, as_steps(columns, len(fresh))], ignore_index=True)
        return frame

    @cached_property
    def _evaluations(self) -> tuple[pd.DataFrame, list[np.ndarray | None]]:
        rows: list[dict[str, Any]] = []
        if self._in_file:

            def read(file: Any) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
                group = file["evaluations"]
                confusion = group["confusion"][:] if "confusion" in group else None
                return hdf5.columns(group, hdf5.EVALUATION_COLUMNS), confusion

            table, matrices = self._read(read)
            rows = pd.DataFrame(table).to_dict("records")
            for i, row in enumerate(rows):
                row["confusion"] = None if matrices is None else matrices[i]
        place = {(row["step"], row["split"]): i for i, row in enumerate(rows)}
        for row in self._tail.evaluations:
            key = (row["step"], row["split"])
            if key in place:
                rows[place[key]] = row
            else:
                place[key] = len(rows)
                rows.append(row)
        matrices = [
            None if row["confusion"] is None else np.asarray(row["confusion"]) for row in rows
        ]
        return as_evaluations(rows), matrices

    @property
    def evaluations(self) -> pd.DataFrame:
        """One row a validation: step, split, loss [nat], correct, examples, accuracy, low, high.

        low and high: Wilson's 95 % interval of the accuracy.
        """
        return self._evaluations[0]

    def confusion(self, row: int | None = None) -> np.ndarray | None:
        """Examples by true (rows) and predicted class (columns); None when there is none.

        row: of evaluations (-1: the newest); by default the test's, else the newest.
        """
        if row is None and self.test is not None:
            if self._tail.test is not None:
                found = self._tail.test["confusion"]
                return None if found is None else np.asarray(found)

            def read(file: Any) -> np.ndarray | None:
                return file["test/confusion"][0] if "confusion" in file["test"] else None

            return self._read(read)
        matrices = self._evaluations[1]
        return matrices[-1 if row is None else row] if matrices else None

    def _table(self, group: str, names: tuple[str, ...]) -> pd.DataFrame:
        """Those columns of a group that may not be there; what it lacks is NaN."""
        rows = {}
        if self._in_file:
            rows = self._read(lambda f: hdf5.columns(f[group], names) if group in f else {})
        return pd.DataFrame(rows, columns=list(names))

    @cached_property
    def starts(self) -> pd.DataFrame:
        """One row a start of the program: step, ranks, threads, started, commit, hosts, ..."""
        return self._table("starts", hdf5.START_COLUMNS)

    @cached_property
    def profile(self) -> pd.DataFrame:
        """One row a phase of the profiled steps: seconds [s], share [1], flops; empty without."""
        return self._table("profile", hdf5.PHASE_COLUMNS)

    @cached_property
    def tokens_per_second(self) -> float:
        """Valid tokens of all steps over their seconds, all ranks [1/s]."""
        if not self._tail.steps and self._in_file:
            table = self._read(lambda f: hdf5.columns(f["steps"], ("tokens_per_second", "seconds")))
        else:
            table = self.steps
        if not len(table["seconds"]):
            return NAN
        seconds = np.asarray(table["seconds"], dtype=float)
        tokens = np.asarray(table["tokens_per_second"], dtype=float) * seconds
        return float(np.nansum(tokens) / np.nansum(seconds)) if np.nansum(seconds) > 0 else NAN

    @property
    def last_step(self) -> int:
        """Optimiser steps done."""
        if not self._tail.steps and self._in_file:
            return self._last_in_file
        return int(self.steps["step"].iloc[-1]) if len(self.steps) else 0

    @cached_property
    def _last_in_file(self) -> int:
        return int(self._read(lambda f: f["steps/step"][-1])) if self._count else 0

    def check(self) -> None:
        """Reads what summary() needs. AnalysisError when it can't be read."""
        self.last_step, self.tokens_per_second  # noqa: B018

    def summary(self) -> dict[str, Any]:
        """The run's row in Runs.runs."""
        test = self.test or {}
        low, high = wilson(test.get("correct", NAN), test.get("examples", NAN))
        get = self.attributes.get
        row = {name: get(name, NAN) for name in Run.NUMBERS}
        row.update((name, get(name)) for name in Run.WORDS)
        row.update(
            run=self.name,
            task=self.task,
            kind=self.kind,
            seed=self.seed,
            steps=self.last_step,
            steps_planned=self.config.get("train.steps", NAN),
            state=self.state,
            test_accuracy=test.get("accuracy", NAN),
            test_low=low,
            test_high=high,
            test_loss=test.get("loss", NAN),
            test_correct=test.get("correct", NAN),
            test_examples=test.get("examples", NAN),
            tokens_per_second=self.tokens_per_second,
            path=self.path,
        )
        return {name: row[name] for name in Run.SUMMARY}

    def __repr__(self) -> str:
        return f"Run({self.path!r}, {self.task} {self.kind}, {self.state})"
