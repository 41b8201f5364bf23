"""Pieces of HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .text import missing

escape = html.escape


def tag(name: str, body: str, **attributes: str) -> str:
    """<name attributes>body</name>; body is HTML, attributes are text."""
    words = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{words}>{body}</{name}>"


def link(address: str, text: str, **attributes: str) -> str:
    """A link; text is plain."""
    return tag("a", escape(text), href=address, **attributes)


@dataclass
class Cell:
    """A cell: what is shown, as HTML, and what it sorts by (missing: last)."""

    body: str
    value: Any


def sortable(
    key: str | None,
    caption: str,
    heads: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[Cell]],
    buttons: bool = True,
) -> str:
    """A table in a region that scrolls sideways. heads: (text, is a number). The first cell of a
    row is its head. With buttons each column sorts, by keyboard too.
    """

    def head(text: str, number: bool) -> str:
        inner = f'<button type="button">{escape(text)}</button>' if buttons else escape(text)
        return f'<th scope="col"{" class=n" if number else ""}>{inner}</th>'

    def cell(place: int, one: Cell) -> str:
        value = "" if missing(one.value) else escape(str(one.value))
        name = 'th scope="row"' if place == 0 else "td"
        right = ' class="n"' if heads[place][1] else ""
        data = f' data-v="{value}"' if buttons else ""
        return f"<{name}{right}{data}>{one.body}</{name[:2]}>"

    top = "".join(head(text, number) for text, number in heads)
    lines = "".join(
        "<tr>" + "".join(cell(i, one) for i, one in enumerate(row)) + "</tr>" for row in rows
    )
    name = f' id="table-{key}"' if key else ""
    kind = ' class="sortable"' if buttons else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table{name}{kind}><caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
