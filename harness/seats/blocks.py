"""Fenced blocks of a model's reply, read as CommonMark does, with the leniencies that models need."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Block", "Scan", "scan"]

_WIDTH = 3
_TRANSPARENT = frozenset({"markdown", "md"})
_PLAIN = frozenset({"", "code", "plain", "plaintext", "text", "txt"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """
    The inside of one fence, its indentation taken off. `language` is "python", "" where there is no label or a label
    that names no language, or else the label's first word in lower case.
    """

    language: str
    text: str
    closed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """
    What a reply is made of: its blocks, the text outside of them, and the text before the first unindented fence if
    that fence has no label (then it may be the end of a block that was begun elsewhere), else None.
    """

    blocks: tuple[Block, ...]
    outside: str
    before_first: str | None


def scan(text: str, *, indented: bool = True) -> Scan:
    """
    The blocks of `text`, whose lines end in newlines alone. With `indented` off, a fence with white space before it
    is text: what starts as code can hold one in a docstring.

    A block that is never closed goes on to the end. A fence labelled `markdown` is looked through: what counts is
    the blocks in it.
    """
    lines = text.split("\n")
    blocks: list[Block] = []
    outside: list[str] = []
    before_first: str | None = None
    at, fences = 0, 0
    while at < len(lines):
        opening = _opening(lines[at], indented=indented)
        if opening is None:
            outside.append(lines[at])
            at += 1
            continue
        indent, mark, label = opening
        if fences == 0 and not indent and not label:
            before_first = "\n".join(lines[:at])
        fences += 1
        if _language(label) in _TRANSPARENT:
            at += 1
            continue
        end = _closing(lines, at + 1, indent, mark)
        inside = [_dedented(line, indent) for line in lines[at + 1 : end]]
        closed = end < len(lines)
        body = "\n".join(inside) if closed else _without_tail("\n".join(inside), mark)
        blocks.append(Block(language=_language(label), text=body, closed=closed))
        at = end + 1
    return Scan(blocks=tuple(blocks), outside="\n".join(outside), before_first=before_first)


def _opening(line: str, *, indented: bool) -> tuple[str, str, str] | None:
    """Indentation, mark and label of a line that opens a fence, or None."""
    bare = line.lstrip(" \t")
    indent = line[: len(line) - len(bare)]
    char = bare[:1]
    label = bare.lstrip(char)
    width = len(bare) - len(label)
    if char not in {"`", "~"} or width < _WIDTH or (indent and not indented) or (char == "`" and "`" in label):
        return None
    return indent, char * width, label.strip()


def _closing(lines: list[str], start: int, indent: str, mark: str) -> int:
    """The line that closes the fence: its mark or a longer one, alone, and less than four spaces deeper."""
    for at in range(start, len(lines)):
        bare = lines[at].strip()
        deep = len(lines[at]) - len(lines[at].lstrip(" \t"))
        if (
            len(bare) >= len(mark)
            and bare == mark[0] * len(bare)
            and deep < len(indent) + 4
            and "\t" not in lines[at][:deep]
        ):
            return at
    return len(lines)


def _language(label: str) -> str:
    word = label.split(maxsplit=1)[0].strip("{}.").lower() if label else ""
    if word.startswith("py"):
        return "python"
    return "" if word in _PLAIN else word


def _dedented(line: str, indent: str) -> str:
    """`line` without the fence's indentation, or without as much white space as it has of it."""
    if line.startswith(indent):
        return line[len(indent) :]
    head = line[: len(indent)]
    return head.lstrip(" \t") + line[len(indent) :]


def _without_tail(text: str, mark: str) -> str:
    """An unclosed block's text without a closing mark that stands behind its last line, or a mark that was cut off."""
    bare = text.rstrip()
    if bare.endswith(mark):
        return bare.removesuffix(mark)
    last = bare[bare.rfind("\n") + 1 :].strip()
    return bare[: len(bare) - len(last)] if last and len(last) < len(mark) and set(last) == {mark[0]} else text
