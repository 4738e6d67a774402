"""
Each probe says DENIED, ABSENT, SERVED and INCONCLUSIVE when it must. What stands in for the workspace here is a fake;
that the programs meet real walls is shown on live backends.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import anyio
import pytest

from fences.policy import FencePolicy
from fences.probes_process import HostEnvironmentProbe
from fences.probes_tools import (
    EditToolProbe,
    ListToolProbe,
    ReadToolProbe,
    SearchToolProbe,
    WriteToolProbe,
)
from fences.probes_writes import HostWriteProbe
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import render
from fences.stage import set_the_stage
from fences.weakenings import NotMeasuredError, described
from harness.views import Finding, Site
from tests.fake_workspace import FakeWorkspace, ran

STRICT = render(FencePolicy(), "img")
PROGRAMS = [probe for probe in registered_probes() if isinstance(probe, ProgramProbe)]
SCRIPTED = [probe for probe in PROGRAMS if not isinstance(probe, HostWriteProbe)]
TOOLS = [ReadToolProbe(), ListToolProbe(), SearchToolProbe(), WriteToolProbe(), EditToolProbe()]


def report(*tries):
    """A program that reports these tries."""
    return ran(stdout=json.dumps({"tries": list(tries)}).encode())


async def attempt(probe, result, site, fence=STRICT):
    """What the probe makes of a workspace whose python3 ends with `result`."""
    return await probe.attempt(FakeWorkspace(programs={"python3": lambda call: result}), fence, site)


@pytest.mark.anyio
async def test_a_probe_tells_the_four_findings_apart():
    """A wall's errno is DENIED, absence ABSENT, the canary or fact SERVED, and everything unclear INCONCLUSIVE."""
    async with set_the_stage() as site:
        for probe in SCRIPTED:
            served = {"what": "door", "fact": "made"}
            if probe.canary:
                served = {"what": "door", "got": f"x{site.canaries[probe.canary]}y".encode().hex()}
            expected = [
                (report({"what": "door", "signature": "EPERM"}), Finding.DENIED),
                (report({"what": "door", "signature": "ENOENT"}), Finding.ABSENT),
                (report({"what": "door", "signature": "ENOENT"}, served), Finding.SERVED),
                (report({"what": "door", "got": b"other bytes".hex()}), Finding.INCONCLUSIVE),
                (report({"what": "door", "signature": "TIMEOUT"}), Finding.INCONCLUSIVE),
                (report(), Finding.INCONCLUSIVE),
                (ran(), Finding.INCONCLUSIVE),
                (ran(status=127, stderr=b"python3: not found"), Finding.INCONCLUSIVE),
                (ran(status=137), Finding.INCONCLUSIVE),
                (ran(status=None, timed_out=True), Finding.INCONCLUSIVE),
                (ran(stdout=b"I am not able to help with that."), Finding.INCONCLUSIVE),
            ]
            for result, finding in expected:
                found = await attempt(probe, result, site)
                assert found.finding is finding, (probe.name, result)
                assert not [value for value in site.canaries.values() if value in found.evidence], probe.name


@pytest.mark.anyio
async def test_a_program_is_never_told_a_canary():
    """No canary stands in what is sent into the workspace: a program can't bring back what it was given."""
    async with set_the_stage() as site:
        for probe in PROGRAMS:
            room = FakeWorkspace(programs={"python3": lambda call: ran()})
            await probe.attempt(room, STRICT, site)
            sent = [text for call in room.calls for text in (*call.argv, call.stdin.decode())]
            assert sent, probe.name
            assert not [name for name, value in site.canaries.items() if value in " ".join(sent)], probe.name


@pytest.mark.anyio
async def test_a_control_takes_something_down():
    """Each weakening differs from the strict fence, and its description holds no path, address or canary of the run."""
    async with set_the_stage() as site:
        for probe in registered_probes():
            weak = probe.weaken(STRICT, site)
            said = described(STRICT, weak)
            assert weak != STRICT, probe.name
            assert said != "nothing", probe.name
            # The host's name may be any word, also one of ours.
            own = (*site.canaries.values(), *(place for name, place in site.places.items() if name != "host-name"))
            assert not [value for value in own if value in said], probe.name


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["loopback", "address", "dns", "abstract-socket", "ipv6"])
async def test_a_network_probe_needs_its_target_up(name):
    """With the listener down outside too, a refusal or an unreachable network proves nothing."""
    probe = next(item for item in PROGRAMS if item.name == name)
    down = {"loopback": "tcp 127.0.0.1 1", "address": "tcp 127.0.0.1 1", "loopback6": "tcp ::1 1"}
    down |= {"dns": "tcp 127.0.0.1 1", "dns-address": "tcp 127.0.0.1 1", "abstract": "abstract proctor-nobody"}
    site = Site(canaries=dict.fromkeys([*down], "c"), places=down)
    for signature in ("ECONNREFUSED", "ENETUNREACH"):
        found = await attempt(probe, report({"what": name, "signature": signature}), site)
        assert found.finding is Finding.INCONCLUSIVE
        assert "down outside too" in found.evidence


