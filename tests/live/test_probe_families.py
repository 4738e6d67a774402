"""
The probes of limits, ends, tools, collection, outputs and the gateway on real backends: none with the fence up, each under
its own weakening, for a policy without a gateway and for one with it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fences.policy import MODEL_REACHED, MUST_WORK, FencePolicy
from fences.receipt import registered_probes
from fences.rows import why_not
from fences.table import probe_all
from harness.plugins import load
from harness.views import Finding
from harness.walls import Caps
from harness.workspaces.images import ImageStore

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(400)]

MODULES = ("archive", "cpu", "filling", "gateway", "gateway_door", "helper", "kill", "output", "resources", "tools")
OURS = [probe for probe in registered_probes() if type(probe).__module__.removeprefix("fences.probes_") in MODULES]
GATEWAY = [probe for probe in OURS if probe.language == "gateway"]
SMALL = Caps(
    memory_bytes=192 << 20, pids=48, workspace_bytes=24 << 20, workspace_inodes=3000, tmp_bytes=8 << 20,
    shm_bytes=4 << 20, file_bytes=8 << 20, open_files=256,
)  # fmt: skip
LIMITS = {"fork-bomb", "disk-fill", "inode-fill", "tmp-fill", "shm-fill", "file-size", "open-files"}
NEVER = {
    "bubblewrap": {"file-helper", "kill-all", "log-flood", "tmp-inodes"},
    "docker": set(),
}
"""
What bubblewrap has no wall for, or no way to take one down: programs of two executions don't see each other, its first
process is out of reach whoever it belongs to and has no log, and it can't count the files of a memory file system.
"""


@pytest.fixture(params=["bubblewrap", "docker"])
def backend(request):
    """Each backend that workspaces come from."""
    return load("workspaces", request.param)()


@pytest.fixture
def anyio_backend():
    """The table's own concurrency is tested on both loops with fakes; one is enough for the engines."""
    return "asyncio"


def image_for(backend):
    """The seat's image, or the host's own programs where bubblewrap has no image yet."""
    return "host" if backend.name == "bubblewrap" and "proctor-seat" not in ImageStore().names() else "proctor-seat"


def unheld(rows, backend):
    """Why rows do not hold, and which are not measured beyond what this backend never shows, a busy machine aside."""
    failed = [why_not(row) for row in rows if row.holds is False]
    unmeasured = {row.probe for row in rows if row.holds is None and row.kind == "breach"}
    return failed, unmeasured - {"cpu-hog"} - NEVER[backend.name]


async def test_every_probe_of_a_limit_holds_and_fires(backend):
    """
    With small limits and no gateway: none is SERVED with the fence up, each is under its weakening. The others, to which
    the limits are nothing, are in the whole table of test_fence_gate.
    """
    policy = FencePolicy(limits=SMALL, must_work=())
    probes = [probe for probe in OURS if probe in GATEWAY or probe.name in LIMITS]
    rows = await probe_all(backend, policy, image_for(backend), run="test-families", probes=probes)
    assert unheld(rows, backend) == ([], set())
    by_name = {row.probe: row for row in rows}
    for probe in GATEWAY:
        assert by_name[probe.name].finding_up is Finding.ABSENT


async def test_the_gateway_of_a_policy_holds(backend):
    """With a gateway every request is DENIED by it, a byte proxy serves one, and the model is reached on every wire."""
    policy = FencePolicy(network="gateway", must_work=(*MUST_WORK, MODEL_REACHED))
    rows = await probe_all(backend, policy, image_for(backend), run="test-gateway", probes=GATEWAY)
    assert unheld(rows, backend) == ([], set())
    by_name = {row.probe: row for row in rows}
    for probe in GATEWAY:
        assert by_name[probe.name].finding_up is Finding.DENIED
    assert by_name[f"must-work-{MODEL_REACHED}"].holds is True


async def test_a_limit_that_is_not_carried_out_is_found(backend):
    """A backend that gives four times what the policy allows is named by the probe of each limit."""
    policy = FencePolicy(limits=SMALL, must_work=())

    class Generous:
        name = backend.name

        def __getattr__(self, attribute):
            return getattr(backend, attribute)

        def open(self, walls, *, run):
            caps = walls.caps
            most = {name: 4 * getattr(caps, name) for name in ("pids", "workspace_bytes", "workspace_inodes")}
            most |= {name: 4 * getattr(caps, name) for name in ("tmp_bytes", "shm_bytes", "file_bytes", "open_files")}
            return backend.open(replace(walls, caps=replace(caps, memory_bytes=1 << 30, **most)), run=run)

    probes = [probe for probe in OURS if probe.name in LIMITS]
    rows = await probe_all(Generous(), policy, image_for(backend), run="test-generous", probes=probes)
    found = {row.probe for row in rows if row.kind == "breach" and row.finding_up is Finding.SERVED}
    assert found == LIMITS
