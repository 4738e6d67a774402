"""What a report says, before it is Markdown or a page: sections of sentences, facts, tables, figures and commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from cells.plots import Plot
from cells.score_tables import Sheet

__all__ = ["Commands", "Document", "Facts", "Part", "Prose", "Section"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """A list of short statements."""

    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Commands:
    """Lines for a shell."""

    lines: tuple[str, ...]


Part: TypeAlias = Prose | Facts | Commands | Sheet | Plot
"""What a section is made of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of the report under one title; `name` is its anchor, of our own words alone."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """
    The whole report: its title, what was asked, and the sections in order. `head` are the facts that stand above all
    sections: what this is a report of, and whether its verdicts may be read.
    """

    title: str
    question: str
    head: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def plots(self) -> Iterator[Plot]:
        """The figures, in order."""
        return (part for section in self.sections for part in section.parts if isinstance(part, Plot))
