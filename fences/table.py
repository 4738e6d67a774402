"""Taking the whole probe table: every probe with the fence up, and with its own wall down in a workspace of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import anyio

from fences.abilities import try_ability
from fences.classifier import masked
from fences.policy import FencePolicy
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import render
from fences.rows import ABILITY, ProbeRow
from fences.running import RunningFact, compare_running, running_rows
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

    Attempts with the fence up share one sealed workspace, but for those of probes that are `alone`; each control has
    its own, but for structural ones with the very same weakening.
    At most `workspaces` are open at once. What the backend says it does not enforce is not tried.
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
    """Both sides of every probe at once, and then those that need quiet, one after the other."""
    guarantees = await taking.backend.guarantees()
    sides = _Sides(taking, site)
    tried: list[Probe] = []
    for probe in taking.probes:
        why = _unenforced(probe, guarantees)
        if why is None:
            tried.append(probe)
        else:
            sides.up[probe.name] = sides.down[probe.name] = _Side(finding=None, evidence=why)
    before: list[ProbeRow] = []

    async def upright() -> None:
        together = [probe for probe in tried if not _alone(probe) and not _quiet(probe)]
        before.extend(await _fence_up(taking, site, together, sides))

    busy = [probe for probe in tried if not _quiet(probe)]
    apart = [partial(sides.take_up, probe) for probe in busy if _alone(probe)]
    controls = [partial(sides.take_down, weak, probes) for weak, probes in sides.controls(busy)]
    await _all_at_once([upright, *apart, *controls])
    for probe in filter(_quiet, tried):
        await sides.take_up(probe)
        for weak, probes in sides.controls([probe]):
            await sides.take_down(weak, probes)
    rows = [_row(taking, probe, sides.up[probe.name], sides.down[probe.name]) for probe in taking.probes]
    return (*before, *rows)


class _Sides:
    """
    What became of each probe's attempts with the fence up and with it down, by its name.

    A workspace that fails under an attempt is the machine's failure, and ends the table. Where workspaces are not what
    was asked for, an attempt may well have ended its own: then it is that probe's finding, and the gate names it.
    """

    def __init__(self, taking: _Taking, site: Site) -> None:
        self._taking, self._site = taking, site
        self.up: dict[str, _Side] = {}
        self.down: dict[str, _Side] = {}
        self._looked = anyio.Event()
        self._crooked = False

    def looked(self, facts: Sequence[RunningFact]) -> None:
        """The first workspace was looked at; only now do attempts begin elsewhere."""
        self._crooked = any(fact.agrees is False for fact in facts)
        self._looked.set()

    async def take(self, probe: Probe, room: Workspace, fence: Fence) -> _Side:
        """One attempt in a room that is open."""
        try:
            return await _attempt(self._taking, probe, room, fence, self._site)
        except WorkspaceError as error:
            return self._failed(error)

    def _failed(self, error: WorkspaceError) -> _Side:
        if not self._crooked:
            raise error
        return _Side(finding=Finding.INCONCLUSIVE, evidence=_clean(f"the workspace failed: {error}", self._site))

    async def take_up(self, probe: Probe) -> None:
        """The attempt with the fence up, in a room of its own."""
        await self._looked.wait()
        taking = self._taking
        try:
            async with taking.limiter, taking.backend.open(taking.strict.walls, run=taking.run) as room:
                self.up[probe.name] = await self.take(probe, room, taking.strict)
        except WorkspaceError as error:
            self.up[probe.name] = self._failed(error)

    def controls(self, probes: Sequence[Probe]) -> list[tuple[Fence, list[Probe]]]:
        """
        The weakened fences, each with the probes that are tried behind it. Structural ones with the very same weakening
        share a workspace; every other has its own. A probe without a control has its reason among the sides.
        """
        found: list[tuple[Fence, list[Probe]]] = []
        for probe in probes:
            weak = _weakened(self._taking, probe, self._site)
            if isinstance(weak, _Side):
                self.down[probe.name] = weak
                continue
            same = [others for fence, others in found if fence == weak and _shares(others[0])] if _shares(probe) else []
            if same:
                same[0].append(probe)
            else:
                found.append((weak, [probe]))
        return found

    async def take_down(self, weak: Fence, probes: Sequence[Probe]) -> None:
        """The positive controls of probes with one weakening."""
        await self._looked.wait()
        taking = self._taking
        said = described(taking.strict, weak)
        try:
            async with taking.limiter, taking.backend.open(weak.walls, run=taking.run) as room:
                for probe in probes:
                    self.down[probe.name] = replace(await self.take(probe, room, weak), weakening=said)
        except WorkspaceError as error:
            failed = replace(self._failed(error), weakening=said)
            self.down |= {probe.name: failed for probe in probes if probe.name not in self.down}


async def _all_at_once(works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run all of it; the first failure of the machinery ends the rest, and is raised as it came up."""
    failures: list[Exception] = []

    async with anyio.create_task_group() as tasks:

        async def guarded(work: Callable[[], Awaitable[None]]) -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - it is raised again below, outside the task group
                failures.append(error)
                tasks.cancel_scope.cancel()

        for work in works:
            tasks.start_soon(guarded, work)
    if failures:
        raise failures[0]


