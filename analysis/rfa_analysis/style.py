"""One look for all plots: a colour and a marker for each kind of attention, everywhere the same.

Colours are those of Okabe and Ito (2008), told apart by colour-blind readers too, and by their
markers in print. Use `with style.context():` around plotting, kind_style(kind) for a line.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

# kind: (colour, marker, name)
KINDS: dict[str, tuple[str, str, str]] = {
    "softmax": ("#000000", "s", "softmax"),
    "rfa": ("#0072B2", "o", "RFA"),
    "rfa-gate": ("#56B4E9", "D", "RFA-gate"),
    "performer": ("#009E73", "^", "Performer"),
    "elu": ("#E69F00", "v", "linear (elu+1)"),
    "ra": ("#CC79A7", "P", "RA"),
    "lara": ("#D55E00", "X", "LARA"),
    "eva": ("#8C6D00", "*", "EVA"),
    "local": ("#7F7F7F", "h", "local"),
}
OTHER = ("#8A8A8A", ".")  # of a kind that is not listed

# For things that are no kinds (ranks, phases): in this order.
CYCLE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00"]

RC: dict[str, Any] = {
    "figure.figsize": (5.5, 3.4),  # inches
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "rfa",  # the same figure has the same bytes
    "pdf.fonttype": 42,
}


def _base(kind: str) -> str:
    """The longest listed kind that kind is a variant of: rfa-arccos is drawn like rfa."""
    while kind not in KINDS and "-" in kind:
        kind = kind.rpartition("-")[0]
    return kind


def colour(kind: str) -> str:
    """The colour of a kind, as #RRGGBB."""
    return KINDS.get(_base(kind), OTHER)[0]


def marker(kind: str) -> str:
    """The matplotlib marker of a kind."""
    return KINDS.get(_base(kind), OTHER)[1]


def name(kind: str) -> str:
    """How a kind is called in print."""
    base = _base(kind)
    return KINDS[base][2] + kind[len(base) :] if base in KINDS else kind


def kind_style(kind: str) -> dict[str, Any]:
    """Keywords of a line or marker of matplotlib: color, marker, label."""
    return {"color": colour(kind), "marker": marker(kind), "label": name(kind)}


def context() -> AbstractContextManager[None]:
    """Matplotlib with the settings above while the context lasts."""
    import matplotlib
    from cycler import cycler

    return matplotlib.rc_context({**RC, "axes.prop_cycle": cycler(color=CYCLE)})
