"""Every structural probe on real backends: with its own wall down, many in one process, and after a hostile seat."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fences.batch import Batch, Body, run_batch
from fences.policy import FencePolicy
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import render
from fences.rows import why_not
from fences.shell_programs import ShellProbe
from fences.stage import set_the_stage
from fences.table import probe_all
from harness.plugins import load
from harness.views import Finding

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(300)]

STRUCTURAL = tuple(probe for probe in registered_probes() if isinstance(probe, ProgramProbe) and probe.is_one_program())
SCRIPTS = tuple(probe for probe in registered_probes() if isinstance(probe, ShellProbe))
IMAGE = "proctor-seat"
NEVER_ON_BUBBLEWRAP = {
    "clock", "device-nodes", "mount-flags",  # a user namespace closes these by itself
    "keeper", "shell-keeper",  # its first process is always the seat's own user
    "new-privileges", "set-user-id",  # it sets the flag itself and can't be told not to
}  # fmt: skip

STATE = """
import resource, signal, threading
def state():
    with open("/proc/self/status") as lines:
        status = dict(line.rstrip("\\n").split(":\\t", 1) for line in lines if ":\\t" in line)
    kept = ("CapEff", "CapPrm", "Gid", "Groups", "NoNewPrivs", "Seccomp", "SigBlk", "SigCgt", "SigIgn", "Threads", "Uid", "Umask")
    children = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open("/proc/%s/stat" % pid) as line:
                    if int(line.read().rpartition(")")[2].split()[1]) == os.getpid():
                        children.append(pid)
            except OSError:
                continue
    fds = []
    for name in os.listdir("/proc/self/fd"):
        try:
            fds.append((name, os.readlink("/proc/self/fd/" + name)))
        except OSError:
            continue
    limits = [resource.getrlimit(number) for number in range(resource.RLIM_NLIMITS if hasattr(resource, "RLIM_NLIMITS") else 16)]
    mounts = os.listdir("/tmp") + os.listdir("/workspace") + os.listdir("/dev/shm")
    spaces = [os.readlink("/proc/self/ns/" + name) for name in sorted(os.listdir("/proc/self/ns"))]
    return {"fact": json.dumps([os.getcwd(), fds, limits, {name: status.get(name) for name in kept}, children, mounts, spaces,
                                sorted(os.environ), signal.alarm(0), threading.active_count()])}
attempt("state", state)
"""


@pytest.fixture(params=["bubblewrap", "docker"])
def backend(request):
    """Each backend that workspaces come from."""
    return load("workspaces", request.param)()


@pytest.fixture
def anyio_backend():
    """One loop is enough for the engines."""
    return "asyncio"


def bodies(fence, site, probes=STRUCTURAL):
    """The probes' programs as a batch takes them."""
    return [Body(name=probe.name, body=probe.body, arguments=probe.arguments(fence, site)) for probe in probes]


async def found_by(batch, fence, site):
    """What each probe makes of its part of a batch."""
    assert isinstance(batch, Batch), batch
    return {
        probe.name: await probe.judge(batch.tries[probe.name], probe.arguments(fence, site), site)
        for probe in STRUCTURAL
        if "nonce" not in probe.arguments(fence, site)
    }


async def test_each_is_turned_down_and_served_under_its_own_weakening(backend):
    """Every structural probe and every script: an expected finding with the fence up, SERVED with its one wall down."""
    policy = FencePolicy(must_work=())
    rows = await probe_all(backend, policy, IMAGE, run="test-structural", probes=[*STRUCTURAL, *SCRIPTS])
    breaches = [row for row in rows if row.kind == "breach"]
    assert [why_not(row) for row in breaches if row.holds is False] == []
    unmeasured = {row.probe for row in breaches if row.holds is None}
    assert unmeasured == (NEVER_ON_BUBBLEWRAP if backend.name == "bubblewrap" else set())
    assert len(breaches) == len(STRUCTURAL) + len(SCRIPTS) >= 58


