"""rfa-analysis figures: pictures for papers, from runs, results of rfa bench and of rfa fidelity,
and tables of jobs/scaling. One kind has one colour in all of them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from . import curves, hdf5, style
from .cli import load_paths
from .errors import AnalysisError
from .groups import group
from .load import Runs, find
from .run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPILOG = """examples:
  rfa-analysis figures runs/ -o figures/                        all that there is data for, as PDF
  rfa-analysis figures length.h5 -o figures/ --format svg,png   results of rfa bench FILE.yaml --out
  rfa-analysis figures runs/scaling-17.csv -o figures/          a table of jobs/scaling

learning   training loss and validation accuracy against the step (runs)
speed      test accuracy against tokens a second; the area is peak memory of a rank (runs)
length     seconds a token and peak memory against the length of a sequence (rfa bench)
scaling    speed-up or throughput, efficiency, wait of the exchange against ranks (jobs/scaling)
fidelity   error of estimated attention against features (rfa fidelity)
spectrum   singular values of attention and of its estimates (rfa fidelity)
roofline   rate of products against products a byte, with the machine's ceilings (rfa bench)
"""

FIDELITY = "rfa fidelity "
FORMATS = ("pdf", "svg", "png")


@dataclass
class Material:
    """What figures are drawn of: runs, results of bench, paths of fidelity files, scaling tables."""

    runs: Runs
    benches: pd.DataFrame
    fidelity: list[str] = field(default_factory=list)
    scaling: list[tuple[str, pd.DataFrame]] = field(default_factory=list)


def read_scaling(path: str) -> pd.DataFrame:
    """A table of jobs/scaling: kind, ranks, tokens_per_second_median, efficiency, exchange_share."""
    wanted = {"kind", "ranks", "tokens_per_second_median", "efficiency", "exchange_share"}
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{path}: {error}") from None
    if not wanted <= set(frame.columns):
        raise AnalysisError(f"{path}: no table of jobs/scaling")
    return frame


def kind_of_variant(variant: str) -> str:
    """The kind that a variant of rfa bench or an estimator of rfa fidelity is drawn as."""
    words = variant.split("+")
    gated = words[0] == "rfa" and {"gated", "gate"} & set(words)
    return "rfa-gate" if gated else words[0]


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    across = count if count <= 3 else 2
    down = -(-count // across)
    drawn = Figure(figsize=(3.6 * across, 3.0 * down), layout="constrained")
    axes = list(drawn.subplots(down, across, squeeze=False).flat)
    for axis in axes[count:]:
        axis.remove()
    return drawn, axes[:count]


def _legend(drawn: Figure, axes: list[Axes]) -> None:
    """One legend above all panels."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    if found:
        inches = 0.085 * max(len(label) for label in found) + 0.6  # of an entry
        columns = max(1, min(len(found), int(drawn.get_size_inches()[0] / inches)))
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        drawn.legend(found.values(), found.keys(), ncol=columns, **place)


def _looks(names: list[str]) -> dict[str, dict[str, Any]]:
    """color, marker, linestyle, label of variants: one colour a kind, dashes within a kind."""
    count: dict[str, int] = {}
    looks = {}
    for variant in names:
        kind = kind_of_variant(variant)
        place = count[kind] = count.get(kind, -1) + 1
        words = [word for word in variant.split("+")[1:] if word not in ("gated", "gate")]
        label = ", ".join([style.name(kind), *words])
        dash = curves.DASHES[place % len(curves.DASHES)]
        looks[variant] = {**style.kind_style(kind), "linestyle": dash, "label": label}
    return looks


def learning(material: Material) -> Figure | None:
    """Curves of all runs."""
    runs = [run for run in material.runs if len(run.steps) or len(run.evaluations)]
    return curves.figure(group(runs)) if runs else None


