"""A container's walls one by one: each seat's own user, the gateway without a network, and every weakening in effect."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.errors import ImageError, WorkspaceError
from harness.walls import GATEWAY_SOCKET, Caps
from harness.workspaces import docker_host, docker_options, docker_place
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_engine import NotFoundError
from harness.workspaces.docker_witness import Witness
from harness.workspaces.images import SEATS, ImageStore
from tests.live.docker_rooms import left_of, room
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]

ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", 8081), timeout=10) as peer:
    peer.sendall(sys.argv[1].encode()); peer.shutdown(socket.SHUT_WR)
    print(b"".join(iter(lambda: peer.recv(65536), b"")).decode())
"""
STEAL = """
import os, signal, socket, subprocess
for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
    if open("/proc/%d/status" % pid).read().split("Uid:")[1].split()[0] != str(os.getuid()):
        try: os.kill(pid, signal.SIGKILL); print("killed", pid)
        except PermissionError: print("EPERM")
for address in ("127.0.0.1", "0.0.0.0"):
    thief = socket.socket(); thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try: thief.bind((address, 8081)); thief.listen(); print("bound", address)
    except OSError as error: print(error.errno)
for act in (lambda: open("/run/gateway/x", "w"), lambda: os.unlink("/run/gateway/model.sock"), lambda: os.chmod("/run/gateway", 0o777)):
    try: act(); print("changed")
    except OSError as error: print(error.errno)
try: print(os.listdir("/proc/%d/fd" % max(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != 1 and pid < os.getpid())))
except PermissionError: print("closed")
"""
LOOK = """
import ctypes, json, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def status(name): return next(line.split(":", 1)[1].strip() for line in open("/proc/self/status") if line.startswith(name))
def call(number, *args): return libc.syscall(number, *args) >= 0
def vsock():
    try: socket.socket(40, socket.SOCK_STREAM).close(); return True
    except OSError: return False
print(json.dumps({
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in ("pid", "ipc", "uts", "cgroup")},
    "keeper": os.stat("/proc/1").st_uid == os.getuid(), "bounding": status("CapBnd"), "filtered": status("Seccomp:"),
    "vsock": vsock(), "traces": call(101, 0, 0, 0, 0), "compares": call(312, os.getpid(), os.getpid(), 0, 0, 0),
    "uring": call(425, 4, ctypes.create_string_buffer(120)), "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
    "kallsyms": len(open("/proc/kallsyms").read(100)), "interfaces": sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else [],
    "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize, "root": os.access("/etc", os.W_OK),
}))
"""


@pytest.fixture(scope="module")
def image() -> str:
    """The default image."""
    return seat_image()


@pytest.fixture
def backend() -> DockerBackend:
    """A backend as the plugin table makes it."""
    return DockerBackend()


@asynccontextmanager
async def answering(folder: Path, word: str) -> AsyncIterator[None]:
    """A gateway in `folder` that answers each connection with `word` and what it was asked."""

    async def answer(peer: anyio.abc.SocketStream) -> None:
        async with peer:
            said = b"".join([chunk async for chunk in peer])
            await peer.send(f"{word}: ".encode() + said)

    path = folder / GATEWAY_SOCKET
    async with await anyio.create_unix_listener(path, mode=0o666) as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield
        tasks.cancel_scope.cancel()
    path.unlink()


def pythons(witness: Witness) -> list[int]:
    """The processes of a container that are Python."""
    return [pid for pid in witness.present() if Path(f"/proc/{pid}/comm").read_text().startswith("python")]


