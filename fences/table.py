"""Taking the whole probe table: every probe with the fence up, and with its own wall down in a workspace of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import anyio

from fences.abilities import try_ability
from fences.classifier import masked
from fences.policy import FencePolicy
from fences.receipt import registered_probes
from fences.rendering import render
from fences.rows import ABILITY, ProbeRow
from fences.running import compare_running, running_rows
from fences.stage import set_the_stage
from fences.weakenings import NotMeasuredError, described
from harness.clock import Clock, SystemClock
from harness.errors import FenceError, WorkspaceError
from harness.ports import Probe, Workspace, WorkspaceBackend
from harness.views import Attempt, Fence, Finding, Site
from harness.walls import Mount

__all__ = ["Progress", "probe_all"]

Progress: TypeAlias = Callable[[ProbeRow], None]
"""Called with each row as it is finished, in whatever order that is."""

_EVIDENCE_CHARS = 2000


@dataclass(frozen=True, kw_only=True)
class _Side:
    """What one attempt came to, or why there was none."""

    finding: Finding | None
    evidence: str
    ms: float = 0.0
    weakening: str = ""


@dataclass(frozen=True, kw_only=True)
class _Taking:
    """What stays the same while a table is taken."""

    backend: WorkspaceBackend
    policy: FencePolicy
    strict: Fence
    run: str
    probes: tuple[Probe, ...]
    clock: Clock
    limiter: anyio.CapacityLimiter
    progress: Progress

    def neighbour(self, mounts: tuple[Mount, ...]) -> AbstractAsyncContextManager[Workspace]:
        """The workspace of another cell: as sealed as ours, but for one folder that the host shows to it alone."""
        return self.backend.open(replace(self.strict.walls, mounts=mounts), run=self.run)


async def probe_all(
    backend: WorkspaceBackend,
    policy: FencePolicy,
    image: str,
    *,
    run: str,
    progress: Progress | None = None,
    probes: Sequence[Probe] | None = None,
    workspaces: int = 3,
    clock: Clock | None = None,
) -> tuple[ProbeRow, ...]:
    """
    The probe table of `policy` on `backend`: rows about what is running, what must work, and every probe.

    All attempts with the fence up share one sealed workspace; each control has its own, at most `workspaces` at once.
    Raises `WorkspaceError` when the backend fails; what does not hold is in the rows, for the gate.
    """
    taking = _Taking(
        backend=backend,
        policy=policy,
        strict=render(policy, image),
        run=run,
        probes=registered_probes() if probes is None else tuple(probes),
        clock=clock or SystemClock(),
        limiter=anyio.CapacityLimiter(workspaces),
        progress=progress or (lambda _: None),
    )
    async with set_the_stage(taking.neighbour, caps=policy.limits) as site:
        return await _take(taking, site)


async def _take(taking: _Taking, site: Site) -> tuple[ProbeRow, ...]:
    """Both sides of every probe at once. The first failure of the machinery ends it all, as it came up."""
    before: list[ProbeRow] = []
    ups: dict[str, _Side] = {}
    downs: dict[str, _Side] = {}
    failures: list[Exception] = []

    async with anyio.create_task_group() as tasks:

        async def guarded(work: Callable[[], Awaitable[None]]) -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - it is raised again below, outside the task group
                failures.append(error)
                tasks.cancel_scope.cancel()

        async def upright() -> None:
            before.extend(await _fence_up(taking, site, ups))

        async def weakened(probe: Probe) -> None:
            downs[probe.name] = await _fence_down(taking, probe, site)

        tasks.start_soon(guarded, upright)
        for probe in taking.probes:
            tasks.start_soon(guarded, partial(weakened, probe))
    if failures:
        raise failures[0]
    rows = [_row(taking, probe, ups[probe.name], downs[probe.name]) for probe in taking.probes]
    return (*before, *rows)


async def _fence_up(taking: _Taking, site: Site, ups: dict[str, _Side]) -> list[ProbeRow]:
    """Everything that is asked of the sealed workspace: what runs, what works, and every attempt."""
    rows: list[ProbeRow] = []
    async with taking.limiter, taking.backend.open(taking.strict.walls, run=taking.run) as room:
        rows += running_rows(compare_running(taking.strict.walls, await room.facts()))
        for name in taking.policy.must_work:
            rows.append(await _ability(taking, name, room, site))
        for row in rows:
            taking.progress(row)
        for probe in taking.probes:
            ups[probe.name] = await _attempt(taking, probe, room, taking.strict, site)
    return rows


async def _ability(taking: _Taking, name: str, room: Workspace, site: Site) -> ProbeRow:
    start = taking.clock.monotonic()
    found = await try_ability(name, room, taking.strict.rules)
    return ProbeRow.of(
        probe=ABILITY + name,
        language="seat",
        kind="ability",
        expected=[Finding.SERVED],
        up=(found.finding, _clean(found.evidence, site)),
        ms=(taking.clock.monotonic() - start) * 1000,
    )


async def _fence_down(taking: _Taking, probe: Probe, site: Site) -> _Side:
    """The control of one probe, or why this backend or this host can't show it."""
    try:
        weak = probe.weaken(taking.strict, site)
        taking.backend.options(weak.walls)
    except (NotMeasuredError, FenceError) as error:
        return _Side(finding=None, evidence=_clean(str(error), site))
    if weak == taking.strict:
        return _Side(finding=None, evidence="its control takes nothing down")
    said = described(taking.strict, weak)
    async with taking.limiter, taking.backend.open(weak.walls, run=taking.run) as room:
        side = await _attempt(taking, probe, room, weak, site)
    return replace(side, weakening=said)


async def _attempt(taking: _Taking, probe: Probe, room: Workspace, fence: Fence, site: Site) -> _Side:
    """One attempt and its time. A probe that fails has found nothing out, which is a finding of its own."""
    start = taking.clock.monotonic()
    try:
        found = await probe.attempt(room, fence, site)
    except WorkspaceError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a plugin's probe raises, nothing may be concluded from it
        found = Attempt(finding=Finding.INCONCLUSIVE, evidence=f"the probe failed: {type(error).__name__}: {error}")
    elapsed = (taking.clock.monotonic() - start) * 1000
    return _Side(finding=found.finding, evidence=_clean(found.evidence, site), ms=elapsed)


def _clean(evidence: str, site: Site) -> str:
    """Evidence without a canary, and without the path of this run's decoys, so that equal findings read the same."""
    text = masked(evidence, site.canaries.values()).replace(site.places["home"], "[decoys]")
    return text if len(text) <= _EVIDENCE_CHARS else text[: _EVIDENCE_CHARS - 1] + "…"


def _row(taking: _Taking, probe: Probe, up: _Side, down: _Side) -> ProbeRow:
    assert up.finding is not None  # only a control may be left out
    row = ProbeRow.of(
        probe=probe.name,
        language=probe.language,
        expected=probe.holds,
        up=(up.finding, up.evidence),
        down=(down.finding, down.evidence),
        weakening=down.weakening,
        ms=up.ms + down.ms,
    )
    taking.progress(row)
    return row
