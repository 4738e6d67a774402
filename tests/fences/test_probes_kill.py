"""
The probes of the end: real daemons, stopped processes and overrun limits on this very host, seen by the host's own list.
With a sweep they are gone, without one they are found, and what was never seen alive is not called gone.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fences.lingering import Mess, alive_on_host
from fences.policy import FencePolicy
from fences.probes_kill import BackgroundProbe, DaemonProbe, KillAllProbe, StoppedProbe, TimeLimitProbe
from fences.rendering import render
from harness.errors import WorkspaceError
from harness.views import Finding
from tests.fake_workspace import FakeWorkspace, ran
from tests.fences.unwalled import UnwalledRoom

STRICT = render(FencePolicy(), "img")
LEAVING = [DaemonProbe(), StoppedProbe(), TimeLimitProbe(), BackgroundProbe()]


@pytest.fixture
def anyio_backend():
    """Real processes are started here; that the room's code runs on both loops is shown by tests without them."""
    return "asyncio"


class SweptRoom(UnwalledRoom):
    """An unwalled room that remembers whether anything was alive when it was last ended."""

    def __init__(self, *, sweeps=True, **more):
        super().__init__(**more)
        self.sweeping = sweeps

    async def sweep(self):
        """Nothing, in a room that does not sweep."""
        return await super().sweep() if self.sweeping else None

    async def kill(self):
        """The end sweeps, whatever else: a test leaves nothing alive."""
        await super().sweep()
        await FakeWorkspace.kill(self)


@pytest.mark.anyio
@pytest.mark.parametrize("probe", LEAVING, ids=lambda probe: probe.name)
async def test_what_is_swept_is_gone(probe):
    """It lives, it is swept, and the host sees it no more."""
    room = SweptRoom()
    found = await probe.attempt(room, STRICT, None)
    assert found.finding is Finding.DENIED, found.evidence
    assert alive_on_host(str(room.folder)) == []


@pytest.mark.anyio
@pytest.mark.parametrize("probe", LEAVING, ids=lambda probe: probe.name)
async def test_with_its_guard_lifted_each_is_found_alive(probe):
    """The control's harness ends what it started and nothing else; afterwards the attempt itself has cleaned up."""
    room = SweptRoom()
    found = await probe.attempt(room, probe.weaken(STRICT, None), None)
    assert found.finding is Finding.SERVED, found.evidence
    assert alive_on_host(str(room.folder)) == []


@pytest.mark.anyio
@pytest.mark.parametrize("probe", [DaemonProbe(), BackgroundProbe()], ids=lambda probe: probe.name)
async def test_a_sweep_that_does_nothing_is_found(probe):
    """With the fence up, a backend that only says that it has swept is caught by the host's own look."""
    found = await probe.attempt(SweptRoom(sweeps=False), STRICT, None)
    assert found.finding is Finding.SERVED, found.evidence


@pytest.mark.anyio
@pytest.mark.parametrize("probe", LEAVING, ids=lambda probe: probe.name)
async def test_what_never_lived_is_not_called_gone(probe, monkeypatch):
    """A program that does not come to leave anything, and a host that can't see it, say nothing."""
    monkeypatch.setattr("fences.lingering._READY_S", 0.2)
    monkeypatch.setattr(TimeLimitProbe, "LIMITS_S", (0.2, 0.4))
    for fence in (STRICT, probe.weaken(STRICT, None)):
        found = await probe.attempt(SweptRoom(before=["false"]), fence, None)
        assert found.finding is Finding.INCONCLUSIVE, found.evidence
    if probe in LEAVING[:2]:
        monkeypatch.setattr("fences.probes_kill.alive_on_host", lambda mark: [])
        found = await probe.attempt(SweptRoom(), STRICT, None)
        assert "does not see it" in found.evidence


@pytest.mark.anyio
async def test_a_policy_with_a_background_is_probed_at_its_end():
    """Where what a call leaves may live on, it must be gone when the workspace is ended."""
    lax = replace(STRICT, rules=replace(STRICT.rules, background=True))
    assert (await BackgroundProbe().attempt(SweptRoom(), lax, None)).finding is Finding.DENIED
    without = replace(STRICT, rules=replace(STRICT.rules, tools=frozenset()))
    found = await BackgroundProbe().attempt(SweptRoom(), without, None)
    assert (found.finding, found.evidence) == (Finding.DENIED, "run: REFUSED")


class MortalRoom(FakeWorkspace):
    """A room whose second program finds what the test says."""

    def __init__(self, then):
        super().__init__(programs={"sh": lambda call: ran() if "kill" in call.argv[-1] else self.second()})
        self.then = then

    def second(self):
        """What became of the room."""
        if isinstance(self.then, Exception):
            raise self.then
        return self.then


@pytest.mark.anyio
async def test_a_workspace_that_ends_with_a_kill_is_served():
    """One that runs another program lives on; one that is gone is SERVED; a program that says nothing is unclear."""
    cases = [
        (ran(stdout=b"here\n"), Finding.DENIED),
        (WorkspaceError("the container is not running"), Finding.SERVED),
        (ran(status=137), Finding.INCONCLUSIVE),
        (ran(stdout=b""), Finding.INCONCLUSIVE),
    ]
    for then, finding in cases:
        assert (await KillAllProbe().attempt(MortalRoom(then), STRICT, None)).finding is finding
    assert KillAllProbe().weaken(STRICT, None).walls.keeper_apart is False


@pytest.mark.anyio
async def test_a_heartbeat_that_stands_still_is_no_life():
    """The file grows while its writer lives, stands still after it, and without a file nothing is said."""
    room, mess = UnwalledRoom(), Mess(script=DaemonProbe.script)
    assert await mess.beats(room) is None
    async with mess.made(room) as stream:
        assert stream is not None
        assert await mess.beats(room) is True
        await room.sweep()
        assert await mess.beats(room) is False
