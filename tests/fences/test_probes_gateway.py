"""
The probes of the gateway: the hostile requests go to the real gateway, to a byte proxy, and to nobody; and an answer that
is no answer is told from a refusal. That they go through the workspace's own forwarder is shown on live backends.
"""

from __future__ import annotations

import base64
import json
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.to_thread
import pytest

from fences.abilities import try_ability
from fences.classifier import Try
from fences.gateway_talk import Sent, Upstream, body, gateway_up, post, send_all
from fences.policy import MODEL_REACHED, MUST_WORK, FencePolicy
from fences.probes_gateway import GatewayKeyProbe, GatewayPathProbe, GatewayTokensProbe
from fences.probes_gateway_door import GatewayFloodProbe, GatewayFolderProbe
from fences.receipt import registered_probes
from fences.rendering import render
from fences.stage import set_the_stage
from fences.weakenings import NotMeasuredError
from harness.errors import ExperimentError, WorkspaceError
from harness.views import Finding
from harness.walls import GatewayRules
from tests.fake_workspace import FakeWorkspace, ran

NONE = render(FencePolicy(), "img")
OPEN = render(FencePolicy(network="gateway"), "img")
PROBES = [probe for probe in registered_probes() if probe.language == "gateway"]
ASKING = [probe for probe in PROBES if not isinstance(probe, GatewayFolderProbe)]


class Speaker(FakeWorkspace):
    """
    A workspace whose program speaks with the gateway's socket from right here, as one would through a forwarder. Where
    nobody listens, or the folder is None, it is refused.
    """

    def __init__(self, folder=None):
        super().__init__(programs={"python3": self.speak})
        self.gateway = None if folder is None else Path(folder)

    async def speak(self, call):
        """What the probes' programs do, and how they tell it."""
        told = json.loads(call.argv[-1])
        try:
            if "number" in told:
                tries = [{"what": "connections", **await self.hold(told["number"], told["most"], told["patience"])}]
            else:
                tries = [{"what": what, **await self.ask(data, more)} for what, data, more in told["requests"]]
        except OSError:
            tries = [{"what": "connect", "signature": "ECONNREFUSED"}]
        return ran(stdout=json.dumps({"tries": tries}).encode())

    async def connect(self):
        """A connection to the gateway's socket."""
        if self.gateway is None:
            raise ConnectionRefusedError
        return await anyio.connect_unix(self.gateway / "model.sock")

    async def ask(self, data, more):
        """One request and all that is answered."""
        said = bytearray()
        async with await self.connect() as peer:
            with suppress(anyio.BrokenResourceError, OSError):
                await peer.send(base64.b64decode(data) + b"x" * more)
                await peer.send_eof()
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    said += await peer.receive()
        return {"got": said.hex()} if said else {"signature": "CLOSED"}

    async def hold(self, number, most, patience):
        """Many connections at once, each with the beginning of a request; how many are not turned away."""
        async with await self.connect():
            """There is somebody."""
        held = await anyio.to_thread.run_sync(self._held, number, most, patience)
        return {"fact": "more are held than the rules allow"} if held > most else {"signature": "HELD"}

    def _held(self, number, most, patience):
        with ExitStack() as stack:
            peers = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(number)]
            for peer in peers:
                peer.connect(str(self.gateway / "model.sock"))
                with suppress(BrokenPipeError, ConnectionResetError):
                    peer.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nX-Slow: ")
                peer.setblocking(False)
            held, until = list(peers), time.monotonic() + patience
            while len(held) > most and time.monotonic() < until:
                time.sleep(0.01)
                held = [peer for peer in held if waits(peer)]
            return len(held)


def waits(peer):
    """Whether nothing has come to a connection yet, not even its end."""
    try:
        peer.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Dead(Speaker):
    """A workspace that has a gateway's folder, and whose forwarder is not there."""

    async def connect(self):
        """Refused."""
        raise ConnectionRefusedError


def names_in(folder):
    """What is in the folder."""
    return [path.name for path in Path(folder).iterdir()]


@pytest.fixture
def folder():
    """A gateway's folder, whose path is short enough for a socket."""
    with TemporaryDirectory() as place:
        yield place


