"""The whole table on real backends, and a gate that is defeated by nothing that was weakened behind its back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fences.gate import gate
from fences.policy import FencePolicy
from fences.programs import ProgramProbe
from fences.receipt import registered_probes, take_receipt
from fences.replay import compare_rows
from fences.rows import why_not
from fences.shell_programs import ShellProbe
from fences.table import probe_all
from harness.errors import GateRefused
from harness.plugins import load
from harness.walls import Mount, Walls
from harness.workspaces.images import ImageStore

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(400)]

POLICY = FencePolicy()
NEVER_ON_BUBBLEWRAP = {
    "clock", "device-nodes", "mount-flags",  # a user namespace closes these by itself
    "keeper", "kill-all", "log-flood", "shell-keeper",  # its first process is always the seat's own user
    "new-privileges", "set-user-id",  # it sets the flag itself and can't be told not to
    "file-helper",  # no program sees those of another execution, whatever is taken down
    "tmp-inodes",  # not enforced, and so not tried
}  # fmt: skip
BUSY = {"cpu-hog"}
"""What a machine that does other things too can't measure."""
LOOKING = sorted(
    (
        probe for probe in registered_probes()
        if isinstance(probe, ShellProbe) or probe.name.startswith("tool-")
        or (isinstance(probe, ProgramProbe) and probe.is_one_program())
    ),
    key=lambda probe: probe.language.startswith("tool:"),
)  # fmt: skip
"""The probes that use nothing up; tools last, since what is swept up after a call as root is all there is."""


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
    if backend.name == "bubblewrap" and "proctor-seat" not in ImageStore().names():
        return "host"
    return "proctor-seat"


class TamperingBackend:
    """A backend whose walls are changed behind the gate's back, for every workspace that it opens."""

    def __init__(self, inner, tamper: Callable[[Walls], Walls]) -> None:
        self._inner, self._tamper = inner, tamper
        self.name = inner.name

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def open(self, walls, *, run):
        """The real backend's workspace, behind other walls than were asked for."""
        return self._inner.open(self._tamper(walls), run=run)


def bystanders():
    """One probe of each language, of those that use nothing up: not all that there are need look each time."""
    return {probe.language: probe.name for probe in reversed(LOOKING)}.values()


async def refusal(backend, tamper, *named):
    """Why the gate refuses a fence that was weakened by `tamper`, by the probes that are `named` and the bystanders."""
    tampered = TamperingBackend(backend, tamper)
    image = image_for(backend)
    receipt = await take_receipt(tampered, POLICY, image)
    required = [name.removeprefix("probe:") for name in POLICY.requires]
    probes = [probe for probe in LOOKING if probe.name in {*named, *required, *bystanders()}]
    rows = await probe_all(tampered, POLICY, image, run="test-tampered", probes=probes)
    with pytest.raises(GateRefused) as caught:
        gate(rows, POLICY, probes=[probe.name for probe in probes], taken_for=receipt, now=receipt)
    return caught.value.detail


def served(text, names):
    """Whether each of these probes is named with what it brought back."""
    return all(f"{name}: with the fence up it was SERVED" in text for name in names)


@pytest.mark.timeout(1500)
async def test_the_whole_table_holds(backend):
    """
    Every probe holds with its control, and the gate lets the run start. On bubblewrap a third of them run again and
    agree; on Docker that is for test_replay to show.
    """
    image = image_for(backend)
    receipt = await take_receipt(backend, POLICY, image)
    rows = await probe_all(backend, POLICY, image, run="test-table")
    failed = [why_not(row) for row in rows if row.holds is False]
    unmeasured = {row.probe for row in rows if row.holds is None and row.kind == "breach"}
    assert failed == []
    assert unmeasured - BUSY == (NEVER_ON_BUBBLEWRAP if backend.name == "bubblewrap" else set())
    names = [probe.name for probe in registered_probes()]
    assert gate(rows, POLICY, probes=names, taken_for=receipt, now=receipt) is None
    if backend.name == "bubblewrap":
        third = registered_probes()[::3]
        again = await probe_all(backend, POLICY, image, run="test-replay", probes=third)
        both = {row.probe for row in again}
        assert len(both) >= len(third)
        differ = {str(difference) for difference in compare_rows([row for row in rows if row.probe in both], again)}
        assert not [text for text in differ if not any(name in text for name in BUSY)]


