"""A report as Markdown: no markup of a record's text works in it, and a figure is told in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cells.figures import printable
from cells.plots import Plot
from cells.report_document import Commands, Document, Facts, Part, Prose, Section
from cells.score_tables import Sheet

__all__ = ["markdown_report"]

_SPECIAL = re.compile(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def markdown_report(document: Document) -> str:
    """The report; the same document gives the same text."""
    facts = _list(document.head)
    head = f"# Report: {_escape(document.title)}\n\n> {_escape(document.question)}\n\n{facts}\n"
    return "\n".join([head, *map(_section, document.sections)])


def _escape(value: object) -> str:
    """Text as Markdown shows it: no markup, no HTML, no line break of its own."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], printable(value).translate(_ENTITIES))


def _section(section: Section) -> str:
    return "\n\n".join([f"## {section.title}", *map(_part, section.parts)]) + "\n"


def _part(part: Part) -> str:
    match part:
        case Prose(text=text):
            return _escape(text)
        case Facts(lines=lines):
            return _list(lines)
        case Commands(lines=lines):
            return "\n".join(["```sh", *map(_command, lines), "```"])
        case Sheet():
            return _sheet(part)
        case Plot():
            return _plot(part)


def _command(line: str) -> str:
    """A line for a shell, in which no text can end the block."""
    return printable(line).replace("```", "'''")


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(line)}" for line in lines)


def _sheet(sheet: Sheet) -> str:
    rule = ["---" if at < sheet.left else "---:" for at in range(len(sheet.header))]
    rows = [[_escape(text) for text in row] for row in (sheet.header, *sheet.rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in (rows[0], rule, *rows[1:]))
    return "\n\n".join([f"### {_escape(sheet.title)}", table, *([_list(sheet.notes)] if sheet.notes else [])])


def _plot(plot: Plot) -> str:
    """What the page draws, in words."""
    words = _list(plot.alt)
    return f"### Figure: {_escape(plot.title)}\n\n{_escape(plot.caption)}\n\n{words}"
