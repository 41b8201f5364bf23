"""Paths and the command for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
RESULTS = HERE.parent / "results"


@dataclass
class Answer:
    """What a command has said."""

    code: int
    out: str
    error: str


@pytest.fixture
def results() -> list[Path]:
    """The committed run files."""
    found = sorted(RESULTS.glob("listops-*.h5"))
    assert len(found) >= 3
    return found


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """rfa-analysis with the given words."""
    from rfa_analysis.cli import main

    def call(*words: object) -> Answer:
        capsys.readouterr()
        try:
            code = main([os.fspath(w) if isinstance(w, Path) else str(w) for w in words])
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call
