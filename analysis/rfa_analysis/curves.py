"""Learning curves of groups of runs on one plot: training loss, and validation accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import style
from .groups import Group
from .text import smooth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES = ("-", "--", ":", "-.")  # groups of one kind, which have one colour
POINTS = 400  # of a curve: more can't be seen


def looks(groups: list[Group]) -> list[dict[str, str]]:
    """color, marker and linestyle of each group: by kind, then by its place among that kind."""
    count: dict[str, int] = {}
    found = []
    for group in groups:
        place = count[group.kind] = count.get(group.kind, -1) + 1
        found.append(
            {
                "color": style.colour(group.kind),
                "marker": style.marker(group.kind),
                "linestyle": DASHES[place % len(DASHES)],
            }
        )
    return found


def thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most POINTS points, evenly taken, the first and the last among them."""
    if len(x) <= POINTS:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))
    return x[keep], y[keep]


def figure(groups: list[Group], width: float = 8.0, height: float = 3.4) -> Figure:
    """Loss [nat] (mean of a fiftieth of the steps) and validation accuracy [%] against the step.

    A line a run; runs of a group look alike. width, height in inches. Within style.context().
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    left, right = drawn.subplots(1, 2)
    for group, look in zip(groups, looks(groups)):
        label: str | None = group.label
        line = {key: look[key] for key in ("color", "linestyle")}
        for run in group.runs:
            steps, rows = run.steps, run.evaluations
            if len(steps):
                loss = smooth(steps["loss"].to_numpy(), max(1, len(steps) // 50))
                left.plot(*thin(steps["step"].to_numpy(), loss), **line, label=label)
            if len(rows):
                right.plot(rows["step"], 100 * rows["accuracy"], **look, label=label)
            label = None if len(steps) or len(rows) else label
    left.set(xlabel="step", ylabel="training loss [nat]")
    right.set(xlabel="step", ylabel="validation accuracy [%]")
    handles, labels = right.get_legend_handles_labels()
    if not handles:
        handles, labels = left.get_legend_handles_labels()
    if handles:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # above, outside
        drawn.legend(handles, labels, ncol=min(len(handles), 3), **place)
    return drawn
