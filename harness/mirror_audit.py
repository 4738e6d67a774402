"""
The audits of a packet that shows facts or mirrors one that does, made on the prompt itself before it is sent.

A violation is nobody's result: the cell is VOID, and the run stops at gate `mirror` or `tokens`.
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
import tokenize
from ast import literal_eval
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from harness.canonical import digest_bytes
from harness.errors import MirrorBroken, TokensShown
from harness.mirror import length_class
from harness.ports import Arm
from harness.text_arm import with_extras
from harness.views import MirrorState, RoundView

__all__ = ["Shown", "audit_packet", "forbidden_names", "forbidden_tokens", "shown", "stands_in"]

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_SIGNATURE = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?", re.MULTILINE)
_OWN_WORDS = frozenset({"must", "equal"})
_BUILT_IN = frozenset(dir(builtins))
"""Names of the language stand in the assertions of any task."""
_SHORTEST = 3
"""A text of fewer characters is looked for in its quotation marks alone: any sentence has an `a`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What a prompt shows beside the task: its bullets, joined by newlines, how many, and the code in its fence."""

    block: str
    bullets: int
    code: str | None


def shown(prompt: str, view: RoundView) -> Shown:
    """Read a prompt. Raises `MirrorBroken` when the task does not stand in it verbatim."""
    head, task, tail = prompt.partition(with_extras(view))
    if not task:
        raise MirrorBroken(f"round {view.round}: the prompt does not show the task verbatim")
    fence = _FENCE.search(tail)
    rest = head + (tail if fence is None else tail[: fence.start()] + tail[fence.end() :])
    lines = [line for line in rest.split("\n") if line.startswith("- ")]
    return Shown(block="\n".join(lines), bullets=len(lines), code=None if fence is None else fence[2])


def audit_packet(arm: Arm, view: RoundView, state: MirrorState, prompt: str) -> None:
    """
    Hold a prompt against the state that it was made from, by what the arm says that it `keeps`.

    Raises `MirrorBroken` for another fact block, code, length or number of bullets than the state's, `TokensShown` for
    a generic bullet with a word of the task.
    """
    keeps: frozenset[str] = getattr(arm, "keeps", frozenset())
    if not keeps:
        return
    where = f"arm {arm.name!r}, round {view.round} of {state.source}'s"
    if digest_bytes(state.block.encode()) != state.block_sha256 or digest_bytes(state.code.encode()) != (
        state.code_sha256
    ):
        raise MirrorBroken(f"{where}: the state does not have the digests that it names")
    found = shown(prompt, view)
    for what in _differences(keeps, state, found):
        raise MirrorBroken(f"{where}: {what}")
    own: frozenset[str] = getattr(arm, "own_words", frozenset())
    for kept, what, forbidden in (
        ("count", "a generic bullet", forbidden_tokens),
        ("foreign", "a foreign bullet", forbidden_names),
    ):
        if kept in keeps:
            told = sorted(token for token in forbidden(view, state, own) if stands_in(token, found.block))
            if told:
                raise TokensShown(f"{where}: {what} has {', '.join(map(repr, told))}, which is the task's own")


def _differences(keeps: frozenset[str], state: MirrorState, found: Shown) -> Iterator[str]:
    code = state.code.rstrip() if state.failed else None
    if "facts" in keeps and digest_bytes(found.block.encode()) != state.block_sha256:
        yield f"its fact block has SHA-256 {digest_bytes(found.block.encode())}, the state's has {state.block_sha256}"
    if "count" in keeps and found.bullets != state.bullets:
        yield f"it has {found.bullets} bullets: expected {state.bullets}, as many as there are facts"
    if "lengths" in keeps:
        lengths, wanted = ([length_class(line) for line in block.split("\n")] for block in (found.block, state.block))
        if lengths != wanted:
            yield f"its lines are of the lengths {lengths}: expected {wanted}"
    if "code" in keeps and found.code != code:
        yield "the code that it shows is not, byte for byte, the code that the facts were taken on"
    if "length" in keeps and len(found.code or "") != len(code or ""):
        yield f"its code has {len(found.code or '')} characters: expected {len(code or '')}"


def forbidden_tokens(view: RoundView, state: MirrorState, own: frozenset[str] = frozenset()) -> frozenset[str]:
    """
    What no generic bullet may say: the function's name, identifiers in signatures of the task's text, and every name
    and literal of the facts. `own` are the words of whoever wrote the state's block, which stand in it for any task.
    """
    found = _signatures(view)
    for line in state.block.split("\n"):
        found |= set(_tokens(line.removeprefix("- "))) - own
    return frozenset(token for token in found - _OWN_WORDS if token and not keyword.iskeyword(token)) | (
        found & {"True", "False", "None"}
    )


def forbidden_names(view: RoundView, state: MirrorState, own: frozenset[str] = frozenset()) -> frozenset[str]:
    """
    What no bullet about another task may say: this one's names, and its texts of one word. Numbers are nobody's, and
    the words of whoever writes the bullets (`own`) and single letters stand in those of any task.
    """
    return frozenset(
        token
        for token in forbidden_tokens(view, state, own) - own - _BUILT_IN
        if len(token) > 1 and re.fullmatch(r"[^\W\d]\w*", token)
    )


def _signatures(view: RoundView) -> set[str]:
    """The function's name, and the identifiers in signatures of the task's text."""
    found = {view.details.get("entry_point", "")}
    for name, parameters in _SIGNATURE.findall(with_extras(view)):
        found |= {name, *re.findall(r"[^\W\d]\w*", parameters)}
    return found


def _tokens(line: str) -> Iterator[str]:
    """The names and literals of one fact."""
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type in {tokenize.NAME, tokenize.NUMBER}:
                yield token.string
            elif token.type == tokenize.STRING:
                yield token.string
                value = literal_eval(token.string)
                if isinstance(value, str) and len(value.strip()) >= _SHORTEST:
                    yield value.strip()


def stands_in(token: str, text: str) -> bool:
    """Whether a token stands in a text as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(token)}(?!\w)", text) is not None
