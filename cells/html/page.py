"""
The report as one HTML page: no script, no request, nothing on it that is not in the document it is made of.

The same document gives the same bytes. Text of a record is printed, never obeyed: it is escaped by the template engine,
and what does not print (controls, marks that turn the writing direction) stands as its escape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from cells.figures import printable
from cells.html.drawing import Drawing, Element, draw, swatch
from cells.plots import Plot
from cells.report_document import Document, Part

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["html_report"]

SAID = 12
"""A figure with so many rows is told in words; of a longer one the table beside it has the words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    label: str
    element: Element


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """A part as the template takes it; a plot with its drawing."""

    kind: str
    plot: Plot | None = None
    drawing: Drawing | None = None
    words: str = ""
    key: tuple[_Entry, ...] = ()


def html_report(document: Document) -> str:
    """The page. Raises `UsageError` where the template engine of the extra `report` is not installed."""
    template = _template()
    from markupsafe import Markup

    style = resources.files("cells.html").joinpath("style.css").read_text("utf-8")
    # The style sheet is ours, and holds no text of anybody else's.
    return template.render(document=document, style=Markup(style), render=_item) + "\n"  # noqa: S704


@cache
def _template() -> Template:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        from harness.errors import UsageError

        raise UsageError("the page needs jinja2: install it with `pip install 'proctor[report]'`") from None
    environment = Environment(
        loader=PackageLoader("cells", "html"), autoescape=True, undefined=StrictUndefined, finalize=_said
    )
    return environment.get_template("page.html.j2")


def _said(value: object) -> object:
    """Text as it may stand on a page; what the template itself made is left as it is."""
    return printable(value) if type(value) is str else value


def _item(part: Part) -> _Item:
    if not isinstance(part, Plot):
        return _Item(kind=type(part).__name__)
    words = "; ".join(part.alt) if len(part.alt) <= SAID else "The table beside the figure has every row."
    return _Item(
        kind="Plot",
        plot=part,
        drawing=draw(part),
        words=words,
        key=tuple(_Entry(label=entry.label, element=swatch(entry)) for entry in part.key),
    )
