"""
How a sample of Inspect ended. Inspect scores a sample that a limit stopped as if it had ended by itself, and with
`score_on_error` one that broke as well; here neither has a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from cells.declared.words import end_of
from cells.imports.fields import Fields
from harness.errors import DeclarationError
from harness.values import Declared, End, Halt, Void

__all__ = ["LIMITS", "end_of_error", "end_of_sample", "exception_of"]

LIMITS: Final[Mapping[str, str]] = {
    "token": "HALT(tokens)",
    "context": "HALT(tokens)",
    "time": "HALT(wall)",
    "working": "HALT(wall)",
    "message": "HALT(calls)",
    "turn": "HALT(calls)",
    "cost": "HALT(usd)",
    "operator": "VOID(interrupted)",
}
"""
What each type of Inspect's limits means, unless the option `ends` says otherwise of `limit:TYPE`. A `custom` one is
the task's own, and has no meaning here until somebody says it.
"""

_OWN_UNIT: Final = {"token", "time", "working", "turn", "cost"}
"""The limits whose number is in the unit of ours; that of `message` counts messages, and not calls."""
_CANCELLED: Final = {"CancelledError", "Cancelled"}
_REPR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,100})\(")


def exception_of(message: str) -> str:
    """The exception's type, from the message, which is its `repr`; empty if it is none."""
    found = _REPR.match(message)
    return "" if found is None else found.group(1)


def end_of_error(message: str, ends: Mapping[str, str]) -> End:
    """
    What an error means. Inspect does not tell what it broke in (agent, model, sandbox or scorer): the cause is unknown,
    unless the option `ends` says what an exception of this type means.
    """
    name = exception_of(message)
    usual = "VOID(interrupted)" if name in _CANCELLED else "VOID(unknown)"
    end = end_of(ends.get(name, usual), "")
    return _told(end, message[:500])


def end_of_sample(sample: Fields, ends: Mapping[str, str]) -> End:
    """
    Invalidated, stopped by a limit, broken, or declared: in this order.

    A sample that was stopped and whose scorer then broke is halted: what its referee would have said is not known.
    """
    if (invalidated := sample.maybe_part("invalidation")) is not None:
        who = invalidated.maybe_text("author") or "nobody named"
        return Void(cause="invalidated", detail=f"by {who}: {invalidated.maybe_text('reason') or 'no reason given'}")
    if (limit := sample.maybe_part("limit")) is not None:
        return _limited(limit, ends)
    if (error := sample.maybe_part("error")) is not None:
        return end_of_error(error.maybe_text("message") or "", ends)
    return Declared()


def _limited(limit: Fields, ends: Mapping[str, str]) -> End:
    kind = limit.text("type")
    meaning = ends.get(f"limit:{kind}") or LIMITS.get(kind)
    if meaning is None:
        raise DeclarationError(
            f"{limit.where}: {limit.path}.type is {kind!r}: expected one of {', '.join(LIMITS)}, or the option "
            f'ends."limit:{kind}" that says what it means, such as HALT(calls)'
        )
    end = _told(end_of(meaning, ""), f"{kind} limit: {(limit.maybe_text('reason') or 'no reason given')[:500]}")
    if isinstance(end, Halt) and kind in _OWN_UNIT:
        # Inspect writes -1 where it does not know the bound.
        bound = limit.raw("limit")
        return replace(end, bound=limit.maybe_amount("limit") if bound != -1 else None)
    return end


def _told(end: End, said: str) -> End:
    match end:
        case Declared():
            return replace(end, note=said)
        case Halt():
            return end
        case _:
            return replace(end, detail=said)
