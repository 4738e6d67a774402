"""What a foreign score or reward counts as: by rules that a person registered, and never by a guess."""

from __future__ import annotations

import math
from typing import Any

from cells.declared.rows import ForeignReading
from cells.imports.options import InspectOptions, LogOptions
from harness.errors import DeclarationError

__all__ = ["ACCEPTED", "REJECTED", "UNDECIDED", "reward_reading", "score_reading"]

ACCEPTED = ForeignReading(reading="PASS", standing="accepted")
REJECTED = ForeignReading(reading="FAIL", standing="rejected")
UNDECIDED = ForeignReading(reading="UNSCORABLE", standing="unscorable")


def reward_reading(value: float | None, options: LogOptions, where: str) -> ForeignReading:
    """What a reward counts as: 1 is accepted and 0 rejected, what is between or beyond needs `at_least`."""
    if value is None:
        return UNDECIDED
    if options.at_least is not None:
        return ACCEPTED if value >= options.at_least else REJECTED
    if value in {0, 1}:
        return ACCEPTED if value else REJECTED
    raise DeclarationError(
        f"{where} is {value}: expected 0 or 1, or the option at_least, the reward from which on a trial is accepted"
    )


def score_reading(value: Any, options: InspectOptions, where: str) -> ForeignReading:
    """What the value of a score counts as. A value without a rule is refused, with the rule that it would take."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNDECIDED  # Inspect's own mark of a sample that its scorer could not decide
    for words, reading in (
        (options.accepted, ACCEPTED),
        (options.rejected, REJECTED),
        (options.unscorable, UNDECIDED),
    ):
        if any(type(word) is type(value) and word == value for word in words):
            return reading
    if isinstance(value, (dict, list)):
        kind = "dictionary" if isinstance(value, dict) else "list"
        raise DeclarationError(f"{where} is a {kind}: expected the option `part` that names the key which decides")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        if options.at_least is not None:
            return ACCEPTED if value >= options.at_least else REJECTED
        raise DeclarationError(
            f"{where} is {value}: expected the option at_least that says from which number on it is accepted"
        )
    raise DeclarationError(
        f"{where} is {str(value)[:80]!r}, which no rule speaks of: expected it in one of the options accepted "
        f"{options.accepted}, rejected {options.rejected} and unscorable {options.unscorable}"
    )
