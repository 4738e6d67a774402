"""The rows of a probe table, as a record keeps them, and what makes one hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from harness.values import STRICT
from harness.views import Finding

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ABILITY", "RUNNING", "ProbeRow", "judged", "row_line", "rows_from_json", "rows_to_json", "why_not"]

ABILITY = "must-work-"
"""How the rows of a policy's `must_work` are named: `must-work-read-task`."""

RUNNING = "running-"
"""How the rows about what the engine says is running are named: `running-network`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRow:
    """
    One line of the table. `kind` is `breach` (an attempt to get out), `ability` (something the seat must be able to do)
    or `running` (something the engine was asked about).

    `finding_up` is None where the backend does not enforce what the probe is about, so that nothing was tried;
    `finding_down` is None where no control was measured. The evidence then says why. `expected` are the findings that
    count with the fence up. `holds` is None for either: such a row can't vouch. `ms` is the time of both attempts, in
    milliseconds. No evidence holds a canary, an address or a path of the run.
    """

    __pydantic_config__ = STRICT

    probe: str
    language: str
    kind: Literal["breach", "ability", "running"] = "breach"
    expected: tuple[Finding, ...]
    finding_up: Finding | None
    evidence_up: str
    finding_down: Finding | None
    evidence_down: str
    weakening: str
    holds: bool | None
    ms: float

    def __post_init__(self) -> None:
        worked_out = judged(self.kind, self.expected, self.finding_up, self.finding_down)
        if self.holds is not worked_out:
            raise ValueError(f"row {self.probe!r} says holds={self.holds}, and its findings say {worked_out}")

    @classmethod
    def of(
        cls,
        *,
        probe: str,
        language: str,
        kind: Literal["breach", "ability", "running"] = "breach",
        expected: Iterable[Finding],
        up: tuple[Finding | None, str],
        down: tuple[Finding | None, str] = (None, ""),
        weakening: str = "",
        ms: float = 0.0,
    ) -> ProbeRow:
        """A row from what was found with the fence up and down; `holds` is worked out."""
        allowed = tuple(sorted(expected))
        return cls(
            probe=probe,
            language=language,
            kind=kind,
            expected=allowed,
            finding_up=up[0],
            evidence_up=up[1],
            finding_down=down[0],
            evidence_down=down[1],
            weakening=weakening,
            holds=judged(kind, allowed, up[0], down[0]),
            ms=round(ms, 1),
        )


def judged(kind: str, expected: Iterable[Finding], up: Finding | None, down: Finding | None) -> bool | None:
    """
    Whether findings make a row hold. Up must be expected, whatever else; an INCONCLUSIVE never is. For a breach, down
    must be SERVED; None there is "not measured". An engine that does not say is "not measured" too, and so is what a
    backend does not enforce.
    """
    if up is None or (kind == "running" and up is Finding.INCONCLUSIVE):
        return None
    if up is Finding.INCONCLUSIVE or up not in expected:
        return False
    if kind != "breach":
        return True
    return None if down is None else down is Finding.SERVED


def why_not(row: ProbeRow) -> str:
    """Why a row does not hold, or why it was not measured, as a sentence."""
    wanted = " or ".join(row.expected)
    if row.finding_up is None:
        return f"{row.probe}: {row.evidence_up}"
    if row.holds is None and row.kind == "running":
        return f"{row.probe}: not measured: {row.evidence_up}"
    if row.finding_up not in row.expected:
        return f"{row.probe}: with the fence up it was {row.finding_up} ({row.evidence_up}): expected {wanted}"
    if row.finding_down is None:
        return f"{row.probe}: not measured: {row.evidence_down}"
    return (
        f"{row.probe}: with {row.weakening} it was {row.finding_down} ({row.evidence_down}): expected SERVED, since a "
        "probe that can't be seen to succeed can't vouch"
    )


def row_line(row: ProbeRow) -> str:
    """A row as a person reads it while the table is taken, in the words of its kind."""
    match row.kind:
        case "breach" if row.finding_up is None:
            return f"probe {row.probe}: {row.evidence_up}"
        case "breach":
            down = row.finding_down or "not measured"
            return f"probe {row.probe}: {row.finding_up} with the fence up, {down} with it down"
        case "ability":
            return f"{row.probe}: {'works' if row.holds else f'DOES NOT WORK: {row.evidence_up}'}"
        case "running":
            word = "the engine does not say" if row.holds is None else "as asked for" if row.holds else row.evidence_up
            return f"{row.probe}: {word}"


def rows_to_json(rows: Iterable[ProbeRow]) -> list[dict[str, Any]]:
    """The rows as JSON data, for the record."""
    return [{**asdict(row), "expected": list(row.expected)} for row in rows]


@cache
def _adapter() -> TypeAdapter[tuple[ProbeRow, ...]]:
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[ProbeRow, ...])


def rows_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[ProbeRow, ...]:
    """The rows that a record holds. Raises pydantic's `ValidationError` for anything else."""
    return _adapter().validate_python([dict(item) for item in data])
