"""
The code in a model's reply, by a written rule, so that what was judged can be made again from the transcript.

A candidate is one block: blocks are never joined, since a second one is as often an example, which would run on
import, as it is a part of the solution. The rules, in their order, are the values of `Rule`.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.seats.blocks import Scan, scan
from harness.seats.unfenced import ends_inside_quotes, regions, starts_as_code

__all__ = ["Extraction", "Rule", "extract_code", "valid_text", "without_thoughts"]

Rule: TypeAlias = Literal[
    "headless", "one-block", "entry-block", "definition-block", "last-block", "bare", "unfenced", "none"
]
"""
Which rule decided:

- `headless`: code from the start of the reply up to a closing fence that was never opened;
- `one-block`: the only block (Python's if any is labelled so, else the only one without a language);
- `entry-block`: of several blocks, the last that defines the entry point;
- `definition-block`: of several, none with the entry point, the last that defines a function or class;
- `last-block`: of several that define nothing, the last;
- `bare`: no block, and no prose either: the reply is code;
- `unfenced`: no block: a run of code lines between lines of prose, chosen as a block is;
- `none`: there is no code.
"""

_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+\w", re.MULTILINE)
_ANCHOR = re.compile(r"^(?:async[ \t]+def|def|class|import|from|@)[ \t]*\w", re.MULTILINE)
_STATEMENT = re.compile(r"^[^#\s]", re.MULTILINE)
_STATUS = re.compile(r"^[ \t]*\**STATUS:[ \t]*DONE\**\.?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_THINK = re.compile(r"\s*<think>")
_THINK_END = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Extraction:
    """The code, never longer than the reply and empty where there is none, and the rule that found it."""

    code: str
    rule: Rule


def valid_text(text: str) -> str:
    """`text` with lone surrogates, which no UTF-8 file can hold, replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def extract_code(reply: str, entry_point: str | None = None) -> Extraction:
    r"""
    The code in `reply`; `entry_point` is the name that the task wants defined, if it is known.

    Newlines are `\n` alone afterwards, tabs stay, and blank lines around the code go. Never raises, and takes time
    in proportion to the reply's length.
    """
    text = valid_text(reply).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    text = without_thoughts(text)
    codelike = starts_as_code(text)
    parts = scan(text, indented=not codelike)
    if codelike and parts.before_first is not None and ends_inside_quotes(parts.before_first):
        parts = Scan(blocks=(), outside=text, before_first=None)  # that fence is part of a docstring
    found = _from_blocks(parts, entry_point, codelike=codelike) or _from_lines(parts.outside, entry_point)
    return found if found is not None and found.code else Extraction(code="", rule="none")


def without_thoughts(text: str) -> str:
    """`text` without the `<think>` parts it starts with. The last may lack its end, and the first its beginning."""
    at = 0
    while (opened := _THINK.match(text, at)) is not None:
        end = text.find("</think>", opened.end())
        if end < 0:
            return ""
        at = end + len("</think>")
    if at > 0:
        return text[at:]
    orphan, fence = _THINK_END.search(text), _FENCE.search(text)
    if orphan is None or (fence is not None and fence.start() < orphan.start()):
        return text
    return text[orphan.end() :]


def _from_blocks(parts: Scan, entry_point: str | None, *, codelike: bool) -> Extraction | None:
    """The block that is the candidate, or what stands before the end of one that was begun elsewhere."""
    if codelike and parts.before_first is not None and _defines(parts.before_first, entry_point):
        return _made(parts.before_first, "headless")
    blocks = [block for block in parts.blocks if block.text.strip()]
    python = [block.text for block in blocks if block.language == "python"]
    plain = [block.text for block in blocks if not block.language]
    return _chosen(python or plain, [block.text for block in blocks], entry_point)


def _chosen(considered: list[str], everything: list[str], entry_point: str | None) -> Extraction | None:
    """The one of the `considered` texts that is the candidate, or the one of all that defines the entry point."""
    if entry_point is not None:
        for text in reversed(everything):
            if _defines(text, entry_point):
                return _made(text, "entry-block" if len(everything) > 1 else "one-block")
    if len(considered) <= 1:
        return _made(considered[0], "one-block") if considered else None
    for text in reversed(considered):
        if _defines(text, None):
            return _made(text, "definition-block")
    return _made(considered[-1], "last-block")


def _from_lines(text: str, entry_point: str | None) -> Extraction | None:
    """Code without a fence. Where there is prose too, only lines that define or import something count as code."""
    text = _STATUS.sub("", text)
    if text.lstrip("\n")[:1] in {" ", "\t"}:
        text = textwrap.dedent(text)
    runs, pure = regions(text)
    if pure and len(runs) == 1:
        return _made(runs[0], "bare") if _STATEMENT.search(runs[0]) else None
    anchored = [run for run in runs if _ANCHOR.search(run)]
    chosen = _chosen(anchored, anchored, entry_point)
    return None if chosen is None else Extraction(code=chosen.code, rule="unfenced")


def _defines(text: str, name: str | None) -> bool:
    """Whether `text` defines `name` at its top level: a function, a class, or by assignment. None: anything at all."""
    if name is None:
        return _DEFINITION.search(text) is not None
    what = re.escape(name)
    pattern = rf"^(?:(?:async[ \t]+)?def[ \t]+{what}[ \t]*[(\[]|class[ \t]+{what}\b|{what}[ \t]*(?::[^=\n]*)?=(?!=))"
    return re.search(pattern, text, re.MULTILINE) is not None


def _made(text: str, rule: Rule) -> Extraction:
    code = text.removeprefix("\ufeff").strip("\n")
    if code[:1] in {" ", "\t"}:
        code = textwrap.dedent(code)
    return Extraction(code=code.strip("\n").rstrip(), rule=rule)
