"""Reads a report as its reader does: the words of a page or of Markdown, the numbers in them, and where each is from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any

NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?!\w)")
"""A number with its commas, decimals and power, without its sign; digits in a word or a digest are none."""

OWN = re.compile("95 %|SHA-256")
"""What our own prose says with a number in it: the level of an interval, the name of a digest."""


class Page(HTMLParser):
    """The words of a page: of a style sheet none, of the ticks of axes apart; its elements with their attributes, and those outside of drawings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ticks: list[str] = []
        self.prose: list[tuple[str, list[str]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._inside: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Keep it, and what it is inside of."""
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if not any(inside == "svg" for inside, _ in self._inside):
            self.prose.append((tag, sorted(attributes)))
        if tag not in {"meta", "link", "br"}:
            self._inside.append((tag, attributes.get("class") or ""))

    def handle_startendtag(self, tag, attrs):
        """An element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """Leave it."""
        assert self._inside.pop()[0] == tag

    def handle_data(self, data):
        """Words, by where they stand."""
        tag, look = self._inside[-1] if self._inside else ("", "")
        if tag != "style" and data.strip():
            (self.ticks if "tick" in look.split() else self.words).append(data)


def numbers(words: Iterable[str]) -> Iterator[str]:
    """The numbers in words, as they are written there."""
    for text in words:
        yield from NUMBER.findall(OWN.sub(" ", text))


def forms(data: Any) -> set[str]:
    """Every way in which a number of JSON data may be written in a report: as it is, with commas, or rounded."""
    if isinstance(data, dict):
        return {form for item in [*data, *data.values()] for form in forms(item)}
    if isinstance(data, list | tuple):
        return {form for item in data for form in forms(item)}
    if isinstance(data, str):
        return set(numbers([data]))
    if data is None or isinstance(data, bool):
        return set()
    size = abs(data)
    rounded = {f"{size:,.{digits}f}" for digits in range(6)}
    return {str(size), f"{size:.4g}", f"{size:g}", *rounded, *(text.replace(",", "") for text in rounded)}


def foreign_numbers(words: Iterable[str], data: Any) -> list[str]:
    """The numbers in words that are not in the data."""
    known = forms(data)
    return [number for number in numbers(words) if number not in known]