async def test_many_in_one_process_leave_nothing_in_it(backend):
    """The process after all bodies is the one before: limits, users, signals, descriptors, children, folders."""
    fence = render(FencePolicy(), IMAGE)
    async with set_the_stage() as site, backend.open(fence.walls, run="test-structural") as room:
        asked = [Body(name="before", body=STATE, arguments={}), *bodies(fence, site)]
        for order in (asked, [asked[0], *reversed(asked[1:])]):
            batch = await run_batch(room, [*order, Body(name="after", body=STATE, arguments={})])
            assert isinstance(batch, Batch), batch
            before, after = (json.loads(batch.tries[name][0].fact) for name in ("before", "after"))
            assert before == after
            assert batch.left == ()
            found = await found_by(batch, fence, site)
            wrong = {name: one for name, one in found.items() if one.finding is Finding.INCONCLUSIVE}
            assert wrong == {}


@pytest.mark.parametrize(
    "policy", [FencePolicy(network="gateway"), FencePolicy(ptrace=True)], ids=["gateway", "ptrace"]
)
async def test_what_a_policy_leaves_open_is_no_breach(backend, policy):
    """With a gateway's folder and forwarder, and with debuggers allowed, every probe finds what it expects."""
    fence = render(policy, IMAGE)
    async with set_the_stage() as site, backend.open(fence.walls, run="test-structural") as room:
        for probe in [*STRUCTURAL, *SCRIPTS]:
            found = await probe.attempt(room, fence, site)
            assert found.finding in probe.holds, (probe.name, found.evidence)


async def test_a_policys_opening_is_a_breach_where_the_policy_has_none(backend):
    """The very same workspace is refused by a policy without a gateway, and by one without debuggers."""
    strict = render(FencePolicy(), IMAGE)
    for change, names in (
        ({"network": "gateway"}, {"mounts"}),
        ({"system_calls": "traced"}, {"ptrace", "kernel-calls"}),
    ):
        async with (
            set_the_stage() as site,
            backend.open(replace(strict.walls, **change), run="test-structural") as room,
        ):
            batch = await run_batch(room, bodies(strict, site))
            found = await found_by(batch, strict, site)
        assert {name for name, one in found.items() if one.finding is Finding.SERVED} == names


LEFT = """
import os, socket
def until_full(work):
    try:
        for _ in range(25000):
            work()
    except OSError:
        return
for folder in ("/workspace", "/tmp", "/dev/shm"):
    os.chdir(folder)
    try:
        os.symlink("/", "root"), os.symlink("loop", "loop"), os.mkfifo("fifo")
        os.mkdir(b"\\xff\\x1b[2J")
        server = socket.socket(socket.AF_UNIX)
        server.bind("socket")
    except OSError:
        pass
    os.makedirs("shut/inner", exist_ok=True)
    os.chmod("shut", 0)
    for depth in range(200):
        try:
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        except OSError:
            break
    os.chdir(folder)
    count = iter(range(10**9))
    until_full(lambda: os.close(os.open("f%d" % next(count), os.O_CREAT | os.O_WRONLY)))
    until_full(lambda: open("big%d" % next(count), "wb").write(b"x" * (1 << 20)))
"""


async def test_what_a_seat_left_is_no_breach(backend):
    """Full folders, loops, pipes, sockets of its own, closed and deep folders: nothing is served, and it ends soon."""
    fence = render(FencePolicy(), IMAGE)
    async with set_the_stage() as site, backend.open(fence.walls, run="test-structural") as room:
        left = await room.exec(["python3", "-I", "-S", "-c", LEFT], timeout_s=100)
        assert left.status == 0, left.stderr[-500:]
        batch = await run_batch(room, bodies(fence, site))
        found = await found_by(batch, fence, site)
    assert {name: one.evidence for name, one in found.items() if one.finding is Finding.SERVED} == {}
    unclear = {name: one.evidence for name, one in found.items() if one.finding is Finding.INCONCLUSIVE}
    assert unclear == {}


async def test_evidence_reads_the_same_each_time(backend):
    """Two tables differ in nothing that an auditor would have to explain: no path, name or number of one run."""
    policy = FencePolicy(must_work=())
    first, second = [
        await probe_all(backend, policy, IMAGE, run="test-structural", probes=[*STRUCTURAL, *SCRIPTS]) for _ in "ab"
    ]
    said = [
        {row.probe: (row.evidence_up, row.evidence_down, row.weakening) for row in rows} for rows in (first, second)
    ]
    assert said[0] == said[1]
