"""
What a reply of a revision asks for, by a grammar whose every refusal has a name.

A reply holds one line `ACTION: KEEP`, `ACTION: PATCH` or `ACTION: ESCALATE: REASON`, in any case and with Markdown's
marks around it if need be, outside of every fenced block. A patch has the whole new solution in the reply's one block.
Whatever is anything else is a Keep that says which rule was broken: nothing is guessed, and nothing changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.seats.blocks import Block, scan
from harness.seats.extraction import valid_text, without_thoughts

__all__ = ["MAX_REPLY_CHARS", "Action", "Escalate", "Keep", "Malformed", "Patch", "parse_action"]

MAX_REPLY_CHARS = 1 << 20
"""A longer reply is not read: no solution of a task is as long, and a grammar should not be what a cell waits for."""

Malformed: TypeAlias = Literal[
    "huge", "nul", "empty", "no-action", "several-actions", "unknown-action", "unclear-action", "no-reason",
    "patch-without-code", "several-blocks", "other-language", "unclosed-block", "empty-block",
]  # fmt: skip
"""
Why a reply is no action, in the order in which it is asked:

- `huge`: over `MAX_REPLY_CHARS` characters;
- `nul`: it holds NUL;
- `empty`: nothing but white space, or nothing beside a model's thoughts;
- `no-action`: no line `ACTION:` outside of the blocks: prose alone, or code alone;
- `several-actions`: more than one such line, alike or not;
- `unknown-action`: the word after `ACTION:` is none of the three, or missing;
- `unclear-action`: more words follow `KEEP` or `PATCH` on the line;
- `no-reason`: `ESCALATE` without a reason, neither on the line nor in the text outside of the blocks;
- `patch-without-code`: `PATCH` without a fenced block;
- `several-blocks`: `PATCH` with more than one block;
- `other-language`: its block is labelled with a language that is not Python;
- `unclosed-block`: the fence is never closed, as when a reply is cut off;
- `empty-block`: there is nothing in the block.
"""

_MARKS = " \t*_`#>-"
_LINE = re.compile(r"ACTION[*_ \t]*:(.*)", re.IGNORECASE)
_WORD = re.compile(r"[*_` \t]*([A-Za-z]*)[*_`]*(.*)")
_REASON_CHARS = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Keep:
    """The state stays. `malformed` says why, where that is not what the reply asked for."""

    malformed: Malformed | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """The whole new solution; it ends in a newline."""

    code: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Escalate:
    """The matter is handed over, for a reason; the state stays."""

    reason: str


Action: TypeAlias = Keep | Patch | Escalate


def parse_action(reply: str) -> Action:
    """The action of a reply. Never raises, runs nothing, and takes time in proportion to the reply's length."""
    if len(reply) > MAX_REPLY_CHARS:
        return Keep(malformed="huge")
    if "\0" in reply:
        return Keep(malformed="nul")
    text = without_thoughts(valid_text(reply).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"))
    if not text.strip():
        return Keep(malformed="empty")
    parts = scan(text)
    lines = parts.outside.split("\n")
    found = [(at, match[1]) for at, line in enumerate(lines) if (match := _LINE.match(line.lstrip(_MARKS)))]
    if len(found) != 1:
        return Keep(malformed="several-actions" if found else "no-action")
    ((at, said),) = found
    return _action(said, "\n".join(lines[:at] + lines[at + 1 :]), parts.blocks)


def _action(said: str, beside: str, blocks: tuple[Block, ...]) -> Action:
    """The action whose line says `said`, in a reply with this text `beside` it and these blocks."""
    match = _WORD.match(said)
    word, rest = (match[1].upper(), match[2]) if match else ("", said)
    if word == "ESCALATE":
        reason = (rest.strip(" \t:.*_`-") or beside.strip())[:_REASON_CHARS]
        return Escalate(reason=reason) if reason else Keep(malformed="no-reason")
    if word not in {"KEEP", "PATCH"}:
        return Keep(malformed="unknown-action")
    if rest.strip(" \t:.!*_`"):
        return Keep(malformed="unclear-action")
    return Keep() if word == "KEEP" else _patch(blocks)


def _patch(blocks: tuple[Block, ...]) -> Action:
    if len(blocks) != 1:
        return Keep(malformed="several-blocks" if blocks else "patch-without-code")
    (block,) = blocks
    if block.language not in {"", "python"}:
        return Keep(malformed="other-language")
    if not block.closed:
        return Keep(malformed="unclosed-block")
    if not block.text.strip():
        return Keep(malformed="empty-block")
    return Patch(code=block.text.rstrip("\n") + "\n")