async def test_a_network_behind_the_gates_back_is_found():
    """A bridge network is named by the probes of routes and addresses, and by what is running."""
    every = [probe.name for probe in LOOKING]
    text = await refusal(load("workspaces", "docker")(), lambda walls: replace(walls, network="bridge"), *every)
    for name in ("address", "route", "metadata", "running-network-mode"):
        assert f"{name}: with the fence up" in text
    assert "the canary came back" in text


async def test_the_hosts_network_is_found(backend):
    """The host's own network is named by every probe of a listener."""
    names = ("address", "loopback", "dns", "route", "metadata", "abstract-socket")
    assert served(await refusal(backend, lambda walls: replace(walls, network="host"), *names), names)


async def test_the_engines_socket_is_found():
    """The engine's own socket, mounted into a seat that may not even use it, refuses the run."""
    mount = Mount(source="/var/run/docker.sock", target="/var/run/docker.sock")
    docker, names = load("workspaces", "docker")(), ("engine-socket", "mounts")
    text = await refusal(docker, lambda walls: replace(walls, mounts=(*walls.mounts, mount)), *names)
    assert "engine-socket: with the fence up it was DENIED" in text
    assert "mounts: with the fence up it was SERVED (/run/docker.sock" in text.replace("/var/run", "/run")
    assert "running-mounts: with the fence up" in text


async def test_a_mounted_folder_of_the_host_is_found(backend):
    """Any folder of the host, wherever it is mounted, is named by the list of mounts."""
    mount = Mount(source="/opt", target="/tmp/somewhere")
    text = await refusal(backend, lambda walls: replace(walls, mounts=(*walls.mounts, mount)), "mounts")
    assert "mounts: with the fence up it was SERVED" in text
    assert "/tmp/somewhere: " in text


class ShowingTheDecoys:
    """Mounts the whole stage: its home is known from the neighbour, which is opened first and has a part of it."""

    home = None

    def __call__(self, walls):
        """The walls with the stage's home shown read-only, below whatever they show themselves."""
        if self.home is None:
            self.home = str(Path(walls.mounts[0].source).parent)
        return replace(walls, mounts=(Mount(source=self.home, target=self.home), *walls.mounts))


async def test_the_decoys_own_folder_is_found(backend):
    """The stage's folders, mounted read-only, are named by the probes that look for them."""
    names = ("host-file", "sealed-half", "engine-socket", "symlink-out", "tool-run", "other-cell", "mounts")
    assert served(await refusal(backend, ShowingTheDecoys(), *names), names)


async def test_a_secret_in_the_environment_is_found(backend):
    """The harness's environment handed through is named by its decoy, and a lone key by its name."""
    names = ("host-environment", "tool-run")

    def handed(walls):
        # Read as each workspace opens: the stage's decoys are in it from then on only.
        return replace(walls, environment={**os.environ, **walls.environment})

    text = await refusal(backend, handed, *names)
    assert served(text, names)
    text = await refusal(backend, lambda walls: replace(walls, environment={"MODEL_API_KEY": "x"}), *names)
    assert "host-environment: with the fence up it was SERVED (MODEL_API_KEY: a variable" in text


async def test_a_lifted_filter_and_kept_capabilities_are_found(backend):
    """Root with capabilities and no filter of system calls is named by each probe of what a program is."""

    def tamper(walls):
        return replace(
            walls, keep_capabilities=True, new_privileges=True, system_calls="any", masked=False, run_as_root=True
        )

    names = (
        "capabilities", "kernel-calls", "foreign-entry", "mount-call", "raw-socket", "user-namespace", "vsock",
    )  # fmt: skip
    assert served(await refusal(backend, tamper, *names), names)


async def test_a_writable_root_is_found(backend):
    """A root file system that can be written is named by the probe that writes there."""
    text = await refusal(backend, lambda walls: replace(walls, read_only_root=False, run_as_root=True), "root-write")
    assert served(text, ["root-write"])


async def test_the_hosts_processes_are_found(backend):
    """The host's process tree is named by the marked process."""
    text = await refusal(backend, lambda walls: replace(walls, host_namespaces=("pid",)), "host-processes")
    assert served(text, ["host-processes"])
