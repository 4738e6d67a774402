"""The outcome of one try of one cell, as a line of the record keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.candidates import JudgedCandidate
from harness.values import (
    STRICT,
    CellKey,
    Declared,
    End,
    FailedBoot,
    Halt,
    Price,
    Refused,
    Usage,
    Verdict,
    Void,
    VoidPrice,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["CellOutcome", "Spend", "outcome_from_json", "outcome_to_json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spend:
    """
    What a try cost. `usage` is in tokens, unknown where the server did not say; `charged_tokens` is what the token
    budget was charged, an upper estimate where usage is unknown (`estimated`). `wall_s` is the seat's time in seconds.
    `charged_usd` is what the dollar budget was charged, likewise at most so much and never rounded; None without rates.
    """

    __pydantic_config__ = STRICT

    usage: Usage
    charged_tokens: int
    estimated: bool
    calls: int
    output_bytes: int
    wall_s: float
    price: Price
    charged_usd: float | None = None

    @classmethod
    def nothing(cls, why: str) -> Spend:
        """What a cell cost that was never played: nothing of anything, and no price, for the reason `why`."""
        return cls(
            usage=Usage.zero(),
            charged_tokens=0,
            estimated=False,
            calls=0,
            output_bytes=0,
            wall_s=0.0,
            price=VoidPrice(reason=why),
        )

    @property
    def tokens(self) -> int | None:
        """Tokens of all directions, None if any is unknown."""
        return self.usage.total


@dataclass(frozen=True, kw_only=True, slots=True)
class CellOutcome:
    """
    How one try of a cell ended. The END decides first: `verdict` exists only for a DECLARED end, `would_be` only for a
    HALT, and a VOID carries neither.

    `exhibit` and `transcript` are SHA-256 digests; `findings` are sentences worth a reader's eye (a served model other
    than the condition's, say); `room` is what was observed of the workspace (processes left alive, entries dropped).
    `candidates` are those that the verdict was chosen from, in the order of rounds, where it was chosen.
    """

    __pydantic_config__ = STRICT

    cell: CellKey
    attempt: int
    end: End
    spend: Spend
    verdict: Verdict | None = None
    would_be: Verdict | None = None
    candidates: tuple[JudgedCandidate, ...] = ()
    exhibit: str | None = None
    transcript: str | None = None
    served_models: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    room: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict is not None and not isinstance(self.end, Declared):
            raise ValueError(f"{self.cell}: a verdict beside {self.end.kind}: expected one beside DECLARED only")
        if self.would_be is not None and not isinstance(self.end, Halt):
            raise ValueError(f"{self.cell}: a would-be reading beside {self.end.kind}: expected one beside HALT only")
        if self.candidates and self.verdict is None and self.would_be is None:
            raise ValueError(f"{self.cell}: judged candidates without a verdict: expected one that is chosen from them")
        if isinstance(self.end, Declared) and self.verdict is None:
            raise ValueError(f"{self.cell}: DECLARED without a verdict")

    @property
    def outcome_class(self) -> str:
        """The class that is printed: the referee's reading of a declared end, else the kind of the end."""
        match self.end:
            case Declared():
                assert self.verdict is not None  # __post_init__ refuses anything else
                return self.verdict.reading
            case Halt() | FailedBoot() | Void() | Refused():
                return self.end.kind

    @property
    def passed(self) -> bool | None:
        """True or False for a declared end that was accepted or rejected; None for everything that has no number."""
        if self.verdict is None or self.verdict.standing == "unscorable":
            return None
        return self.verdict.standing == "accepted"

    @property
    def undecided(self) -> bool:
        """Whether the referee could not decide on the exhibit of a declared end."""
        return self.verdict is not None and self.verdict.standing == "unscorable"

    @property
    def is_final(self) -> bool:
        """Whether the cell is done with; a VOID may be tried again, as often as registered."""
        return not isinstance(self.end, Void)


@cache
def _adapter() -> TypeAdapter[CellOutcome]:
    from pydantic import TypeAdapter

    return TypeAdapter(CellOutcome)


def outcome_to_json(outcome: CellOutcome) -> dict[str, Any]:
    """The outcome as JSON data, for a line of the record."""
    data: dict[str, Any] = _adapter().dump_python(outcome, mode="json")
    return data


def outcome_from_json(data: Any) -> CellOutcome:
    """The outcome that a line of the record holds. Raises pydantic's `ValidationError` for anything else."""
    return _adapter().validate_python(data)
