"""Failed solutions as controllers see them, a corpus, and the arms of each controller."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from arms.controllers import table
from arms.controllers.inversion import ASSUMPTIONS, CORPUS_SCHEMA
from arms.controllers.packet import ControlledPacket, DecoyPacket, ShapePacket
from arms.controllers.port import Seen
from harness.views import Fact, PastRound, Previous, PublicReading, RoundView

__all__ = ["CODE", "CORPUS", "FACTS", "GROUPS", "TASK", "corpus", "given", "line", "previous", "view"]

CODE = "def add(first, other):\n    top = first[0] // len(first)\n    return range(top)\n"
TASK = "def add(first, other: int = 3):\n    Add, as the value of the text says.\n"
FACTS = (
    Fact(call="add([1, -2], 'lemon')", expected="3", observed="-1"),
    Fact(call="add([], 'b')", expected="'ab'", raised="TypeError: no `x`\n```\n- told"),
    Fact(call="add([0, 1], 2)", expected="[1]", observed="None"),
    Fact(call="add([5], 2)", expected="[1, 2]", ended="TIMEOUT"),
    Fact(call="add([7], 2)", expected="[1, 2]"),
)


def corpus(names: Sequence[str] = tuple(ASSUMPTIONS), **changes: Any) -> bytes:
    """A corpus with such assumptions."""
    told = [{"name": name, "holds": f"{name} is so", "inverted": f"it may be other than {name}"} for name in names]
    return json.dumps({"schema": CORPUS_SCHEMA, "assumptions": told, **changes}).encode()


CORPUS = corpus()
GROUPS: dict[str, tuple[ControlledPacket, ShapePacket, DecoyPacket]] = {
    "TRACE": (table.trace(), table.trace_shape(), table.trace_decoy()),
    "KERNEL": (table.kernel(), table.kernel_shape(), table.kernel_decoy()),
    "INVERT": (
        table.invert(corpus=CORPUS),
        table.invert_shape(corpus=CORPUS),
        table.invert_decoy(corpus=CORPUS),
    ),
    "LINUCB": (
        table.linucb(corpus=CORPUS),
        table.linucb_shape(corpus=CORPUS),
        table.linucb_decoy(corpus=CORPUS),
    ),
}


def given(*facts: Fact, **more: Any) -> Seen:
    """A failed incumbent as a controller sees it."""
    return Seen(**{"code": CODE, "passed": 1, "total": 8, **more}, facts=facts)


def line(call: str, expected: str, **came: str) -> Fact:
    """A violated assertion and what came instead."""
    return Fact(call=call, expected=expected, **came)


def previous(facts: tuple[Fact, ...] = FACTS, *, code: str = CODE, accepted: bool = False, passed: int = 1) -> Previous:
    """A candidate and what the public tests said of it."""
    word = "PASS" if accepted else "FAIL"
    reading = PublicReading(reading=word, accepted=accepted, passed=passed, total=8, facts=facts)
    return Previous(code=code, reading=reading)


def view(was: Previous | None, *, past: tuple[PastRound, ...] = (), task: str = TASK) -> RoundView:
    """A round whose incumbent it is."""
    return RoundView(instruction=task, details={"entry_point": "add"}, round=2, rounds=4, previous=was, past=past)
