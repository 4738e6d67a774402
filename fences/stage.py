"""
The decoys that the host sets out for one probing: listeners that answer with a canary, files, a process, a neighbour.

Everything is real, since a wall in front of nothing always seems to hold; and everything is gone when the stage is
left, however it is left.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.abc import SocketAttribute

from fences.decoys import answer_dns, answer_engine, answer_line
from harness.clock import Clock, fresh_token
from harness.environment import lent, terminal_env
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
    "engine-socket", "variable", "process", "tool", "tool-write", "tool-edit",
)  # fmt: skip

_PLACE = Path("/tmp")  # noqa: S108 - each workspace has a /tmp of its own, where a control can show one of these paths
_PREFIX = "proctor-stage-"
_STALE_S = 3600.0

_WRITE = "import sys; data = sys.stdin.read()\nfor path in sys.argv[1:]:\n    open(path, 'w').write(data)"


class _Setting:
    """What has been set out so far."""

    def __init__(self, home: Path, caps: Caps) -> None:
        self.home = home
        self.caps = caps
        self.canaries = {name: fresh_token() for name in _CANARIES}
        self.places = {"home": str(home)}

    def site(self) -> Site:
        return Site(canaries=dict(self.canaries), places=dict(self.places), caps=self.caps)


@asynccontextmanager
async def set_the_stage(
    open_neighbour: NeighbourOpener | None = None, *, caps: Caps | None = None
) -> AsyncIterator[Site]:
    """
    Set out every decoy that this host can have, and yield where each is and what only the host knows of it. `caps` are
    the limits of the policy that is probed.

    `open_neighbour` opens the second workspace, which then writes its own canary; without it the host writes that.
    Raises `WorkspaceError` when the neighbour can't be opened or can't write.
    """
    home = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="proctor-stage-", dir="/tmp")))
    setting = _Setting(home, caps if caps is not None else Caps())
    try:
        await anyio.to_thread.run_sync(_lay_files, setting)
        async with AsyncExitStack() as stack:
            servers = [
                *await _open_tcp(setting, stack),
                *await _open_dns(setting, stack),
                *await _open_unix(setting, stack),
            ]
            await stack.enter_async_context(_served(servers))
            await stack.enter_async_context(_marked_process(setting))
            setting.places["variable"] = f"PROCTOR_DECOY_{fresh_token(4).upper()}"
            stack.enter_context(lent(setting.places["variable"], setting.canaries["variable"]))
            await _invite_neighbour(setting, stack, open_neighbour)
            yield setting.site()
    finally:
        with anyio.move_on_after(10, shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))


def _make_home(clock: Clock, *, place: Path = _PLACE) -> Path:
    """A fresh folder for the decoys; those that a killed process of this user's left long ago are taken away."""
    for old in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process may be taking it away just now
            info = old.lstat()
            age = clock.now().timestamp() - info.st_mtime
            if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and age > _STALE_S:
                shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))


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


def _lay_files(setting: _Setting) -> None:
    home, places = setting.home, setting.places
    home.chmod(0o755)
    sealed = home / "sealed"
    files = {
        "host-file": (home / "host-file", "host-file"),
        "sealed-file": (sealed / "tests" / f"test_hidden_{fresh_token(4)}.py", "sealed-file"),
        "sealed-solution": (sealed / "solution" / "solution.py", "sealed-file"),
    }
    for name, (path, canary) in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {setting.canaries[canary]}\n", "utf-8")
        path.chmod(0o644)
        places[name] = f"file {path}"
    for name in ("outside", "neighbour", "tools", "tools-open"):
        (home / name).mkdir()
        (home / name).chmod(0o777)  # whoever a workspace's user is, it could write here if the wall were down
        places[f"{name}-path"] = str(home / name)
    tool = setting.canaries["tool"]
    for name, text in (("secret.txt", f"needle {tool}"), (f"name-{tool}", "nothing"), ("editable.txt", "needle")):
        for folder in ("tools", "tools-open"):
            path = home / folder / name
            path.write_text(f"{text}\n", "utf-8")
            path.chmod(0o666)
    places |= {
        "host-file-path": str(home / "host-file"),
        "sealed-path": str(sealed),
    }


def _primary_address() -> str | None:
    """The address that this host would send from (nothing is sent), or None if it has no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("198.51.100.1", 53))
        except OSError:
            return None
        return str(asking.getsockname()[0])


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
        servers.append(partial(listener.serve, answer_line(setting.canaries[name])))
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
        servers.append(partial(listener.serve, answer_engine(setting.canaries[name])))
    setting.places |= {
        "engine-socket": f"unix {path}",
        "engine-socket-path": str(folder),
        "abstract": f"abstract {abstract}",
    }
    return servers


@asynccontextmanager
async def _marked_process(setting: _Setting) -> AsyncIterator[None]:
    """A process of the host with a canary among its arguments. It ends with its stdin, so it can't outlive us."""
    marker = f"proctor-decoy-{fresh_token(8)}"
    argument = f"{marker}={setting.canaries['process']}"
    argv = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()", argument]
    async with await anyio.open_process(argv, env=terminal_env(), stdout=None, stderr=None) as process:
        setting.places["marker"] = marker
        try:
            yield
        finally:
            process.kill()


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
