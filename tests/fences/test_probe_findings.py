"""
Every probe shows each kind of finding through its own attempt: turned down, served, and unclear. What stands in for the
workspace is a fake that reports what a program or a script would.
"""

from __future__ import annotations

import json

import pytest

from fences.policy import FencePolicy
from fences.probes_writes import HostWriteProbe
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import render
from fences.shell_programs import NO_CLIENT, ShellProbe, shell_tries
from fences.stage import set_the_stage
from fences.user_namespace import OutsideProbe
from fences.weakenings import NotMeasuredError
from harness.errors import WorkspaceError
from harness.views import Finding
from tests.fake_workspace import FakeWorkspace, ran

pytestmark = pytest.mark.anyio

STRICT = render(FencePolicy(), "img")
PROGRAMS = [probe for probe in registered_probes() if isinstance(probe, ProgramProbe)]
STRUCTURAL = [probe for probe in PROGRAMS if probe.is_one_program()]
SCRIPTS = [probe for probe in registered_probes() if isinstance(probe, ShellProbe)]
DENIED, ABSENT, SERVED, UNCLEAR = Finding.DENIED, Finding.ABSENT, Finding.SERVED, Finding.INCONCLUSIVE

ROOM = FakeWorkspace()

UNCLEAR_ENDS = {
    "time is up": ran(status=None, timed_out=True),
    "its status is not known": ran(status=None),
    "no client": ran(status=127, stderr=b"python3: not found"),
    "it can't be run": ran(status=126),
    "killed": ran(status=137),
    "no output": ran(),
    "a refusal in words": ran(stdout=b"I am not able to help with that."),
    "half a report": ran(stdout=b'{"tries": [{"what": "door"'),
    "no tries": ran(stdout=b'{"tries": []}'),
}


def program(*tries):
    """A program that reports these tries."""
    return ran(stdout=json.dumps({"tries": list(tries)}).encode())


def told(*lines):
    """A script that reports these tries, each as (kind, what, exit code, text)."""
    said = ["\t".join((kind, what, str(code), text.encode().hex())) for kind, what, code, text in lines]
    return ran(stdout="\n".join([*said, "reported", ""]).encode())


async def attempted(probe, result, site, fence=STRICT):
    """What the probe makes of a workspace in which every program ends with `result`."""
    ROOM.programs = {"python3": lambda call: result, "sh": lambda call: result}
    found = await probe.attempt(ROOM, fence, site)
    assert not [value for value in site.canaries.values() if value in found.evidence], probe.name
    return found.finding


def served_by(probe, site):
    """The report of a program that got through."""
    if probe.canary:
        return program({"what": "door", "got": f"x{site.canaries[probe.canary]}y".encode().hex()})
    return program({"what": "door", "signature": "ENOENT"}, {"what": "hole", "fact": "made"})


async def test_each_program_shows_every_finding():
    """A wall's errno, absence, the evidence of the probe, and everything that is unclear."""
    async with set_the_stage() as site:
        for probe in STRUCTURAL:
            denied, absent = min(probe.denied), min(probe.absent)
            assert await attempted(probe, program({"what": "door", "signature": denied}), site) is DENIED, probe.name
            assert await attempted(probe, program({"what": "door", "signature": absent}), site) is ABSENT, probe.name
            for what, result in UNCLEAR_ENDS.items():
                assert await attempted(probe, result, site) is UNCLEAR, (probe.name, what)
            for signature in ("TIMEOUT", "OverflowError", "ECONNRESET"):
                found = await attempted(probe, program({"what": "door", "signature": signature}), site)
                assert found is UNCLEAR, (probe.name, signature)
            assert await attempted(probe, program({"what": "door", "got": b"others".hex()}), site) is UNCLEAR
            assert await attempted(probe, served_by(probe, site), site) is SERVED, probe.name
    assert len(STRUCTURAL) >= 50


async def test_each_script_shows_every_finding():
    """The same for the shell's language, by exit codes and words."""
    async with set_the_stage() as site:
        for probe in SCRIPTS:
            for text, finding in (
                ("sh: 1: cannot create /etc/x: Permission denied", DENIED),
                ("touch: cannot touch 'x': Read-only file system", DENIED),
                ("unshare: unshare failed: Operation not permitted", DENIED),
                ("bash: connect: Network is unreachable", DENIED),
                ("cat: x: No such file or directory", ABSENT),
                ("something that no program here says", UNCLEAR),
                ("", UNCLEAR),
            ):
                assert await attempted(probe, told(("bring", "door", 1, text)), site) is finding, (probe.name, text)
            assert await attempted(probe, told(("bring", "door", 127, "sh: 1: nc: not found")), site) is ABSENT
            assert await attempted(probe, told(("bring", "door", 0, "")), site) is ABSENT
            for code in (124, 137):
                assert await attempted(probe, told(("bring", "door", code, "Permission denied")), site) is UNCLEAR
            for what, result in UNCLEAR_ENDS.items():
                assert await attempted(probe, result, site) is UNCLEAR, (probe.name, what)
            if probe.canary:
                canary = site.canaries[probe.canary]
                for code in (0, 1):  # what came back came back, however the program ended
                    assert await attempted(probe, told(("bring", "door", code, canary)), site) is SERVED, probe.name
                assert await attempted(probe, told(("bring", "door", 0, "other words")), site) is UNCLEAR
            else:
                assert await attempted(probe, told(("deed", "door", 0, "")), site) is SERVED, probe.name
    assert len(SCRIPTS) >= 8


