"""
What can be said of an arm before anything is run: its bytes, what it shows of a round, and words it should not use.

The check renders the arm with marked views, so that what reaches a prompt is seen and not guessed from the source.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness import plugins
from harness.arm_folder import CARD, files_of
from harness.arm_sealed import reaches
from harness.briefing import wants_echo
from harness.canonical import digest_bytes
from harness.ports import Arm
from harness.text_arm import MAX_TEXT_BYTES, SEAT_KINDS
from harness.views import Fact, Previous, PublicReading, Revision, RoundView, Trace

__all__ = ["FORBIDDEN", "SUSPECT", "ArmFinding", "Level", "check_arm"]

Level: TypeAlias = Literal["error", "warning", "note"]
"""An error must be put right before the arm is used; a warning wants a reason; a note says what the arm does."""

FORBIDDEN = (
    "answer key", "canonical solution", "control group", "EvalPlus", "held-out", "hidden test", "HumanEval", "MBPP",
    "placebo", "Proctor", "reference solution", "sealed test", "SWE-bench", "withheld",
)  # fmt: skip
"""Words that tell the subject that it is watched, which arm it is in, or that there is something sealed to look for."""

SUSPECT = ("benchmark", "experiment", "mutant", "referee", "sealed", "treatment")
"""Words that may do the same, and may be quite innocent: a reader decides."""

_LEXICON: tuple[tuple[Level, tuple[str, ...]], ...] = (("error", FORBIDDEN), ("warning", SUSPECT))
_MAX_PROMPT = 4 * MAX_TEXT_BYTES
_NONCE = "mark3b5e90"
_TASK = "Return the sum of alpha and beta, marked 7f3a."


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmFinding:
    """One thing found: which rule, how grave, and a sentence."""

    rule: str
    level: Level
    detail: str


def check_arm(arm: Arm) -> list[ArmFinding]:
    """All findings about `arm`, the graver ones first. An arm without an `error` may be used. Never raises."""
    findings = [*_shape(arm), *_lacks(arm), *_content(arm), *_sealed(arm), *_renders(arm)]
    order = ("error", "warning", "note")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _error(rule: str, detail: str) -> ArmFinding:
    return ArmFinding(rule=rule, level="error", detail=detail)


def _shape(arm: Arm) -> list[ArmFinding]:
    """Whether the arm has a name, and seats that exist."""
    found: list[ArmFinding] = []
    name, seats = getattr(arm, "name", None), getattr(arm, "seats", None)
    if not isinstance(name, str) or not name:
        found.append(_error("name", f"the name is {name!r}: expected a non-empty text"))
    if not isinstance(seats, (frozenset, set)) or not seats:
        return [*found, _error("seats", f"`seats` is {seats!r}: expected a non-empty frozenset of seat kinds")]
    known = SEAT_KINDS | frozenset(plugins.table("seats"))
    unknown = sorted(str(kind) for kind in seats - known)
    if unknown:
        found.append(_error("seats", f"unknown seats {', '.join(unknown)}; known: {', '.join(sorted(known))}"))
    found.append(
        ArmFinding(rule="seats", level="note", detail=f"runs in: {', '.join(sorted(map(str, seats & known)))}")
    )
    return found


def _lacks(arm: Arm) -> list[ArmFinding]:
    """What the arm says that it can't be used without, and was not given."""
    lacks = getattr(arm, "lacks", None)
    return [] if lacks is None else [_error("lacks", f"it was not given {lacks}")]


def _content(arm: Arm) -> list[ArmFinding]:
    """Whether the pinned bytes are stable, bounded UTF-8 text without odd characters or forbidden words."""
    try:
        content: object = arm.content
        again: object = arm.content
    except Exception as error:  # noqa: BLE001 - an arm is a plugin: whatever it raises is the finding
        return [_error("content", f"`content` raises {type(error).__name__}: {error}")]
    if not isinstance(content, bytes):
        return [_error("content", f"`content` is {type(content).__name__}: expected bytes")]
    found: list[ArmFinding] = []
    if content != again:
        found.append(_error("content", "`content` differs between two reads: nothing would be pinned by its digest"))
    if len(content) > MAX_TEXT_BYTES:
        found.append(_error("size", f"the content has {len(content)} bytes: expected at most {MAX_TEXT_BYTES}"))
    if content.startswith(b"\xef\xbb\xbf"):
        found.append(_error("bom", "the content starts with a byte order mark"))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return [*found, _error("utf-8", f"byte {error.start} of the content is not UTF-8 ({error.reason})")]
    return [*found, _pinned(arm, content), *_characters(text), *_words(text), *_forbidden(arm, text)]


def _pinned(arm: Arm, content: bytes) -> ArmFinding:
    """The bytes that a registration pins of the arm."""
    files = files_of(arm)
    beside = "" if files is None else f", and all {len(files)} files of its folder: {', '.join(sorted(files))}"
    detail = f"pinned: {len(content)} bytes of UTF-8, sha256 {digest_bytes(content)}{beside}"
    return ArmFinding(rule="bytes", level="note", detail=detail)


def _forbidden(arm: Arm, text: str) -> list[ArmFinding]:
    """The words that the arm's own card forbids."""
    places = ((word, _place(word, text)) for word in getattr(arm, "forbidden", ()))
    return [
        _error("forbidden", f"line {place[0]} says {place[1]!r}, which its own {CARD} forbids")
        for _word, place in places
        if place is not None
    ]