def _alone(probe: Probe) -> bool:
    """Whether a probe needs a room of its own with the fence up too, since it uses the room up (`alone = True`)."""
    return bool(getattr(probe, "alone", False))


def _unenforced(probe: Probe, guarantees: Mapping[str, str | None]) -> str | None:
    """
    Why this backend does not enforce what a probe is about (`guarantee = NAME`), or None if it does. Nothing is tried
    then: what is not held could hurt the host, and a finding would say nothing new.
    """
    why = guarantees.get(str(getattr(probe, "guarantee", None)))
    return None if why is None else f"not enforced here: {why}"


def _quiet(probe: Probe) -> bool:
    """Whether a probe measures time, so that no other attempt may be under way on the machine (`quiet = True`)."""
    return bool(getattr(probe, "quiet", False))


async def _fence_up(taking: _Taking, site: Site, probes: Sequence[Probe], sides: _Sides) -> list[ProbeRow]:
    """Everything that is asked of the sealed workspace: what runs, what works, and the attempts of `probes`."""
    rows: list[ProbeRow] = []
    async with taking.limiter, taking.backend.open(taking.strict.walls, run=taking.run) as room:
        facts = compare_running(taking.strict.walls, await room.facts())
        sides.looked(facts)
        rows += running_rows(facts)
        for name in taking.policy.must_work:
            rows.append(await _ability(taking, name, room, site))
        for row in rows:
            taking.progress(row)
        for probe in probes:
            sides.up[probe.name] = await sides.take(probe, room, taking.strict)
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


def _weakened(taking: _Taking, probe: Probe, site: Site) -> Fence | _Side:
    """The fence of a probe's control, or why this backend or this host can't show it."""
    try:
        weak = probe.weaken(taking.strict, site)
        taking.backend.options(weak.walls)
    except (NotMeasuredError, FenceError) as error:
        return _Side(finding=None, evidence=_clean(str(error), site))
    return _Side(finding=None, evidence="its control takes nothing down") if weak == taking.strict else weak


def _shares(probe: object) -> bool:
    """Whether a probe's control may share a workspace: its attempt asks how the walls stand, and uses nothing up."""
    return isinstance(probe, ProgramProbe) and probe.is_one_program() and not getattr(probe, "alone", False)


async def _attempt(taking: _Taking, probe: Probe, room: Workspace, fence: Fence, site: Site) -> _Side:
    """One attempt and its time. A probe that fails has found nothing out, which is a finding of its own."""
    start = taking.clock.monotonic()
    try:
        found = await probe.attempt(room, fence, site)
    except WorkspaceError:
        raise
    except NotMeasuredError as error:
        return _Side(finding=None, evidence=_clean(str(error), site))
    except Exception as error:  # noqa: BLE001 - whatever a plugin's probe raises, nothing may be concluded from it
        found = Attempt(finding=Finding.INCONCLUSIVE, evidence=f"the probe failed: {type(error).__name__}: {error}")
    elapsed = (taking.clock.monotonic() - start) * 1000
    return _Side(finding=found.finding, evidence=_clean(found.evidence, site), ms=elapsed)


def _clean(evidence: str, site: Site) -> str:
    """
    Evidence without a canary, and without the path of this run's decoys, so that equal findings read the same. It may
    hold names of the image's choice and is shown in terminals: what does not print is written as its escape.
    """
    text = masked(evidence, site.canaries.values()).replace(site.places["home"], "[decoys]")
    text = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in text)
    return text if len(text) <= _EVIDENCE_CHARS else text[: _EVIDENCE_CHARS - 1] + "…"


def _row(taking: _Taking, probe: Probe, up: _Side, down: _Side) -> ProbeRow:
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
