"""
The gate of each cell: in its very workspace, before the seat sits down and again when everything of it has ended.

What is rendered must be byte for byte what was pinned, what runs must be what was rendered, and every structural probe
must find what it found when the fence was qualified. All attempts and the positive list are one program of the seat's
user (`batch.py`), against decoys that stay up for the whole session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from fences.abilities import PROGRAMS, try_ability
from fences.batch import Batch, Body, run_batch
from fences.classifier import Try, masked, weigh
from fences.policy import MODEL_REACHED, FencePolicy
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import layer_digests, render
from fences.rows import ABILITY, ProbeRow
from fences.running import check_running
from fences.stage import set_the_stage
from harness.canonical import digest_bytes
from harness.clock import Clock
from harness.errors import FenceError, WorkspaceError, unwrapped
from harness.ports import Workspace, WorkspaceBackend
from harness.tree import Tree
from harness.views import Attempt, Fence, Finding, Site

__all__ = ["CellGate", "GateReading", "open_cell_gate", "structural"]

TASK_FILES = 100
"""Of a task with more files, the first so many are read back by each cell's gate."""

_READ_TASK = """
import hashlib
def digest(path):
    seen = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            seen.update(part)
    return {"fact": seen.hexdigest()}
for path in args["paths"]:
    attempt(path, lambda: digest("/workspace/" + path))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateReading:
    """
    What a cell's gate found, once: each probe's finding, what could not be told (only at the end: before the seat that
    refuses), and the milliseconds of each part.
    """

    findings: Mapping[str, Finding]
    unclear: Mapping[str, str] = field(default_factory=dict)
    ms: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """The reading as JSON data, for the record."""
        return {"findings": dict(self.findings), "unclear": dict(self.unclear), "ms": dict(self.ms)}


def structural(probes: Iterable[object]) -> tuple[ProgramProbe, ...]:
    """The probes whose attempt is one program that uses nothing up: those that each cell's gate makes again."""
    return tuple(probe for probe in probes if isinstance(probe, ProgramProbe) and probe.is_one_program())


class _Watch:
    """The milliseconds of each part of one gate."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = self._last = clock.monotonic()
        self.ms: dict[str, float] = {}

    def note(self, part: str) -> None:
        """A part is over."""
        now = self._clock.monotonic()
        self.ms[part], self._last = round((now - self._last) * 1000, 3), now

    def done(self) -> dict[str, float]:
        """Every part, and all of it."""
        return {**self.ms, "all": round((self._last - self._start) * 1000, 3)}


@dataclass(frozen=True, kw_only=True)
class CellGate:
    """
    The gate of one session's cells. `pinned` are the digests of the rendered layers and of the image; `qualified` what
    each probe found when the fence was qualified.
    """

    backend: WorkspaceBackend
    policy: FencePolicy
    image: str
    fence: Fence
    site: Site
    probes: tuple[ProgramProbe, ...]
    qualified: Mapping[str, Finding]
    pinned: Mapping[str, str]
    clock: Clock

    async def before(self, room: Workspace, task: Tree) -> GateReading:
        """
        Look at a room before its seat sits down. `task` are the files that were laid into it.

        Raises `FenceError` that names every pin, fact, probe and ability that is not as it must be. Raises
        `WorkspaceError` when nothing is known to be wrong and the program did not report: that is no open fence.
        """
        watch, faults = _Watch(self.clock), await self._rendered()
        watch.note("layers")
        abilities = self._abilities(task)
        facts, batch = await _looked(room, [*self._attempts(), *abilities])
        watch.note("looking")
        faults += self._running(facts)
        if isinstance(batch, str):
            if faults:
                raise FenceError("this cell's gate: " + "; ".join([*faults, f"it could not look: {batch}"]))
            raise WorkspaceError(f"this cell's gate could not look: {batch}")
        found = await self._findings(batch)
        faults += [
            self._disagreement(name, attempt) for name, attempt in found.items() if not self._agrees(name, attempt)
        ]
        faults += _inabilities(abilities, batch, task)
        faults += await self._unreached(room)
        faults += [f"the gate left a trace that the seat would find: {trace}" for trace in batch.left]
        watch.note("weighing")
        if faults:
            raise FenceError("this cell's gate: " + "; ".join(faults))
        return GateReading(findings={name: attempt.finding for name, attempt in found.items()}, ms=watch.done())

    async def after(self, room: Workspace) -> GateReading:
        """
        Look again when nothing of the seat's is alive any more. Raises `FenceError` for whatever is open now.

        A seat can fill its disk or its memory, so that an attempt can't be made: that is no breach, and must not let it
        void what it did. What could not be told is in the reading.
        """
        watch, faults = _Watch(self.clock), await self._rendered()
        watch.note("layers")
        facts, batch = await _looked(room, self._attempts())
        watch.note("looking")
        faults += self._running(facts)
        found = {} if isinstance(batch, str) else await self._findings(batch)
        served = {name: attempt for name, attempt in found.items() if attempt.finding is Finding.SERVED}
        faults += [self._disagreement(name, attempt) for name, attempt in served.items()]
        watch.note("weighing")
        if faults:
            raise FenceError("this cell's gate, at its end: " + "; ".join(faults))
        return GateReading(
            findings={name: attempt.finding for name, attempt in found.items()},
            unclear={"gate": batch} if isinstance(batch, str) else self._unclear(found),
            ms=watch.done(),
        )

    async def _rendered(self) -> list[str]:
        """Each layer that is not, byte for byte, what was pinned; and an image that is another."""
        now = {**layer_digests(self.policy, self.image, self.backend), "policy": self.policy.digest}
        if render(self.policy, self.image) != self.fence:
            now["walls"] = "not what this session opens rooms with"
        now["image"] = await self.backend.image_digest(self.image)
        return [
            f"pin {name!r}: frozen as {self.pinned.get(name)}, rendered now as {digest}"
            for name, digest in now.items()
            if self.pinned.get(name) != digest
        ]

    def _running(self, facts: Mapping[str, Any]) -> list[str]:
        """What runs otherwise than was asked for."""
        try:
            check_running(self.policy, self.fence.walls, facts)
        except FenceError as error:
            return [str(error)]
        return []

    def _attempts(self) -> list[Body]:
        return [
            Body(name=probe.name, body=probe.body, arguments=probe.arguments(self.fence, self.site))
            for probe in self.probes
        ]

    def _abilities(self, task: Tree) -> list[Body]:
        """What of the positive list can be seen in the same program: the task, the workspace, and programs."""
        wanted = [name for name in self.policy.must_work if name in PROGRAMS]
        bodies = [Body(name=ABILITY + name, body=PROGRAMS[name], arguments={}) for name in wanted]
        if "read-task" in self.policy.must_work and (paths := list(task)[:TASK_FILES]):
            bodies.append(Body(name=ABILITY + "read-task", body=_READ_TASK, arguments={"paths": paths}))
        return bodies

    async def _unreached(self, room: Workspace) -> list[str]:
        """Why no model would answer through the gateway, where the policy has one."""
        if MODEL_REACHED not in self.policy.must_work:
            return []
        found = await try_ability(MODEL_REACHED, room, self.fence.rules)
        return [] if found.finding is Finding.SERVED else [f"{ABILITY}{MODEL_REACHED}: {found.evidence}"]

    async def _findings(self, batch: Batch) -> dict[str, Attempt]:
        found = {}
        for probe in self.probes:
            arguments = probe.arguments(self.fence, self.site)
            found[probe.name] = await probe.judge(batch.tries[probe.name], arguments, self.site)
        return found

    def _unclear(self, found: Mapping[str, Attempt]) -> dict[str, str]:
        """What can't be told any more, and could be when the fence was qualified."""
        return {
            name: masked(attempt.evidence, self.site.canaries.values())
            for name, attempt in found.items()
            if attempt.finding is Finding.INCONCLUSIVE and not self._agrees(name, attempt)
        }

    def _agrees(self, name: str, attempt: Attempt) -> bool:
        return attempt.finding is self.qualified.get(name)

    def _disagreement(self, name: str, attempt: Attempt) -> str:
        evidence = masked(attempt.evidence, self.site.canaries.values())
        return f"probe {name!r}: {attempt.finding} ({evidence}); it was {self.qualified.get(name)} when qualified"


