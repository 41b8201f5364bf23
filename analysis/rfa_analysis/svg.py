"""Figures as SVG within a page: scaled to it, in its text colour, with ids of their own."""

from __future__ import annotations

import html
import io
import itertools
import re
from typing import TYPE_CHECKING

from . import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .run import Run

_numbers = itertools.count(1)


def inline(figure: Figure, title: str, description: str = "") -> str:
    """The figure as an <svg> element. title and description are what a screen reader says.

    Black, of text, axes and softmax, becomes the page's text colour; the background stays clear.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    mark = f"f{next(_numbers)}-"
    text = re.sub(r'\bid="', f'id="{mark}', text)
    text = re.sub(r"url\(#", f"url(#{mark}", text)
    text = re.sub(r'xlink:href="#', f'xlink:href="#{mark}', text)
    text = re.sub(r"(fill|stroke): #000000", r"\1: currentColor", text)
    text = re.sub(r"<text (?![^>]*fill:)", '<text fill="currentColor" ', text)
    text = re.sub(r"#dddddd", "var(--grid, #88888855)", text, flags=re.IGNORECASE)
    box = re.search(r'viewBox="\S+ \S+ (\S+) [^"]*"', text)
    if box is None:
        raise ValueError("matplotlib's SVG has no viewBox")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box.group(0)} style="--w: {float(box.group(1)):.0f}px" role="img" '
        f'aria-labelledby="{mark}title {mark}desc">'
        f'<title id="{mark}title">{html.escape(title)}</title>'
        f'<desc id="{mark}desc">{html.escape(description or title)}</desc>'
    )
    return re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)


def inline_curves(run: Run) -> str:
    """Loss and accuracy of one run; a sentence when there is no step yet."""
    from . import curves
    from .groups import group

    if not len(run.steps) and not len(run.evaluations):
        return "<p>No step yet.</p>"
    with style.context():
        return inline(curves.figure(group([run])), f"Learning curves of {run.name}")
