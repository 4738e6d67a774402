"""
Steps over stretches of JSON at the speed of the interpreter's own byte operations, where looking at each bracket would
take most of the time that reading a log takes.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MOST_DEPTH", "Stepper"]

MOST_DEPTH: Final = 1000
"""Brackets within brackets; no log is nested as deep."""
_BRACKETS: Final = b"[]{}"
_ALL_ELSE: Final = bytes(set(range(256)) - set(_BRACKETS))
_CLOSES: Final = {ord("["): ord("]"), ord("{"): ord("}")}
_PAIR: Final = b"\x01"
"""Stands for an escaped character. Outside a string JSON has no backslash and no such byte: either is looked at."""
_MOST_PASSES: Final = 40
"""Inner pairs are taken out so many times; what is nested deeper is no matter of speed."""


class Stepper:
    """
    Where a nested value is being stepped over: the brackets that are open, outermost first, and whether the place is
    within a string, and right behind a backslash there.
    """

    def __init__(self) -> None:
        self.open_ones = bytearray()
        self.in_string = False
        self.escaped = False

    def over(self, stretch: bytes) -> bool:
        """
        Step over a stretch and return True; or return False, with nothing changed, if the value may end within it, if
        its brackets do not fit, or if a backslash is outside a string: then whoever asks has to look at each.
        """
        data = (b'"' if self.in_string else b"") + (b"\\" if self.escaped else b"") + stretch
        in_string = self.in_string
        # Without escaped characters every quotation mark begins or ends a string, and every second part is outside.
        bare = data.replace(b"\\\\", _PAIR)
        escaped = bare.endswith(b"\\")
        parts = bare.replace(b'\\"', _PAIR).split(b'"')
        in_string = len(parts) % 2 == 0
        outside = b"".join(parts[::2])
        if b"\\" in outside or _PAIR in outside:
            return False
        left = _unpaired(outside.translate(None, _ALL_ELSE))
        if left is None:
            return False
        closing = left.rstrip(b"[{")
        if len(closing) >= len(self.open_ones) or closing.strip(b"]}"):
            return False
        if closing and bytes(reversed(closing)) != bytes(self.open_ones[-len(closing) :]):
            return False
        if len(self.open_ones) + len(left) - 2 * len(closing) > MOST_DEPTH:
            return False
        del self.open_ones[len(self.open_ones) - len(closing) :]
        self.open_ones.extend(_CLOSES[mark] for mark in left[len(closing) :])
        self.in_string, self.escaped = in_string, escaped
        return True


def _unpaired(brackets: bytes) -> bytes | None:
    """The brackets whose partner is elsewhere; None if there is no telling soon."""
    for _ in range(_MOST_PASSES):
        fewer = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(fewer) == len(brackets):
            return brackets
        brackets = fewer
    return None
