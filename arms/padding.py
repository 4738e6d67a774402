"""Python code of no concern to any task, of a length that is asked for to the character."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

__all__ = ["PADDING", "padding"]

PADDING: Mapping[str, str] = {
    "pad head": "def label_shelf(shelf, row):",
    "pad line 1": "    sign = shelf.colour.upper()",
    "pad line 2": "    if row.height > shelf.height:",
    "pad line 3": "        row = shelf.tallest()",
    "pad line 4": "    for box in row.boxes:",
    "pad line 5": "        box.stick(sign, row.mark)",
    "pad fill": "#",
}
"""The lines that padding is made of: a function about shelves, and comments that fill what is left."""

_HEAD, *_LINES = (line for name, line in PADDING.items() if name != "pad fill")
_PAIRS = (_LINES[:1], _LINES[1:3], _LINES[3:])


def padding(length: int) -> str:
    """
    Code of exactly `length` characters that Python can parse: the function's head and as many of its statements as
    have room, then a comment. Code too short for a head and a statement is a comment alone.
    """
    lines: list[str] = [_HEAD, *_PAIRS[0]]
    if _size(lines) > length:
        return PADDING["pad fill"] * length
    for statement in cycle((*_PAIRS[1:], _PAIRS[0])):
        if _size([*lines, *statement]) > length:
            break
        lines += statement
    left = length - _size(lines)
    # One character that is left is no line of its own: a newline and nothing behind it would go with the fence.
    return "\n".join(lines) + ("#" if left == 1 else "\n" + "#" * (left - 1) if left else "")


def _size(lines: list[str]) -> int:
    return len("\n".join(lines))
