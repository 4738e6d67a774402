"""
The probes of the seat's tools say DENIED, SERVED and INCONCLUSIVE when they must. The files, links and races are real, and
the far end of the tools is the real one; that they hold behind real walls is shown on live backends.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest

from fences.policy import FencePolicy
from fences.probes_helper import HelperProbe
from fences.probes_tools import (
    EditToolProbe,
    ListToolProbe,
    ReadToolProbe,
    RunToolProbe,
    SearchToolProbe,
    WriteToolProbe,
)
from fences.rendering import render
from fences.stage import set_the_stage
from fences.tool_race import race
from fences.weakenings import NotMeasuredError
from harness.views import Finding
from harness.walls import ToolRules
from harness.workspaces.file_helper import open_helper
from tests.fake_workspace import FakeWorkspace, ran
from tests.fences.unwalled import UnwalledRoom

STRICT = render(FencePolicy(), "img")
TOOLS = [ReadToolProbe(), ListToolProbe(), SearchToolProbe(), WriteToolProbe(), EditToolProbe()]


@pytest.fixture
def anyio_backend():
    """Real processes are started here; that the room's code runs on both loops is shown by tests without them."""
    return "asyncio"


def report(*tries):
    """A program that reports these tries."""
    return ran(stdout=json.dumps({"tries": list(tries)}).encode())


async def attempt(probe, result, site, fence=STRICT):
    """What the probe makes of a workspace whose python3 ends with `result`."""
    return await probe.attempt(FakeWorkspace(programs={"python3": lambda call: result}), fence, site)


class OpenRoom(UnwalledRoom):
    """A room whose file tool reaches the decoys of `home` too, as behind a mount."""

    def __init__(self, home):
        super().__init__()
        self.home = home

    def _rooted(self, stdin):
        """Requests below the decoys' own home stay there; no other place of the host can be named."""
        lengths = struct.Struct(">II")
        out, at = b"", 0
        frames = super()._rooted(stdin)
        while at < len(frames):
            head, body = lengths.unpack_from(frames, at)
            at += lengths.size
            ask = json.loads(frames[at : at + head])
            if "root" in ask:
                ask["root"] = ask["root"].replace(f"/nonexistent{self.home}", self.home)
            text = json.dumps(ask).encode()
            out += lengths.pack(len(text), body) + text + frames[at + head : at + head + body]
            at += head + body
        return out


@pytest.mark.anyio
async def test_a_tool_behind_its_rules_turns_every_door_down():
    """With the policy's rules every door is REFUSED by the tool itself, though nothing else stands in its way."""
    async with set_the_stage() as site:
        for probe in TOOLS:
            found = await probe.attempt(OpenRoom(site.places["home"]), STRICT, site)
            assert found.finding is Finding.DENIED, (probe.name, found.evidence)
            for door in ("outside", "dots", "link to the decoy", "sibling", "denied /root"):
                assert f"{door}: REFUSED" in found.evidence, probe.name


@pytest.mark.anyio
async def test_a_tool_with_its_rules_down_is_served():
    """With the control's rules the tool gets at the decoy, and the evidence is the canary or the host's own look."""
    async with set_the_stage() as site:
        for probe in TOOLS:
            weak = probe.weaken(STRICT, site)
            found = await probe.attempt(OpenRoom(site.places["home"]), weak, site)
            assert found.finding is Finding.SERVED, (probe.name, found.evidence)
            assert site.canaries[probe.canary] not in found.evidence


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("standing", "finding", "said"),
    [
        ("absent", Finding.INCONCLUSIVE, "outside: the rules let it through to ENOENT"),
        ("failed", Finding.INCONCLUSIVE, "outside: the tool failed"),
        ("served", Finding.INCONCLUSIVE, "outside: "),
        ("refused", Finding.DENIED, "outside: REFUSED"),
    ],
)
async def test_a_tool_with_a_hole_does_not_hide_behind_the_walls(monkeypatch, standing, finding, said):
    """A call that a tool lets through, and the walls then answer with 'not there', is no refusal of the rules."""

    async def call(workspace, rules, tool, arguments, *, helper=None):
        return standing, "some text"

    monkeypatch.setattr("fences.probes_tools.call", call)
    monkeypatch.setattr("fences.tool_race.call", call)
    monkeypatch.setattr("fences.tool_race._SECONDS", 0.05)
    monkeypatch.setattr("fences.tool_race._MOST_S", 0.1)
    async with set_the_stage() as site:
        for probe in TOOLS:
            found = await probe.attempt(OpenRoom(site.places["home"]), STRICT, site)
            assert found.finding is finding, (probe.name, found.evidence)
            assert said in found.evidence


