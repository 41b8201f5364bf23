"""Files that rfa writes just now, read as rfa itself reads them: needs RFA and MPIRUN (CTest)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from rfa_analysis import Run, load

RFA = os.environ.get("RFA", "")
MPIRUN = [os.environ.get("MPIRUN", "mpirun"), "-q", "--oversubscribe"]
pytestmark = pytest.mark.skipif(not RFA, reason="RFA does not name the program")
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
CONFIG = """
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8}
attention: {features: 8, pool: 4}
parallel: {segments: 2}
train: {steps: 12, batch: 4, warmup: 2, evaluate_every: 5, checkpoint_every: 6}
"""


def program(*words: str, ranks: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
    launch = [*MPIRUN, "-n", str(ranks)] if ranks else []
    return subprocess.run(
        [*launch, RFA, *words],
        env=ENVIRONMENT,
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
        **more,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a small data set and a configuration, which is where we are."""
    place = tmp_path_factory.mktemp("program")
    before = os.getcwd()
    os.chdir(place)
    words = "data listops --out d.h5 --train 60 --val 20 --test 20 --min-length 20 --max-length 60"
    program(*words.split(), "--max-depth", "4")
    Path("quick.yaml").write_text(CONFIG)
    yield place
    os.chdir(before)


def inspected(path: str) -> dict[str, Any]:
    return json.loads(program("inspect", "--json", path).stdout)


def same(run: Run, said: dict[str, Any]) -> None:
    """All rows of run are those that rfa inspect has said."""
    for name, values in said["steps"].items():
        own = run.steps[name].tolist()
        assert own == ([int(v, 16) for v in values] if name == "digest" else values), name
    for own, row in zip(run.evaluations.to_dict("records"), said["evaluations"], strict=True):
        for name in ("step", "split", "loss", "correct", "examples"):
            assert own[name] == row[name], name
    for row, place in zip(said["evaluations"], range(len(said["evaluations"]))):
        np.testing.assert_array_equal(run.confusion(place), row["confusion"])
    assert run.config == said["config"]


def test_a_finished_run(folder: Path, command: Callable[..., Any]) -> None:
    program("train", "quick.yaml", "--out", "runs/a.h5", ranks=2)
    runs = load("runs")
    assert len(runs) == 1 and not runs.problems and runs[0].state == "finished"
    said = inspected("runs/a.h5")
    same(runs[0], said)
    assert runs[0].test["correct"] == np.trace(said["test"]["confusion"])
    np.testing.assert_array_equal(runs[0].confusion(), said["test"]["confusion"])
    assert runs.runs["ranks"][0] == 2 and runs.runs["kind"][0] == "rfa"
    assert command("report", "runs", "-o", "report.html").code == 0
    assert "a.h5" in Path("report.html").read_text()


def test_a_run_that_goes_on_and_is_killed(folder: Path) -> None:
    words = ["train", "quick.yaml", "--out", "runs/long.h5", "--set", "train.steps=1000000"]
    words += ["--set", "train.evaluate_every=200"]
    with open("log", "wb") as log:
        going = subprocess.Popen(
            [RFA, *words], env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True
        )
    path, end = Path("runs/long.h5"), time.monotonic() + 60
    try:
        seen = 0
        while time.monotonic() < end and seen < 450:  # the file is replaced now and again
            if path.exists():
                run = Run(str(path))
                steps = run.steps["step"].tolist()
                assert steps == list(range(1, len(steps) + 1)) and len(steps) >= seen
                assert run.state == "running"
                seen = len(steps)
            time.sleep(0.01)
        assert seen >= 450, Path("log").read_text()
    finally:
        os.killpg(going.pid, signal.SIGKILL)
        going.wait()
    same(Run(str(path)), inspected("runs/long.h5"))
    for file in Path("runs").glob("long.*"):
        os.utime(file, (time.time() - 7200,) * 2)
    assert Run(str(path)).state == "stopped"


def test_results_of_bench(folder: Path) -> None:
    words = ["bench", "gemm", "--set", "bench.sizes=32,64", "--set", "bench.ceiling=64"]
    program(*words, "--repeats", "1", "--out", "b.h5")
    bench = load("b.h5").benches[0]
    with h5py.File("b.h5") as file:
        assert len(bench.results) == file["row"].shape[0] >= 2
        for name, data in file["results"].items():
            if data.dtype.kind == "f":
                np.testing.assert_array_equal(bench.results[name], data[:])
            assert bench.units[name] == data.attrs["units"]
        for name, data in file["parameters"].items():
            expected = np.where(data[:] < 0, np.nan, data[:])
            np.testing.assert_array_equal(bench.results[name], expected)