def speed(material: Material) -> Figure | None:
    """Test accuracy [%] against median tokens a second; area: peak memory of a rank."""
    rows: list[Run] = [run for run in material.runs if run.test and run.tokens_per_second > 0]
    if not rows:
        return None
    drawn, (axis,) = _panels(1)
    peaks = np.array([run.summary()["peak_bytes_of_a_rank"] for run in rows], dtype=float)
    largest = np.nanmax(peaks) if np.isfinite(peaks).any() else np.nan
    for run, peak in zip(rows, peaks):
        area = 500 * peak / largest if np.isfinite(peak) else 40
        colour = style.colour(run.kind)
        at = (run.tokens_per_second / 1e3, 100 * run.test["accuracy"])
        axis.scatter(*at, s=area, color=colour, alpha=0.5, linewidths=0)
        axis.plot(*at, ls="", ms=3, **style.kind_style(run.kind))
    axis.set(xlabel="training speed [1000 tokens/s]", ylabel="test accuracy [%]")
    axis.margins(0.2)
    if np.isfinite(largest):
        note = f"largest area: {largest / 2**20:.0f} MiB a rank"
        axis.set_title(note, fontsize=8, loc="right", color="#555555")
    _legend(drawn, [axis])
    return drawn


def length(material: Material) -> Figure | None:
    """Time of a token [us] and peak memory [MiB] against N, of cases attention and length."""
    frame = material.benches
    if not {"case", "N", "median_seconds", "tokens", "peak_bytes"} <= set(frame.columns):
        return None
    for case in ("length", "attention"):
        part = frame[(frame["case"] == case) & frame["phase"].isin(["all", ""])]
        part = part[(part["tokens"] > 0) & (part["N"] > 0)]
        if part.groupby("variant")["N"].nunique().max() == part["N"].nunique() > 1:
            break
    else:
        return None
    drawn, (time, memory) = _panels(2)
    for variant, look in _looks(sorted(part["variant"].unique())).items():
        rows = part[part["variant"] == variant].groupby("N").median(numeric_only=True)
        time.plot(rows.index, 1e6 * rows["median_seconds"] / rows["tokens"], **look)
        memory.plot(rows.index, rows["peak_bytes"] / 2**20, **look)
    what = "training step" if case == "length" else "attention, forward and backward"
    time.set(ylabel=f"time a token [µs]\n({what})")
    memory.set(ylabel="peak memory of a rank [MiB]")
    for axis in (time, memory):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("sequence length [tokens]")
    _legend(drawn, [time, memory])
    return drawn


def scaling(material: Material) -> Figure | None:
    """Speed-up (strong) or throughput (weak), efficiency and exchange wait against ranks."""
    if not material.scaling:
        return None
    drawn, axes = _panels(3)
    looks = {"strong": ("#0072B2", "o", "-"), "weak": ("#D55E00", "s", "--")}
    ranks: set[int] = set()
    for number, (name, frame) in enumerate(material.scaling):
        for kind, rows in frame.groupby("kind", sort=False):
            colour, mark, dash = looks.get(str(kind), ("#000000", "^", ":"))
            label = f"{kind}, {name}" if len(material.scaling) > 1 else str(kind)
            face = colour if number == 0 else "white"
            look = {"color": colour, "marker": mark, "linestyle": dash, "mfc": face}
            rows = rows.sort_values("ranks")
            ranks |= set(rows["ranks"])
            rate = rows["tokens_per_second_median"] / rows["tokens_per_second_median"].iloc[0]
            axes[0].plot(rows["ranks"], rate * rows["ranks"].iloc[0], label=label, **look)
            axes[1].plot(rows["ranks"], 100 * rows["efficiency"], **look)
            axes[2].plot(rows["ranks"], 100 * rows["exchange_share"], **look)
    least, most = min(ranks), max(ranks)
    axes[0].plot([least, most], [least, most], color="#8A8A8A", lw=0.8, label="ideal")
    axes[1].axhline(100, color="#8A8A8A", lw=0.8)
    heads = ("tokens/s over those of one rank", "efficiency [%]", "exchange wait [% of a step]")
    for axis, label in zip(axes, heads):
        axis.set(xlabel="ranks", ylabel=label)
        axis.set_xscale("log", base=2)
        axis.set_xticks(sorted(ranks), [str(int(r)) for r in sorted(ranks)])
        axis.minorticks_off()
    axes[0].set_yscale("log", base=2)
    axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes[1].set_ylim(bottom=0)
    axes[2].set_ylim(bottom=0)
    _legend(drawn, axes)
    return drawn


