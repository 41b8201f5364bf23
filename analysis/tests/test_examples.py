"""The notebooks of examples/ run, cell by cell, as Jupyter would run them; none is needed."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE

NOTEBOOKS = sorted((HERE.parent / "examples").glob("*.ipynb"))


def run_cells(path: Path, names: dict[str, Any]) -> list[Any]:
    """Runs all code cells in one namespace; the value of each cell's last expression, or None."""
    values = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree, last = ast.parse("".join(cell["source"])), None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        where = f"{path.name}[{number}]"
        exec(compile(tree, where, "exec"), names)
        values.append(eval(compile(last, where, "eval"), names) if last else None)
    return values


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    values = run_cells(path, names)
    assert len(values) >= 3
    if path.name == "results.ipynb":
        frame = values[0].set_index("run")
        assert frame.loc["listops-rfa-first", "test_accuracy"] == 757 / 2000
        assert len(names["figure"].axes[0].lines) == len(names["runs"])
        assert values[-2].to_numpy().trace() == 762


def test_there_is_a_notebook_without_outputs() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(not cell.get("outputs") for cell in cells), path
