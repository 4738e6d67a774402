"""
The probes of the output reader: real programs that flood, hold on and forge, read by a room that keeps to the caller's
caps, by one that doesn't, and by the careless reader.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fences.careless import believing_frames
from fences.policy import FencePolicy
from fences.probes_output import OutputEscapesProbe, OutputFloodProbe, OutputFramesProbe, OutputHeldProbe
from fences.rendering import render
from harness.views import Finding
from tests.fake_workspace import FakeWorkspace, ran
from tests.fences.unwalled import UnwalledRoom

STRICT = render(FencePolicy(), "img")
PROBES = [OutputFloodProbe(), OutputHeldProbe(), OutputFramesProbe(), OutputEscapesProbe()]


@pytest.fixture
def anyio_backend():
    """Real processes are started here; that the room's code runs on both loops is shown by tests without them."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_a_reader_that_keeps_to_its_caps_holds(probe):
    """Cut, ended in time, as it is, and escaped."""
    found = await probe.attempt(UnwalledRoom(), STRICT, None)
    assert found.finding is Finding.DENIED, found.evidence


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_the_careless_reader_does_not(probe):
    """It takes everything, waits, believes every frame, and writes down what comes."""
    weak = probe.weaken(STRICT, None)
    assert (weak.walls, weak.lifted) == (STRICT.walls, ("output-cap",))
    found = await probe.attempt(UnwalledRoom(), weak, None)
    assert found.finding is Finding.SERVED, found.evidence


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_a_program_that_does_not_run_says_nothing(probe):
    """Without the program there is no output to be held."""
    missing = FakeWorkspace(
        programs={"python3": lambda call: ran(status=127), "bash": lambda call: ran(stdout=b"", status=127)}
    )
    for fence in (STRICT, probe.weaken(STRICT, None)):
        room = missing if fence is STRICT else UnwalledRoom(before=["false"])
        found = await probe.attempt(room, fence, None)
        assert found.finding is Finding.INCONCLUSIVE, found.evidence


class Leaking(UnwalledRoom):
    """A room whose answers a test falsifies, as a backend with a hole would."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    async def exec(self, argv, **more):
        """The program's result, falsified."""
        return self.change(await super().exec(argv, **{**more, "output_bytes": 32 << 20}))


@pytest.mark.anyio
async def test_a_backend_with_a_hole_is_found():
    """Output beyond the cap, a call that lasts, words that moved to the other output, a status that isn't its own."""
    no_tools = replace(STRICT, rules=replace(STRICT.rules, tools=frozenset()))
    cases = [
        (OutputFloodProbe(), lambda result: result, "more is held"),
        (OutputHeldProbe(), lambda result: replace(result, seconds=11.0), "endless program: the call lasted as long"),
        (OutputHeldProbe(), lambda result: replace(result, timed_out=True), "left behind: the call lasted as long"),
        (OutputFramesProbe(), lambda result: replace(result, status=0), "taken for something else"),
        (OutputFramesProbe(), lambda result: replace(result, stderr=b"forged"), "taken for something else"),
    ]
    for probe, change, said in cases:
        found = await probe.attempt(Leaking(change), no_tools, None)
        assert (found.finding, said in found.evidence) == (Finding.SERVED, True), found.evidence


def test_frames_are_believed_wherever_they_stand():
    """The control's reader takes eight bytes for a frame's head, and passes on what is none."""
    forged = b"before\x02\0\0\0\0\0\0\x03badafter"
    assert believing_frames(forged) == (b"beforeafter", b"bad")
    assert believing_frames(b"\x01\0\0\0\0\0\0\x02ok") == (b"ok", b"")
    assert believing_frames(b"plain") == (b"plain", b"")
