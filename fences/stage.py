"""
The decoys that the host sets out for one probing: listeners that answer with a canary, files, a process, a neighbour.

Everything is real, since a wall in front of nothing always seems to hold; and everything is gone when the stage is
left, however it is left. It may stand for as long as a run takes, and costs nothing while nobody asks.
"""

from __future__ import annotations

import platform
import socket
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.abc import SocketAttribute

from fences.decoy_files import Home, lay_files, set_user_id_program
from fences.decoy_process import decoy_process
from fences.decoys import answer_dns, answer_engine, answer_forever, answer_line
from harness.clock import Clock, SystemClock, fresh_token
from harness.environment import lent
from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.views import Site
from harness.walls import Caps, Mount

__all__ = ["NeighbourOpener", "Server", "set_the_stage"]

NeighbourOpener: TypeAlias = Callable[[tuple[Mount, ...]], AbstractAsyncContextManager[Workspace]]
"""Opens the workspace of a neighbouring cell, with these mounts more than a sealed one has."""

Server: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]

_CANARIES = (
    "loopback", "address", "loopback6", "dns", "abstract", "host-file", "sealed-file", "neighbour-file",
    "engine-socket", "variable", "process", "shared-memory", "key", "tool", "tool-write", "tool-edit",
)  # fmt: skip

_DOCUMENTATION, _DOCUMENTATION6 = "198.51.100.1", "2001:db8::1"
"""Addresses that are nobody's, to ask for a route."""

_DEVICES = ("/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control")
"""Devices of a host that no workspace has; a control shows the first that is there."""

_WRITE = "import sys; data = sys.stdin.read()\nfor path in sys.argv[1:]:\n    open(path, 'w').write(data)"


class _Setting:
    """What has been set out so far."""

    def __init__(self, home: Path, caps: Caps) -> None:
        self.home = home
        self.caps = caps
        self.canaries = {name: fresh_token() for name in _CANARIES}
        self.places: dict[str, str] = {}

    def site(self) -> Site:
        return Site(canaries=dict(self.canaries), places=dict(self.places), caps=self.caps)


@asynccontextmanager
async def set_the_stage(
    open_neighbour: NeighbourOpener | None = None, *, caps: Caps | None = None, clock: Clock | None = None
) -> AsyncIterator[Site]:
    """
    Set out every decoy that this host can have, and yield where each is and what only the host knows of it. `caps` are
    the limits of the policy that is probed.

    `open_neighbour` opens the second workspace, which then writes its own canary; without it the host writes that.
    Raises `WorkspaceError` when the neighbour can't be opened or can't write.
    """
    home = await anyio.to_thread.run_sync(Home, clock or SystemClock())
    try:
        setting = _Setting(home.path, caps if caps is not None else Caps())
        setting.places |= await anyio.to_thread.run_sync(lay_files, home.path, setting.canaries)
        setting.places |= await anyio.to_thread.run_sync(_what_this_host_has)
        async with AsyncExitStack() as stack:
            await _open_everything(setting, stack)
            await _invite_neighbour(setting, stack, open_neighbour)
            yield setting.site()
    finally:
        with anyio.move_on_after(10, shield=True):
            await anyio.to_thread.run_sync(home.remove)


async def _open_everything(setting: _Setting, stack: AsyncExitStack) -> None:
    """What answers, and what lives: listeners, the variable, and the process."""
    servers = [
        *await _open_tcp(setting, stack),
        *await _open_dns(setting, stack),
        *await _open_unix(setting, stack),
    ]
    await stack.enter_async_context(_served(servers))
    variable = f"PROCTOR_DECOY_{fresh_token(4).upper()}"
    lending = {variable: setting.canaries["variable"]}
    stack.enter_context(lent(variable, lending[variable]))
    process = decoy_process(setting.home, setting.canaries, lending)
    setting.places |= {"variable": variable, **await stack.enter_async_context(process)}


