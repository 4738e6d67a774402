"""Taking the table: every probe with the fence up and with its own wall down, and every failure a finding or an error."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from fences.abilities import try_ability
from fences.policy import FencePolicy
from fences.programs import ProgramProbe
from fences.rendering import render
from fences.rows import rows_to_json
from fences.table import probe_all
from fences.weakenings import NotMeasuredError
from harness.errors import FenceError, WorkspaceError
from harness.views import Attempt, Finding
from tests.fake_workspace import FakeBackend, FakeWorkspace, ran

DENIED, SERVED, UNCLEAR = Finding.DENIED, Finding.SERVED, Finding.INCONCLUSIVE
POLICY = FencePolicy(must_work=(), tools=())


class NetworkProbe:
    """A probe that looks at the network of the fake's own walls."""

    name = "net"
    language = "python"
    threat = "a test's"
    holds = frozenset({DENIED})

    def weaken(self, fence, site):
        """The host's network."""
        return replace(fence, walls=replace(fence.walls, network="host"))

    async def attempt(self, workspace, fence, site):
        """Served where the walls have a network."""
        served = workspace.walls.network == "host"
        evidence = f"{site.places['home']} {site.canaries['loopback']}" if served else "ENETUNREACH"
        return Attempt(finding=SERVED if served else DENIED, evidence=evidence)


class Backend(FakeBackend):
    """A fake backend whose programs all say that they did their work, and which may refuse some walls."""

    def __init__(self, *, refuses=(), broken=()):
        super().__init__(programs={"python3": lambda call: ran(stdout=b"ok")})
        self.refuses, self.broken = refuses, broken

    def options(self, walls):
        """Raises for walls that this backend can't have."""
        if walls.network in self.refuses:
            raise FenceError(f"no network {walls.network!r} here")
        return super().options(walls)

    def open(self, walls, *, run):
        """Raises for walls that this backend fails on."""
        if walls.network in self.broken:
            raise WorkspaceError("the engine is gone")
        return super().open(walls, run=run)


async def table(backend, *probes, policy=POLICY, **more):
    """The rows of breaches alone, by name."""
    rows = await probe_all(backend, policy, "img", run="r", probes=probes, **more)
    return {row.probe: row for row in rows if row.kind == "breach"}


@pytest.mark.anyio
async def test_a_probe_is_tried_with_the_fence_up_and_down():
    """The row has both findings, what was taken down, and evidence without canary or path of the run."""
    backend = Backend()
    row = (await table(backend, NetworkProbe()))["net"]
    assert (row.finding_up, row.finding_down, row.holds) == (DENIED, SERVED, True)
    assert (row.evidence_up, row.evidence_down) == ("ENETUNREACH", "[decoys] [canary]")
    assert row.weakening == "network=host"
    assert sorted(room.walls.network for room in backend.opened) == ["host", "none", "none"]
    assert all(room.closed for room in backend.opened)


@pytest.mark.anyio
async def test_structural_controls_with_one_weakening_share_a_room():
    """Each is an attempt of its own in it; one that uses something up, and one with another weakening, has its own."""

    class First(ProgramProbe):
        name, threat, body, down = "first", "a test's", "", {"network": "host"}

    class Second(First):
        name = "second"

    class Filling(First):
        name, structural = "filling", False

    class Other(First):
        name, down = "other", {"network": "bridge"}

    backend = Backend()
    found = await table(backend, First(), Second(), Filling(), Other())
    assert {name: row.weakening for name, row in found.items()} == {
        "first": "network=host",
        "second": "network=host",
        "filling": "network=host",
        "other": "network=bridge",
    }
    weak = [room for room in backend.opened if room.walls.network != "none"]
    assert sorted((room.walls.network, len(room.calls)) for room in weak) == [("bridge", 1), ("host", 1), ("host", 2)]


@pytest.mark.anyio
async def test_the_strict_side_is_the_policys_own_fence():
    """The attempt with the fence up is made behind exactly what the policy renders to."""
    backend = Backend()
    policy = replace(POLICY, environment={"LANG": "C"})
    await table(backend, NetworkProbe(), policy=policy)
    assert render(policy, "img").walls in [room.walls for room in backend.opened]


@pytest.mark.anyio
async def test_a_wall_that_the_backend_can_not_take_down_is_not_measured():
    """The row then says so, with the backend's reason, and holds nothing."""
    row = (await table(Backend(refuses=("host",)), NetworkProbe()))["net"]
    assert (row.finding_up, row.finding_down, row.holds) == (DENIED, None, None)
    assert row.evidence_down == "no network 'host' here"


