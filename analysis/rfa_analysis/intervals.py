"""Intervals of results: Wilson's of a share of examples, the bootstrap's of a mean over seeds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

Z95 = 1.959963984540054  # of a normal variable: 95 % lie within


def wilson(correct: float, examples: float, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of correct / examples (95 % by default); NaN without examples.

    It says how far the test split's size alone lets the accuracy wander, not how seeds differ.
    """
    if not examples > 0:
        return math.nan, math.nan
    p = correct / examples
    middle = p + z * z / (2 * examples)
    half = z * math.sqrt(p * (1 - p) / examples + z * z / (4 * examples * examples))
    scale = 1 + z * z / examples
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def bootstrap(
    values: ArrayLike, level: float = 0.95, draws: int = 10000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean of values; NaN for fewer than two.

    The same values give the same interval: seed is fixed. draws resamples, in one array.
    """
    x = np.asarray(values, dtype=float)
    x = x[~np.isnan(x)]
    if x.size < 2:
        return math.nan, math.nan
    picks = np.random.default_rng(seed).integers(0, x.size, size=(draws, x.size))
    low, high = np.quantile(x[picks].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
