"""Learning curves of groups of runs on one plot: training loss, and validation accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .groups import Group
from .text import smooth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .run import Run

DASHES = ("-", "--", ":", "-.")  # groups of one kind, which have one colour
POINTS = 400  # of a curve: more can't be seen
ALL_POINTS = 16000  # of a figure of many runs


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


def thin(x: np.ndarray, y: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points, evenly taken, the first and the last among them."""
    if len(x) <= points:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, points).astype(int))
    return x[keep], y[keep]


def figure(groups: list[Group], width: float = 8.0, height: float = 3.4) -> Figure:
    """Loss [nat] (mean of a fiftieth of the steps) and validation accuracy [%] against the step.

    A line a run; runs of a group look alike. A panel without data is left out. width, height in
    inches. Within style.context().
    """
    from matplotlib.figure import Figure

    runs = [run for group in groups for run in group.runs]
    panels = [any(len(run.steps) for run in runs), any(len(run.evaluations) for run in runs)]
    count = max(1, sum(panels))
    drawn = Figure(figsize=(width * count / 2, height), layout="constrained")
    axes = iter(drawn.subplots(1, count, squeeze=False)[0])
    handles: dict[str, Any] = {}
    for there, panel, label in zip(panels, (_loss, _accuracy), LABELS):
        if not there:
            continue
        axis = next(axes)
        axis.set(xlabel="step", ylabel=label)
        axis.xaxis.get_major_locator().set_params(integer=True)
        for group, look in zip(groups, looks(groups)):
            for run in group.runs:
                line = panel(axis, run, look, max(20, min(POINTS, ALL_POINTS // len(runs))))
                if line is not None:
                    handles[group.label] = line
    if handles:
        longest = max(len(label) for label in handles)
        columns = max(1, min(len(handles), int(100 / (longest + 8))))
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # above, outside
        drawn.legend(handles.values(), handles.keys(), ncol=columns, **place)
    return drawn


LABELS = ("training loss [nat]", "validation accuracy [%]")


def _loss(axis: Axes, run: Run, look: dict[str, str], points: int) -> Any:
    steps = run.steps
    if not len(steps):
        return None
    loss = smooth(steps["loss"].to_numpy(), max(1, len(steps) // 50))
    line = {key: look[key] for key in ("color", "linestyle")}
    return axis.plot(*thin(steps["step"].to_numpy(), loss, points), **line)[0]


def _accuracy(axis: Axes, run: Run, look: dict[str, str], points: int) -> Any:
    rows = run.evaluations
    if not len(rows):
        return None
    share = 100 * rows["accuracy"].to_numpy()
    return axis.plot(*thin(rows["step"].to_numpy(), share, points), **look)[0]