@pytest.mark.anyio
async def test_a_host_that_has_nothing_to_show_is_not_measured():
    """So it is where the probe itself says that this host has no such thing."""

    class Nothing(NetworkProbe):
        def weaken(self, fence, site):
            raise NotMeasuredError("this host has no such thing")

    row = (await table(Backend(), Nothing()))["net"]
    assert (row.holds, row.evidence_down) == (None, "this host has no such thing")


@pytest.mark.anyio
async def test_a_control_that_takes_nothing_down_is_no_control():
    """A probe whose weakening is the strict fence again can't vouch."""

    class Same(NetworkProbe):
        def weaken(self, fence, site):
            return fence

    row = (await table(Backend(), Same()))["net"]
    assert (row.finding_down, row.holds, row.evidence_down) == (None, None, "its control takes nothing down")


@pytest.mark.anyio
async def test_a_probe_that_fails_is_inconclusive():
    """An exception of a probe is a finding of its own, with its name; its canaries are blanked out."""

    class Failing(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            raise RuntimeError(site.canaries["dns"])

    row = (await table(Backend(), Failing()))["net"]
    assert (row.finding_up, row.finding_down, row.holds) == (UNCLEAR, UNCLEAR, False)
    assert row.evidence_up == "the probe failed: RuntimeError: [canary]"


@pytest.mark.anyio
async def test_what_an_attempt_can_not_measure_is_not_measured():
    """A probe that says so of its own attempt, with the fence up or down, leaves a row that vouches for nothing."""

    class Busy(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            if workspace.walls.network == "host":
                raise NotMeasuredError("the machine is busy")
            return await super().attempt(workspace, fence, site)

    class Blind(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            raise NotMeasuredError("the machine is busy")

    row = (await table(Backend(), Busy()))["net"]
    assert (row.finding_up, row.finding_down, row.holds, row.evidence_down) == (
        DENIED,
        None,
        None,
        "the machine is busy",
    )
    row = (await table(Backend(), Blind()))["net"]
    assert (row.finding_up, row.finding_down, row.holds, row.evidence_up) == (None, None, None, "the machine is busy")


@pytest.mark.anyio
async def test_a_quiet_probe_shares_the_machine_with_no_other():
    """While it is tried, with the fence up and down, no other attempt is under way and no other room is open."""
    open_now, seen = set(), []

    class Noisy(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            open_now.add(workspace.name)
            await anyio.sleep(0.02)
            open_now.remove(workspace.name)
            return await super().attempt(workspace, fence, site)

    class Quiet(NetworkProbe):
        name, quiet = "quiet", True

        async def attempt(self, workspace, fence, site):
            for _ in range(5):
                await anyio.sleep(0.002)
                seen.append(set(open_now))
            return await super().attempt(workspace, fence, site)

    rows = await table(Backend(), Quiet(), Noisy())
    assert [row.holds for row in rows.values()] == [True, True]
    assert seen == [set()] * 10


@pytest.mark.anyio
async def test_evidence_can_do_nothing_to_a_terminal():
    """What an image named, or a program said, is shown with its escapes written out."""

    class Loud(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            found = await super().attempt(workspace, fence, site)
            return replace(found, evidence="\x1b[2J\x9b1m\n\udcff plain é")

    row = (await table(Backend(), Loud()))["net"]
    assert row.evidence_up == "\\x1b[2J\\x9b1m\\n\\udcff plain é"


@pytest.mark.anyio
@pytest.mark.parametrize("network", ["none", "host"])
async def test_a_backend_that_fails_stops_the_table(network):
    """A failing engine is nobody's finding: the error comes up as it is, whichever side it hit."""
    with pytest.raises(WorkspaceError, match="the engine is gone"):
        await table(Backend(broken=(network,)), NetworkProbe())


@pytest.mark.anyio
async def test_an_attempt_on_a_dead_workspace_stops_the_table():
    """A workspace that dies under a probe is the machine's failure and no finding."""

    class Dying(NetworkProbe):
        async def attempt(self, workspace, fence, site):
            raise WorkspaceError("the container is gone")

    with pytest.raises(WorkspaceError, match="the container is gone"):
        await table(Backend(), Dying())


@pytest.mark.anyio
async def test_a_workspace_that_is_not_as_asked_may_die_of_it(anyio_backend):
    """Where what runs is not what was asked for, a room that an attempt ends is that probe's finding, and it is named."""

    class Ending(NetworkProbe):
        alone = False

        async def attempt(self, workspace, fence, site):
            if workspace.walls.network == "none":
                raise WorkspaceError("the container is gone")
            return await super().attempt(workspace, fence, site)

    class Alone(Ending):
        name, alone = "alone", True

    class Open(Ending):
        name = "open"

        def weaken(self, fence, site):
            return replace(fence, walls=replace(fence.walls, network="bridge"))

    def crooked(name):
        return FakeWorkspace(
            programs={"python3": lambda call: ran(stdout=b"ok")}, facts={"pid_mode": "host"}, name=name
        )

    backend = Backend(broken=("bridge",))
    backend.make = crooked
    found = await table(backend, Ending(), Alone(), Open())
    for name in ("net", "alone", "open"):
        assert found[name].finding_up is UNCLEAR
        assert "the workspace failed: the container is gone" in found[name].evidence_up
    assert (found["net"].finding_down, found["open"].finding_down) == (SERVED, UNCLEAR)
    assert "the workspace failed: the engine is gone" in found["open"].evidence_down


@pytest.mark.anyio
async def test_progress_tells_every_row_and_workspaces_are_limited():
    """Each row is told once, and no more workspaces are open at once than was allowed, the neighbour apart."""

    class Counting(Backend):
        most = 0

        def open(self, walls, *, run):
            Counting.most = max(Counting.most, sum(not room.closed for room in self.opened))
            return super().open(walls, run=run)

    class Slow(NetworkProbe):
        def __init__(self, number):
            self.name = f"net-{number}"

        async def attempt(self, workspace, fence, site):
            await anyio.sleep(0.02)
            return await super().attempt(workspace, fence, site)

    told = []
    probes = [Slow(number) for number in range(6)]
    rows = await probe_all(Counting(), POLICY, "img", run="r", probes=probes, progress=told.append, workspaces=2)
    assert sorted(row.probe for row in told) == sorted(row.probe for row in rows)
    assert Counting.most <= 2  # one may be open when the next is opened, and the neighbour


@pytest.mark.anyio
async def test_rows_are_ready_for_the_record():
    """What a table gives can be written down as it is."""
    rows = await probe_all(Backend(), POLICY, "img", run="r", probes=[NetworkProbe()])
    assert json.loads(json.dumps(rows_to_json(rows)))[-1]["finding_up"] == "DENIED"


def able(**answers):
    """A workspace whose python3 answers by what stands in its program, and whose shell answers like a shell."""

    def python3(call):
        if "-I" not in call.argv:
            return ran(status=127)
        key = next((name for name in answers if name in call.argv[4]), "")
        return ran(stdout=json.dumps({"tries": [answers.get(key, {"what": "x", "signature": "EPERM"})]}).encode())

    def bash(call):
        path = call.argv[-1].split()[-1].removeprefix("/workspace/")
        return ran(stdout=call.workspace.files[path]) if path in call.workspace.files else ran(status=1)

    return FakeWorkspace(programs={"python3": python3, "bash": bash})


RULES = render(FencePolicy(), "img").rules


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["write-workspace", "run-python3", "read-task"])
async def test_an_ability_that_is_denied_is_told(name):
    """A seat that can't do its work is DENIED or INCONCLUSIVE, never quietly SERVED."""
    denied = able(attempt={"what": "door", "signature": "EACCES"})
    assert (await try_ability(name, denied, RULES)).finding is DENIED
    assert (await try_ability(name, FakeWorkspace(), RULES)).finding is UNCLEAR


@pytest.mark.anyio
async def test_the_task_is_read_back_as_it_was_laid_in():
    """Reading some bytes is not reading the task."""
    read = able(attempt={"what": "task", "got": b"Read this line.".hex()})
    other = able(attempt={"what": "task", "got": b"Another line".hex()})
    assert (await try_ability("read-task", read, RULES)).finding is SERVED
    assert (await try_ability("read-task", other, RULES)).finding is UNCLEAR


@pytest.mark.anyio
async def test_tools_work_where_they_may():
    """A policy that lets a seat write in one folder only is asked to work there."""
    rules = replace(RULES, writable=("/workspace/src",))
    room = able()
    room.files["src/main.py"] = ""
    assert (await try_ability("tools", room, rules)).finding is SERVED


@pytest.mark.anyio
async def test_every_tool_of_the_policy_must_work():
    """With the policy's rules each tool does its honest work; with rules that shut the workspace the failing is named."""
    assert (await try_ability("tools", able(), RULES)).finding is SERVED
    shut = replace(RULES, writable=())
    found = await try_ability("tools", able(), shut)
    assert found.finding is UNCLEAR
    assert "write: refused" in found.evidence
