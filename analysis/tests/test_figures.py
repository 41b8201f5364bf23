"""Figures: each is drawn of its own material, with the values of the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pandas as pd
import pytest

from rfa_analysis import figures, load, style
from rfa_analysis.load import Runs

TEXT = h5py.string_dtype()


def benches() -> pd.DataFrame:
    rows = []
    for variant, power in (("softmax", 2.0), ("rfa", 1.0), ("rfa+causal+gated", 1.0)):
        for n in (256, 512, 1024):
            seconds = 1e-6 * n**power
            row = {"case": "attention", "variant": variant, "phase": "all", "N": n, "tokens": n}
            row |= {"median_seconds": seconds, "peak_bytes": 2**20 * n, "flops": 1e6 * n}
            rows.append({**row, "bytes": 1e5 * n, "ceiling": 1e11, "copy_bandwidth": 2e10})
    return pd.DataFrame(rows)


def write_fidelity(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["schema"] = "rfa fidelity 1"
        file.create_dataset("kind", data=["rfa+free", "lara"], dtype=TEXT)
        file.create_dataset("statistic", data=["output_error", "frobenius"], dtype=TEXT)
        file["features"], file["norm"] = [8.0, 32.0], [1.0]
        part = file.create_group("iid")
        part["error"] = np.ones((2, 2, 1, 1, 2))
        middle = np.arange(1, 9, dtype=float).reshape(2, 2, 1, 2)
        part["low"], part["median"], part["high"] = middle / 2, middle, 2 * middle
        part["exact_values"], part["values"] = np.ones((1, 5)), np.full((2, 2, 1, 5), 0.5)
    return path


def write_scaling(path: Path) -> Path:
    path.write_text(
        "kind,ranks,nodes,threads,max_length,tokens_per_second_min,tokens_per_second_median,"
        "speedup,efficiency,exchange_share,digest\n"
        "strong,1,1,1,256,90,100,1,1,0,aa\nstrong,2,1,1,256,170,180,1.8,0.9,0.05,aa\n"
        "weak,1,1,1,128,90,100,1,1,0,bb\nweak,2,1,1,256,180,190,1.9,0.95,0.04,aa\n"
    )
    return path


def lines(axis: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axis.get_lines()}


def test_length_has_the_files_values() -> None:
    drawn = figures.length(figures.Material(Runs([]), benches()))
    time, memory = drawn.axes
    found = lines(time)
    assert set(found) == {"softmax", "RFA", "RFA-gate, causal"}
    np.testing.assert_allclose(found["softmax"].get_ydata(), [256, 512, 1024])
    np.testing.assert_allclose(found["RFA"].get_ydata(), [1, 1, 1])
    np.testing.assert_allclose(lines(memory)["RFA"].get_ydata(), [256, 512, 1024])
    for label, kind in (("softmax", "softmax"), ("RFA", "rfa"), ("RFA-gate, causal", "rfa-gate")):
        assert found[label].get_color() == style.colour(kind)
    assert "µs" in time.get_ylabel() and "MiB" in memory.get_ylabel()


def test_one_length_is_no_curve() -> None:
    frame = benches()
    assert figures.length(figures.Material(Runs([]), frame[frame["N"] == 256])) is None


def test_scaling(tmp_path: Path) -> None:
    table = figures.read_scaling(str(write_scaling(tmp_path / "s.csv")))
    drawn = figures.scaling(figures.Material(Runs([]), pd.DataFrame(), [], [("s", table)]))
    np.testing.assert_allclose(lines(drawn.axes[0])["strong"].get_ydata(), [1, 1.8])
    np.testing.assert_allclose(drawn.axes[1].get_lines()[1].get_ydata(), [100, 95])
    np.testing.assert_allclose(drawn.axes[2].get_lines()[0].get_ydata(), [0, 5])


def test_fidelity(tmp_path: Path) -> None:
    material = figures.Material(
        Runs([]), pd.DataFrame(), [str(write_fidelity(tmp_path / "f.h5"))], []
    )
    drawn = figures.fidelity(material)
    found = lines(drawn.axes[0])
    np.testing.assert_allclose(found["RFA, free"].get_ydata(), [2, 4])  # of frobenius
    np.testing.assert_allclose(found["LARA"].get_ydata(), [6, 8])
    assert lines(figures.spectrum(material).axes[0])["exact"].get_ydata().tolist() == [1] * 5


def test_roofline() -> None:
    drawn = figures.roofline(figures.Material(Runs([]), benches()))
    roof = drawn.axes[0].get_lines()[0]
    x, y = roof.get_xdata(), roof.get_ydata()
    np.testing.assert_allclose(y, np.minimum(100, 20 * x))
    assert 5.0 in x  # where both ceilings meet
    assert all(np.allclose(line.get_xdata(), 10) for line in drawn.axes[0].get_lines()[1:])


def test_speed_shows_each_run(results: list[Path]) -> None:
    runs = load(results)
    drawn = figures.speed(figures.Material(runs, pd.DataFrame()))
    points = {(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn.axes[0].get_lines()}
    assert points == {(r.tokens_per_second / 1e3, 100 * r.test["accuracy"]) for r in runs}


def test_files(command: Callable[..., Any], results: list[Path], tmp_path: Path) -> None:
    made = [write_fidelity(tmp_path / "f.h5"), write_scaling(tmp_path / "s.csv")]
    answer = command("figures", *results, *made, "-o", tmp_path / "out", "--format", "svg,pdf,png")
    assert answer.code == 0 and not answer.error
    names = {Path(line).name for line in answer.out.split()}
    kinds = ("learning", "speed", "scaling", "fidelity", "spectrum")
    assert names == {f"{kind}.{form}" for kind in kinds for form in ("svg", "pdf", "png")}
    for kind in kinds:
        ElementTree.parse(tmp_path / "out" / f"{kind}.svg")
        assert (tmp_path / "out" / f"{kind}.pdf").read_bytes().startswith(b"%PDF")
    before = (tmp_path / "out" / "speed.svg").read_bytes()
    words = ("-o", tmp_path / "out", "--format", "svg", "--only", "speed")
    assert command("figures", *results, *words).code == 0
    assert (tmp_path / "out" / "speed.svg").read_bytes() == before


@pytest.mark.parametrize("words", [("--format", "gif"), ("--only", "nothing")])
def test_wrong_words(command: Callable[..., Any], results: list[Path], words: Any) -> None:
    assert command("figures", *results, "-o", "out", *words).code == 2


def test_no_data(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    answer = command("figures", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert answer.code != 0 and "no table of jobs/scaling" in answer.error
    assert answer.error.count("\n") == 1
