"""
The screen of the `pytest` referee: words that a task forbids, each named in its instruction.

A word counts where Python would use it: as a name, an attribute, a part of an import, or a string that is the word
alone (`__import__("zlib")`). Comments and prose do not count. The subject's process also refuses to import such a
module, so that a spelling that the screen does not see does not work either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from harness.tree import Tree

__all__ = ["screened"]


def screened(tree: Tree, forbidden: Sequence[str]) -> str | None:
    """Where the first forbidden word stands, as a sentence; None where there is none, or where no file parses."""
    words = frozenset(forbidden)
    if not words:
        return None
    for path in tree:
        if path.endswith(".py"):
            for word, line in _used(tree.text(path)):
                if word in words:
                    return f"{path}:{line} uses {word!r}, which the instruction forbids"
    return None


def _used(text: str) -> Iterator[tuple[str, int]]:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name, line
            case ast.alias(name=name):
                yield from ((part, line) for part in name.split("."))
            case ast.ImportFrom(module=str(name)):
                yield from ((part, line) for part in name.split("."))
            case ast.Constant(value=str(name)):
                yield name, line
            case _:
                pass