def test_a_script_that_does_not_end_its_report_has_none():
    """A report that is cut anywhere is unclear, and so is one with a line of another shape."""
    whole = told(("bring", "door", 1, "Permission denied"))
    assert shell_tries(whole, None)[0].signature == "EACCES"
    for end in range(len(whole.stdout) - 2):
        assert isinstance(shell_tries(ran(stdout=whole.stdout[:end]), None), str), end
    for line in (b"bring\tdoor\t1", b"bring\tdoor\tone\t00", b"bring\tdoor\t1\tzz", b"\xff"):
        assert "can't be read" in shell_tries(ran(stdout=line + b"\nreported\n"), None)
    assert "exit 2" in shell_tries(ran(stdout=whole.stdout, status=2), None)


def test_a_missing_program_is_told_from_one_that_failed():
    """Exit 127 with a shell's own words is a missing program; the same exit of a program that is there is not."""
    missing, there = (
        told(("deed", "x", 127, "sh: 1: sudo: not found")),
        told(("deed", "x", 127, "setpriv: setresuid failed: Operation not permitted")),
    )
    assert shell_tries(missing, None)[0].signature == NO_CLIENT
    assert shell_tries(there, None)[0].signature == "EPERM"


async def test_a_witness_that_fails_makes_it_unclear():
    """With its decoy gone from the host, a program that was turned down has shown nothing."""
    async with set_the_stage() as site:
        pass  # everything that stood is gone now
    checked = set()
    for probe in [*STRUCTURAL, *SCRIPTS]:
        if await probe.witness(site) is None:
            continue
        checked.add(probe.name)
        denied = program({"what": "door", "signature": "EPERM"}), told(("bring", "door", 1, "Permission denied"))
        assert await attempted(probe, denied[probe in SCRIPTS], site) is UNCLEAR, probe.name
    assert checked >= {
        "abstract-socket", "address", "dns", "engine-socket", "host-file", "host-processes", "loopback", "other-cell",
        "path-sockets", "sealed-half", "shared-folder", "shared-memory", "shell-files", "shell-loopback",
        "shell-network", "shell-processes", "symlink-out",
    } & {probe.name for probe in [*STRUCTURAL, *SCRIPTS] if all(name in site.places for name in probe.places)}  # fmt: skip


async def test_a_folder_that_is_gone_vouches_for_no_write():
    """A write that did not land in a folder which is not there any more says nothing."""
    async with set_the_stage() as site:
        denied = program({"what": "host folder", "signature": "EROFS"})
        assert await attempted(HostWriteProbe(), denied, site) is DENIED
    assert await attempted(HostWriteProbe(), denied, site) is UNCLEAR


async def test_a_control_in_a_user_namespace_is_not_measured():
    """What such a namespace closes by itself is no wall of ours: its control says so; with the fence up it counts."""
    inside = {"what": "control", "signature": "USER NAMESPACE"}
    probes = [probe for probe in STRUCTURAL if isinstance(probe, OutsideProbe)]
    assert {probe.name for probe in probes} >= {"clock", "device-nodes", "mount-flags"}
    async with set_the_stage() as site:
        for probe in probes:
            weak = probe.weaken(STRICT, site)
            assert probe.arguments(STRICT, site)["control"] is False
            assert probe.arguments(weak, site)["control"] is True
            with pytest.raises(NotMeasuredError, match="user namespace"):
                await attempted(probe, program(inside, {"what": "door", "signature": "EPERM"}), site, weak)
            made = program(inside, {"what": "door", "fact": "made"})
            assert await attempted(probe, made, site, weak) is SERVED
            assert await attempted(probe, program({"what": "door", "signature": "EPERM"}), site, weak) is DENIED


async def test_a_dead_workspace_is_nobodys_finding():
    """A workspace that dies under an attempt is the machine's failure, and comes up as one."""

    def die(call):
        raise WorkspaceError("the container is gone")

    async with set_the_stage() as site:
        for probe in (STRUCTURAL[0], SCRIPTS[0]):
            room = FakeWorkspace(programs={"python3": die, "sh": die})
            with pytest.raises(WorkspaceError, match="the container is gone"):
                await probe.attempt(room, STRICT, site)
