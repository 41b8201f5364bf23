"""What load() says, held against the HDF5 by h5py, and against what was written."""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import time
from pathlib import Path

import h5py
import make
import numpy as np
import pandas as pd
import pytest

from rfa_analysis import AnalysisError, Run, load

NEWER = "18ecd0000a11ce06"
OLDER = "18ecd0000a11ce04"


def test_results_are_those_of_the_files(results: list[Path]) -> None:
    runs = load(results)
    assert not runs.problems and len(runs) == len(results)
    for path, run, row in zip(results, runs, runs.runs.itertuples()):
        with h5py.File(path) as file:
            for name, data in file["steps"].items():
                np.testing.assert_array_equal(run.steps[name].to_numpy(), data[:])
                assert run.steps[name].dtype == data.dtype
            for name in ("step", "loss", "correct", "examples", "accuracy"):
                np.testing.assert_array_equal(run.evaluations[name], file["evaluations"][name][:])
            test = file["test"]
            assert run.test["accuracy"] == row.test_accuracy == test["accuracy"][0]
            assert row.test_correct == test["correct"][0]
            np.testing.assert_array_equal(run.confusion(), test["confusion"][0])
            np.testing.assert_array_equal(run.confusion(2), file["evaluations/confusion"][2])
            for name, value in file.attrs.items():
                assert run.attributes[name] == value, name
            for name, value in file["config"].attrs.items():
                if name != "text":
                    assert run.config[name] == value, name
            assert run.config_text == file["config"].attrs["text"]
            tokens = np.sum(file["steps/tokens_per_second"][:] * file["steps/seconds"][:])
            expected = tokens / np.sum(file["steps/seconds"][:])
            assert row.tokens_per_second == pytest.approx(expected, rel=1e-12)
            assert row.peak_bytes_of_a_rank == file.attrs["peak_bytes_of_a_rank"]
            assert (row.task, row.kind) == ("listops", file["config"].attrs["attention.kind"])
            assert (row.seed, row.ranks, row.steps, row.state) == (1, 2, 5000, "finished")
    metrics = runs.metrics
    assert len(metrics) == sum(len(run.steps) for run in runs)
    assert metrics["digest"].dtype == np.uint64


def test_types_are_those_of_python(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 3), [make.evaluation(3, 10)])
    run = Run(str(path))
    assert type(run.attributes["task"]) is str and type(run.attributes["modified"]) is bool
    assert type(run.attributes["ranks"]) is int and type(run.config["train.rate"]) is float
    assert run.config["attention.causal"] is False
    assert type(run.evaluations["split"][0]) is str
    row = load(path).runs.iloc[0]
    assert math.isnan(row["test_accuracy"]) and math.isnan(row["parameters"])
    assert row["modified"] is False or row["modified"] == np.bool_(False)


def test_missing_values_are_nan_not_zero(tmp_path: Path) -> None:
    make.lines(tmp_path / "a.jsonl", [{**make.steps(1, 1)[0], "loss": float("nan")}])
    runs = load(tmp_path)
    assert math.isnan(runs.metrics["loss"][0])
    row = runs.runs.iloc[0]
    for name in ("seed", "ranks", "steps_planned", "test_accuracy", "peak_bytes_of_a_rank"):
        assert math.isnan(row[name]), name
    assert row["commit"] is None or math.isnan(row["commit"])


