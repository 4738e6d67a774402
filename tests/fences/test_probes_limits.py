"""
The probes of limits: each program really reaches beyond a small cap where nothing holds it, is turned down by a real
limit of this very kind, and what it can't tell is said. Behind real walls they are shown on live backends.
"""

from __future__ import annotations

import json
import math
import resource
from dataclasses import replace

import pytest

from fences.policy import FencePolicy
from fences.probes_cpu import CpuHogProbe, Measured
from fences.probes_filling import DiskFillProbe, InodeFillProbe, ShmFillProbe, TmpFillProbe, TmpInodesProbe
from fences.probes_resources import (
    CoreFilesProbe,
    FileSizeProbe,
    ForkBombProbe,
    LimitProbe,
    LogFloodProbe,
    MemoryBombProbe,
    OpenFilesProbe,
    available_bytes,
)
from fences.receipt import registered_probes
from fences.rendering import render
from fences.weakenings import NotMeasuredError, described
from harness.views import Finding, Site
from harness.walls import Caps
from tests.fake_workspace import FakeWorkspace, ran
from tests.fences.unwalled import UnwalledRoom

SMALL = Caps(
    memory_bytes=24 << 20, pids=6, workspace_bytes=1 << 20, workspace_inodes=60, tmp_bytes=1 << 20, shm_bytes=1 << 20,
    file_bytes=1 << 18, open_files=40,
)  # fmt: skip
SITE = Site(canaries={}, places={}, caps=SMALL)
STRICT = render(FencePolicy(), "img")
FILLS = [DiskFillProbe(), InodeFillProbe()]


@pytest.fixture
def anyio_backend():
    """Real processes are started here; that the room's code runs on both loops is shown by tests without them."""
    return "asyncio"


def shell(limit):
    """A command that starts a program behind a limit of the shell's."""
    return ["bash", "-c", f'{limit} && exec "$@"', "bash"]


def report(*tries):
    """A program that reports these tries."""
    return ran(stdout=json.dumps({"tries": list(tries)}).encode())


def room(result):
    """A workspace whose python3 ends like this."""
    return FakeWorkspace(programs={"python3": lambda call: result})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "probe",
    [ForkBombProbe(), OpenFilesProbe(), FileSizeProbe(), MemoryBombProbe(), CoreFilesProbe(), *FILLS],
    ids=lambda probe: probe.name,
)
async def test_without_a_limit_each_gets_beyond_the_policys(probe):
    """Nothing holds it, so it is SERVED; and it has taken away what it made."""
    place = UnwalledRoom(before=shell("ulimit -c unlimited"))
    found = await probe.attempt(place, STRICT, SITE)
    assert found.finding is Finding.SERVED, found.evidence
    assert list(place.folder.iterdir()) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("probe", "limit", "signature"),
    [
        (OpenFilesProbe(), "ulimit -n 20", "EMFILE"),
        (FileSizeProbe(), "ulimit -f 16", "EFBIG"),
        (CoreFilesProbe(), "ulimit -c 0", "LIMIT"),
        (MemoryBombProbe(), "ulimit -v 20000", "ENOMEM"),
        (DiskFillProbe(), "ulimit -f 16", "EFBIG"),
    ],
    ids=lambda item: getattr(item, "name", None),
)
async def test_a_real_limit_denies(probe, limit, signature):
    """A limit of the kernel's own turns the attempt down, in its own word, and nothing is left over."""
    place = UnwalledRoom(before=shell(limit))
    site = Site(canaries={}, places={}, caps=replace(SMALL, memory_bytes=200 << 20, open_files=200, file_bytes=1 << 20))
    found = await probe.attempt(place, STRICT, site)
    assert (found.finding, found.evidence.rsplit(": ", 1)[1]) == (Finding.DENIED, signature)
    assert list(place.folder.iterdir()) == []


@pytest.mark.anyio
@pytest.mark.parametrize("probe", [TmpFillProbe(), TmpInodesProbe(), ShmFillProbe(), ForkBombProbe()])
async def test_a_limit_is_told_from_what_is_unclear(probe):
    """ENOSPC, EAGAIN and a kill by a limit are DENIED; a timeout, a killed program and silence are INCONCLUSIVE."""
    said = {
        "ENOSPC": Finding.DENIED, "EDQUOT": Finding.DENIED, "EAGAIN": Finding.DENIED, "SIGKILL": Finding.DENIED,
        "TIMEOUT": Finding.INCONCLUSIVE, "EIO": Finding.INCONCLUSIVE, "a child ended by itself": Finding.INCONCLUSIVE,
    }  # fmt: skip
    for signature, finding in said.items():
        found = await probe.attempt(room(report({"what": "x", "signature": signature})), STRICT, SITE)
        assert found.finding is finding, signature
    for result in (ran(status=137), ran(), ran(status=None, timed_out=True)):
        assert (await probe.attempt(room(result), STRICT, SITE)).finding is Finding.INCONCLUSIVE
    served = report({"what": "x", "fact": "more than the policy allows"})
    assert (await probe.attempt(room(served), STRICT, SITE)).finding is Finding.SERVED


def test_a_control_raises_the_cap_itself_and_keeps_it_finite():
    """Each control changes the cap that its attempt tries to pass, to a figure that is more and not without end."""
    for probe in registered_probes():
        if not isinstance(probe, LimitProbe) or isinstance(probe, LogFloodProbe):
            continue
        try:
            weak = probe.weaken(STRICT, SITE)
        except NotMeasuredError:
            continue  # on a host with one core, or little memory
        before, after = getattr(STRICT.walls.caps, probe.cap), getattr(weak.walls.caps, probe.cap)
        assert before < after < math.inf, probe.name
        assert f"caps.{probe.cap}" in described(STRICT, weak)
        assert weak.lifted == ()


