"""The forward of a trained classifier in NumPy, in double, for one example at a time.

Written for reading: attention in its quadratic form, out = W V with weights W that a page of code
shows. Its logits are those of the program up to the rounding of float. Kinds rfa (gaussian,
arccos), performer, elu and softmax, causal and gated ones too; pooling of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import rng
from .errors import AnalysisError

# Denominators are no smaller (src/features/map.h).
FLOORS = {"gaussian": 0.16, "arccos": 1e-6, "positive": 1e-20, "elu": 1e-20}


def log_sigmoid(x: np.ndarray) -> np.ndarray:
    """log(1 / (1 + exp(-x)))."""
    return -np.logaddexp(0, -x)


def gelu(x: np.ndarray) -> np.ndarray:
    """By the tangent (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def sinusoids(length: int, width: int) -> np.ndarray:
    """[length][width] (Vaswani et al. 2017, section 3.5)."""
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    table = np.empty((length, width))
    table[:, ::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table


class Model:
    """A classifier: config by "section.key", parameters by the names of the checkpoint.

    step: optimiser steps done, on which projections depend that serve for several steps.
    AnalysisError when the configuration is one that this reference does not know.
    """

    def __init__(
        self, config: Mapping[str, Any], parameters: Mapping[str, np.ndarray], step: int = 0
    ) -> None:
        self.config = config
        self.values = {name: np.asarray(v, dtype=float) for name, v in parameters.items()}
        self.heads = int(config["model.heads"])
        self.layers = int(config["model.layers"])
        self.width = int(config["model.width"])
        self.kind = str(config["attention.kind"])
        auto = {"rfa": "gaussian", "performer": "positive", "elu": "elu"}
        chosen = config.get("attention.map", "auto")
        self.map = auto.get(self.kind, "") if chosen == "auto" or self.kind == "elu" else chosen
        self.projections = self._projections(step)
        self._refuse()

    def _refuse(self) -> None:
        config, unknown = self.config, []
        if self.kind not in ("rfa", "performer", "elu", "softmax"):
            unknown.append(f"attention.kind {self.kind}")
        elif self.kind != "softmax" and self.map not in FLOORS:
            unknown.append(f"attention.map {self.map}")
        if config.get("attention.causal") and config.get("attention.direction") == "both":
            unknown.append("attention.direction both")
        if config.get("train.carry") == "stateful" and config.get("train.window"):
            unknown.append("train.carry stateful")
        if unknown:
            raise AnalysisError("the reference in NumPy does not know " + ", ".join(unknown))

    def _projections(self, step: int) -> list[list[np.ndarray]]:
        """[layer][head] of [D][d], as an evaluation takes them."""
        config = self.config
        if self.kind not in ("rfa", "performer"):
            return []
        rows = config.get("attention.rows", "auto")
        rows = {"rfa": "iid", "performer": "orthogonal"}[self.kind] if rows == "auto" else rows
        if rows == "fastfood":
            raise AnalysisError("the reference in NumPy does not know attention.rows fastfood")
        redraw, seed = int(config.get("attention.redraw", 1)), int(config["train.seed"])
        count, d = int(config["attention.features"]), self.width // self.heads
        index = [head for _ in range(self.layers) for head in range(self.heads)]
        if redraw > 1 and step > 0:
            draw = (step - 1) // redraw + 1
            index = rng.pick(seed, draw, len(index), int(config["attention.pool"]))
        made = {i: rng.projection(seed, i, rows, count, d) for i in set(index)}
        return [
            [made[index[layer * self.heads + head]] for head in range(self.heads)]
            for layer in range(self.layers)
        ]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self.values[name + ".scale"] + self.values[name + ".shift"]

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.values[name + ".weight"].T + self.values[name + ".bias"]

    def _sigma(self, layer: int, head: int) -> np.ndarray | float:
        if self.kind != "rfa":
            return 1.0
        name, d = f"layer{layer}.attention.", self.width // self.heads
        if name + "sigma" in self.values:
            return self.values[name + "sigma"].ravel()[head * d : (head + 1) * d]
        if name + "temperature" in self.values:
            return 1 / float(self.values[name + "temperature"].ravel()[head])
        return float(self.config.get("attention.bandwidth", 1.0))

    def features(self, x: np.ndarray, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
        """phi [n][F] of x [n][d], and the logarithm of the weight that a key has [n]."""
        nothing = np.zeros(len(x))
        if self.map == "elu":
            return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))), nothing
        unit = self.kind == "rfa" and self.config.get("attention.norm", "unit") == "unit"
        length = np.linalg.norm(x, axis=1, keepdims=True) + 1e-3 if unit else x.shape[1] ** 0.25
        y = self._sigma(layer, head) * (x / length)
        w = self.projections[layer][head]
        product, scale = y @ w.T, len(w) ** -0.5
        half = (y**2).sum(axis=1) / 2
        if self.map == "gaussian":
            phi = np.concatenate([np.sin(product), np.cos(product)], axis=1)
            return scale * phi, nothing if unit else half
        if self.map == "arccos":
            return scale * np.maximum(product, 0), nothing
        top = product.max(axis=1)
        return scale * np.exp(product - top[:, None]), top - half

    def _decays(self, x: np.ndarray, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
        """log g and log (1 - g) of a gate [n], x being the layer's normed input."""
        gate = self.config.get("attention.gate", "none")
        if gate == "learned":
            name = f"layer{layer}.attention.gate"
            b = self.values[name + ".bias"].ravel()[head]
            score = x @ self.values[name + ".weight"].reshape(self.heads, -1)[head] + b
            return log_sigmoid(score), log_sigmoid(-score)
        g = np.log1p(-(2.0 ** (-5 - head))) if gate == "decay" else 0.0
        return np.full(len(x), g), np.zeros(len(x))

    def attention(self, x: np.ndarray, layer: int) -> np.ndarray:
        """[n][E] of the normed input x, before the output's projection."""
        qkv = self._linear(x, f"layer{layer}.attention.qkv")
        d, n = self.width // self.heads, len(x)
        out = np.empty((n, self.width))
        t, i = np.arange(n)[:, None], np.arange(n)
        causal = bool(self.config.get("attention.causal"))
        reverse = causal and self.config.get("attention.direction") == "reverse"
        seen = np.ones((n, n), bool) if not causal else (i >= t if reverse else i <= t)
        for head in range(self.heads):
            at = slice(head * d, (head + 1) * d)
            q, k, v = (qkv[:, part * self.width :][:, at] for part in range(3))
            if self.kind == "softmax":
                score = np.where(seen, q @ k.T / np.sqrt(d), -np.inf)
                weight = np.exp(score - score.max(axis=1, keepdims=True))
                out[:, at] = weight @ v / weight.sum(axis=1, keepdims=True)
                continue
            (phi_q, _), (phi_k, log_weight) = (self.features(y, layer, head) for y in (q, k))
            log = np.broadcast_to(log_weight, (n, n))
            if causal:  # what a state forgets between i and t
                decay, entry = self._decays(x, layer, head)
                total = np.cumsum(decay)
                kept = total[:, None] - total
                if reverse:
                    kept = (total - decay) - (total - decay)[:, None]
                log = log + np.where(seen, kept, 0) + entry
            log = np.where(seen, log, -np.inf)
            weight = (phi_q @ phi_k.T) * np.exp(log - log.max(axis=1, keepdims=True))
            total = np.maximum(weight.sum(axis=1, keepdims=True), FLOORS[self.map])
            out[:, at] = weight @ v / total
        return out

    def pooled(self, ids: np.ndarray) -> np.ndarray:
        """What the head reads of one sequence [E]."""
        longest = int(self.config["data.max_length"])
        ids = np.asarray(ids, dtype=int)[:longest]
        x = self.values["embedding.tokens"][ids]
        if "embedding.positions" in self.values:
            x = x + self.values["embedding.positions"][: len(ids)]
        elif self.config.get("model.positions") == "sinusoidal":
            x = x + sinusoids(len(ids), self.width)
        for layer in range(self.layers):
            name = f"layer{layer}."
            heads = self.attention(self._norm(x, name + "norm1"), layer)
            x = x + self._linear(heads, name + "attention.out")
            u = self._linear(self._norm(x, name + "norm2"), name + "feed_forward.in")
            x = x + self._linear(gelu(u), name + "feed_forward.out")
        x = self._norm(x, "norm")
        pooling = self.config.get("model.pooling", "first")
        if pooling in ("mean", "padded_mean"):
            return x.sum(axis=0) / (len(ids) if pooling == "mean" else longest)
        return x[0] if pooling == "first" else x[-1]

    def logits(self, ids: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
        """[classes] of an example's tokens; second: those of its other document."""
        y = self.pooled(ids)
        if second is not None:
            a, b = y, self.pooled(second)
            y = np.concatenate([a, b])
            if self.config.get("model.match") == "nli":
                y = np.concatenate([a, b, a * b, a - b])
        for name in ("head.hidden", "head.hidden2"):
            if name + ".weight" in self.values:
                y = np.maximum(self._linear(y, name), 0)
        return self._linear(y, "head.out")