def _sealed(arm: Arm) -> list[ArmFinding]:
    """What it may see by type: the open half and the public facts, never the sealed half."""
    try:
        return [_error("sealed", said) for said in reaches(arm)]
    except Exception as error:  # noqa: BLE001 - an arm is a plugin: whatever it raises is the finding
        return [_error("sealed", f"its types can't be read: {type(error).__name__}: {error}")]


def _characters(text: str) -> list[ArmFinding]:
    """Characters that a reader of the text would not see: carriage returns, controls, direction marks."""
    odd = sorted({char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Co"} and char not in "\n\t"})
    if not odd:
        return []
    names = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, 'control')}" for char in odd[:8])
    level: Level = "error" if "\0" in odd else "warning"
    return [ArmFinding(rule="characters", level=level, detail=f"characters that can't be seen: {names}")]


def _words(text: str) -> list[ArmFinding]:
    """Forbidden and suspect words, the first place of each."""
    found = []
    for level, words in _LEXICON:
        for word in words:
            place = _place(word, text)
            if place is not None:
                detail = f"line {place[0]} says {place[1]!r}, which can tell the subject that it is studied"
                found.append(ArmFinding(rule="words", level=level, detail=detail))
    return found


def _place(word: str, text: str) -> tuple[int, str] | None:
    """The line in which `word` or its plural first stands, and as what; None where it doesn't."""
    match = re.search(rf"(?<!\w){re.escape(word)}(?:e?s)?(?!\w)", text, re.IGNORECASE)
    return None if match is None else (text.count("\n", 0, match.start()) + 1, match.group())


def _view(number: int, *, reverse: bool = False) -> RoundView:
    """A round's view, every field of it marked so that it can be found again in a prompt."""
    details = {"entry_point": "mark_entry_51c2", "other": "mark_other_51c2"}
    extras = {"first": "Extra text, marked 90b1.", "second": "More extra text, marked 90b2."}
    if reverse:
        details, extras = dict(reversed(details.items())), dict(reversed(extras.items()))
    reading = PublicReading(
        reading="MARK_READING_8e1d",
        accepted=False,
        passed=41_017,
        total=41_999,
        facts=(Fact(call="mark_call_22d0(1)", expected="mark_expected_22d0", observed="mark_observed_22d0"),),
    )
    previous = Previous(code="def mark_code_66fa():\n    return 1\n", reading=reading) if number > 1 else None
    evidence = Trace(text="mark_trace_4be8", code_sha256="0" * 64, suite=None, execution=None, stale=number > 1)
    return RoundView(
        instruction=_TASK,
        details=details,
        extras=extras,
        round=number,
        rounds=3,
        previous=previous,
        revision=Revision(code="def mark_state_93d5():\n    return 1\n", code_sha256="1" * 64, evidence=evidence),
        nonce=_NONCE,
    )


_SEEN = {
    "the instruction": _TASK,
    "its briefing's code": _NONCE,
    "the extras": "marked 90b1.",
    "the task's details": "51c2",
    "the previous code": "mark_code_66fa",
    "the previous reading's class": "MARK_READING_8e1d",
    "the count of public tests passed": "41017",
    "the count of public tests": "41999",
    "the state of a revision": "mark_state_93d5",
    "its evidence": "mark_trace_4be8",
    "facts: the calls": "mark_call_22d0",
    "facts: the expected values": "mark_expected_22d0",
    "facts: what came instead": "mark_observed_22d0",
}


def _renders(arm: Arm) -> list[ArmFinding]:
    """Whether every round renders, the same each time, and what of the round's view is in the prompt."""
    found: list[ArmFinding] = []
    for number in (1, 2, 3):
        try:
            first, *others = (arm.render(_view(number, reverse=reverse)) for reverse in (False, False, True))
        except Exception as error:  # noqa: BLE001 - an arm is a plugin: whatever it raises is the finding
            return [*found, _error("render", f"round {number} raises {type(error).__name__}: {error}")]
        problem = _prompt_problem(first, others)
        if problem is not None:
            return [*found, _error("render", f"round {number}: {problem}")]
        if _TASK not in first:
            found.append(_error("sees", f"round {number} does not show the task's instruction verbatim"))
        if wants_echo(arm) and _NONCE not in first:
            found.append(_error("nonce", f"round {number} does not show the code that it wants echoed"))
        seen = [what for what, mark in _SEEN.items() if mark in first]
        found.append(
            ArmFinding(rule="sees", level="note", detail=f"round {number} shows {', '.join(seen) or 'nothing'}")
        )
    return found


def _prompt_problem(first: object, others: list[str]) -> str | None:
    """What is wrong with a prompt that was rendered three times, or None."""
    if not isinstance(first, str):
        return f"the prompt is {type(first).__name__}: expected text"
    if any(other != first for other in others):
        return "the prompt differs between renderings of one view: expected the same, in any order of its mappings"
    try:
        size = len(first.encode("utf-8"))
    except UnicodeEncodeError as error:
        return f"character {error.start} of the prompt is not encodable as UTF-8"
    return f"the prompt has {size} bytes: expected at most {_MAX_PROMPT}" if size > _MAX_PROMPT else None