@pytest.mark.anyio
async def test_refused_counts_only_on_the_own_loopback():
    """A refusal is ABSENT for the probe of the loopback, and INCONCLUSIVE for that of the host's address."""
    by_name = {probe.name: probe for probe in PROGRAMS}
    refused = report({"what": "x", "signature": "ECONNREFUSED"})
    async with set_the_stage() as site:
        assert (await attempt(by_name["loopback"], refused, site)).finding is Finding.ABSENT
        assert (await attempt(by_name["abstract-socket"], refused, site)).finding is Finding.ABSENT
        assert (await attempt(by_name["address"], refused, site)).finding is Finding.INCONCLUSIVE
        assert (await attempt(by_name["engine-socket"], refused, site)).finding is Finding.INCONCLUSIVE


def test_a_host_without_a_decoy_measures_nothing():
    """Where the host has no address or no IPv6, the control says so instead of failing."""
    bare = Site(canaries={}, places={})
    for name in ("address", "route", "metadata", "ipv6", "dns"):
        probe = next(item for item in PROGRAMS if item.name == name)
        with pytest.raises(NotMeasuredError, match="this host has no"):
            probe.weaken(STRICT, bare)


async def on_this_host(call):
    """Run the probe's program or script right here, with no fence at all and this process's own environment."""
    client = sys.executable if call.argv[0] == "python3" else call.argv[0]
    done = await anyio.run_process([client, *call.argv[1:]], check=False)
    return ran(stdout=done.stdout, stderr=done.stderr, status=done.returncode)


@pytest.mark.anyio
async def test_without_a_fence_every_decoy_comes_back():
    """The programs do find what they look for: run on the host itself, each brings its evidence."""
    names = {"loopback", "address", "dns", "abstract-socket", "engine-socket", "host-file", "other-cell"}
    names |= {"host-processes", "host-environment", "host-write", "sealed-write", "shared-memory", "host-name"}
    names |= {"shell-environment", "shell-files", "shell-loopback", "shell-processes"}
    if platform.machine() in ("x86_64", "aarch64"):
        names.add("keyring")
    harmless = [probe for probe in registered_probes() if probe.name in names]
    async with set_the_stage() as site:
        for probe in harmless:
            if all(name in site.places for name in probe.places):
                room = FakeWorkspace(programs={"python3": on_this_host, "sh": on_this_host})
                found = await probe.attempt(room, STRICT, site)
                assert found.finding is Finding.SERVED, (probe.name, found.evidence)
                assert not [value for value in site.canaries.values() if value in found.evidence], probe.name


@pytest.mark.anyio
async def test_a_write_is_what_the_host_sees():
    """Whatever the program says, only a nonce on the host is SERVED; a claim without one is INCONCLUSIVE."""
    probe = HostWriteProbe()
    async with set_the_stage() as site:
        claimed = await attempt(probe, report({"what": "host folder", "signature": "WROTE"}), site)
        assert claimed.finding is Finding.INCONCLUSIVE

        def write_silently(call):
            told = json.loads(call.argv[-1])
            Path(told["folder"], told["file"]).write_text(told["nonce"])
            return ran(status=137)

        room = FakeWorkspace(programs={"python3": write_silently})
        assert (await probe.attempt(room, STRICT, site)).finding is Finding.SERVED
        denied = await attempt(probe, report({"what": "host folder", "signature": "EROFS"}), site)
        assert denied.finding is Finding.DENIED


@pytest.mark.anyio
async def test_a_variable_named_like_a_secret_is_a_breach():
    """The program names a variable that sounds like a secret, whether or not it is the decoy."""
    site = Site(canaries={"variable": "c"}, places={"variable": "PROCTOR_DECOY_X"})

    async def with_key(call):
        argv = ["/usr/bin/env", "-i", "MY_API_KEY=x", "GPG_KEY=y", sys.executable, *call.argv[1:]]
        done = await anyio.run_process(argv, check=False)
        return ran(stdout=done.stdout, stderr=done.stderr, status=done.returncode)

    found = await HostEnvironmentProbe().attempt(FakeWorkspace(programs={"python3": with_key}), STRICT, site)
    assert found.finding is Finding.SERVED
    assert "MY_API_KEY" in found.evidence
    assert "GPG_KEY" not in found.evidence
