"""
The screen of the `command` referee: words that a task forbids, each named in its instruction.

It knows no language, so a word counts wherever it stands by itself, in comments and in compiled files too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.tree import Tree

__all__ = ["screened"]


def screened(tree: Tree, forbidden: Sequence[str]) -> str | None:
    """Where the first forbidden word stands, as a sentence; None where there is none."""
    if not forbidden:
        return None
    words = b"|".join(re.escape(word.encode("utf-8")) for word in forbidden)
    pattern = re.compile(rb"(?<![A-Za-z0-9_])(?:" + words + rb")(?![A-Za-z0-9_])")
    for path in tree:
        data = tree[path]
        found = pattern.search(data)
        if found is not None:
            word = found.group().decode("utf-8", "replace")
            line = data.count(b"\n", 0, found.start()) + 1
            return f"{path}:{line} has {word!r}, which the instruction forbids"
    return None
