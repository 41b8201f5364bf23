"""Intervals against their definitions; what counts as one configuration."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from conftest import HERE

from rfa_analysis.groups import NEUTRAL, spread
from rfa_analysis.intervals import bootstrap, wilson
from rfa_analysis.text import duration, percent, plain, rate, size, smooth


@pytest.mark.parametrize(("correct", "examples"), [(757, 2000), (0, 20), (20, 20), (1, 3)])
def test_wilson_solves_its_equation(correct: int, examples: int) -> None:
    """Its ends are the p at which (share - p)^2 = z^2 p (1 - p) / n (Wilson 1927)."""
    z, share = 1.959963984540054, correct / examples
    low, high = wilson(correct, examples)
    assert low <= share <= high
    for p in (low, high):
        assert (share - p) ** 2 == pytest.approx(z * z * p * (1 - p) / examples, abs=1e-12)
    assert all(math.isnan(x) for x in (*wilson(0, 0), *wilson(math.nan, math.nan)))


def test_bootstrap_of_a_mean() -> None:
    values = np.random.default_rng(3).normal(0.4, 0.02, 40)
    low, high = bootstrap(values)
    error = values.std() / math.sqrt(40)  # of a mean of resamples
    assert low < values.mean() < high and bootstrap(values) == (low, high)
    # 10 000 draws: the ends of a normal distribution to 0.05 of its deviation (their error: 0.027).
    assert (low - values.mean()) / error == pytest.approx(-1.96, abs=0.15)
    assert (high - values.mean()) / error == pytest.approx(1.96, abs=0.15)
    assert all(math.isnan(x) for x in (*bootstrap([0.4]), *bootstrap([])))
    assert bootstrap([0.4, 0.4, math.nan]) == (0.4, 0.4)


def test_spread() -> None:
    numbers = spread([0.25, 0.5, 0.75])
    assert (numbers["n"], numbers["mean"], numbers["sd"]) == (3, 0.5, 0.25)
    assert math.isnan(spread([0.5])["sd"]) and math.isnan(spread([])["mean"])


def test_numbers_for_people() -> None:
    assert [rate(x) for x in (9.87, 999.4, 99664, 999600, 1.2e9)] == [
        "9.87",
        "999",
        "99.7 k",
        "1 M",
        "1.2 G",
    ]
    assert [size(x) for x in (512, 151851264, 2**30)] == ["512 B", "145 MiB", "1 GiB"]
    assert [duration(x) for x in (0.25, 1663.8, 7300)] == ["0.25 s", "27:44", "2:01:40"]
    assert percent(0.3785) == "37.85 %" and plain(True) == "yes" and plain(5000.0) == "5000"
    for function in (rate, size, duration, percent, plain):
        assert function(math.nan) == ""


def test_smooth_is_a_mean_of_what_was() -> None:
    values = np.array([4.0, 2.0, np.nan, 6.0])
    np.testing.assert_allclose(smooth(values, 2), [4, 3, 2, 6])
    np.testing.assert_allclose(smooth(values, 9), [4, 3, 3, 4])


def test_keys_that_change_no_result_are_those_of_rfa() -> None:
    text = (HERE.parents[1] / "src" / "config" / "keys.c").read_text(encoding="utf-8")
    keys = re.findall(r"\{KEY\((\w+), (\w+)\)((?:(?!\{KEY\().)*)", text, flags=re.DOTALL)
    neutral = {f"{part}.{name}" for part, name, rest in keys if ".neutral = true" in rest}
    assert len(keys) > 40 and len(neutral) > 10
    of_runs = {key for key in neutral if not key.startswith(("bench.", "fidelity."))}
    assert of_runs <= NEUTRAL
    others = {f"{part}.{name}" for part, name, _ in keys} - neutral
    assert not others & NEUTRAL
