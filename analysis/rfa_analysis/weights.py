"""Parameters of runs as NumPy arrays and as a state dictionary of PyTorch."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import Any

import h5py
import numpy as np

from . import hdf5
from .errors import AnalysisError
from .reference import Model
from .run import Run

CHECKPOINT = "rfa checkpoint "


def checkpoint_path(run_path: str, best: bool = False) -> str:
    """RUN.h5 -> RUN.ckpt, or RUN.best.ckpt."""
    return os.path.splitext(run_path)[0] + (".best.ckpt" if best else ".ckpt")


def read(path: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Parameters of a checkpoint, float32 by name, and its attributes. AnalysisError."""
    try:
        with hdf5.open_file(path) as file:
            attributes = hdf5.attributes(file)
            if not str(attributes.get("schema", "")).startswith(CHECKPOINT):
                raise AnalysisError("no checkpoint of rfa")
            if not attributes.get("complete"):
                raise AnalysisError("damaged: this checkpoint was not finished")
            try:
                group = file["parameters"]
                arrays = (n for n in group if isinstance(group[n], h5py.Dataset))
                return {name: group[name][...] for name in arrays}, attributes
            except (KeyError, OSError, RuntimeError) as error:
                raise hdf5.damaged(error) from None
    except AnalysisError as error:
        raise AnalysisError(f"{path}: {str(error).removeprefix(path + ': ')}") from None


def load_model(run: Run, best: bool = False) -> Model:
    """The reference model with a run's parameters. AnalysisError."""
    parameters, attributes = read(checkpoint_path(run.path, best))
    return Model(run.config, parameters, int(attributes.get("step", 0)))


def export(run: Run, folder: str) -> list[str]:
    """RUN.npz: parameters by name, and `config`, a text of JSON; RUN.pt too where torch is there.

    The state dictionary has the same names, and shapes as torch.nn.Linear has them: [out][in].
    """
    parameters, attributes = read(checkpoint_path(run.path))
    written = [os.path.join(folder, run.name + ".npz")]
    config = json.dumps({**run.config, "step": int(attributes.get("step", 0))}, default=str)
    np.savez(written[0], config=np.array(config), **parameters)
    if importlib.util.find_spec("torch") is not None:
        import torch

        state = {name: torch.from_numpy(value.copy()) for name, value in parameters.items()}
        written.append(os.path.join(folder, run.name + ".pt"))
        torch.save(state, written[1])
    return written


def load_npz(path: str) -> Model:
    """The reference model of a file that export has written."""
    with np.load(path) as file:
        config = json.loads(str(file["config"]))
        return Model(config, {n: file[n] for n in file.files if n != "config"}, config["step"])
