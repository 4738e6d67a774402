"""
The shape of an instruction text: its words, its imperative sentences, and the order of its sections.

An imperative is told by a list of verbs, not by a parser: a sentence or list item whose first word, after words such as
"please", "always" or "do not", is one of `VERBS`. Counts of two texts are compared, and both are counted by one rule.
"""

from __future__ import annotations

import re

__all__ = ["LEADS", "VERBS", "imperatives", "sections", "words"]

_VERBS = """
    add adjust allow answer apply ask assume avoid begin bring build call change check choose clean close collect
    combine comment commit compare compute confirm consider continue convert copy count cover create decide define
    delete derive describe design determine do document draw edit ensure enumerate examine execute explain explore
    express extract find finish fix focus follow format forget generate get give go group guard handle hold identify
    ignore implement import include infer insert inspect invert isolate keep leave let limit list locate look make
    mark match measure mention merge mind minimise minimize modify move name note observe open order organise organize
    outline output parse pass pick plan prefer prepare preserve prevent print proceed produce prove provide put raise
    read reason recall recheck record reduce refactor refer refine reject release rely remember remove rename repair
    repeat replace reply report reproduce require reread resolve restate return reuse review revise rewrite run save say
    search see select separate set show simplify sketch solve sort specify split stand start state stay step stick stop
    store structure study submit suggest summarise summarize support take tell test think trace track translate treat
    trust try turn understand update use validate verify wait walk warn watch work wrap write
"""
VERBS = frozenset(_VERBS.split())
"""Base forms of the verbs that instructions to a programmer start with."""

_LEADS = "also always and but do don't don\u2019t finally first just never next not now only please so then"
LEADS = frozenset(_LEADS.split())
"""Words that may stand before the verb. `do` alone is a verb too."""

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|$)")
_BULLET = re.compile(r"\s*[-*+]\s+")
_NUMBER = re.compile(r"\s*\d{1,9}[.)]\s+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def words(text: str) -> list[str]:
    """The words in order, in small letters, without punctuation."""
    return [match.group().casefold() for match in _WORD.finditer(text)]


def sections(text: str) -> list[str]:
    """
    The kinds of blocks in order: `heading 1` to `heading 6`, `paragraph`, `bullets`, `numbers`, `code`. The items of
    one list are one block, and so are a list's further lines.
    """
    return [kind for kind, _lines in _blocks(text)]


def imperatives(text: str) -> int:
    """How many sentences, list items and headings start as an imperative; code is not read."""
    units = [unit for kind, lines in _blocks(text) if kind != "code" for unit in _units(kind, lines)]
    return sum(_is_imperative(sentence) for unit in units for sentence in re.split(r"(?<=[.!?;:])\s+", unit))


def _is_imperative(sentence: str) -> bool:
    said = words(sentence)
    while said and said[0] in LEADS:
        if said[0] == "do" and (len(said) == 1 or said[1] not in {*LEADS, *VERBS}):
            return True
        said = said[1:]
    return bool(said) and said[0] in VERBS


def _units(kind: str, lines: list[str]) -> list[str]:
    """A block's texts that a sentence does not run across: each list item, or the block as one line."""
    if kind not in {"bullets", "numbers"}:
        return [" ".join(lines)]
    items: list[str] = []
    for line in lines:
        bare = _BULLET.sub("", _NUMBER.sub("", line, count=1), count=1)
        if items and not (_BULLET.match(line) or _NUMBER.match(line)):
            items[-1] += f" {bare.strip()}"
        else:
            items.append(bare)
    return items


def _kind(line: str) -> str:
    """The kind of block that a line starts, if it starts one."""
    heading = _HEADING.match(line)
    if heading:
        return f"heading {len(heading.group(1))}"
    if _BULLET.match(line):
        return "bullets"
    return "numbers" if _NUMBER.match(line) else "paragraph"


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    """The blocks with their lines. A blank line ends a paragraph; a list goes on after one with its next item."""
    blocks: list[tuple[str, list[str]]] = []
    fence, ended = "", True
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if fence:
            blocks[-1][1].append(line)
            if opened and opened.group(1).startswith(fence) and line.strip() == opened.group(1):
                fence, ended = "", True
        elif opened:
            fence = opened.group(1)
            blocks.append(("code", [line]))
        elif not line.strip():
            ended = True
        else:
            _take(blocks, line, ended=ended)
            ended = False
    return blocks


def _take(blocks: list[tuple[str, list[str]]], line: str, *, ended: bool) -> None:
    """Put a line into the block that it belongs to: the last one, or a new one."""
    kind, last = _kind(line), blocks[-1][0] if blocks else ""
    listed = last in {"bullets", "numbers"}
    goes_on = (kind == last and (listed or (kind == "paragraph" and not ended))) or (
        kind == "paragraph" and listed and (not ended or line.startswith((" ", "\t")))
    )
    if goes_on:
        blocks[-1][1].append(line)
    else:
        blocks.append((kind, [line]))
