"""What arms, seats and probes are shown: the open half of a round, and the site of a probe. Nothing sealed is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.walls import ToolRules, Walls

__all__ = ["Attempt", "Fact", "Fence", "Finding", "Previous", "PublicReading", "RoundView", "Site"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One violated public assertion: the literal call and the literal expected value, never elided."""

    call: str
    expected: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicReading:
    """What the public tier said of one candidate: its class, tests passed of all, and at most six violated facts."""

    reading: str
    accepted: bool
    passed: int
    total: int
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Previous:
    """The candidate of an earlier round of the same seat, and what the public tier said of it."""

    code: str
    reading: PublicReading


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundView:
    """All that an arm may see when it renders a round's prompt. `round` counts from 1."""

    instruction: str
    details: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, str] = field(default_factory=dict)
    round: int = 1
    rounds: int = 1
    previous: Previous | None = None


class Finding(StrEnum):
    """What became of an attempt to breach the fence."""

    DENIED = "DENIED"
    ABSENT = "ABSENT"
    SERVED = "SERVED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A finding and its evidence: the denial's own signature, the canary that came back, or what was unclear."""

    finding: Finding
    evidence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """The rendered fence that a probe meets, or its weakened form."""

    walls: Walls
    rules: ToolRules


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """
    The decoys that the host has set out for one probing: `canaries` are values that only the host knows, by name;
    `places` the host's paths and addresses where each can be found, so that a weakening can expose one and an attempt
    can go for it.
    """

    canaries: Mapping[str, str]
    places: Mapping[str, str]
