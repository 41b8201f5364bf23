"""Exported parameters, and the forward in NumPy against the program: needs RFA (CTest)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import test_program

from rfa_analysis import load, rng, weights
from rfa_analysis.reference import Model

needs_program = pytest.mark.skipif(not test_program.RFA, reason="RFA does not name the program")
CONFIG = """
data: {file: d.h5, max_length: 64}
model: {layers: 2, width: 16, heads: 2, feed_forward: 32, head: 8}
attention: {features: 12, pool: 8}
parallel: {segments: 2}
train: {steps: 4, batch: 4, warmup: 1, rate: 0.02, evaluate_every: 0, checkpoint_every: 0}
"""
VARIANTS = {
    "rfa": "",
    "rfa free mean": "attention.norm=free model.pooling=mean attention.sigma=temperature",
    "rfa arccos": "attention.map=arccos model.positions=sinusoidal attention.sigma=fixed",
    "rfa redrawn": "attention.redraw=2 attention.rows=simplex model.pooling=padded_mean",
    "rfa gated": "attention.causal=true attention.gate=learned model.pooling=last",
    "rfa reverse": "attention.causal=true attention.direction=reverse attention.gate=decay",
    "performer": "attention.kind=performer",
    "elu": "attention.kind=elu model.positions=none",
    "elu causal": "attention.kind=elu attention.causal=true model.pooling=mean",
    "softmax": "attention.kind=softmax",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("weights")
    before = os.getcwd()
    os.chdir(place)
    words = "data listops --out d.h5 --train 40 --val 8 --test 8 --min-length 20 --max-length 60"
    test_program.program(*words.split(), "--max-depth", "4")
    Path("quick.yaml").write_text(CONFIG)
    yield place
    os.chdir(before)


def train(name: str) -> Path:
    path = Path(name.replace(" ", "-") + ".h5")
    if not path.exists():
        changes = [word for change in VARIANTS[name].split() for word in ("--set", change)]
        test_program.program("train", "quick.yaml", "--out", str(path), *changes)
    return path


def logits_of(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """[examples][classes] of the test split, and labels."""
    with h5py.File("d.h5") as file:
        split = file["test"]
        begin, tokens = split["offsets"][...].astype(int), split["tokens"][...]
        labels, lengths = split["labels"][...].astype(int), split["lengths"][...].astype(int)
    examples = [tokens[b : b + n] for b, n in zip(begin, lengths)]
    return np.array([model.logits(ids) for ids in examples]), labels


@needs_program
@pytest.mark.parametrize("name", list(VARIANTS))
def test_the_reference_is_the_program(folder: Path, name: str) -> None:
    path = train(name)
    found, labels = logits_of(weights.load_model(load(path)[0]))
    help_text = test_program.program("eval", "--help").stdout
    if "--predictions" in help_text:
        test_program.program("eval", str(path), "--predictions", "p.h5")
        with h5py.File("p.h5") as file:
            order = np.argsort(file["index"][...])
            np.testing.assert_allclose(found, file["logits"][...][order], atol=1e-5)
        Path("p.h5").unlink()
    # The mean of -log softmax of all logits, at the label.
    top = found.max(axis=1)
    chosen = found[np.arange(len(labels)), labels]
    loss = np.log(np.exp(found - top[:, None]).sum(axis=1)) + top - chosen
    said = test_program.program("eval", str(path)).stdout.splitlines()
    value = next(float(line.split()[-1]) for line in said if line.startswith("test loss"))
    assert math.isclose(loss.mean(), value, abs_tol=1e-5)
    # A model that read something else would not come so near.
    assert np.ptp(loss) > 1e-3


@needs_program
def test_export(folder: Path, command: Callable[..., Any]) -> None:
    path = train("rfa")
    answer = command("export", path, "--weights", "-o", "out")
    assert answer.code == 0 and answer.out.split()[0] == os.path.join("out", "rfa.npz")
    again, _ = logits_of(weights.load_npz("out/rfa.npz"))
    direct, _ = logits_of(weights.load_model(load(path)[0]))
    assert np.array_equal(again, direct)
    with h5py.File("rfa.ckpt") as file, np.load("out/rfa.npz") as out:
        assert set(file["parameters"]) == set(out.files) - {"config"}
        assert all(np.array_equal(file["parameters"][n], out[n]) for n in file["parameters"])
    os.rename("rfa.ckpt", "elsewhere")
    try:
        answer = command("export", path, "--weights", "-o", "out")
        assert answer.code != 0 and "rfa.ckpt" in answer.error
        assert answer.error.count("\n") == 1
    finally:
        os.rename("elsewhere", "rfa.ckpt")


@needs_program
def test_state_dictionary(folder: Path, command: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    command("export", train("rfa"), "--weights", "-o", "torch")
    state = torch.load("torch/rfa.pt")
    parameters, _ = weights.read("rfa.ckpt")
    assert set(state) == set(parameters)
    assert all(np.array_equal(state[name].numpy(), parameters[name]) for name in state)


def test_numbers_are_those_of_philox() -> None:
    # Known answers of Salmon et al. for Philox4x32-10 with counter and key 0.
    stream = rng.Stream(0, 0, 0)
    assert [hex(word) for word in stream.blocks(0, 1)[0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    assert np.array_equal(stream.normals(3, 5), stream.normals(0, 8)[3:])


def test_rows_of_projections() -> None:
    w = rng.projection(1, 0, "orthogonal", 8, 8)
    length = np.linalg.norm(w, axis=1, keepdims=True)
    np.testing.assert_allclose((w / length) @ (w / length).T, np.eye(8), atol=1e-6)
    w = rng.projection(1, 0, "simplex", 8, 8)
    length = np.linalg.norm(w, axis=1, keepdims=True)
    cosine = (w / length) @ (w / length).T
    np.testing.assert_allclose(cosine[~np.eye(8, dtype=bool)], -1 / 7, atol=1e-6)
    assert len(set(rng.pick(1, 5, 6, 8))) == 6