@pytest.mark.anyio
@pytest.mark.parametrize("probe", ASKING, ids=lambda probe: probe.name)
async def test_the_gateway_refuses_and_a_byte_proxy_serves(probe, folder):
    """The real gateway turns every one down; the byte proxy in its place lets one through."""
    found = await probe.attempt(Speaker(folder), OPEN, None)
    assert found.finding is Finding.DENIED, found.evidence
    weak = probe.weaken(NONE, None)
    assert (weak.walls.network, weak.lifted) == ("gateway", ("gateway-rules",))
    assert (await probe.attempt(Speaker(folder), weak, None)).finding is Finding.SERVED


@pytest.mark.anyio
@pytest.mark.parametrize("probe", ASKING, ids=lambda probe: probe.name)
async def test_without_a_gateway_nothing_listens(probe, monkeypatch):
    """Each is ABSENT while the host's toy answers, and INCONCLUSIVE when that is down outside too."""
    room = Speaker()
    found = await probe.attempt(room, NONE, None)
    assert found.finding is Finding.ABSENT, found.evidence

    async def down(self):
        return False

    monkeypatch.setattr(Upstream, "up", down)
    found = await probe.attempt(room, NONE, None)
    assert (found.finding, "down outside too" in found.evidence) == (Finding.INCONCLUSIVE, True)


@pytest.mark.anyio
@pytest.mark.parametrize("probe", ASKING, ids=lambda probe: probe.name)
async def test_a_gateway_that_answers_nobody_refuses_nothing(probe, folder):
    """Behind a dead gateway, and in a workspace whose program does not run, nothing may be concluded."""
    assert (await probe.attempt(Dead(folder), OPEN, None)).finding is Finding.INCONCLUSIVE
    missing = FakeWorkspace(programs={"python3": lambda call: ran(status=127)})
    assert (await probe.attempt(missing, NONE, None)).finding is Finding.INCONCLUSIVE


def test_an_answer_is_judged_by_what_it_is():
    """The canary, a refusal, a failure of the gateway's own, and what is no HTTP are four things."""
    probe, upstream = GatewayPathProbe(), Upstream()

    def said(text, signature=None):
        return probe.judged(Try(what="x", got=text, signature=signature), upstream)

    assert said(b"HTTP/1.1 200 OK\r\n\r\n" + upstream.canary.encode()).got is not None
    assert said(b"HTTP/1.1 403 Forbidden\r\n\r\n").signature == "REFUSED"
    assert said(b"HTTP/1.1 505 No\r\n\r\n").signature == "REFUSED"
    assert said(b"HTTP/1.1 500 Oh\r\n\r\n").signature == "HTTP 500"
    assert said(b"HTTP/1.1 429 Wait\r\n\r\n").signature == "HTTP 429"
    assert said(b"HTTP/1.1 200 OK\r\n\r\nelse").signature == "HTTP 200"
    assert said(b"ssh-2.0").signature == "an answer that is no HTTP"
    assert said(None, "CLOSED").signature == "CLOSED"


def test_what_reached_the_model_counts_whatever_came_back():
    """A second request at the model is a breach; a refusal that the gateway does not tell of is unclear."""
    probe, upstream = GatewayPathProbe(), Upstream()
    refused = [Try(what="x", got=b"HTTP/1.1 403 Forbidden\r\n\r\n")]
    upstream.requests.extend(["honest", "hostile"])
    upstream.counts["refused"] = 1
    assert probe.judged_all(refused, upstream)[-1].fact == "more than the honest request reached it"
    upstream.requests.pop()
    upstream.counts["refused"] = 0
    assert "fewer refusals" in probe.judged_all(refused, upstream)[-1].signature
    upstream.counts["refused"] = 1
    assert [item.signature for item in probe.judged_all(refused, upstream)] == ["REFUSED"]
    many = Upstream(heard=bytearray(b'{"max_tokens": 1000000000}'))
    assert GatewayTokensProbe().judged(Try(what="max_tokens", got=many.canary.encode()), many).fact is not None
    key = Upstream(heard=bytearray(b"Cookie: proctor-own-cookie"))
    assert GatewayKeyProbe().judged(Try(what="Cookie", got=b"HTTP/1.1 200 OK\r\n\r\n"), key).fact is not None


