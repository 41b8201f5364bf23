"""Predictions: of files, and of a program that stands in for rfa."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

LOGITS = np.array([[0.0, 2.0], [1.0, -1.0], [3.0, 0.0]], dtype=np.float32)
INDEX, LABEL = [2, 0, 1], [1, 1, 0]  # the second is wrong


def write(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file["index"], file["label"] = INDEX, LABEL
        file["prediction"], file["logits"] = LOGITS.argmax(axis=1), LOGITS
    return path


def test_a_file(command: Callable[..., Any], tmp_path: Path) -> None:
    path = write(tmp_path / "p.h5")
    rows = list(csv.DictReader(io.StringIO(command("predict", "--file", path, "--csv").out)))
    assert [row["index"] for row in rows] == ["0", "1", "2"]
    assert [row["correct"] for row in rows] == ["false", "true", "true"]
    assert float(rows[2]["confidence"]) == pytest.approx(1 / (1 + np.exp(-2)))
    assert [float(rows[1][f"logit{c}"]) for c in (0, 1)] == [3.0, 0.0]
    answer = command("predict", "--file", path, "--wrong")
    assert "2 of 3 correct" in answer.out and len(answer.out.splitlines()) == 4
    assert "rows more" in command("predict", "--file", path, "--rows", 1).out


def test_what_is_no_such_file(command: Callable[..., Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["index"] = INDEX
    (tmp_path / "empty.h5").write_bytes(b"")
    for name in ("other.h5", "empty.h5", "missing.h5"):
        answer = command("predict", "--file", tmp_path / name)
        assert answer.code != 0 and name in answer.error and answer.error.count("\n") == 1
    assert command("predict").code == 2


def test_the_program_is_asked(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write(tmp_path / "made.h5")
    script = tmp_path / "rfa"
    script.write_text(
        f"#!{sys.executable}\nimport shutil, sys\n"
        "if sys.argv[4] == 'val': sys.exit('rfa: error: no such split')\n"
        f"shutil.copy({str(made)!r}, sys.argv[sys.argv.index('--predictions') + 1])\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("RFA", str(script))
    assert "2 of 3 correct" in command("predict", "run.h5").out
    answer = command("predict", "run.h5", "--split", "val")
    assert answer.code != 0 and "run.h5: no such split" in answer.error
