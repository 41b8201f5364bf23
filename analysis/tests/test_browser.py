"""The report and the page of watch in a headless Chromium (skipped, with code 77, without one)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import make
import pytest
from browser import Browser, find
from conftest import RESULTS
from test_commands import seeds
from test_load import broken_files

if find() is None:
    pytest.exit("no Chromium here", returncode=77)

COLUMN = """[...document.querySelectorAll("#table-runs tbody tr")].filter((r) => !r.hidden)
.map((r) => r.cells[%d].textContent)"""
ACCURACY = 2  # a column of #table-runs


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of seeds, committed runs, broken files and a benchmark."""
    from rfa_analysis.cli import main

    folder = tmp_path_factory.mktemp("report")
    seeds(folder / "seeds")
    (folder / "broken").mkdir()
    broken_files(folder / "broken")
    make.write_bench(folder / "bench.h5")
    out = folder / "report.html"
    assert main(["report", str(RESULTS), str(folder), "-o", str(out)]) == 1
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    """The report at the width of a desktop; afterwards its console must have been silent."""
    browser.messages.clear()
    browser.requests.clear()
    browser.scheme("light")
    browser.size(1280, 900)
    browser.open(str(page))
    yield browser
    assert browser.messages == []
    assert all(url.startswith(("file://", "data:")) for url in browser.requests)


def test_it_opens(opened: Browser, page: Path) -> None:
    assert opened.run("document.title") == "Runs of rfa"
    assert opened.run("document.querySelectorAll('#table-runs tbody tr').length") == 16
    sizes = """[...document.querySelectorAll("figure svg")].map((s) => s.getBoundingClientRect())
    .map((b) => [b.width, b.height])"""
    figures = opened.run(sizes)
    assert figures and all(width > 300 and height > 150 for width, height in figures)


def test_a_click_sorts(opened: Browser) -> None:
    button = f"document.querySelectorAll('#table-runs thead button')[{ACCURACY}]"
    for order in ("descending", "ascending", "descending"):
        opened.run(f"{button}.click()")
        assert opened.run(f"{button}.parentNode.getAttribute('aria-sort')") == order
        assert opened.run("document.querySelectorAll('#table-runs [aria-sort]').length") == 1
        texts = opened.run(COLUMN % ACCURACY)
        values = [float(text.split()[0]) for text in texts if text]
        assert len(values) >= 9 and values == sorted(values, reverse=order == "descending")
        assert texts[len(values) :] == [""] * (len(texts) - len(values))  # missing ones come last


def test_the_keyboard_sorts(opened: Browser) -> None:
    opened.run("document.querySelector('#table-runs thead button').focus()")
    opened.key("Enter", 13, "\r")
    names = opened.run(COLUMN % 0)
    state = "document.querySelector('#table-runs th').getAttribute('aria-sort')"
    opened.until(state, "ascending")
    assert names.index("listops-rfa-first") < names.index("rfa-1") < names.index("softmax-2")
    opened.key("Tab", 9)
    opened.until("document.activeElement.textContent", "state")
    opened.key(" ", 32, " ")
    opened.until(
        "document.querySelectorAll('#table-runs th')[1].getAttribute('aria-sort')", "ascending"
    )
    states = opened.run(COLUMN % 1)
    assert states == sorted(states) and states[0] == "damaged"


def test_the_filter_hides_rows(opened: Browser) -> None:
    opened.run("document.getElementById('filter').focus()")
    opened.call("Input.insertText", text="softmax 3")
    names = ["listops-softmax-first", "softmax-1", "softmax-2", "softmax-3"]
    opened.until(COLUMN % 0, names)
    opened.call("Input.insertText", text="7.50 %")
    opened.until(COLUMN % 0, ["softmax-2", "softmax-3"])
    assert opened.run("document.getElementById('filter-count').textContent") == "2 of 16 runs"


def test_a_number_leads_to_its_run(opened: Browser) -> None:
    row = """[...document.querySelectorAll("#table-runs tbody tr")]
    .find((r) => r.cells[0].textContent === "rfa-2")"""
    opened.run(f"{row}.cells[{ACCURACY}].querySelector('a').focus()")
    opened.key("Enter", 13, "\r")
    opened.until("(document.querySelector(location.hash || 'nav') || {}).open")
    section = opened.run(
        "(() => { const d = document.querySelector(location.hash);"
        " return [d.open, d.innerText, d.getBoundingClientRect().top]; })()"
    )
    assert section[0] is True and abs(section[2]) < 900  # in the window
    assert "rfa-2.h5" in section[1] and "rfa reproduce" in section[1]


def test_a_screen_reader_finds_its_way(opened: Browser) -> None:
    """What the accessibility tree says: headings, tables with names, buttons, pictures."""
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored")
    ]
    assert ("heading", "Runs of rfa") in named and ("main", "") in named
    for role in ("table", "img", "image", "button", "link", "searchbox", "region"):
        assert all(name for kind, name in named if kind == role), role
    kinds = {kind for kind, _ in named}
    assert {"table", "button", "link", "searchbox", "columnheader", "rowheader"} <= kinds
    levels = opened.run("[...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    assert opened.run("document.documentElement.lang") == "en"


def contrast(one: str, other: str) -> float:
    """Of two CSS colours, WCAG 2.1."""

    def luminance(colour: str) -> float:
        parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(opened: Browser, scheme: str) -> None:
    opened.scheme(scheme)
    back = opened.run("getComputedStyle(document.body).backgroundColor")
    assert contrast(back, "rgb(0, 0, 0)") < 2 if scheme == "dark" else back == "rgb(255, 255, 255)"
    for place in (
        "body",
        ".quiet",
        "nav a",
        "td a",
        ".state-damaged",
        ".state-finished",
        "svg text",
    ):
        style = f"getComputedStyle(document.querySelector('{place}'))"
        kind = "fill" if place == "svg text" else "color"
        assert contrast(opened.run(f"{style}.{kind}"), back) >= 4.5, place


@pytest.mark.parametrize(("width", "phone"), [(360, True), (768, True), (1280, False)])
def test_nothing_hangs_over(opened: Browser, page: Path, width: int, phone: bool) -> None:
    opened.size(width, 800, phone)
    opened.open(str(page))
    opened.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert opened.run("document.documentElement.scrollWidth") <= width


def test_it_prints(opened: Browser) -> None:
    data = opened.pdf()
    pages = len(re.findall(rb"/Type\s*/Page\b", data))
    assert data.startswith(b"%PDF") and 3 <= pages <= 40
    opened.scheme("dark", "print")
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_the_page_of_watch(browser: Browser, tmp_path: Path) -> None:
    from rfa_analysis.cli import main

    make.lines(tmp_path / "a.jsonl", make.steps(1, 40))
    page = tmp_path / "a.html"
    assert main(["watch", str(tmp_path / "a.h5"), "--once", "--page", str(page)]) == 0
    browser.messages.clear()
    browser.size(360, 800, True)
    browser.open(str(page))
    assert "40 steps" in browser.run("document.querySelector('[role=status]').textContent")
    assert browser.run("document.documentElement.scrollWidth") <= 360
    assert browser.messages == []