@pytest.mark.anyio
async def test_the_gateways_folder_is_looked_at_from_the_host(folder):
    """A file that the host sees there is SERVED, as is a socket that is gone; EROFS is DENIED, a claim is unclear."""
    probe = GatewayFolderProbe()

    def says(signature, act=lambda told: None):
        def program(call):
            act(json.loads(call.argv[-1]))
            tries = [{"what": "a file", "signature": signature}]
            return ran(stdout=json.dumps({"tries": tries}).encode())

        return program

    async with set_the_stage() as site:

        async def found(program, gateway=Path(folder)):
            room = FakeWorkspace(programs={"python3": program})
            room.gateway = gateway
            return (await probe.attempt(room, OPEN, site)).finding

        assert await found(says("EROFS")) is Finding.DENIED
        assert await found(says("ENOENT"), None) is Finding.ABSENT
        assert await found(says("WROTE")) is Finding.INCONCLUSIVE
        written = says("EROFS", lambda told: Path(folder, told["name"]).write_text("put"))
        assert await found(written) is Finding.SERVED
        taken = says("EROFS", lambda told: Path(folder, told["socket"]).unlink())
        assert await found(taken) is Finding.SERVED
        assert names_in(folder) == []
        weak = probe.weaken(OPEN, site)
        assert (weak.walls.network, weak.walls.mounts[-1].target) == ("none", "/run/gateway")


@pytest.mark.anyio
async def test_an_error_of_the_workspaces_comes_up_as_it_is(folder):
    """What fails while the gateway is up is not wrapped, so that blame stays where it belongs."""
    for rules in (GatewayRules(), None):
        with pytest.raises(WorkspaceError, match="gone"):
            async with gateway_up(Speaker(folder), rules):
                raise WorkspaceError("gone")
        assert names_in(folder) == []


@pytest.mark.anyio
async def test_rules_beyond_the_forwarders_own_are_not_measured():
    """A policy that allows more connections than a forwarder joins at once can't be flooded by one."""
    wide = replace(NONE, gateway=GatewayRules(connections=60))
    with pytest.raises(NotMeasuredError, match="more connections"):
        GatewayFloodProbe().weaken(wide, None)
    with pytest.raises(NotMeasuredError, match="more connections"):
        await GatewayFloodProbe().attempt(Speaker(), wide, None)


@pytest.mark.anyio
@pytest.mark.parametrize("probe", ASKING, ids=lambda probe: probe.name)
async def test_narrow_and_wide_rules_are_probed_too(probe, folder):
    """Whatever figures a policy has, and whichever wire it serves, an honest request gets through and no other."""
    narrow = GatewayRules(wires=("anthropic",), body_bytes=4096, header_bytes=2048, connections=2, requests=1)
    wide = GatewayRules(body_bytes=1 << 30, header_bytes=1 << 20, connections=40)
    for rules in (narrow, wide):
        found = await probe.attempt(Speaker(folder), replace(OPEN, gateway=rules), None)
        assert found.finding is Finding.DENIED, found.evidence


@pytest.mark.anyio
async def test_the_model_is_reached_on_every_wire(folder):
    """A workspace with a gateway reaches the scripted model; a dead one and one without do not."""
    room = Speaker(folder)
    found = await try_ability(MODEL_REACHED, room, OPEN.rules)
    assert (found.finding, found.evidence.count("came back")) == (Finding.SERVED, 3)
    async with gateway_up(room, GatewayRules()) as upstream:
        (served,) = await send_all(room, [Sent(what="honest", data=post(body()))])
        assert upstream.canary.encode() in served.got
    assert (await try_ability(MODEL_REACHED, Speaker(), NONE.rules)).finding is Finding.ABSENT
    assert (await try_ability(MODEL_REACHED, Dead(folder), OPEN.rules)).finding is not Finding.SERVED


def test_a_policy_with_a_gateway_must_reach_its_model():
    """An experiment's policy lists it unless it says otherwise; without a gateway nobody may."""
    assert FencePolicy.from_mapping({"network": "gateway"}).must_work == (*MUST_WORK, MODEL_REACHED)
    assert FencePolicy.from_mapping({"network": "gateway", "must_work": ["tools"]}).must_work == ("tools",)
    assert FencePolicy.from_mapping({}).must_work == MUST_WORK
    with pytest.raises(ExperimentError, match="expected 'gateway'"):
        FencePolicy(must_work=(MODEL_REACHED,))