def test_lines_follow_the_file_once(tmp_path: Path) -> None:
    rows, path = make.steps(1, 9), tmp_path / "a.h5"
    evaluations = [make.evaluation(2, 10), make.evaluation(4, 11)]
    make.write_run(path, rows[:4], evaluations, state="running")
    again, more = make.evaluation(4, 11), make.evaluation(8, 17)
    torn = '{"step":10,"loss":2.0'
    make.lines(tmp_path / "a.jsonl", [*rows[2:4], again, *rows[4:], more], torn=torn)
    run = Run(str(path))
    assert list(run.steps["step"]) == list(range(1, 10)) and not run.notes
    for name in rows[0]:
        assert list(run.steps[name]) == [row[name] for row in rows], name
    assert list(run.evaluations["step"]) == [2, 4, 8]
    assert list(run.evaluations["correct"]) == [10, 11, 17]
    np.testing.assert_array_equal(run.confusion(), more["confusion"])
    np.testing.assert_array_equal(run.confusion(0), evaluations[0]["confusion"])
    assert run.last_step == 9 and run.test is None
    tokens = sum(row["tokens_per_second"] * row["seconds"] for row in rows)
    assert run.tokens_per_second == pytest.approx(tokens / sum(row["seconds"] for row in rows))


def test_a_later_line_replaces_an_evaluation_and_the_test(tmp_path: Path) -> None:
    path = make.write_run(
        tmp_path / "a.h5", make.steps(1, 2), [make.evaluation(2, 3)], make.evaluation(2, 4)
    )
    make.lines(tmp_path / "a.jsonl", [make.evaluation(2, 9), make.evaluation(2, 12, split="test")])
    run = Run(str(path))
    assert list(run.evaluations["correct"]) == [9]
    assert run.test["accuracy"] == 0.3
    np.testing.assert_array_equal(run.confusion(), make.evaluation(2, 12)["confusion"])


def test_lines_of_an_older_run_are_left_out(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 2))
    make.lines(tmp_path / "a.jsonl", make.steps(3, 5), run=OLDER)
    runs = load(path)
    assert runs[0].last_step == 2
    assert [str(p) for p in runs.problems] == [f"{path}: a.jsonl is of an older run and left out"]


def test_lines_of_a_newer_run_replace_the_file(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 7), test=make.evaluation(7, 9))
    make.lines(tmp_path / "a.jsonl", make.steps(1, 5), run=OLDER)
    make.lines(tmp_path / "a.jsonl", make.steps(1, 3), run=NEWER, mode="a")
    run = Run(str(path))
    assert run.last_step == 3 and run.test is None and run.config == {}
    assert run.attributes["run"] == NEWER and run.state == "running"


def test_a_run_of_lines_alone(tmp_path: Path) -> None:
    make.lines(tmp_path / "a.jsonl", [*make.steps(1, 3), make.evaluation(3, 6)])
    (tmp_path / "b.jsonl").write_text("{}\nnonsense\n")
    runs = load(tmp_path)
    assert [run.name for run in runs] == ["a"] and runs[0].last_step == 3
    assert [os.path.basename(p.path) for p in runs.problems] == ["b.h5"]


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 2))
    make.lines(tmp_path / "a.jsonl", make.steps(3, 3), torn="{oops}\n")
    make.lines(
        tmp_path / "a.jsonl", make.steps(4, 4), torn=f'{{"step":5,"run":"{make.RUN}"}}\n', mode="a"
    )
    runs = load(path)
    assert list(runs[0].steps["step"]) == [1, 2, 3, 4]
    assert str(runs.problems[0]) == f"{path}: a.jsonl:2: not a line of a run; 2 such left out"


def test_state_of_a_killed_run_is_stopped(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 2), state="running")
    tail = make.lines(tmp_path / "a.jsonl", make.steps(3, 3))
    assert Run(str(path)).state == "running"  # written just now
    for file in (path, tail):
        os.utime(file, (time.time() - 7200,) * 2)
    assert Run(str(path)).state == "stopped"
    with open(tail) as held:  # as rfa holds it, on this machine
        fcntl.flock(held, fcntl.LOCK_EX)
        assert Run(str(path)).state == "running"
    for state in ("finished", "stopped", "diverged", "failed"):
        assert Run(str(make.write_run(path, make.steps(1, 2), state=state))).state == state