@pytest.mark.anyio
async def test_what_the_policy_opens_is_no_breach():
    """A policy that lets tools into /tmp and /etc is probed by doors outside of those, with decoys elsewhere."""
    rules = replace(STRICT.rules, readable=("/workspace", "/tmp", "/etc"), writable=("/workspace", "/tmp"))
    fence = replace(STRICT, rules=rules)
    async with set_the_stage() as site:
        for probe in TOOLS:
            found = await probe.attempt(OpenRoom(site.places["home"]), fence, site)
            assert found.finding is Finding.DENIED, (probe.name, found.evidence)
            weak = probe.weaken(fence, site)
            assert weak.walls.mounts[0].target == "/dev/shm/proctor-decoy"
            assert weak.walls.mounts[0].source == site.places["tools-open-path"]
        everywhere = replace(fence, rules=replace(rules, readable=("/workspace", "/tmp", "/dev")))
        with pytest.raises(NotMeasuredError, match="no place is left"):
            ReadToolProbe().weaken(everywhere, site)


@pytest.mark.anyio
async def test_a_tool_probe_needs_its_links():
    """Links that could not be laid make the attempt INCONCLUSIVE: half the doors were not tried."""
    async with set_the_stage() as site:
        failed = report({"what": "prepare", "signature": "EROFS"})
        for result in (failed, ran(status=127)):
            found = await attempt(ReadToolProbe(), result, site)
            assert (found.finding, "links" in found.evidence) == (Finding.INCONCLUSIVE, True)


@pytest.mark.anyio
async def test_the_run_tool_is_probed_by_what_its_program_reports():
    """Through the run tool the same program tells DENIED, SERVED (file or variable) and INCONCLUSIVE apart."""
    probe = RunToolProbe()
    file, own = {"what": "host file"}, {"what": "environment", "signature": "NOTHING"}

    async def found(result):
        room = FakeWorkspace(programs={"bash": lambda call: result})
        return (await probe.attempt(room, STRICT, site)).finding

    async with set_the_stage() as site:
        canary, secret = site.canaries["host-file"].encode().hex(), site.canaries["variable"].encode().hex()
        assert await found(report({**file, "signature": "EACCES"}, own)) is Finding.DENIED
        assert await found(report({**file, "signature": "ENOENT"}, own)) is Finding.ABSENT
        assert await found(report({**file, "got": canary}, own)) is Finding.SERVED
        leaked = {"what": "environment", "got": secret}
        assert await found(report({**file, "signature": "ENOENT"}, leaked)) is Finding.SERVED
        assert await found(ran(stdout=b"bash: python3: not found", status=127)) is Finding.INCONCLUSIVE
        assert await found(ran(status=None, timed_out=True)) is Finding.INCONCLUSIVE
        rules = ToolRules(tools=frozenset({"read"}), readable=("/workspace",), writable=())
        without = replace(STRICT, rules=rules)
        refused = await probe.attempt(FakeWorkspace(), without, site)
        assert refused.finding is Finding.DENIED