def _what_this_host_has() -> dict[str, str]:
    """What is no decoy but part of the host itself, where it has it: for controls that show it."""
    found = {
        "set-user-id": set_user_id_program(),
        "device-path": next((path for path in _DEVICES if stat.S_ISCHR(_mode(path))), None),
        "route6": _DOCUMENTATION6 if _source_address(_DOCUMENTATION6, socket.AF_INET6) else None,
        "host-name": platform.node() or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _mode(path: str) -> int:
    with suppress(OSError):
        return Path(path).stat().st_mode
    return 0


@asynccontextmanager
async def _served(servers: Sequence[Server]) -> AsyncIterator[None]:
    """Run the servers until the block is left, and pass on its own error as it is, not wrapped in a group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(server)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is raised again below, outside the task group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _source_address(target: str, family: socket.AddressFamily) -> str | None:
    """The address that this host would send from to `target` (nothing is sent), or None if it has no route."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((target, 53))
            return str(asking.getsockname()[0])
    except OSError:
        return None


def _primary_address() -> str | None:
    return _source_address(_DOCUMENTATION, socket.AF_INET)


async def _open_tcp(setting: _Setting, stack: AsyncExitStack) -> list[Server]:
    hosts = {"loopback": "127.0.0.1", "address": _primary_address(), "loopback6": "::1"}
    servers: list[Server] = []
    for name, host in hosts.items():
        if host is None:
            continue
        try:
            listener = await anyio.create_tcp_listener(local_host=host)
        except OSError:
            continue  # a host without IPv6, say: its probes then ask for a route alone
        await stack.enter_async_context(listener)
        servers.append(partial(answer_forever, listener, answer_line(setting.canaries[name])))
        setting.places[name] = f"tcp {host} {listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - no Django here
    return servers


async def _open_dns(setting: _Setting, stack: AsyncExitStack) -> list[Server]:
    servers: list[Server] = []
    for name, host in (("dns", "127.0.0.1"), ("dns-address", _primary_address())):
        if host is None:
            continue
        server = await stack.enter_async_context(await anyio.create_udp_socket(local_host=host))
        servers.append(partial(answer_dns, server, setting.canaries["dns"]))
        setting.places[name] = f"udp {host} {server.extra(SocketAttribute.local_port)}"  # noqa: S610 - no Django here
    return servers


async def _open_unix(setting: _Setting, stack: AsyncExitStack) -> list[Server]:
    folder = setting.home / "engine"
    await anyio.Path(folder).mkdir()
    path, abstract = folder / "engine.sock", f"proctor-{fresh_token(8)}"
    servers: list[Server] = []
    for name, address in (("engine-socket", str(path)), ("abstract", "\0" + abstract)):
        mode = 0o666 if name == "engine-socket" else None
        listener = await stack.enter_async_context(await anyio.create_unix_listener(address, mode=mode))
        servers.append(partial(answer_forever, listener, answer_engine(setting.canaries[name])))
    setting.places |= {
        "engine-socket": f"unix {path}",
        "engine-socket-path": str(folder),
        "abstract": f"abstract {abstract}",
    }
    return servers


async def _invite_neighbour(setting: _Setting, stack: AsyncExitStack, open_neighbour: NeighbourOpener | None) -> None:
    name = f"neighbour-{fresh_token(8)}"
    shared = setting.home / "neighbour"
    text = setting.canaries["neighbour-file"]
    if open_neighbour is None:
        await anyio.Path(shared / name).write_text(text, "utf-8")
    else:
        mount = Mount(source=str(shared), target=str(shared), read_only=False)
        room = await stack.enter_async_context(open_neighbour((mount,)))
        paths = [f"{folder}/{name}" for folder in ("/workspace", "/tmp", shared)]  # noqa: S108 - of the neighbour's own
        wrote = await room.exec(["python3", "-I", "-S", "-c", _WRITE, *paths], stdin=text.encode())
        if wrote.status != 0:
            raise WorkspaceError(f"the neighbour workspace can't write its own files: {wrote.stderr[-300:]!r}")
    setting.places |= {
        "neighbour-name": name,
        "neighbour-file": f"file {shared / name}",
    }
