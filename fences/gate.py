"""The gate: a scored run starts only behind a fence whose every probe holds, here and now. It always says why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fences.policy import UNREACHING, FencePolicy
from fences.receipt import Receipt
from fences.rows import ABILITY, ProbeRow, why_not
from harness.errors import GateRefused, unknown_name

__all__ = ["gate", "refusal_text", "refusals"]


def gate(
    rows: Sequence[ProbeRow], policy: FencePolicy, *, probes: Iterable[str], taken_for: Receipt, now: Receipt
) -> None:
    """
    Let a scored run start, or raise `GateRefused` that names each probe that does not hold, and why.

    `probes` are the names of all registered probes, each of which must have its row; `taken_for` is the receipt that
    the rows were taken with, `now` that of the run about to start.
    """
    faults = refusals(rows, policy, probes=probes, taken_for=taken_for, now=now)
    if faults:
        raise GateRefused("fence", refusal_text(faults))


def refusal_text(faults: Sequence[str]) -> str:
    """Every reason not to start, as a person reads them."""
    return f"{len(faults)} reason{'s' * (len(faults) > 1)} not to start:\n  " + "\n  ".join(faults)


def refusals(
    rows: Sequence[ProbeRow], policy: FencePolicy, *, probes: Iterable[str], taken_for: Receipt, now: Receipt
) -> tuple[str, ...]:
    """Every reason not to start, as sentences; empty means that the fence holds."""
    known = tuple(probes)
    return (
        *(f"the rows were taken for another {difference}: probe again" for difference in now.differences(taken_for)),
        *_missing(rows, policy, known),
        *(why_not(row) for row in rows if row.holds is False),
        *(
            why_not(row) + ", and fence.requires asks for it"
            for row in rows
            if row.holds is None and row.probe in policy.measured
        ),
    )


def _missing(rows: Sequence[ProbeRow], policy: FencePolicy, known: Sequence[str]) -> list[str]:
    """Rows that ought to be there, once each, and are not: a gate that skips what it does not see is none."""
    counts = Counter(row.probe for row in rows)
    faults = [f"{name}: it is in the table {count} times: expected once" for name, count in counts.items() if count > 1]
    wanted = [*known, *(ABILITY + name for name in policy.must_work)]
    faults += [f"{name}: it has no row, so it was not probed" for name in wanted if name not in counts]
    faults += [
        "fence.requires: " + unknown_name("probe", name, sorted({*known, *counts}))
        for name in policy.measured
        if name not in known and name not in counts
    ]
    spoken = {row.language for row in rows if row.kind == "breach"}
    faults += [
        f"tool {tool!r}: no probe speaks its language (tool:{tool}), so nothing vouches for it: register one, or take "
        "the tool out of fence.tools"
        for tool in policy.tools
        if tool not in UNREACHING and f"tool:{tool}" not in spoken
    ]
    if not known:
        faults.append("no probe is registered: an empty table vouches for nothing")
    return faults
