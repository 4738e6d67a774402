"""The gate of one cell, on fakes: it says yes to what was qualified and pinned, and no to each thing that is another."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fences.cell_gate import CellGate, GateReading, open_cell_gate, structural
from fences.policy import FencePolicy
from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.rendering import layer_digests, render
from fences.rows import ProbeRow
from harness.canonical import digest_bytes
from harness.clock import SystemClock
from harness.errors import FenceError, WorkspaceError
from harness.tree import Tree
from harness.views import Attempt, Finding, Site
from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE
from tests.fake_workspace import FakeBackend, FakeWorkspace, ran
from tests.fences.test_fence_running import FACTS

pytestmark = pytest.mark.anyio

DENIED, ABSENT, SERVED = Finding.DENIED, Finding.ABSENT, Finding.SERVED
POLICY = FencePolicy(requires=())
TASK = Tree.of({"task.md": "Do it.", "src/main.py": "x = 1"})
SITE = Site(canaries={"loopback": "feedc0de"}, places={})


class Door(ProgramProbe):
    """A probe whose program is scripted by the test."""

    name, threat, body, canary = "door", "a test's", "", "loopback"


class Window(ProgramProbe):
    """Another."""

    name, threat, body = "window", "a test's", ""


GOOD = {
    "door": {"what": "door", "signature": "EPERM"},
    "window": {"what": "window", "signature": "ENOENT"},
    "must-work-write-workspace": {"what": "w", "fact": "written"},
    "must-work-run-python3": {"what": "r", "fact": "ran"},
    "task.md": digest_bytes(b"Do it."),
    "src/main.py": digest_bytes(b"x = 1"),
}


class Unstartable(FakeWorkspace):
    """A workspace that is there and in which no program can be started."""

    async def exec(self, *_, **__):
        """Never."""
        raise WorkspaceError("no place for a process")


def room(*, facts=FACTS, left=(), answer=None, **changes):
    """A workspace whose batch reports what is `GOOD`, with `changes` (a name's `_` stands for `-`)."""
    said = {**GOOD, **{name.replace("_", "-"): value for name, value in changes.items()}}
    said |= {path: value for path, value in changes.items() if path in GOOD}

    def python3(call):
        if answer is not None:
            return answer
        found = {}
        for name, _body, arguments in json.loads(call.stdin)["bodies"]:
            if name == "must-work-read-task":
                paths = arguments["paths"]
                found[name] = {"tries": [{"what": path, "fact": said[path]} for path in paths]}
            else:
                found[name] = {"tries": [said[name]]}
        whole = {"tries": [{"what": "batch", "signature": "REPORTED"}], "found": found, "ms": {}, "left": list(left)}
        return ran(stdout=json.dumps(whole).encode())

    return FakeWorkspace(programs={"python3": python3}, facts=facts)


def gate(backend=None, **changes):
    """A gate that lets `room()` pass."""
    backend = backend or FakeBackend()
    pinned = {**layer_digests(POLICY, "img", backend), "policy": POLICY.digest, "image": "sha256:fake-img"}
    given = {
        "backend": backend,
        "policy": POLICY,
        "image": "img",
        "fence": render(POLICY, "img"),
        "site": SITE,
        "probes": (Door(), Window()),
        "qualified": {"door": DENIED, "window": ABSENT},
        "pinned": pinned,
        "clock": SystemClock(),
    }
    return CellGate(**{**given, **changes})


async def test_a_room_as_it_was_qualified_passes():
    """At both ends, with one program each, and each part's time."""
    workspace = room()
    before = await gate().before(workspace, TASK)
    assert before.findings == {"door": DENIED, "window": ABSENT}
    assert set(before.ms) == {"layers", "looking", "weighing", "all"}
    assert before.ms["all"] == pytest.approx(sum(before.ms[name] for name in before.ms if name != "all"), abs=0.01)
    assert len(workspace.calls) == 1
    after = await gate().after(workspace)
    assert (after.findings, after.unclear) == (before.findings, {})
    assert len(workspace.calls) == 2
    assert json.loads(json.dumps(after.to_json()))["findings"] == {"door": "DENIED", "window": "ABSENT"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"door": {"what": "d", "got": b"feedc0de".hex()}}, "probe 'door': SERVED (d: the canary came back)"),
        ({"window": {"what": "w", "fact": "open"}}, "probe 'window': SERVED (w: open); it was ABSENT when qualified"),
        ({"window": {"what": "w", "signature": "EPERM"}}, "probe 'window': DENIED (w: EPERM); it was ABSENT"),
        ({"door": {"what": "d", "signature": "TIMEOUT"}}, "probe 'door': INCONCLUSIVE"),
        (
            {"must_work_write_workspace": {"what": "w", "signature": "EROFS"}},
            "must-work-write-workspace: DENIED (w: EROFS)",
        ),
        ({"must_work_run_python3": {"what": "r", "signature": "EMPTY"}}, "must-work-run-python3: INCONCLUSIVE"),
        ({"task.md": digest_bytes(b"Do that.")}, "must-work-read-task: task.md: other bytes than were laid in"),
        ({"left": ["/tmp/x: no"]}, "left a trace that the seat would find: /tmp/x: no"),
        ({"answer": ran(status=127), "facts": {**FACTS, "pid_mode": "host"}}, "it could not look: exit 127"),
        ({"facts": {**FACTS, "network_mode": "bridge"}}, "network_mode: asked for none, running with bridge"),
        ({"facts": {**FACTS, "mounts": [{"source": "/", "target": "/mnt", "read_only": True}]}}, "mounts: asked for"),
    ],
)
async def test_each_thing_that_is_another_refuses(changed, said):
    """Before the seat, any disagreement refuses the cell, and is named."""
    with pytest.raises(FenceError) as caught:
        await gate().before(room(**changed), TASK)
    assert said in str(caught.value)
    assert "feedc0de" not in str(caught.value)


