"""Loads run files, and results of rfa bench (src/storage/benchfile.h), many at once."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from . import hdf5, seal
from .errors import AnalysisError
from .run import NAN, Run, as_evaluations


@dataclass
class Problem:
    """A file that was left out, or not taken whole, and why: one line.

    damaged: it is a file of HDF5 or of rfa, and broken.
    """

    path: str
    text: str

    @property
    def damaged(self) -> bool:
        return "damaged" in self.text and ".jsonl" not in self.text

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class Bench:
    """A file of results of rfa bench.

    results: one row a case: columns of /results and /parameters, -1 (no such parameter) as NaN;
    units: column -> unit; attributes, config, config_text: as of Run.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.units: dict[str, str] = {}
        with hdf5.open_file(path) as file:
            hdf5.expect(file, hdf5.BENCH)
            try:
                self.attributes = hdf5.attributes(file)
                self.config = hdf5.attributes(file["config"])
                self.config_text = self.config.pop("text", "")
                table: dict[str, np.ndarray] = {}
                for group in ("parameters", "results"):
                    found = hdf5.columns(file[group])
                    for name, values in found.items():
                        if group == "parameters":
                            values = np.where(values < 0, NAN, values.astype(float))
                        table[name] = values
                        self.units[name] = hdf5.plain(file[group][name].attrs.get("units", "1"))
                self.results = pd.DataFrame(table)
            except (KeyError, OSError, RuntimeError, ValueError, TypeError) as error:
                raise hdf5.damaged(error) from None

    @property
    def name(self) -> str:
        """The file's name without .h5."""
        return Run.name_of(self.path)


class Runs:
    """Many runs, in the order they were found: iterable, runs[i], len(runs).

    benches: files of rfa bench; problems: files that were left out, one line each.
    """

    def __init__(
        self, items: list[Run], benches: list[Bench] | None = None, problems: list | None = None
    ) -> None:
        self.items = items
        self.benches: list[Bench] = benches or []
        self.problems: list[Problem] = problems or []

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.items)

    def __getitem__(self, key: int | str) -> Run:
        """By place, or by name or path."""
        if isinstance(key, int):
            return self.items[key]
        for run in self.items:
            if key in (run.name, run.path):
                return run
        raise KeyError(key)

    def whole(self) -> Runs:
        """Those runs of which every row can be read; the others become problems."""
        kept = []
        for run in self.items:
            try:
                run.steps, run.evaluations, run.starts, run.profile, run.confusion()  # noqa: B018
                kept.append(run)
            except (AnalysisError, ValueError, TypeError, KeyError) as error:
                text = str(error).removeprefix(run.path + ": ")
                text = text if isinstance(error, AnalysisError) else str(hdf5.damaged(error))
                self.problems.append(Problem(run.path, text))
        return Runs(kept, self.benches, self.problems)

    def filter(self, keep: Callable[[Run], bool]) -> Runs:
        """Those runs for which keep(run) holds."""
        return Runs([run for run in self.items if keep(run)], self.benches, self.problems)

    def _gather(self, table: Callable[[Run], pd.DataFrame]) -> pd.DataFrame:
        frames = []
        for run in self.items:
            try:
                frame = table(run).copy()
            except AnalysisError as error:  # damaged where its head is whole
                self.problems.append(Problem(run.path, str(error).removeprefix(run.path + ": ")))
                continue
            for place, (name, value) in enumerate(
                [("run", run.name), ("task", run.task), ("kind", run.kind), ("seed", run.seed)]
            ):
                frame.insert(place, name, value)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run: see Run.summary. Seconds, bytes, tokens a second; accuracies of 1."""
        return pd.DataFrame([run.summary() for run in self.items], columns=list(Run.SUMMARY))

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a step of a run: run, task, kind, seed, and the columns of Run.steps."""
        return self._gather(lambda run: run.steps)

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """One row a validation of a run: run, task, kind, seed, and those of Run.evaluations."""
        return self._gather(lambda run: run.evaluations)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """One row a final result: run, task, kind, seed, step, loss [nat], accuracy [1], ..."""

        return self._gather(lambda run: as_evaluations([run.test] if run.test else []))

    @cached_property
    def benchmarks(self) -> pd.DataFrame:
        """One row a case of rfa bench: file, ranks, and the columns of Bench.results."""
        frames = []
        for bench in self.benches:
            frame = bench.results.copy()
            frame.insert(0, "file", bench.name)
            if "ranks" not in frame:
                frame.insert(1, "ranks", bench.attributes.get("ranks", NAN))
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that paths mean: patterns expanded, folders searched to the bottom for *.h5.

    A .jsonl without its .h5 is a run that was killed before it was first written. Each file once,
    sorted within a pattern or folder.
    """
    found: dict[str, None] = {}
    for given in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = os.fspath(given)
        if os.path.isdir(path):
            for folder, folders, files in os.walk(path):
                folders.sort()
                names = {os.path.join(folder, f) for f in files if f.endswith(".h5")}
                names |= {
                    os.path.join(folder, f[:-6] + ".h5") for f in files if f.endswith(".jsonl")
                }
                found.update(dict.fromkeys(sorted(names)))
        elif glob.has_magic(path) and not os.path.exists(path):
            found.update(dict.fromkeys(sorted(glob.glob(path, recursive=True)) or [path]))
        else:
            found[path[:-6] + ".h5" if path.endswith(".jsonl") else path] = None
    return list(found)


def load(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Runs:
    """Loads files, patterns ("runs/*.h5") and folders. Never raises for a file: see Runs.problems.

    Data sets, predictions and other results of rfa in a folder are passed over in silence. Of copies of one run the furthest
    counts, so that no seed counts twice.
    """
    given = {os.fspath(p) for p in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)}
    found = find(paths)
    broken = seal.broken(found)
    runs = Runs([])
    place: dict[str, int] = {}
    for path in found:
        try:
            if path in broken:
                raise AnalysisError(broken[path])
            schema = hdf5.schema(path) if os.path.exists(path) else hdf5.RUN
            if schema == hdf5.BENCH:
                runs.benches.append(Bench(path))
            elif schema == hdf5.RUN:
                run = Run(path)
                run.check()
                runs.problems += [Problem(path, note) for note in run.notes]
                _add(runs, place, run)
            elif path in given or not hdf5.is_another(schema):
                raise AnalysisError(hdf5.describe_schema(schema))
        except AnalysisError as error:
            runs.problems.append(Problem(path, str(error).removeprefix(path + ": ")))
    return runs


def _add(runs: Runs, place: dict[str, int], run: Run) -> None:
    """Adds run, unless it is a copy of one that is there."""
    identity = str(run.attributes.get("run", run.path))
    if identity not in place:
        place[identity] = len(runs.items)
        runs.items.append(run)
        return
    other = runs.items[place[identity]]
    if (run.last_step, run.test is not None) > (other.last_step, other.test is not None):
        runs.items[place[identity]], run, other = run, other, run
    runs.problems.append(Problem(run.path, f"is the same run as {other.path} and left out"))
