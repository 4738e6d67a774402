"""
The screen of the `pytest` referee: words that a task forbids, each named in its instruction.

A word counts where Python would use it: as a name, an attribute, a part of an import, or a string that is the word
alone (`__import__("zlib")`). Comments and prose do not count. The subject's process also refuses to import such a
module, so that a spelling that the screen does not see does not work either. A file is read as UTF-8, and as what its
first lines say that it is written in. Source takes some thousand times its bytes to parse: what is too long is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from harness.tree import Tree

__all__ = ["FILE_BYTES", "TREE_BYTES", "screened"]

FILE_BYTES = 512 << 10
"""Bytes of the longest Python file that is screened."""
TREE_BYTES = 8 << 20
"""Bytes of all Python files together."""


def screened(tree: Tree, forbidden: Sequence[str]) -> str | None:
    """
    Where the first forbidden word stands, or what is too long to be screened, as a sentence; None where there is none,
    or where no file parses. Takes a while over much source: call it from a worker thread.
    """
    words = frozenset(forbidden)
    sources = {path: tree[path] for path in tree if path.endswith(".py")} if words else {}
    for path, data in sources.items():
        if len(data) > FILE_BYTES:
            return f"{path} has {len(data)} bytes: expected at most {FILE_BYTES}, where words are forbidden"
    if sum(map(len, sources.values())) > TREE_BYTES:
        return f"the Python files have over {TREE_BYTES} bytes together, where words are forbidden"
    for path, data in sources.items():
        for source in _readings(data):
            for word, line in _used(source):
                if word in words:
                    return f"{path}:{line} uses {word!r}, which the instruction forbids"
    return None


def _readings(data: bytes) -> Iterator[str | bytes]:
    """A file as text, and, where its first two lines name an encoding, as Python takes it."""
    yield data.decode("utf-8", "replace")
    if b"coding" in b"\n".join(data.replace(b"\r", b"\n").split(b"\n", 3)[:3]):
        yield data


def _used(source: str | bytes) -> Iterator[tuple[str, int]]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
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
