"""Reads of HDF5: attributes and columns as plain Python and NumPy values."""

from __future__ import annotations

import os
from typing import Any

# Files are replaced whole, never changed in place: locks would only fail on read-only folders.
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import h5py
import numpy as np

from .errors import AnalysisError

RUN = "rfa run 1"
BENCH = "rfa bench 1"
OTHERS = ("predictions", "heads", "fidelity", "probe")
DATASET = "data set"  # they have no attribute schema, but a task, a digest and "complete"
STEP_COLUMNS = (
    "step",
    "loss",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "exchange_wait",
    "seconds",
    "guards",
    "digest",
)
START_COLUMNS = (
    "step",
    "ranks",
    "threads",
    "sgemm_flops_per_second",
    "started",
    "commit",
    "hosts",
)
PHASE_COLUMNS = (
    "phase",
    "order",
    "seconds",
    "seconds_least",
    "seconds_most",
    "share",
    "flops",
    "flops_least",
    "flops_most",
)
EVALUATION_COLUMNS = ("step", "split", "loss", "correct", "examples", "accuracy")


def plain(value: Any) -> Any:
    """A value of h5py as str, bool, int, float, or an array of such."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OS":
        return np.array([plain(x) for x in value.ravel()], dtype=object).reshape(value.shape)
    return value


def open_file(path: str) -> h5py.File:
    """Opens path for reading. AnalysisError, in words, when it can't be."""
    try:
        size = os.stat(path).st_size
        if size == 0:
            raise AnalysisError("is empty")
        with open(path, "rb") as file:
            if file.read(8) != b"\x89HDF\r\n\x1a\n":
                raise AnalysisError("is no HDF5 file")
        return h5py.File(path, "r")
    except OSError as error:
        if error.errno:  # of the system, not of HDF5
            raise AnalysisError(os.strerror(error.errno).lower()) from None
        raise AnalysisError("is damaged or half written: HDF5 can't open it") from None


def mark(path: str) -> tuple[int, int, int] | None:
    """What tells a file from the one that replaces it; None when there is none."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def attributes(node: h5py.Group) -> dict[str, Any]:
    """All attributes of a group or data set."""
    return {name: plain(value) for name, value in node.attrs.items()}


def column(group: h5py.Group, name: str) -> np.ndarray:
    """A data set of one dimension: numbers as stored, texts as str."""
    data = group[name]
    if h5py.check_string_dtype(data.dtype):
        return np.array(data.asstr()[:], dtype=object)
    return data[:]


def columns(group: h5py.Group, names: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """Those columns of a group that are there; of equal length, else AnalysisError."""
    found = {
        name: column(group, name)
        for name in (names or tuple(group))
        if name in group and group[name].ndim == 1
    }
    if len({len(values) for values in found.values()}) > 1:
        raise AnalysisError(f"is damaged: columns of {group.name} differ in length")
    return found


def damaged(error: Exception) -> AnalysisError:
    """What h5py or NumPy met within a file, as one line."""
    words = " ".join(str(error).split())[:120]
    return AnalysisError(f"is damaged or half written ({words})")


def _schema(file: h5py.File) -> str:
    value = plain(file.attrs["schema"]) if "schema" in file.attrs else ""
    if value == "" and all(name in file.attrs for name in ("task", "digest", "complete")):
        return DATASET
    return value if isinstance(value, str) else ""


def schema(path: str) -> str:
    """The schema that a file names, as "rfa run 1", or DATASET; "" when it names none."""
    try:
        with open_file(path) as file:
            return _schema(file)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise damaged(error) from None


def is_another(name: str) -> bool:
    """Whether rfa writes files of this schema that are neither runs nor results of bench."""
    return name == DATASET or name in {f"rfa {kind} 1" for kind in OTHERS}


def describe_schema(name: str) -> str:
    """Why a file of this schema is left out."""
    if name == DATASET:
        return "is a data set, no run"
    if not name:
        return "is no file of rfa: it has no attribute schema"
    words = name.split()
    if len(words) == 3 and words[0] == "rfa" and words[1] in ("run", "bench"):
        return f"is of another version of rfa (schema '{name}', expected '{RUN}' or '{BENCH}')"
    return f"is no record of a run (schema '{name}')"


def expect(file: h5py.File, name: str) -> None:
    """AnalysisError unless the file is of the schema."""
    found = _schema(file)
    if found != name:
        raise AnalysisError(describe_schema(found))
