"""The page in a real browser: no complaint on its console, no request, and it fits wide and narrow windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.html.page import html_report
from cells.report import document_of
from tests.cells.report_cases import full_facts
from tests.cells.test_report_page import HOSTILE, spoilt
from tests.live.browser import Browser, browser

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

FAULTS = {
    "console": ("<script>console.error('planted')</script>", ["planted"], []),
    "exception": ("<script>nope()</script>", ["Uncaught"], []),
    "request": ('<img src="http://127.0.0.1:9/x.png">', ["Failed to load"], ["http://127.0.0.1:9/x.png"]),
    "late request": (
        "<script>setTimeout(() => fetch('http://127.0.0.1:9/late').catch(() => 0), 100)</script>",
        [],
        ["http://127.0.0.1:9/late"],
    ),
    "style": ('<link rel="stylesheet" href="other.css">', [], ["other.css"]),
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def written(folder: Path, text: str) -> Path:
    """A page on the disk."""
    path = folder / "report.html"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_quiet_and_fits(chromium, tmp_path, width, dark):
    """Nothing on the console, nothing asked for, nothing wider than the window, and there is something to see."""
    look = chromium.look(written(tmp_path, html_report(document_of(full_facts()))), width=width, dark=dark)
    (tmp_path / "page.png").write_bytes(look.png)
    assert look.console == []
    assert look.requests == []
    assert look.scroll_width == width
    assert look.png.startswith(b"\x89PNG")
    assert len(look.png) > 100_000


def test_the_page_is_quiet_in_print(chromium, tmp_path):
    """As it would be printed."""
    look = chromium.look(written(tmp_path, html_report(document_of(full_facts()))), width=800, media="print")
    assert (look.console, look.requests) == ([], [])


@pytest.mark.parametrize("evil", [text for text in HOSTILE if "<" in text or "(" in text])
def test_a_hostile_record_runs_nothing(chromium, tmp_path, evil):
    """Where every text of the record is an attack the page is as quiet: there is nothing for its policy to refuse."""
    look = chromium.look(written(tmp_path, html_report(document_of(spoilt(evil)))), width=1280)
    assert (look.console, look.requests) == ([], [])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_that_is_not_quiet_is_found(chromium, tmp_path, fault):
    """An error on the console, an exception, a request, one that comes late, a file beside the page."""
    body, console, requests = FAULTS[fault]
    look = chromium.look(written(tmp_path, f"<!doctype html><html><body>{body}</body></html>"), width=1280)
    assert [any(text in line for line in look.console) for text in console] == [True] * len(console)
    assert [any(text in url for url in look.requests) for text in requests] == [True] * len(requests)


def test_the_policy_of_the_page_refuses(chromium, tmp_path):
    """What would get into the page by a way that nobody thought of is not run and not fetched, and complained of."""
    page = html_report(document_of(full_facts()))
    planted = '<script>fetch("http://127.0.0.1:9/s")</script><img src="http://127.0.0.1:9/i.png">'
    look = chromium.look(written(tmp_path, page.replace("</main>", f"{planted}</main>")), width=1280)
    assert look.requests == []
    assert sum("Content Security Policy" in line for line in look.console) == 2
