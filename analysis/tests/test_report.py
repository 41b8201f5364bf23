"""The report as a text: whole, of itself, and true."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import h5py
import make
import pytest
from conftest import RESULTS
from test_commands import seeds
from test_load import broken_files

Command = Callable[..., object]
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Reader(HTMLParser):
    """Elements are balanced, ids are single; collects ids, links and cells of tables."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.referred: list[str] = []
        self.rows: list[list[str]] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag == "a":
            self.links.append(str(values["href"]))
        if values.get("xlink:href"):
            self.referred.append(str(values["xlink:href"]))
        self.referred += re.findall(r"url\((#[^)]*)\)", str(values.get("clip-path")))
        if "aria-labelledby" in values:
            self.referred += ["#" + word for word in str(values["aria-labelledby"]).split()]
        if values.get("src"):
            self.sources.append(str(values["src"]))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if self.open and {"td", "th"} & set(self.open[-4:]) and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the committed runs, of seeds, a benchmark, and broken files."""
    from rfa_analysis.cli import main

    folder = tmp_path_factory.mktemp("report")
    seeds(folder / "seeds")
    (folder / "broken").mkdir()
    broken_files(folder / "broken")
    make.write_bench(folder / "bench.h5")
    make.write_run(folder / "text.h5", make.steps(1, 9), run="0" * 16, attributes={"task": "text"})
    (folder / "page").mkdir()
    out = folder / "page" / "report.html"
    assert main(["report", str(RESULTS), str(folder), "-o", str(out)]) == 1
    return out


def test_it_is_whole_and_of_itself(report: Path) -> None:
    text, page = report.read_text(encoding="utf-8"), read(report)
    assert len(page.ids) == len(set(page.ids)) and text.count("<svg") == 2
    assert page.sources == [] and "@import" not in text
    names = r"http://www\.w3\.org/(2000/svg|1999/xlink)"  # of namespaces, never fetched
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(names, "", text))
    for address in page.links:
        if address.startswith("#"):
            assert address[1:] in page.ids, address
        else:
            assert os.path.lexists(report.parent / urllib.parse.unquote(address)), address
    assert page.referred and all(word[1:] in page.ids for word in page.referred)


def test_its_numbers_are_those_of_the_files(report: Path, results: list[Path]) -> None:
    page, text = read(report), report.read_text(encoding="utf-8")
    for path in results:
        row = next(r for r in page.rows if r and r[0] == path.stem and "finished" in r)
        with h5py.File(path) as file:
            assert row[2] == f"{100 * file['test/accuracy'][0]:.2f} %"
            assert row[4:9] == ["listops", row[5], "1", "2", "5000"]
            assert row[10] == f"{file.attrs['peak_bytes_of_a_rank'] / 2**20:.3g} MiB"
            for i in range(10):
                matrix = [str(v) for v in file["test/confusion"][0][i]]
                assert any(r[1:11] == matrix and r[0] == str(i) for r in page.rows)
            for loss in file["evaluations/loss"][:]:
                assert f"{loss:.4f}" in text
        relative = urllib.parse.quote(os.path.relpath(path, report.parent))
        assert f'href="{relative}"' in text
        assert re.search(rf"mpirun -n 2 rfa reproduce \S*{path.name}", text)


def test_every_number_of_the_tables_is_a_link(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    for key in ("runs", "groups"):
        table = text[text.index(f'id="table-{key}"') :]
        table = table[: table.index("</table>")]
        cells = re.findall(r'<td class="n"[^>]*>(.*?)</td>', table)
        filled = [cell for cell in cells if re.search(r"\d", re.sub("<[^>]*>", "", cell))]
        plain = [cell for cell in filled if "<a " not in cell]
        assert len(filled) >= 30
        assert all(re.fullmatch(r"\d+", cell) for cell in plain)  # seeds: how many were counted
        assert key == "groups" or not plain


def test_means_over_seeds(report: Path) -> None:
    page = read(report)
    row = next(r for r in page.rows if r[0].startswith("RFA") and "rfa-1, rfa-2, rfa-3" in r)
    assert row[1] == "32.50 %" and row[3] == "3"  # of 10, 12, 17 of 40
    assert row[4] == f"{100 * 0.0901388:.2f} %"


def test_broken_files_are_named(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    left = text[text.index('id="left-out"') :]
    assert left.count("<li>") == 12 and "flipped.h5: is damaged" in left
    rows = read(report).rows
    assert sum(1 for r in rows if r[1:2] == ["damaged"]) == 6


def test_names_are_text_not_html(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "<b>&amp;'\" x.h5"
    make.write_run(
        path,
        make.steps(1, 2),
        test=make.evaluation(2, 5),
        attributes={"task": "</script><script>alert(1)</script>", "hosts": "<i>"},
    )
    out = tmp_path / "r.html"
    assert command("report", path, "-o", out, "--title", "<u>").code == 0
    text = out.read_text(encoding="utf-8")
    assert text.count("<script>") == 1 and "<b>" not in text and "<i>" not in text
    read(out)


def test_many_runs_make_a_page_still(command: Command, tmp_path: Path) -> None:
    data = make.write_run(
        tmp_path / "x.h5", make.steps(1, 20), test=make.evaluation(20, 9), sealed=False
    ).read_bytes()
    for i in range(210):
        (tmp_path / f"{i}.h5").write_bytes(data.replace(make.RUN.encode(), b"%016x" % i))
    out = tmp_path / "r.html"
    assert command("report", tmp_path, "-o", out).code == 0
    assert "too many for one page" in out.read_text() and out.stat().st_size < 4_000_000
    page = read(out)
    assert len([r for r in page.rows if "finished" in r]) == 211


def test_a_page_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    answer = command("report", RESULTS, "-o", tmp_path / "none" / "r.html")
    assert answer.code == 3 and "no such file" in answer.error