def broken_files(folder: Path) -> dict[str, str]:
    """Files that can't be used, and a piece of what is said about each."""
    whole = make.write_run(folder / "whole.h5", make.steps(1, 50))
    data = whole.read_bytes()
    (folder / "empty.h5").write_bytes(b"")
    (folder / "text.h5").write_text("no file of HDF5\n")
    (folder / "cut.h5").write_bytes(data[: len(data) // 2])
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    (folder / "flipped.h5").write_bytes(flipped)
    (folder / "longer.h5").write_bytes(data[:-24] + bytes(8) + data[-24:])
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["x"] = [1, 2]
    with h5py.File(folder / "old.h5", "w") as file:
        file.attrs["schema"] = "rfa run 0"
    with h5py.File(folder / "checkpoint.h5", "w") as file:
        file.attrs["schema"] = "rfa checkpoint 1"
    for name in ("steps", "config"):
        make.write_run(folder / f"no-{name}.h5", make.steps(1, 2), run=NEWER, sealed=False)
        with h5py.File(folder / f"no-{name}.h5", "r+") as file:
            del file[name]
    make.write_run(folder / "uneven.h5", make.steps(1, 2), run=OLDER, sealed=False)
    with h5py.File(folder / "uneven.h5", "r+") as file:
        del file["steps/seconds"]
        file["steps/seconds"] = [1.0]
    (folder / "folder.h5").mkdir()
    os.symlink("nowhere", folder / "dangling.h5")
    return {
        "empty": "is empty",
        "text": "is no HDF5 file",
        "cut": "damaged or half written",
        "flipped": "damaged: its checksum is wrong",
        "longer": "damaged: its size",
        "foreign": "no file of rfa",
        "old": "another version of rfa",
        "checkpoint": "no record of a run",
        "no-steps": "damaged",
        "no-config": "damaged",
        "uneven": "differ in length",
        "dangling": "no such file",
    }


def test_broken_files_are_a_line_each(tmp_path: Path) -> None:
    expected = broken_files(tmp_path)
    with h5py.File(tmp_path / "data.h5", "w") as file:  # a data set: nothing to say about
        file.attrs.update({"task": "listops", "digest": "0", "complete": 1})
    runs = load(tmp_path)
    assert [run.name for run in runs] == ["whole"]
    said = {Path(p.path).stem: str(p) for p in runs.problems}
    assert set(said) == set(expected)
    for name, words in expected.items():
        assert words in said[name] and "\n" not in said[name], said[name]
    given = load([tmp_path / "data.h5", tmp_path / "none.h5", str(tmp_path / "*.none")])
    assert [p.text for p in given.problems][0] == "is a data set, no run"
    assert len(given.problems) == 3 and len(given) == 0


def test_damage_below_the_head_is_a_problem(tmp_path: Path) -> None:
    evaluations = [make.evaluation(2, 5)]
    for number, name in enumerate(("steps/loss", "evaluations/correct", "evaluations")):
        path = tmp_path / f"{number}.h5"
        make.write_run(path, make.steps(1, 2), evaluations, run=f"{number:016x}", sealed=False)
        with h5py.File(path, "r+") as file:
            del file[name]
            if name == "steps/loss":
                file[name] = [1.0, 2.0, 3.0]
    make.write_run(tmp_path / "good.h5", make.steps(1, 2), evaluations)
    runs = load(tmp_path)
    assert len(runs) == 4 and not runs.problems
    assert [run.name for run in runs.whole()] == ["good"]
    assert len(runs.problems) == 3 and all(problem.damaged for problem in runs.problems)


def test_every_byte_cut_off_is_a_problem_or_a_run(tmp_path: Path) -> None:
    data = make.write_run(tmp_path / "a.h5", make.steps(1, 3)).read_bytes()
    path = tmp_path / "b.h5"
    for size in range(0, len(data) - 24, 97):
        path.write_bytes(data[:size])
        runs = load(path)
        assert len(runs) == 0 and len(runs.problems) == 1, size


def test_copies_of_a_run_count_once(tmp_path: Path) -> None:
    old = make.write_run(tmp_path / "a.h5", make.steps(1, 3), state="running")
    make.write_run(tmp_path / "b.h5", make.steps(1, 5))
    shutil.copy(old, tmp_path / "c.h5")
    runs = load(tmp_path)
    assert [run.name for run in runs] == ["b"] and len(runs.problems) == 2
    assert all("is the same run as" in str(p) for p in runs.problems)


def test_a_file_that_is_replaced_is_read_as_one(tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 4), state="running")
    make.lines(tmp_path / "a.jsonl", make.steps(5, 6))
    run = Run(str(path))
    assert run.last_step == 6 and run.state == "running"
    whole = make.write_run(tmp_path / "t", make.steps(1, 9), [make.evaluation(9, 5)])
    os.replace(whole, path)
    make.lines(tmp_path / "a.jsonl", [])
    assert list(run.evaluations["step"]) == [9]
    assert run.state == "finished" and list(run.steps["step"]) == list(range(1, 10))


def test_kinds(tmp_path: Path) -> None:
    for number, (config, kind) in enumerate(
        [
            ({}, "rfa"),
            ({"attention.gate": "learned"}, "rfa-gate"),
            ({"attention.gate": "decay", "attention.map": "arccos"}, "rfa-decay-arccos"),
            ({"attention.kind": "performer", "attention.map": "oprf"}, "performer-oprf"),
        ]
    ):
        path = make.write_run(
            tmp_path / f"{number}.h5", make.steps(1, 1), config=config, run=f"{number:016x}"
        )
        assert Run(str(path)).kind == kind


def test_profile_and_starts(tmp_path: Path) -> None:
    run = Run(str(make.write_run(tmp_path / "a.h5", make.steps(1, 2), profile=True)))
    assert list(run.profile["phase"]) == ["attention", "exchange"]
    assert list(run.profile["share"]) == [0.75, 0.25]
    assert list(run.starts["hosts"]) == ["node1 node2"]


def test_benchmarks(tmp_path: Path) -> None:
    path = make.write_bench(tmp_path / "b.h5")
    frame = load(path).benchmarks
    assert list(frame["case"]) == ["gemm", "attention"] and list(frame["seconds"]) == [0.25, 0.5]
    assert math.isnan(frame["length"][0]) and frame["length"][1] == 4096
    assert load(path).benches[0].units == {"case": "1", "seconds": "s", "length": "tokens"}


def test_frames_of_no_run() -> None:
    runs = load([])
    assert all(isinstance(getattr(runs, n), pd.DataFrame) for n in ("runs", "metrics", "tests"))
    with pytest.raises(AnalysisError, match="no such file"):
        Run("/nowhere/a.h5")


def test_a_thousand_runs_load_in_seconds(tmp_path: Path) -> None:
    data = make.write_run(
        tmp_path / "first.h5",
        make.steps(1, 500),
        [make.evaluation(500, 9)],
        make.evaluation(500, 9),
        sealed=False,
    ).read_bytes()
    (tmp_path / "first.h5").unlink()
    assert data.count(make.RUN.encode()) == 1
    for i in range(1000):
        (tmp_path / f"{i}.h5").write_bytes(data.replace(make.RUN.encode(), b"%016x" % i))
    began = time.process_time()
    frame = load(tmp_path).runs
    seconds = time.process_time() - began
    assert len(frame) == 1000 and (frame["test_accuracy"] == 9 / 40).all()
    assert seconds < 20, f"{seconds} s of processor time"  # 3 on a core of 2020


def test_other_results_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    for kind in ("predictions", "heads", "fidelity", "probe"):
        with h5py.File(tmp_path / f"{kind}.h5", "w") as file:
            file.attrs["schema"] = f"rfa {kind} 1"
    assert not load(tmp_path).problems
    assert "no record of a run" in load(tmp_path / "heads.h5").problems[0].text