@pytest.mark.parametrize("pin", ["walls", "tool rules", "gateway", "policy", "image"])
async def test_what_is_rendered_must_be_what_was_pinned(pin):
    """Each layer, the policy and the image, at both ends."""
    good = gate()
    other = replace(good, pinned={**good.pinned, pin: "0" * 64})
    for look in (other.before(room(), TASK), other.after(room())):
        with pytest.raises(FenceError, match=f"pin '{pin}': frozen as 0000"):
            await look


async def test_a_backend_that_renders_something_else_meanwhile_is_found():
    """The options are rendered again for each cell, not remembered."""

    class Drifting(FakeBackend):
        drifted = False

        def options(self, walls):
            return {**super().options(walls), **({"privileged": True} if self.drifted else {})}

    backend = Drifting()
    guarding = gate(backend)
    await guarding.before(room(), TASK)
    backend.drifted = True
    with pytest.raises(FenceError, match="pin 'walls'"):
        await guarding.before(room(), TASK)


async def test_an_end_that_can_not_be_told_is_no_breach():
    """A seat that filled its disk must not void what it did; what was open then is a breach all the same."""
    full = await gate().after(room(answer=ran(status=137)))
    assert "killed" in full.unclear["gate"]
    assert full.findings == {}
    gone = await gate().after(Unstartable(facts=FACTS))
    assert gone.unclear == {"gate": "WorkspaceError: no place for a process"}
    with pytest.raises(WorkspaceError, match="no place for a process"):
        await gate().before(Unstartable(facts=FACTS), TASK)
    one = await gate().after(room(window={"what": "w", "signature": "OSError"}))
    assert one.unclear == {"window": "w: OSError"}
    with pytest.raises(FenceError, match="at its end: probe 'door': SERVED"):
        await gate().after(room(door={"what": "d", "got": b"feedc0de".hex()}))
    with pytest.raises(FenceError, match="pid_mode"):
        await gate().after(room(facts={**FACTS, "pid_mode": "host"}))


async def test_a_room_in_which_nobody_could_look_is_no_open_fence():
    """It has no seat, and is tried again like any workspace that failed."""
    with pytest.raises(WorkspaceError, match="could not look: the program timed out"):
        await gate().before(room(answer=ran(status=None, timed_out=True)), TASK)


async def test_every_reason_is_told_at_once():
    """What runs, what was found and what does not work, together: one hole is often seen by several."""
    served = {"what": "d", "got": b"feedc0de".hex()}
    with pytest.raises(FenceError) as caught:
        await gate().before(room(facts={**FACTS, "pid_mode": "host"}, door=served, left=["/tmp/x"]), TASK)
    for said in ("pid_mode: asked for private", "probe 'door': SERVED", "left a trace"):
        assert said in str(caught.value)


async def test_a_model_that_can_not_be_reached_refuses():
    """Behind the gateway the seat's one model must answer; a workspace without a forwarder has none."""
    policy = replace(POLICY, network="gateway", must_work=("model-reached",))
    backend = FakeBackend()
    pinned = {**layer_digests(policy, "img", backend), "policy": policy.digest, "image": "sha256:fake-img"}
    folder = {"source": GATEWAY_SOURCE, "target": GATEWAY_FOLDER, "read_only": True}
    facts = {**FACTS, "network_mode": "gateway", "mounts": [folder]}
    with pytest.raises(FenceError, match="must-work-model-reached: "):
        await gate(policy=policy, fence=render(policy, "img"), pinned=pinned).before(room(facts=facts), TASK)


async def test_a_policy_that_asks_for_less_is_asked_less():
    """The positive list is the policy's; a task without files has nothing to be read back."""
    policy = replace(POLICY, must_work=())
    backend = FakeBackend()
    pinned = {**layer_digests(policy, "img", backend), "policy": policy.digest, "image": "sha256:fake-img"}
    lax = gate(policy=policy, fence=render(policy, "img"), pinned=pinned)
    broken = {"what": "w", "signature": "EROFS"}
    assert isinstance(await lax.before(room(must_work_write_workspace=broken), TASK), GateReading)
    assert isinstance(await gate().before(room(), Tree()), GateReading)


async def test_the_gate_of_a_session_takes_what_was_qualified():
    """Structural probes with a row that was tried; the decoys are up while it is open."""
    names = [probe.name for probe in structural(registered_probes())]
    assert len(names) >= 20
    tried, untried, *_rest = names
    rows = [
        ProbeRow.of(probe=tried, language="python", expected=[DENIED], up=(DENIED, ""), down=(SERVED, "")),
        ProbeRow.of(probe=untried, language="python", expected=[DENIED], up=(None, "not enforced here: x")),
    ]
    async with open_cell_gate(FakeBackend(), POLICY, "img", rows=rows, pinned={}, clock=SystemClock()) as guarding:
        assert [probe.name for probe in guarding.probes] == [tried]
        assert guarding.qualified == {tried: DENIED}
        assert "home" in guarding.site.places


def test_a_probe_with_an_attempt_of_its_own_is_not_structural():
    """What is not one program can't run with others as one; nor is what says that it uses something up."""

    class Own(Door):
        async def attempt(self, workspace, fence, site):
            return Attempt(finding=DENIED, evidence="")

    class Filling(Door):
        structural = False

    class Other:
        name = "other"

    assert [type(probe) for probe in structural([Door(), Own(), Filling(), Other()])] == [Door]
