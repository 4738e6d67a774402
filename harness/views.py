"""What arms, seats and probes are shown: the open half of a round, and the site of a probe. Nothing sealed is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from harness.walls import Caps, GatewayRules, ToolRules, Walls

__all__ = [
    "Attempt",
    "Fact",
    "Fence",
    "Finding",
    "Guard",
    "MirrorState",
    "PastRound",
    "Previous",
    "PublicReading",
    "Revision",
    "RoundView",
    "Site",
    "Trace",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """
    One violated public assertion: the literal call and the literal expected value, never elided.

    At most one of the rest says what the candidate did instead, and none where its referee doesn't tell: the literal
    value that the call gave (`observed`), the exception's class and text (`raised`, the candidate's own words), or what
    ended the call (`ended`: TIMEOUT, MEMORY, CRASH). No packet of facts shows it; a controller may.
    """

    call: str
    expected: str
    observed: str | None = None
    raised: str | None = None
    ended: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicReading:
    """
    What the public tier said of one candidate: its class, tests passed of all, and at most six violated facts.

    `suite` is the digest of the whole suite as a verdict names it, `execution` the run that this rests on; None where a
    referee tells none. `unbuilt` is the exception that kept a candidate from being run at all, class and text, in its
    own words; None where it ran, or its referee doesn't tell.
    """

    reading: str
    accepted: bool
    passed: int
    total: int
    facts: tuple[Fact, ...] = ()
    suite: str | None = None
    execution: str | None = None
    unbuilt: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Previous:
    """An earlier candidate, of the same seat or of the unit's pool, and what the public tier said of it."""

    code: str
    reading: PublicReading


@dataclass(frozen=True, kw_only=True, slots=True)
class PastRound:
    """One round that is over: the incumbent that its packet was made from, and the candidate that came of it."""

    before: Previous | None
    after: Previous | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorState:
    """
    What arm `source` had before its generation of `round`: its incumbent's code and the fact block taken on that code,
    or the block that its controller made of it, each with the SHA-256 of its UTF-8 bytes. `bullets` are the block's
    lines, `dropped` the facts left out whole.

    `failed` says that there is code and that the public tests did not accept it: of anything else nothing is shown.
    """

    source: str
    round: int
    block: str
    block_sha256: str
    bullets: int
    dropped: int
    code: str
    code_sha256: str
    failed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """
    Evidence as a revision shows it: what a run of the public tier said, and the code (SHA-256 of its UTF-8 bytes), the
    suite and the execution that it is evidence of. `stale` when that code is not the state that it is shown beside.
    """

    text: str
    code_sha256: str
    suite: str | None
    execution: str | None
    stale: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """What a revision is asked of: the state's code, the SHA-256 of its UTF-8 bytes, and the evidence, if any."""

    code: str
    code_sha256: str
    evidence: Trace | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundView:
    """
    All that an arm may see when it renders a round's prompt. `round` counts from 1; `nonce` is the cell's own code,
    which an arm with `nonce` shows and whose echo tells that its text was loaded. `past` are the cell's own rounds that
    are over, the oldest first, of a seat that works in rounds. `mirrored` is what an arm that mirrors another's rounds
    copies, None for any other.
    """

    instruction: str
    details: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, str] = field(default_factory=dict)
    round: int = 1
    rounds: int = 1
    previous: Previous | None = None
    revision: Revision | None = None
    nonce: str = ""
    past: tuple[PastRound, ...] = ()
    mirrored: MirrorState | None = None


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


Guard: TypeAlias = Literal["archive-filter", "clean-start", "gateway-rules", "output-cap", "process-sweep"]
"""
What the harness itself holds against a seat, beside the walls. A positive control lifts one, and meets in its place
what a careless harness would have:

- `archive-filter`: what was left is archived in the workspace and unpacked on the host as it is;
- `clean-start`: a program is started with a descriptor of the harness's still open, and on a terminal;
- `gateway-rules`: the gateway is a plain byte proxy;
- `output-cap`: a program's whole output is taken into memory;
- `process-sweep`: only the program that was started is ended, and nothing that it started.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """The rendered fence that a probe meets, or its weakened form; only a positive control has guards `lifted`."""

    walls: Walls
    rules: ToolRules
    gateway: GatewayRules = field(default_factory=GatewayRules)
    lifted: tuple[Guard, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """
    The decoys that the host has set out for one probing: `canaries` are values that only the host knows, by name;
    `places` the host's paths and addresses where each can be found, so that a weakening can expose one and an attempt
    can go for it. `caps` are the limits of the policy, which an attempt tries to exceed whatever fence it meets.
    """

    canaries: Mapping[str, str]
    places: Mapping[str, str]
    caps: Caps = field(default_factory=Caps)