class NaiveHelper:
    """What answers as a tool would that looks at a path first and opens it then."""

    def __init__(self, room, answers):
        self.room, self.answers = room, iter(answers)

    async def ask(self, header, body=b"", *, room=0, timeout_s=20.0, what):
        """The next answer, whatever was asked."""
        data = next(self.answers)
        return {"ok": True, "total": 1, "looked": len(data), "size": len(data), "cut": False}, data

    async def sweep(self):
        """Nothing is left."""
        return 0


@pytest.mark.anyio
async def test_a_race_that_is_lost_is_served():
    """The first answer that is not the seat's own file is brought back, though others before it were."""
    async with set_the_stage() as site:
        room = UnwalledRoom()
        answers = [b"own", b"own", f"needle {site.canaries['tool']}".encode()]
        found = await race(
            room, STRICT.rules, NaiveHelper(room, answers), decoy=site.places["tools-path"], target="/secret.txt"
        )
        assert site.canaries["tool"].encode() in found.got


@pytest.mark.anyio
async def test_a_race_that_nobody_ran_in_says_nothing():
    """Without the racer there is no finding; with it the real tool meets the link, and never follows it."""
    async with set_the_stage() as site:
        told = {"decoy": site.places["tools-path"], "target": "/secret.txt"}
        lame = UnwalledRoom(before=["false"])
        async with open_helper(lame) as helper:
            found = await race(lame, STRICT.rules, helper, **told)
        assert found.signature == "the race did not begin"
        room = UnwalledRoom()
        async with open_helper(room) as helper:
            found = await race(room, STRICT.rules, helper, **told)
        assert (found.got, found.signature) == (None, "REFUSED")


class HelperRoom(FakeWorkspace):
    """A fake in which the program of the helper's probe says what the test has it say; a kill ends the far end."""

    def __init__(self, output, memory, life="KILLED", *, ends=True, forged=b""):
        super().__init__(programs={"python3": self.tell})
        self.words = {"its output": output, "its memory": memory, "its life": life}
        self.ends, self.forged = ends, forged

    async def tell(self, call):
        """The report, and what it did meanwhile."""
        if '"asked"' not in call.argv[-1]:
            return ran(stdout=b"here\n")
        told = json.loads(call.argv[-1])
        if "its output" in told["asked"] and self.forged:
            self.streams[-1].say(self.forged)
        if "its life" in told["asked"] and self.ends:
            await self.streams[-1].aclose()
        return report(*({"what": what, "signature": self.words[what]} for what in told["asked"]))


@pytest.mark.anyio
async def test_the_helper_is_probed_by_what_the_harness_hears():
    """A denied write, a helper that is out of sight, a forged answer that was heard, and a kill that nobody noticed."""
    probe, forged = HelperProbe(), b"forged by the seat, and long enough to be a header of its own"
    weak = probe.weaken(STRICT, None)
    cases = [
        (HelperRoom("EACCES", "EACCES"), Finding.DENIED, "its life: BACK"),
        (HelperRoom("NOTHING", "NOTHING", "NOTHING", ends=False), Finding.ABSENT, "its output: NOTHING"),
        (HelperRoom("WROTE", "EACCES", forged=forged), Finding.SERVED, "heard the forged answer"),
        (HelperRoom("WROTE", "EACCES"), Finding.INCONCLUSIVE, "nobody heard it"),
        (HelperRoom("EACCES", "EACCES", ends=False), Finding.INCONCLUSIVE, "nobody told that it was killed"),
        (HelperRoom("EACCES", "EACCES", "ESRCH", ends=False), Finding.DENIED, "its memory: EACCES"),
    ]
    for room, finding, said in cases:
        found = await probe.attempt(room, STRICT, None)
        assert found.finding is finding, (said, found.evidence)
        assert said in found.evidence
    with pytest.raises(NotMeasuredError, match="don't see each other"):
        await probe.attempt(HelperRoom("NOTHING", "NOTHING", "NOTHING", ends=False), weak, None)
    broken = FakeWorkspace(programs={"python3": lambda call: ran(status=127)})
    assert (await probe.attempt(broken, STRICT, None)).finding is Finding.INCONCLUSIVE