def _ensembles(material: Material) -> Iterator[tuple[str, Any, Any]]:
    for path in material.fidelity:
        with hdf5.open_file(path) as file:
            for name in file:
                if hasattr(file[name], "keys") and "error" in file[name]:
                    yield name, file, file[name]


def _words(values: Any) -> list[str]:
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]


def fidelity(material: Material) -> Figure | None:
    """Relative error of estimates against features: a panel an ensemble and norm, or a head; of
    matrices beside the least error that any matrix of that rank has, where it is known."""
    panels = []
    for name, file, part in _ensembles(material):
        kinds, statistics = _words(file["kind"][...]), _words(file["statistic"][...])
        chosen = next((i for i, s in enumerate(statistics) if "frobenius" in s), 0)
        norms = part["norm"][...] if "norm" in part else file["norm"][...]
        for n, norm in enumerate(norms):
            low, middle, high = (part[w][:, :, n, chosen] for w in ("low", "median", "high"))
            title = f"{name}, norm {float(norm):.3g}"
            what = statistics[chosen].replace("_", " ")
            best = part["best"][:, n] if "best" in part and "frobenius" in what else None
            panels.append((title, kinds, file["features"][...], low, middle, high, what, best))
    if not panels:
        return None
    panels = panels[:4]
    drawn, axes = _panels(len(panels))
    for axis, (title, kinds, features, low, middle, high, what, best) in zip(axes, panels):
        for i, look in enumerate(_looks(kinds).values()):
            at = np.asarray(features) * 2 ** (0.03 * (i - len(kinds) / 2))  # side by side
            axis.plot(at, middle[i], **look)
            least = np.where(low[i] > 0, low[i], middle[i] / 10)
            axis.vlines(at, least, high[i], color=look["color"], lw=0.8, alpha=0.7)
        if best is not None:
            axis.plot(features, best, color="#000000", ls=":", lw=1.5, label="best of this rank")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(xlabel="features", ylabel=f"error ({what}) [1]")
        axis.set_title(title, fontsize=9, loc="left")
    _legend(drawn, axes)
    return drawn


def spectrum(material: Material) -> Figure | None:
    """Singular values of attention, and of its estimates with the most features; of attention alone,
    a line a head or norm, where those of estimates were not asked for."""
    panels = []
    for name, file, part in _ensembles(material):
        if "values" in part:
            kinds, exact = _words(file["kind"][...]), part["exact_values"][...]
            values = part["values"][:, -1]
            panels.append((name, kinds, exact[-1:], values[:, -1], int(file["features"][-1])))
        elif "exact_values" in part:
            panels.append((name, [], part["exact_values"][...], [], 0))
    if not panels:
        return None
    panels = panels[:4]
    drawn, axes = _panels(len(panels))
    for axis, (name, kinds, exact, values, most) in zip(axes, panels):
        place = np.arange(1, exact.shape[-1] + 1)
        for line in exact:
            axis.plot(place, line, color="#000000", lw=2 if kinds else 0.8, label="exact")
        for i, look in enumerate(_looks(kinds).values()):
            look = {**look, "marker": "", "lw": 1.2}
            axis.plot(place, np.where(values[i] > 0, values[i], np.nan), **look)
        axis.set_yscale("log")
        floor = float(np.nanmax(exact)) * 1e-6
        axis.set_ylim(bottom=max(floor, float(np.nanmin(exact[exact > 0])) / 10))
        axis.set(xlabel="index of the singular value", ylabel="singular value [1]")
        title = f"{name}, {most} features" if kinds else f"{name}, {len(exact)} heads or norms"
        axis.set_title(title, fontsize=9, loc="left")
    _legend(drawn, axes)
    return drawn


