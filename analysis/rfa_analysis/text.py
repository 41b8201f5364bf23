"""Numbers, tables and small plots as text."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


def missing(value: Any) -> bool:
    """None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> str:
    """A value in words: whole numbers without a point, flags as yes and no, "" when missing."""
    if missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def percent(value: float, digits: int = 2) -> str:
    """0.3785 -> "37.85 %"."""
    return "" if missing(value) else f"{100 * value:.{digits}f} %"


def interval(low: float, high: float) -> str:
    """0.3575, 0.4000 -> "35.7 to 40.0 %"."""
    return "" if missing(low) else f"{100 * low:.1f} to {100 * high:.1f} %"


def rate(value: float) -> str:
    """A number a second in three digits: 99664 -> "99.7 k"."""
    if missing(value) or not math.isfinite(value):
        return ""
    for factor, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= 0.9995 * factor:  # or rounds to it
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"


def size(value: float) -> str:
    """Bytes: 151851264 -> "145 MiB"."""
    if missing(value):
        return ""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= factor:
            digits = ".3g" if value < 999.5 * factor else ".0f"
            return f"{value / factor:{digits}} {unit}"
    return f"{value:.0f} B"


def duration(seconds: float) -> str:
    """Seconds: 1663.8 -> "27:44", 7300 -> "2:01:40"."""
    if missing(seconds) or not math.isfinite(seconds):
        return ""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


@dataclass(frozen=True)
class Column:
    """A column of a table for people: head, with its unit, and a row's text. right: numbers."""

    head: str
    cell: Callable[[Any], str]
    right: bool = True


def plain_table(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """Aligned with blanks; numbers to the right."""
    cells = [[column.cell(row) for column in columns] for row in rows]
    widths = [
        max([len(column.head), *(len(line[i]) for line in cells)])
        for i, column in enumerate(columns)
    ]

    def line(texts: Sequence[str]) -> str:
        parts = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(texts, widths, columns)
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([line([column.head for column in columns]), *map(line, cells)])


def markdown_table(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """As GitHub shows it."""

    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    rule = line(["---:" if column.right else "---" for column in columns])
    body = [line([column.cell(row) for column in columns]) for row in rows]
    return "\n".join([line([column.head for column in columns]), rule, *body])


def csv_text(frame: pd.DataFrame) -> str:
    """A data frame as CSV: full precision, missing values empty, flags true and false."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False):
        writer.writerow(["" if missing(value) else _csv_word(value) for value in row])
    return out.getvalue()


def _whole(value: Any) -> Any:
    """A whole float as int, as columns of counts with a missing value are float."""
    if isinstance(value, float) and abs(value) < 2**53 and value == int(value):
        return int(value)
    return value


def _csv_word(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return _whole(value)


def json_text(frame: pd.DataFrame) -> str:
    """A data frame as a JSON list of objects; missing values are null."""
    rows = [
        {name: _json_value(value) for name, value in zip(frame.columns, row)}
        for row in frame.itertuples(index=False)
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)


def _json_value(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if missing(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return _whole(value)


def smooth(values: np.ndarray, span: int) -> np.ndarray:
    """The mean over the last span values (fewer at the start); NaN counts as not there."""
    x = np.asarray(values, dtype=float)
    good = ~np.isnan(x)
    total = np.concatenate([[0.0], np.cumsum(np.where(good, x, 0.0))])
    count = np.concatenate([[0], np.cumsum(good)])
    end = np.arange(1, x.size + 1)
    begin = np.maximum(end - span, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (total[end] - total[begin]) / (count[end] - count[begin])


def plot(
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    width: int = 72,
    height: int = 12,
    digits: int = 2,
    y_label: str = "",
    x_label: str = "step",
) -> str:
    """Curves in a grid of characters. series: (label, x, y); one is drawn in braille dots, more
    by their letters A, B, ... with a legend below. Lines of at most width columns.
    """
    curves = []
    for label, x, y in series:
        a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        good = np.isfinite(a) & np.isfinite(b)
        if good.any():
            curves.append((label, a[good], b[good]))
    if not curves:
        return f"{y_label}: nothing yet"
    x0, x1 = min(a.min() for _, a, _ in curves), max(a.max() for _, a, _ in curves)
    y0, y1 = min(b.min() for _, _, b in curves), max(b.max() for _, _, b in curves)
    if y1 == y0:
        y0, y1 = y0 - 0.5, y1 + 0.5
    margin = max(len(f"{v:.{digits}f}") for v in (y0, y1)) + 2
    inner = max(width - margin, 16)
    one = len(curves) == 1
    dots_x, dots_y = (2 * inner, 4 * height) if one else (inner, height)
    grid = np.zeros((dots_y, dots_x), dtype=int)
    for number, (_, a, b) in enumerate(curves, 1):
        column = np.rint((a - x0) / (x1 - x0 or 1) * (dots_x - 1)).astype(int)
        order = np.argsort(column, kind="stable")
        places = np.unique(column)
        means = [b[order][column[order] == place].mean() for place in places]
        rows = np.rint((y1 - np.array(means)) / (y1 - y0) * (dots_y - 1)).astype(int)
        if len(places) > 1:  # lines between the points
            every = np.arange(places[0], places[-1] + 1)
            rows = np.rint(np.interp(every, places, rows)).astype(int)
            places = every
        last = None
        for place, row in zip(places, rows):
            span = (row, row) if last is None or not one else (last + np.sign(row - last), row)
            grid[min(span) : max(span) + 1, place] = number
            last = row
    lines = []
    for i in range(height):
        if one:
            block = grid[4 * i : 4 * i + 4].reshape(4, inner, 2) > 0
            bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
            codes = (block * bits[:, None, :]).sum(axis=(0, 2))
            body = "".join(chr(0x2800 + code) if code else " " for code in codes)
        else:
            body = "".join(" " if v == 0 else chr(ord("A") + (v - 1) % 26) for v in grid[i])
        value = ""
        if i in (0, height - 1) or (height > 8 and i == height // 2):
            value = f"{y1 - (y1 - y0) * i / (height - 1):.{digits}f}"
        lines.append(f"{value:>{margin - 2}} |{body}".rstrip())
    left, right = plain(float(x0)), f"{x_label} {plain(float(x1))}"
    lines.append(" " * (margin - 1) + "+" + "-" * inner)
    lines.append(" " * margin + left + right.rjust(inner - len(left)))
    if y_label:
        lines.insert(0, y_label)
    if not one:
        lines += [f"  {chr(ord('A') + i % 26)}  {label}" for i, (label, _, _) in enumerate(curves)]
    return "\n".join(lines)
