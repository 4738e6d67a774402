"""Qualifying a fence outside of a run: every probe under it and under its weakening, on each backend that is here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cells.backends import usable_backend
from cells.probing import fence_of
from fences.policy import FencePolicy
from fences.qualification import Qualified, qualify
from fences.rendering import check_requires
from fences.rows import ProbeRow, row_line
from harness import plugins
from harness.clock import SystemClock, fresh_token
from harness.errors import GateRefused, UsageError
from harness.ports import WorkspaceBackend
from harness.views import Finding

__all__ = ["ALL", "BackendQualified", "qualified_to_json", "qualify_here"]

ALL = "all"
"""Every backend that can be used here."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class BackendQualified:
    """What qualifying came to on one backend, and the milliseconds it took; `faults` are all reasons to refuse."""

    backend: str
    found: Qualified
    faults: tuple[str, ...]
    ms: float


async def qualify_here(
    experiment: Path | None, *, backend: str, image: str, again: bool, say: Say
) -> list[BackendQualified]:
    """
    Qualify the fence of an experiment file, or the default one, on `backend` (`all`: each that can be used).

    Raises `UsageError` when none can be used.
    """
    policy, image = fence_of(experiment, image)
    return [await _qualify_on(one, policy, image, again=again, say=say) for one in await _backends(backend, image, say)]


async def _backends(name: str, image: str, say: Say) -> list[WorkspaceBackend]:
    if name != ALL:
        return [await usable_backend(name, image)]
    usable, reasons = [], []
    for candidate in plugins.table("workspaces"):
        try:
            usable.append(await usable_backend(candidate, image))
        except UsageError as error:
            reasons.append(str(error).splitlines()[-1].strip())
    for reason in reasons:
        say(f"not used: {reason}")
    if not usable:
        raise UsageError("no workspace backend can be used:\n  " + "\n  ".join(reasons))
    return usable


async def _qualify_on(
    backend: WorkspaceBackend, policy: FencePolicy, image: str, *, again: bool, say: Say
) -> BackendQualified:
    clock = SystemClock()
    faults: tuple[str, ...] = ()
    try:
        check_requires(policy, await backend.guarantees())
    except GateRefused as refusal:
        faults = (refusal.detail,)

    def show(row: ProbeRow) -> None:
        say(f"{backend.name}: {row_line(row)}")

    start = clock.monotonic()
    found = await qualify(
        backend, policy, image, run=f"qualify-{fresh_token(6)}", clock=clock, again=again, progress=show
    )
    if found.reused:
        say(f"{backend.name}: qualified at {found.qualification.taken_at}; nothing has changed since")
    if found.passed_over:
        say(f"{backend.name}: taken anew, since {found.passed_over}")
    ms = round((clock.monotonic() - start) * 1000, 1)
    return BackendQualified(backend=backend.name, found=found, faults=(*faults, *found.faults), ms=ms)


def qualified_to_json(results: list[BackendQualified]) -> dict[str, Any]:
    """
    What was found as JSON data: `probes` has a row for each probe on each backend, `seat` what a seat must be able to
    do and `running` what the engine says; `backends` what each table was taken for.
    """
    rows = [(one.backend, row) for one in results for row in one.found.qualification.rows]
    return {
        "holds": not any(one.faults for one in results),
        "probes": [_probe(backend, row) for backend, row in rows if row.kind == "breach"],
        "seat": [_fact(backend, row) for backend, row in rows if row.kind == "ability"],
        "running": [_fact(backend, row) for backend, row in rows if row.kind == "running"],
        "backends": [_backend(one) for one in results],
    }


def _backend(one: BackendQualified) -> dict[str, Any]:
    table = one.found.qualification
    return {
        "backend": one.backend,
        "holds": not one.faults,
        "faults": list(one.faults),
        "reused": one.found.reused,
        "taken_at": table.taken_at,
        "digest": table.digest,
        "receipt": table.receipt.to_json(),
        "ms": one.ms,
    }


def _probe(backend: str, row: ProbeRow) -> dict[str, Any]:
    """A probe's row. `held` and `fired` are None where nothing was tried, and `not_measured` then says why."""
    missing = [why for finding, why in ((row.finding_up, row.evidence_up), (row.finding_down, row.evidence_down))
               if finding is None]  # fmt: skip
    return {
        "probe": row.probe,
        "backend": backend,
        "language": row.language,
        "weakening": row.weakening,
        "expected": list(row.expected),
        "held": None if row.finding_up is None else row.finding_up in row.expected,
        "fired": None if row.finding_down is None else row.finding_down is Finding.SERVED,
        "finding_up": row.finding_up,
        "finding_down": row.finding_down,
        "evidence_up": row.evidence_up,
        "evidence_down": row.evidence_down,
        "not_measured": missing[0] if missing else None,
        "ms": row.ms,
    }


def _fact(backend: str, row: ProbeRow) -> dict[str, Any]:
    return {"name": row.probe, "backend": backend, "holds": row.holds, "found": row.evidence_up, "ms": row.ms}