def roofline(material: Material) -> Figure | None:
    """Rate [Gflop/s] against intensity [flop/byte] of all cases that move and compute."""
    frame = material.benches
    wanted = {"case", "flops", "bytes", "median_seconds", "ceiling", "copy_bandwidth"}
    if not wanted <= set(frame.columns):
        return None
    part = frame[(frame["flops"] > 0) & (frame["bytes"] > 0) & (frame["median_seconds"] > 0)]
    part = part[(part["ceiling"] > 0) & (part["copy_bandwidth"] > 0)]
    part = part[~part["phase"].isin(["forward", "backward"])]
    if not len(part):
        return None
    drawn, (axis,) = _panels(1)
    drawn.set_size_inches(5.2, 3.6)
    top, copy = part["ceiling"].median() / 1e9, part["copy_bandwidth"].median() / 1e9
    intensity = part["flops"] / part["bytes"]
    ends = (min(intensity.min(), top / copy) / 3, 3 * max(intensity.max(), top / copy))
    x = np.sort(np.append(np.geomspace(*ends, 100), top / copy))
    axis.plot(x, np.minimum(top, copy * x), color="#555555", lw=1)
    axis.annotate(f"products {top:.3g} Gflop/s", (x[-1], top), ha="right", va="bottom", fontsize=8)
    place = {"xytext": (4, -4), "textcoords": "offset points", "ha": "left", "va": "top"}
    axis.annotate(f"copying {copy:.3g} GB/s", (x[8], copy * x[8]), fontsize=8, **place)
    for variant, rows in part.groupby(part["case"] + ":" + part["variant"].astype(str), sort=False):
        case, _, name = variant.partition(":")
        if case in ("attention", "length", "step") and name:
            kind = kind_of_variant(name)
            look = {**style.kind_style(kind), "ms": 5}
        else:
            marks = {"gemm": ("#8A8A8A", "p"), "features": ("#8A8A8A", "2")}
            colour, mark = marks.get(case, ("#8A8A8A", "x"))
            look = {"color": colour, "marker": mark, "label": case}
        rate = rows["flops"] / rows["median_seconds"] / 1e9
        axis.plot(rows["flops"] / rows["bytes"], rate, ls="", alpha=0.8, **look)
    axis.set(xscale="log", yscale="log")
    axis.set(xlabel="intensity [flop/byte]", ylabel="rate [Gflop/s]")
    _legend(drawn, [axis])
    return drawn


FIGURES: dict[str, Callable[[Material], Any]] = {
    "learning": learning,
    "speed": speed,
    "length": length,
    "scaling": scaling,
    "fidelity": fidelity,
    "spectrum": spectrum,
    "roofline": roofline,
}


def gather(args: argparse.Namespace) -> Material:
    """Sorts the paths by what they are; each that can't be used is one line on stderr."""
    tables = [path for path in args.paths if path.endswith(".csv")]
    spectral, rest = [], []
    for path in find([path for path in args.paths if path not in tables]):
        try:
            is_spectral = os.path.exists(path) and hdf5.schema(path).startswith(FIDELITY)
        except AnalysisError:
            is_spectral = False  # load says what is wrong
        (spectral if is_spectral else rest).append(path)
    scale = [(os.path.splitext(os.path.basename(t))[0], read_scaling(t)) for t in tables]
    runs = Runs([])
    if rest:
        args.paths = rest
        runs = load_paths(args, whole=True)
    return Material(runs, runs.benchmarks, spectral, scale)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "figures",
        help="pictures for papers: learning, speed, length, scaling, fidelity, roofline",
        description="Draws all figures that there is data for, each into a file of its name.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="run, bench, fidelity files, .csv")
    parser.add_argument("-o", dest="out", metavar="FOLDER", required=True, help="is made")
    parser.add_argument("--format", default="pdf", help="of pdf, svg, png, with commas (pdf)")
    parser.add_argument("--only", choices=list(FIGURES), action="append", help="may be repeated")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    formats = args.format.split(",")
    if not set(formats) <= set(FORMATS):
        raise AnalysisError(f"--format {args.format}: pdf, svg or png, with commas", 2)
    material = gather(args)
    written = []
    with style.context():
        for name in args.only or FIGURES:
            drawn = FIGURES[name](material)
            for form in formats if drawn is not None else ():
                path = os.path.join(args.out, f"{name}.{form}")
                dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
                try:
                    os.makedirs(args.out, exist_ok=True)
                    drawn.savefig(path, metadata=dates)
                except OSError as error:
                    raise AnalysisError(f"{path}: {error.strerror}") from None
                written.append(path)
    if not written:
        raise AnalysisError("no data for any figure in " + " ".join(args.paths))
    print("\n".join(written))
    return 0