def test_what_this_host_can_not_show_is_not_measured(monkeypatch, tmp_path):
    """A harness that may not hand more on, a host with little memory, and one that takes core files away say so."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    with pytest.raises(NotMeasuredError, match="may itself have no more than 1024"):
        OpenFilesProbe().weaken(STRICT, SITE)
    monkeypatch.undo()
    assert available_bytes("MemTotal: 9 kB\nMemAvailable:     2048 kB\n") == 2048 << 10
    with pytest.raises(NotMeasuredError, match="does not say"):
        available_bytes("MemTotal: 9 kB\n")
    huge = replace(STRICT, walls=replace(STRICT.walls, caps=replace(STRICT.walls.caps, memory_bytes=1 << 50)))
    with pytest.raises(NotMeasuredError, match="less memory to spare"):
        MemoryBombProbe().weaken(huge, SITE)
    pattern = tmp_path / "core_pattern"
    monkeypatch.setattr(CoreFilesProbe, "pattern", pattern)
    for text in ("|/usr/bin/keep %p", "/var/cores/%p"):
        pattern.write_text(text)
        with pytest.raises(NotMeasuredError, match="core_pattern"):
            CoreFilesProbe().weaken(STRICT, SITE)
    pattern.write_text("core\n")
    assert CoreFilesProbe().weaken(STRICT, SITE).walls.caps.core_bytes > 0


@pytest.mark.parametrize(
    ("used", "idle", "throttled", "said"),
    [
        (1.9, 0.0, None, "fact"),
        (1.51, 0.4, True, "fact"),
        (1.0, 0.9, None, "LIMIT"),
        (1.0, 0.0, True, "LIMIT"),
        (0.3, 1.5, False, "LIMIT"),
        (0.8, 0.0, True, "LIMIT"),
        (0.7, 0.0, True, None),
        (1.0, 0.0, None, None),
        (0.4, 0.1, False, None),
        (1.3, 1.0, True, None),
    ],
)
def test_a_measurement_says_no_more_than_it_can(used, idle, throttled, said):
    """Beyond is SERVED; within counts only where a core was idle, or the counter tells; the rest says nothing."""
    found = Measured(used=used, idle=idle, throttled=throttled).judged(1.0, 1.5)
    assert said == (None if found is None else "fact" if found.fact else found.signature)


@pytest.mark.anyio
async def test_the_cpu_probe_measures_for_real(monkeypatch):
    """A small cap is passed where nothing holds it; a busy machine is not measured; a broken report says nothing."""
    probe, site = CpuHogProbe(), Site(canaries={}, places={}, caps=Caps(cpus=0.05))
    found = await probe.attempt(UnwalledRoom(), STRICT, site)
    assert found.finding is Finding.SERVED, found.evidence

    def measured(used, throttled):
        text = json.dumps({"used": used, "throttled": throttled}).encode().hex()
        return room(report({"what": "busy processes", "got": text}))

    monkeypatch.setattr("fences.probes_cpu.cores", lambda: 2)
    site = Site(canaries={}, places={}, caps=Caps(cpus=1.0))
    monkeypatch.setattr("fences.probes_cpu._idle_seconds", lambda: 0.0)
    assert (await probe.attempt(measured(1.0, True), STRICT, site)).finding is Finding.DENIED
    assert (await probe.attempt(measured(2.0, None), STRICT, site)).finding is Finding.SERVED
    weak = probe.weaken(STRICT, site)
    assert (await probe.attempt(measured(2.0, True), weak, site)).finding is Finding.SERVED
    for fence, (used, throttled) in ((STRICT, (0.4, False)), (weak, (1.0, True))):
        with pytest.raises(NotMeasuredError, match="others used this machine"):
            await probe.attempt(measured(used, throttled), fence, site)
    for result in (report({"what": "x", "got": b"{}".hex()}), report({"what": "x", "signature": "lost"}), ran()):
        assert (await probe.attempt(room(result), STRICT, site)).finding is Finding.INCONCLUSIVE
    monkeypatch.setattr("fences.probes_cpu.cores", lambda: 1)
    with pytest.raises(NotMeasuredError, match="as many cores as this host has"):
        probe.weaken(STRICT, site)


@pytest.mark.anyio
async def test_a_log_is_told_from_the_programs_own_output():
    """EACCES is DENIED, a write that vanished is SERVED, and one that came back here is no log: ABSENT."""
    probe = LogFloodProbe()
    weak = probe.weaken(STRICT, SITE)
    wrote = {"what": "/proc/1/fd/1", "fact": "it could be written"}
    assert (await probe.attempt(room(report(wrote)), STRICT, SITE)).finding is Finding.SERVED
    denied = report({"what": "/proc/1/fd/1", "signature": "EACCES"})
    assert (await probe.attempt(room(denied), STRICT, SITE)).finding is Finding.DENIED
    own = ran(stdout=f"{probe.MARK}\n".encode() + report(wrote).stdout)
    assert (await probe.attempt(room(own), STRICT, SITE)).finding is Finding.ABSENT
    assert (await probe.attempt(room(ran(status=126)), STRICT, SITE)).finding is Finding.INCONCLUSIVE
    with pytest.raises(NotMeasuredError, match="no first process"):
        await probe.attempt(room(own), weak, SITE)