async def _looked(room: Workspace, bodies: Sequence[Body]) -> tuple[Mapping[str, Any], Batch | str]:
    """
    What the backend says of the room, and what the program in it reports, both at once. A program that can't be started
    reports nothing, and is told as that: a room that is gone fails where it is asked for its facts or its remains.
    """
    facts: dict[str, Any] = {}
    batch: Batch | str

    async def ask() -> None:
        facts.update(await room.facts())

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            try:
                batch = await run_batch(room, bodies)
            except WorkspaceError as error:
                batch = f"WorkspaceError: {error}"
    except BaseExceptionGroup as group:
        raise unwrapped(group) from group
    return facts, batch


def _inabilities(bodies: Sequence[Body], batch: Batch, task: Tree) -> list[str]:
    """What a seat must be able to do and can't."""
    faults = []
    for item in bodies:
        tries = batch.tries[item.name]
        if isinstance(tries, str):
            faults.append(f"{item.name}: {tries}")
        elif item.name == ABILITY + "read-task":
            faults += [f"{item.name}: {why}" for one in tries if (why := _misread(one, task))]
        elif (seen := weigh(tries, canary=None)).finding is not Finding.SERVED:
            faults.append(f"{item.name}: {seen.finding} ({seen.evidence})")
    return faults


def _misread(one: Try, task: Tree) -> str | None:
    """Why a file of the task is not readable as it was laid in, or None."""
    if one.fact is None or one.what not in task.files:
        return f"{one.what}: {one.signature}"
    right = one.fact == digest_bytes(task[one.what])
    return None if right else f"{one.what}: other bytes than were laid in"


@asynccontextmanager
async def open_cell_gate(
    backend: WorkspaceBackend,
    policy: FencePolicy,
    image: str,
    *,
    rows: Sequence[ProbeRow],
    pinned: Mapping[str, str],
    clock: Clock,
) -> AsyncIterator[CellGate]:
    """
    The gate of the cells of a session whose fence was qualified with `rows`; the decoys are up until the block is left.

    A probe that was not tried when the fence was qualified is not tried here either.
    """
    qualified = {row.probe: row.finding_up for row in rows if row.kind == "breach" and row.finding_up is not None}
    probes = tuple(probe for probe in structural(registered_probes()) if probe.name in qualified)
    async with set_the_stage(caps=policy.limits) as site:
        yield CellGate(
            backend=backend,
            policy=policy,
            image=image,
            fence=render(policy, image),
            site=site,
            probes=probes,
            qualified=qualified,
            pinned=pinned,
            clock=clock,
        )