async def look(backend: DockerBackend, image: str, **changes: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a program sees behind changed walls, and the facts that the workspace tells."""
    async with room(backend, image, **changes) as workspace:
        ran = await workspace.exec(["python3", "-c", LOOK])
        assert ran.stderr == b""
        return json.loads(ran.stdout), dict(await workspace.facts())


async def test_two_workspaces_have_two_users(backend: DockerBackend, image: str) -> None:
    """Each seat is a user that no other live workspace of the engine has, known to the image by number and group."""
    async with room(backend, image) as one, room(backend, image) as two:
        users = [(await each.facts())["exec_user"] for each in (one, two)]
        seen = [(await each.exec(["sh", "-c", "id -u; id -g; id -G; id -un"])).stdout.split() for each in (one, two)]
    assert users[0] != users[1]
    for user, (uid, gid, groups, name) in zip(users, seen, strict=True):
        assert user.encode() == uid + b":" + gid
        assert (groups, int(uid) in SEATS, name.startswith(b"seat")) == (gid, True, True)


async def test_a_taken_user_is_not_given_again(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two users to pick from two workspaces get one each, a third is refused, and one that is free is found."""
    monkeypatch.setattr(docker_place, "SEATS", range(20_400, 20_402))
    async with room(backend, image) as one:
        async with room(DockerBackend(), image) as two:
            users = {(await each.facts())["exec_user"] for each in (one, two)}
            with pytest.raises(WorkspaceError, match="every one of the 2 users"):
                async with room(backend, image):
                    pass
            assert await left_of(backend, one.name) != []
        async with room(backend, image) as three:
            assert (await three.facts())["exec_user"] in users
    assert users == {"20400:20400", "20401:20401"}


async def test_the_gateway_is_reached_without_a_network(backend: DockerBackend, image: str) -> None:
    """Each workspace reaches its own gateway and no network; the gateway may come back; at the end its folder is gone."""
    walls = {"network": "gateway"}
    async with room(backend, image, **walls) as one, room(backend, image, **walls) as two:
        assert one.gateway is not None
        assert two.gateway is not None
        async with answering(one.gateway, "one"), answering(two.gateway, "two"):
            asked = [(await each.exec(["python3", "-c", ASK, "hello"])).stdout for each in (one, two)]
        async with answering(one.gateway, "again"):
            asked.append((await one.exec(["python3", "-c", ASK, "x" * 100_000])).stdout)
        links = await one.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"])
        facts = await one.facts()
        async with one.remains() as rest:
            assert rest.gateway is None
            assert (await rest.exec(["ls", "/run/gateway"])).status != 0
        folder = one.gateway
    assert asked == [b"one: hello\n", b"two: hello\n", b"again: " + b"x" * 100_000 + b"\n"]
    assert links.stdout.split() == [b"lo"]
    assert (facts["network_mode"], facts["network_disabled"], facts["networks"]) == ("gateway", True, [])
    assert facts["mounts"] == [{"source": "gateway", "target": "/run/gateway", "read_only": True}]
    assert not folder.exists()
    assert await left_of(backend, one.name) == []


async def test_a_seat_can_take_nothing_of_the_gateways(backend: DockerBackend, image: str) -> None:
    """Neither keeper nor forwarder can be killed or looked into, the port is taken, and the folder is read-only."""
    async with room(backend, image, network="gateway") as workspace:
        assert workspace.gateway is not None
        async with answering(workspace.gateway, "mine"):
            tried = await workspace.exec(["python3", "-c", STEAL])
            await workspace.exec(["sh", "-c", "kill -9 -1"])
            await workspace.kill()
            assert await workspace.sweep() == 0
            after = await workspace.exec(["python3", "-c", ASK, "still"])
    assert tried.stdout.decode().split() == [*["EPERM"] * 4, "98", "98", "30", "30", "30", "closed"]
    assert after.stdout == b"mine: still\n"


async def test_a_forwarder_that_the_kernel_ended_comes_back(backend: DockerBackend, image: str) -> None:
    """Out of memory the kernel may choose it: the workspace lives on, and the gateway is reached again."""
    async with room(backend, image, network="gateway") as workspace:
        assert workspace.gateway is not None
        witness = workspace._container.witness
        assert witness is not None
        assert witness.seats() == []
        (forwarder,) = pythons(witness)
        os.kill(forwarder, signal.SIGKILL)
        async with answering(workspace.gateway, "back"):
            with anyio.fail_after(20):
                while (ran := await workspace.exec(["python3", "-c", ASK, "x"])).status != 0:  # noqa: ASYNC110
                    await anyio.sleep(0.2)
        assert ran.stdout == b"back: x\n"
        assert witness.seats() == []
        assert await workspace.sweep() == 0


async def test_an_image_without_python_has_no_forwarder(backend: DockerBackend, tmp_path: Path) -> None:
    """The workspace is refused, with the reason, and nothing of it stays."""
    store = ImageStore(tmp_path / "store")
    (tmp_path / "root" / "bin").mkdir(parents=True)
    (tmp_path / "root" / "bin" / "x").write_text("x")
    made = store.add("proctor-empty-test", tmp_path / "root", {})
    before = await backend._engine.call(lambda api: len(api.containers(all=True, filters={"ancestor": made.engine_id})))
    with pytest.raises(WorkspaceError, match=r"forwarder.*python3\): .*exec /bin/sh failed|the container ended"):
        async with room(DockerBackend(store=store), "proctor-empty-test", network="gateway"):
            pass
    left = await backend._engine.call(lambda api: len(api.containers(all=True, filters={"ancestor": made.engine_id})))
    await backend._engine.call(lambda api: api.remove_image(made.engine_id, force=True))
    assert before == left == 0


async def test_an_image_with_a_shell_and_no_python_has_no_forwarder(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell's own words are the reason, at once."""
    monkeypatch.setattr(docker_options, "forwarder_argv", lambda _seconds: ["no-such-python"])
    with anyio.fail_after(30), pytest.raises(WorkspaceError, match=r"needs python3\): .*no-such-python: not found"):
        async with room(backend, image, network="gateway"):
            pass


async def test_an_image_with_volumes_of_its_own_is_refused(backend: DockerBackend, image: str) -> None:
    """Each would be a writable place without a limit; the same image without them runs."""
    await backend.image_digest(image)

    def build(api: Any, tag: str, more: str) -> None:
        file = BytesIO(f"FROM {image}:latest\nLABEL x={tag}\n{more}".encode())
        for event in api.build(fileobj=file, tag=tag, rm=True, decode=True):
            assert "error" not in event, event

    names = ("proctor-plain-test", "proctor-volume-test")
    try:
        await backend._engine.call(lambda api: build(api, names[0], ""))
        await backend._engine.call(lambda api: build(api, names[1], "VOLUME /data"))
        async with room(backend, names[0]) as workspace:
            assert (await workspace.exec(["true"])).status == 0
        with pytest.raises(ImageError, match=r"declares volumes \(/data\)"):
            await backend.image_digest(names[1])
    finally:
        for name in names:
            with suppress(NotFoundError):
                await backend._engine.call(lambda api, name=name: api.remove_image(name, force=True))


async def test_an_engine_that_sees_no_folder_of_ours(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it does is tried: where our folders are elsewhere the names come from the image, and a gateway is refused."""
    assert (await backend._engine_host((await backend._image(image)).id)).shares_files
    monkeypatch.setattr(docker_host, "folder_of", lambda name: f"/nowhere/{name}")
    apart = DockerBackend()
    async with room(apart, image) as workspace:
        ran = await workspace.exec(["python3", "-c", "import socket; print(socket.gethostbyname('localhost'))"])
        facts = await workspace.facts()
    assert (ran.stdout, facts["hosts_file"], facts["mounts"]) == (b"127.0.0.1\n", False, [])
    with pytest.raises(WorkspaceError, match="does not see this host's folders"):
        async with room(apart, image, network="gateway"):
            pass


async def test_each_weakening_is_in_effect_alone(backend: DockerBackend, image: str) -> None:
    """What a control asks for does open, seen by a program in the cell; sealed it is shut. Facts say the same."""
    sealed, facts = await look(backend, image)
    host = {name: os.readlink(f"/proc/self/ns/{name}") for name in sealed["namespaces"]}  # noqa: PTH115 - no path
    assert all(sealed["namespaces"][name] != link for name, link in host.items())
    assert (sealed["keeper"], sealed["bounding"], sealed["filtered"]) == (False, "0" * 16, "2")
    shut = ("vsock", "traces", "compares", "uring", "core", "kallsyms", "root")
    assert not any(sealed[name] for name in shut)
    assert (facts["cap_add"], facts["ipc_mode"], facts["uts_mode"]) == ([], "private", "private")
    assert sealed["shm"] == facts["shm_bytes"] == 16 << 20

    weak, facts = await look(backend, image, host_namespaces=("ipc", "uts", "cgroup"))
    assert {name: weak["namespaces"][name] == link for name, link in host.items()} == {
        "pid": False, "ipc": True, "uts": True, "cgroup": True,
    }  # fmt: skip
    assert (facts["ipc_mode"], facts["uts_mode"], facts["cgroup_mode"], facts["pid_mode"]) == (*["host"] * 3, "private")

    weak, facts = await look(backend, image, keeper_apart=False, capabilities=("NET_RAW",), caps=Caps(core_bytes=4096))
    assert (weak["keeper"], int(weak["bounding"], 16), weak["core"]) == (True, 1 << 13, 4096)
    assert (facts["cap_add"], facts["core_bytes"], facts["user"]) == (["NET_RAW"], 4096, facts["exec_user"])


async def test_system_calls_open_step_by_step(backend: DockerBackend, image: str) -> None:
    """A debugger's calls and no more; the engine's own filter, which leaves vsock open; and none at all."""
    names = ("filtered", "traces", "compares", "vsock")
    traced, facts = await look(backend, image, system_calls="traced")
    assert [traced[name] for name in names] == ["2", True, True, False]
    assert (facts["seccomp"], traced["uring"]) == (True, False)
    engine, facts = await look(backend, image, system_calls="engine")
    assert (engine["filtered"], engine["traces"], facts["seccomp"]) == ("2", True, False)
    opened, facts = await look(backend, image, system_calls="any", masked=False)
    assert [opened[name] for name in names] == ["0", True, True, True]
    assert (facts["seccomp"], opened["kallsyms"] > 0) == (False, True)


async def test_a_keeper_of_the_seats_own_user_can_be_killed(backend: DockerBackend, image: str) -> None:
    """With one user for both, the seat ends its own cell, which is then no workspace any more."""
    async with room(backend, image, keeper_apart=False) as workspace:
        await workspace.exec(["sh", "-c", "kill -9 -1; kill -9 $(ls /proc | grep -x '[0-9]*' | grep -vx $$)"])
        with anyio.fail_after(20):
            while (await workspace.facts())["running"]:  # noqa: ASYNC110 - the engine is asked
                await anyio.sleep(0.05)
        with pytest.raises(WorkspaceError, match="not running"):
            await workspace.exec(["true"])


async def test_a_runtime_that_the_engine_lacks_is_refused(image: str) -> None:
    """It is named with those that there are; one that there is runs, and is told."""
    with pytest.raises(WorkspaceError, match=r"has no runtime 'no-such-runtime'\. It has: .*runc"):
        async with room(DockerBackend(runtime="no-such-runtime"), image):
            pass
    chosen = DockerBackend(runtime="runc")
    async with room(chosen, image) as workspace:
        assert (await workspace.exec(["true"])).status == 0
    assert (await chosen.engine())["runtime"] == "runc"


SEGMENTS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes, libc.shmget.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int], [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
for number in range(200):
    segment = libc.shmget(0, 4 << 20, 0o1600)
    if segment < 0:
        break
    ctypes.memset(libc.shmat(segment, None, 0), 1, 4 << 20)
print(number, ctypes.get_errno(), flush=True)
"""


async def test_segments_of_shared_memory_are_limited_and_end_with_their_maker() -> None:
    """They outlive a killed process by themselves: a seat that filled its memory so could void its own cell."""
    caps = Caps(memory_bytes=256 << 20, workspace_bytes=8 << 20, shm_bytes=16 << 20)
    async with room(DockerBackend(), seat_image(), caps=caps) as workspace:
        made = await workspace.exec(["python3", "-I", "-S", "-c", SEGMENTS])
        assert made.stdout == b"4 28\n", (made.status, made.stdout, made.stderr[-300:])
        left = await workspace.exec(["cat", "/proc/sysvipc/shm"])
        assert len(left.stdout.splitlines()) == 1, left.stdout
