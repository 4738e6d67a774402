"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("harness", "arms", "referees", "fences", "cells")
FENCE = re.compile(r"^( *)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text without the page's indentation, and the line it starts at."""

    language: str
    text: str
    line: int


@cache
def pages() -> dict[str, str]:
    """The text of every page, by its path from the root of the tree."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")]
    found += [path for room in ROOMS for path in (ROOT / room).rglob("README.md")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(found)}


def blocks(text: str, *languages: str) -> list[Block]:
    """The fenced blocks of a page in one of `languages`, or all of them."""
    return [
        Block(match[3], textwrap.dedent(match[4]), text[: match.start()].count("\n") + 1)
        for match in FENCE.finditer(text)
        if not languages or match[3] in languages
    ]


def without_blocks(text: str) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as hosting sites make them."""
    found = set()
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", without_blocks(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found
