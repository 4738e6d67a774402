"""Probes of the gateway's door: how many may stand in it, and the folder that its socket is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.to_thread

from fences.classifier import weigh
from fences.gateway_talk import NOBODY, NOTHING, SIGNS, gateway_up, rules_of
from fences.programs import run_program
from fences.weakenings import NotMeasuredError, mounted, walls_changed
from harness.clock import fresh_token
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site
from harness.walls import GATEWAY_FOLDER, GATEWAY_PORT, GATEWAY_SOCKET

__all__ = ["GatewayFloodProbe", "GatewayFolderProbe"]


class GatewayFloodProbe:
    """More connections at once than the rules allow, each with a request that never ends."""

    name = "gateway-flood"
    language = "gateway"
    threat = "the seat holds so many connections that the harness has no descriptor left for other cells"
    holds = frozenset({Finding.ABSENT, Finding.DENIED})
    structural: ClassVar[bool] = False
    BEYOND: ClassVar[int] = 6
    PATIENCE_S: ClassVar[float] = 5.0
    """For as long the gateway may take to turn away who is too many: a machine may be slow."""
    MOST: ClassVar[int] = 48
    """How many the workspace's own forwarder joins without a queue, with some to spare."""

    _BODY: ClassVar[str] = """
import time
def waits(peer):
    peer.setblocking(False)
    try:
        peer.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
def hold():
    peers = []
    try:
        for _ in range(args["number"]):
            peers.append(socket.create_connection(("127.0.0.1", args["port"]), timeout=5))
            try:
                peers[-1].sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nX-Slow: ")
            except OSError:
                pass  # turned away already
        held, until = list(peers), time.monotonic() + args["patience"]
        while len(held) > args["most"] and time.monotonic() < until:
            time.sleep(0.02)
            held = [peer for peer in held if waits(peer)]
        return {"fact": "more are held than the rules allow"} if len(held) > args["most"] else {"signature": "HELD"}
    finally:
        for peer in peers:
            peer.close()
attempt("connections", hold)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A byte proxy in place of the gateway, in a workspace that has one."""
        del site
        self._enough(fence)
        return replace(walls_changed(fence, network="gateway"), lifted=("gateway-rules",))

    def _enough(self, fence: Fence) -> None:
        if fence.gateway.connections + self.BEYOND > self.MOST:
            raise NotMeasuredError("the rules allow more connections than a workspace's forwarder joins at once")

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Open them, and count those that are held."""
        del site
        self._enough(fence)
        most = fence.gateway.connections
        patience = self.PATIENCE_S if rules_of(fence) is not None else 0.5
        told = {"port": GATEWAY_PORT, "most": most, "number": most + self.BEYOND, "patience": patience}
        async with gateway_up(workspace, rules_of(fence)) as upstream:
            tries = await run_program(workspace, self._BODY, told)
            if isinstance(tries, str):
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
            if workspace.gateway is None:
                witness = None if await upstream.up() else "the host's toy of a model's server is down outside too"
                return weigh(tries, canary=None, absent=NOBODY, denied=SIGNS, witness=witness)
            if upstream.counts.get("refused", 0) == 0 and tries[0].signature == "HELD":
                return Attempt(finding=Finding.INCONCLUSIVE, evidence="connections: the gateway tells of no refusal")
            return weigh(tries, canary=None, absent=NOTHING, denied=SIGNS)


class GatewayFolderProbe:
    """The folder of the gateway's socket, which the workspace sees: nothing can be put there, moved or taken away."""

    name = "gateway-folder"
    language = "gateway"
    threat = "the seat puts a socket of its own in the gateway's place, or takes the gateway's away"
    holds = frozenset({Finding.ABSENT, Finding.DENIED})
    structural: ClassVar[bool] = False

    _BODY: ClassVar[str] = """
folder = args["folder"]
def put():
    with open(os.path.join(folder, args["name"]), "w") as file:
        file.write("put")
    return {"signature": "WROTE"}
def link():
    os.symlink("/etc/passwd", os.path.join(folder, args["name"] + "-link"))
    return {"signature": "WROTE"}
def take():
    os.unlink(os.path.join(folder, args["socket"]))
    return {"signature": "TOOK"}
for what, action in (("a file", put), ("a link", link), ("the socket", take)):
    attempt(what, action)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host that can be written, in the place of the gateway's."""
        none = walls_changed(fence, network="none")
        return mounted(none, site.places["outside-path"], target=GATEWAY_FOLDER, read_only=False)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Try, and have the host look at the folder."""
        name = f"proctor-put-{fresh_token(4)}"
        told = {"folder": GATEWAY_FOLDER, "name": name, "socket": GATEWAY_SOCKET}
        async with gateway_up(workspace, rules_of(fence)):
            tries = await run_program(workspace, self._BODY, told)
            if isinstance(tries, str):
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
            places = [Path(site.places["outside-path"]), *([workspace.gateway] if workspace.gateway else [])]
            if await anyio.to_thread.run_sync(_there, places, name):
                return Attempt(finding=Finding.SERVED, evidence="a file: the host sees it in the folder")
            if workspace.gateway is not None and not await anyio.Path(workspace.gateway / GATEWAY_SOCKET).exists():
                return Attempt(finding=Finding.SERVED, evidence="the socket: it is gone on the host")
            return weigh(tries, canary=None, denied=SIGNS)


def _there(places: Sequence[Path], name: str) -> bool:
    found = [place / name for place in places if (place / name).exists()]
    for path in found:
        path.unlink()
        path.with_name(name + "-link").unlink(missing_ok=True)
    return bool(found)
