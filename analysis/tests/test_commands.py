"""Each subcommand as people call it; values held against the HDF5 by h5py."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import make
import numpy as np
import pytest
from conftest import RESULTS

from rfa_analysis import load
from rfa_analysis.export import scalars
from rfa_analysis.groups import differences, group, paired
from rfa_analysis.text import plot

Command = Callable[..., object]


def seeds(folder: Path) -> dict[str, list[float]]:
    """Three seeds of two configurations; the accuracies by kind."""
    found: dict[str, list[float]] = {"rfa": [], "softmax": []}
    for kind, correct in (("rfa", (10, 12, 17)), ("softmax", (9, 15, 15))):
        for seed, right in enumerate(correct, 1):
            make.write_run(
                folder / f"{kind}-{seed}.h5",
                make.steps(1, 60),
                [make.evaluation(30, right - 1), make.evaluation(60, right)],
                make.evaluation(60, right, split="test"),
                run=f"{len(kind):08x}{seed:08x}",
                config={"attention.kind": kind, "train.seed": seed, "parallel.threads": seed},
            )
            found[kind].append(right / 40)
    return found


def test_runs_as_csv_and_json(command: Command, results: list[Path]) -> None:
    text = command("runs", RESULTS, "--csv")
    assert text.code == 0 and not text.error
    rows = list(csv.DictReader(io.StringIO(text.out)))
    others = json.loads(command("runs", RESULTS, "--json").out)
    assert len(rows) == len(others) >= len(results)
    by_path = {os.path.realpath(row["path"]): (row, other) for row, other in zip(rows, others)}
    for path in results:
        row, other = by_path[os.path.realpath(path)]
        with h5py.File(path) as file:
            for name, value in (
                ("test_accuracy", file["test/accuracy"][0]),
                ("test_loss", file["test/loss"][0]),
                ("steps", file["steps/step"][-1]),
                ("seed", file["config"].attrs["train.seed"]),
                ("ranks", file.attrs["ranks"]),
                ("peak_bytes_of_a_rank", file.attrs["peak_bytes_of_a_rank"]),
            ):
                assert float(row[name]) == value == other[name], name
            assert row["modified"] == "false" and other["modified"] is False
            assert row["commit"] == file.attrs["commit"] == other["commit"]


def test_runs_as_tables(command: Command, tmp_path: Path) -> None:
    seeds(tmp_path)
    make.lines(tmp_path / "new.jsonl", make.steps(1, 2), run="ff" * 8)
    (tmp_path / "cut.h5").write_bytes((tmp_path / "rfa-1.h5").read_bytes()[:-100])
    answer = command("runs", tmp_path)
    assert answer.code == 1
    assert answer.error.count("\n") == 1 and "cut.h5: is damaged" in answer.error
    lines = answer.out.splitlines()
    assert len(lines) == 9 and "tokens/s" in lines[0]
    assert [line.split()[-1] for line in lines[1:]] == [
        "running",
        *["finished"] * 6,
        "damaged",
    ]
    rfa = next(line for line in lines if line.startswith("rfa-2"))
    assert rfa.split()[:7] == ["rfa-2", "listops", "rfa", "2", "2", "60", "30.00"]
    assert "145 MiB" in rfa and "18.1 to 45.4 %" in rfa
    table = command("runs", tmp_path, "--markdown").out.splitlines()
    assert len(table) == 10 and set(table[1]) <= set("| -:") and table[0].count("|") == 12


def test_runs_filtered_and_sorted(command: Command, tmp_path: Path) -> None:
    seeds(tmp_path)

    def names(*words: str) -> list[str]:
        answer = command("runs", tmp_path, "--json", *words)
        assert answer.code == 0, answer.error
        return [row["run"] for row in json.loads(answer.out)]

    assert names("--filter", "kind=rfa", "--filter", "seed>=2") == ["rfa-2", "rfa-3"]
    assert names("--filter", "run~^soft.*[12]$") == ["softmax-1", "softmax-2"]
    assert names("--filter", "parallel.threads!=1", "--filter", "kind=rfa") == ["rfa-2", "rfa-3"]
    assert names("--filter", "modified=true") == []
    order = names("--sort", "test_accuracy", "--reverse")
    assert order[0] == "rfa-3" and order[-1] == "softmax-1"
    assert names("--sort", "train.seed")[:2] == ["rfa-1", "softmax-1"]
    for words in (("--filter", "oops=1"), ("--filter", "seed"), ("--sort", "oops")):
        answer = command("runs", tmp_path, *words)
        assert answer.code == 2 and "rfa-analysis: --" in answer.error
    assert command("runs", tmp_path, "--filter", "seed>x").code == 2


def test_nothing_to_read(command: Command, tmp_path: Path) -> None:
    for word in ("runs", "show", "compare", "report"):
        answer = command(word, tmp_path / "none")
        assert answer.code == 3 and "no such file" in answer.error, word
    assert command("oops").code == 2


def test_show_has_it_all(command: Command, tmp_path: Path) -> None:
    path = make.write_run(
        tmp_path / "a.h5",
        make.steps(1, 60),
        [make.evaluation(30, 10)],
        make.evaluation(60, 17, split="test"),
        profile=True,
        attributes={"exchange_prefix": "exscan"},
    )
    answer = command("show", path)
    assert answer.code == 0 and not answer.error
    for words in (
        "listops rfa, finished, 60 steps, test accuracy 42.50 % (17/40;",
        "training loss [nat]",
        "validation accuracy [%]",
        "25.00 %",  # of the validation
        "Confusion matrix (test)",
        "Phases, of 12 profiled steps",
        "75.0 %",
        "prefix: exscan",
        "node1 node2",
        "acf1e0f70282cc5b",
        "seed: 1",
        f"mpirun -n 2 rfa reproduce {path}",
    ):
        assert words in answer.out, words
    matrix = answer.out[answer.out.index("Confusion matrix") :].splitlines()[3:5]
    assert [line.split()[:4] for line in matrix] == [["0", "17", "3", "20"], ["1", "20", "0", "20"]]
    rows = make.steps(1, 60)
    wait = sum(row["exchange_wait"] for row in rows)
    share = wait / sum(row["seconds"] for row in rows)
    assert f"{100 * share:.1f} % of the steps' time" in answer.out
    make.lines(tmp_path / "b.jsonl", make.steps(1, 1))
    assert command("show", tmp_path / "b.h5").code == 0
    for path in sorted(RESULTS.glob("*.h5")):
        assert command("show", path).code == 0


def test_compare_is_what_numpy_says(command: Command, tmp_path: Path) -> None:
    accuracies = seeds(tmp_path)
    answer = command("compare", tmp_path, "-o", tmp_path / "c.svg")
    assert answer.code == 0 and "<svg" in (tmp_path / "c.svg").read_text()
    groups = group(load(tmp_path))
    assert [(g.label, len(g.runs)) for g in groups] == [("RFA", 3), ("softmax", 3)]
    for one, kind in zip(groups, ("rfa", "softmax")):
        numbers = one.statistics()
        values = np.array(accuracies[kind])
        assert numbers["mean"] == pytest.approx(values.mean())
        assert numbers["sd"] == pytest.approx(values.std(ddof=1))
        assert values.min() <= numbers["low"] <= numbers["mean"] <= numbers["high"] <= values.max()
        assert f"{100 * values.mean():.2f} %" in answer.out
    change = np.array(accuracies["softmax"]) - np.array(accuracies["rfa"])
    pair = paired(*groups)
    assert pair["seeds"] == [1, 2, 3] and pair["mean"] == pytest.approx(change.mean(), abs=1e-15)
    assert pair["sd"] == pytest.approx(change.std(ddof=1))
    changed = differences(load(tmp_path))
    assert set(changed) == {"attention.kind", "train.seed", "parallel.threads"}
    other = command("compare", tmp_path, "--reference", "softmax-1").out
    assert "Against softmax" in other and "Against RFA" in answer.out
    assert command("compare", tmp_path, "--reference", "oops").code == 2
    assert command("compare", tmp_path, "-o", tmp_path / "c.oops").code == 3


def test_other_data_are_not_paired(tmp_path: Path) -> None:
    for number, data in enumerate(("aa", "bb")):
        make.write_run(
            tmp_path / f"{number}.h5",
            make.steps(1, 2),
            test=make.evaluation(2, 5),
            run=f"{number:016x}",
            attributes={"data_digest": data},
        )
    groups = group(load(tmp_path))
    assert len(groups) == 2 and paired(*groups)["n"] == 0


def test_watch(command: Command, tmp_path: Path) -> None:
    path = make.write_run(tmp_path / "a.h5", make.steps(1, 4), state="running")
    make.lines(tmp_path / "a.jsonl", make.steps(5, 8))
    answer = command("watch", path, "--once")
    assert answer.code == 0 and "8 of 4 steps" in answer.out and "training loss" in answer.out
    page = tmp_path / "a.html"
    assert command("watch", path, "--once", "--page", page).code == 0
    assert 'http-equiv="refresh"' in page.read_text() and "<svg" in page.read_text()

    def finish() -> None:
        time.sleep(0.3)
        make.lines(tmp_path / "a.jsonl", make.steps(9, 12), mode="a")
        time.sleep(0.3)
        temporary = make.write_run(tmp_path / "t", make.steps(1, 16), state="finished")
        os.replace(temporary, path)

    other = threading.Thread(target=finish)
    other.start()
    answer = command("watch", path, "--every", "0.05")
    other.join()
    told = [line for line in answer.out.splitlines() if "steps" in line]
    assert answer.code == 0 and 1 <= len(told) <= 3 and "finished, 16 steps" in told[-1]
    command("watch", path, "--page", page)
    assert 'http-equiv="refresh"' not in page.read_text()
    make.write_run(path, make.steps(1, 2), state="diverged")
    assert command("watch", path).code == 1
    assert command("watch", tmp_path / "none.h5", "--once").code == 3
    assert command("watch", path, "--every", "0").code == 2


def test_export_csv(command: Command, tmp_path: Path, results: list[Path]) -> None:
    answer = command("export", *results, "-o", tmp_path / "out")
    assert answer.code == 0 and answer.out.count(".csv") == 4
    with open(tmp_path / "out" / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for path in results:
        own = [row for row in rows if row["run"] == path.stem]
        with h5py.File(path) as file:
            for name, data in file["steps"].items():
                kind = float if data.dtype == float else int
                assert [kind(row[name]) for row in own] == data[:].tolist(), name
    with open(tmp_path / "out" / "tests.csv", newline="") as file:
        tests = {row["run"]: row for row in csv.DictReader(file)}
    for path in results:
        with h5py.File(path) as file:
            assert int(tests[path.stem]["correct"]) == file["test/correct"][0]
    (tmp_path / "file").write_text("")
    assert command("export", *results, "-o", tmp_path / "file").code == 3


def test_export_to_tensorboard(command: Command, tmp_path: Path) -> None:
    path = make.write_run(
        tmp_path / "a.h5",
        make.steps(1, 5),
        [make.evaluation(5, 10)],
        make.evaluation(5, 20, split="test"),
    )
    table: dict[str, list[tuple[int, float]]] = {}
    for tag, step, value in scalars(load(path)[0]):
        table.setdefault(tag, []).append((step, value))
    assert table["accuracy/val"] == [(5, 0.25)] and table["accuracy/test"] == [(5, 0.5)]
    assert table["loss/val"] == [(5, 1.95)]
    for tag, name in (("loss/train", "loss"), ("speed/exchange_wait_seconds", "exchange_wait")):
        assert table[tag] == [(row["step"], row[name]) for row in make.steps(1, 5)]
    answer = command("export", path, "--tensorboard", "-o", tmp_path / "tb")
    if importlib.util.find_spec("tensorboard") is None:
        assert answer.code == 2 and "pip install tensorboard" in answer.error
        return
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert answer.code == 0
    events = EventAccumulator(str(tmp_path / "tb" / "a")).Reload()
    found = [(e.step, e.value) for e in events.Scalars("loss/train")]
    expected = [(row["step"], np.float32(row["loss"])) for row in make.steps(1, 5)]
    assert found == expected
    assert [(e.step, e.value) for e in events.Scalars("accuracy/test")] == [(5, 0.5)]
    walls = [e.wall_time for e in events.Scalars("loss/train")]
    began = int(make.RUN, 16) * 1e-9
    assert walls[0] == pytest.approx(began + make.steps(1, 1)[0]["seconds"])
    assert command("export", path, "--tensorboard", "-o", tmp_path / "tb").code == 2


def test_plots_are_of_their_size() -> None:
    one = plot([("", range(50), np.sin(np.arange(50) / 5))], 60, 8, 2, "y")
    lines = one.splitlines()
    assert len(lines) == 1 + 8 + 2 and max(map(len, lines)) <= 60
    assert lines[1].startswith(" 1.00") and "step 49" in lines[-1]
    two = plot([("first", [1, 2], [1, 1]), ("second", [1, 2], [2, 3])], 60, 8)
    assert "A  first" in two and "B  second" in two and "A" in two.splitlines()[7]
    assert "nothing yet" in plot([("", [], [])], y_label="loss")
    assert plot([("", [1], [float("nan")])]) == plot([("", [], [])])
    assert plot([("", [5], [2.0])], 40, 5)
