"""The container engine itself: what its walls do, and not only what they say. The suite for all backends is beside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.walls import Caps, Mount, Walls
from harness.workspaces.docker import DockerBackend, DockerWorkspace
from harness.workspaces.docker_engine import NotFoundError
from harness.workspaces.docker_owner import LABEL_RUN
from harness.workspaces.image_build import build_from_host
from harness.workspaces.image_dockerfile import build_from_dockerfile
from harness.workspaces.images import ImageStore
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture
def anyio_backend() -> str:
    """The command line uses asyncio; both loops are tried by the suite of all backends on bubblewrap."""
    return "asyncio"


WORKLOAD = """
import asyncio, concurrent.futures, multiprocessing, os, socket, sqlite3, subprocess, tempfile, threading
seen = []
thread = threading.Thread(target=lambda: seen.append("thread")); thread.start(); thread.join()
seen.append(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
async def tick():
    await asyncio.sleep(0); proc = await asyncio.create_subprocess_exec("true"); return await proc.wait()
seen.append(asyncio.run(tick()))
with multiprocessing.get_context("fork").Pool(2) as pool: seen.append(sum(pool.map(abs, [-1, -2])))
with concurrent.futures.ThreadPoolExecutor(3) as pool: seen.append(sum(pool.map(abs, [-1, -2])))
lock = multiprocessing.Lock()
with lock: seen.append("lock")
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); f.flush(); seen.append(os.stat(f.name).st_size)
database = sqlite3.connect("/workspace/db"); database.execute("create table t(x)"); seen.append("sqlite")
server = socket.create_server(("localhost", 0)); client = socket.create_connection(server.getsockname()); seen.append("tcp")
os.mkfifo("/workspace/fifo"); seen.append(socket.gethostname())
print(seen)
"""

FILL = """
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(60); os._exit(0)
    except OSError:
        open("/workspace/full", "w").close(); time.sleep(0.05)
"""

CLOSED = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0); done = libc.syscall(number, *args); return "SERVED" if done >= 0 else ctypes.get_errno()
def family(number, kind=socket.SOCK_STREAM):
    try: socket.socket(number, kind).close(); return "SERVED"
    except OSError as error: return error.errno
print({
    "vsock": family(40), "kernel crypto": family(38, socket.SOCK_SEQPACKET), "packet": family(17, socket.SOCK_RAW),
    "raw": family(2, socket.SOCK_RAW), "io_uring": call(425, 4, ctypes.create_string_buffer(120)),
    "user namespace": call(272, 0x10000000), "ptrace": call(101, 0, 0, 0, 0), "keyctl": call(250, 0, 0, 0, 0, 0),
    "userfaultfd": call(323, 0), "bpf": call(321, 0, 0, 0), "inet": family(2), "unix": family(1),
})
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
async def room(backend: DockerBackend, image: str, **changes: object) -> AsyncIterator[DockerWorkspace]:
    """A workspace behind sealed walls, but for the changes."""
    async with backend.open(replace(Walls(image=image), **changes), run="docker-tests") as workspace:
        yield workspace


async def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether `true()` came to hold in time."""
    with anyio.move_on_after(seconds):
        while not await anyio.to_thread.run_sync(true):  # noqa: ASYNC110 - the host's processes tell nobody
            await anyio.sleep(0.05)
        return True
    return False


def running(token: str) -> int:
    """How many living processes of this host have `token` as an argument of their own."""
    found = 0
    for path in Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_bytes().split(b"\0") if path.name.isdigit() else []
        except OSError:
            continue
        found += token.encode() in words[1:2]
    return found


async def test_the_filter_closes_what_namespaces_do_not(backend: DockerBackend, image: str) -> None:
    """vsock, kernel crypto, io_uring, user namespaces and the like are EPERM; with the kernel open they answer otherwise."""
    async with room(backend, image) as sealed:
        up = (await sealed.exec(["python3", "-c", CLOSED])).stdout.decode()
    async with room(backend, image, system_calls="any", masked=False) as opened:
        down = (await opened.exec(["python3", "-c", CLOSED])).stdout.decode()
    findings: dict[str, object] = eval(up)  # noqa: S307 - a literal that the test's own program printed
    assert (findings.pop("inet"), findings.pop("unix")) == ("SERVED", "SERVED")
    assert set(findings.values()) == {1}
    weak: dict[str, object] = eval(down)  # noqa: S307 - likewise
    assert weak["vsock"] == "SERVED"
    assert weak["user namespace"] == "SERVED"


async def test_ordinary_programs_work_behind_the_walls(backend: DockerBackend, image: str) -> None:
    """Threads, processes, pools, locks, sockets on localhost, sqlite and pytest do what they do anywhere."""
    test = b"def test_sum(tmp_path):\n    (tmp_path / 'f').write_text('x')\n    assert 1 + 1 == 2\n"
    async with room(backend, image) as workspace:
        ran = await workspace.exec(["python3", "-c", WORKLOAD])
        await workspace.exec(["sh", "-c", "cat > test_it.py"], stdin=test)
        tested = await workspace.exec(["python3", "-m", "pytest", "-q"])
    expected = "['thread', 'child', 0, 3, 3, 'lock', 1, 'sqlite', 'tcp', 'seat']\n"
    assert (ran.stdout.decode(), ran.stderr) == (expected, b"")
    assert (tested.status, b"1 passed" in tested.stdout) == (0, True)


async def test_localhost_and_the_own_name_resolve(backend: DockerBackend, image: str) -> None:
    """Without networking the engine leaves /etc/hosts empty; ours has these two names, and no seat can change it."""
    program = (
        "import socket\nfor n in ('localhost', 'seat'): print(socket.getaddrinfo(n, 80, socket.AF_INET)[0][4][0])\n"
        "server = socket.create_server(('localhost', 0))\nport = server.getsockname()[1]\n"
        "print(socket.create_connection(('localhost', port)).getpeername()[0])\n"
        "print(open('/etc/hosts').read().split())"
    )
    async with room(backend, image) as workspace:
        ran = await workspace.exec(["python3", "-c", program])
        changed = await workspace.exec(["sh", "-c", "echo 1.2.3.4 localhost >> /etc/hosts || rm /etc/hosts"])
    assert ran.stdout.decode().splitlines() == [
        "127.0.0.1",
        "127.0.0.1",
        "127.0.0.1",
        "['127.0.0.1', 'localhost', 'seat', '::1', 'localhost', 'ip6-localhost', 'ip6-loopback']",
    ], ran.stderr
    assert changed.status != 0


async def test_the_seat_has_no_rights_and_sees_no_keeper(backend: DockerBackend, image: str) -> None:
    """No capability, no new privileges; the keeper's environment and the container's log are closed, and kill is refused."""
    look = (
        "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|^Seccomp:' /proc/self/status | tr -d '\\t\\n'; echo;"
        "cat /proc/1/environ; echo x > /proc/1/fd/1; kill -9 1; touch /etc/x; stat -c '%a %u' /workspace"
    )
    async with room(backend, image) as workspace:
        ran = await workspace.exec(["sh", "-c", look])
        assert (await workspace.exec(["true"])).status == 0
        seat = (await workspace.facts())["exec_user"].partition(":")[0]
    none = "".join(f"Cap{name}:{0:016x}" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    assert ran.stdout.decode() == f"{none}NoNewPrivs:1Seccomp:2\n700 {seat}\n"
    assert ran.stderr.lower().count(b"permission denied") + ran.stderr.count(b"not permitted") == 3
    assert b"Read-only file system" in ran.stderr


async def test_a_flood_is_cut_and_held_to_the_cap(backend: DockerBackend, image: str) -> None:
    """Endless output on both streams ends at the time limit; what is kept is the cap, and the program is gone."""
    async with room(backend, image) as workspace:
        ran = await workspace.exec(["sh", "-c", "yes >&2 & yes"], timeout_s=2, output_bytes=4096)
        after = await workspace.facts()
    assert (ran.timed_out, ran.status) == (True, None)
    assert (len(ran.stdout), ran.stdout_cut, len(ran.stderr), ran.stderr_cut) == (4096, True, 4096, True)
    assert after["processes"] == 2, "docker-init and the keeper"


async def test_a_program_that_closes_its_outputs_is_waited_for(backend: DockerBackend, image: str) -> None:
    """The end of the outputs is not the end of the program: the status is what it ends with, the limit still holds."""
    async with room(backend, image) as workspace:
        waited = await workspace.exec(["sh", "-c", "exec >&- 2>&-; sleep 1; exit 5"])
        cut = await workspace.exec(["sh", "-c", "exec >&- 2>&-; sleep 60"], timeout_s=1)
    assert (waited.status, waited.timed_out, waited.seconds > 0.9) == (5, False, True)
    assert (cut.status, cut.timed_out) == (None, True)


async def test_the_longest_argument_runs(backend: DockerBackend, image: str) -> None:
    """What is let through does run: the bound on arguments is the kernel's own."""
    async with room(backend, image) as workspace:
        longest = await workspace.exec(["sh", "-c", "echo ${#0}", "x" * ((128 << 10) - 1)])
        longer = await workspace.exec(["sh", "-c", "echo ${#0}", "x" * (128 << 10)])
    assert (longest.stdout, longer.status) == (b"131071\n", 126)


async def test_memory_is_one_limit_without_swap(backend: DockerBackend, image: str) -> None:
    """A program over the limit is killed, one below is not, and the workspace goes on."""
    caps = Caps(memory_bytes=128 << 20, workspace_bytes=16 << 20, tmp_bytes=16 << 20)
    async with room(backend, image, caps=caps) as workspace:
        over = await workspace.exec(["python3", "-c", "bytearray(b'x' * (200 << 20))"])
        below = await workspace.exec(["python3", "-c", "bytearray(b'x' * (20 << 20))"])
    assert (over.status, below.status) == (137, 0)


async def test_a_full_house_of_processes_does_not_lock_the_harness_out(backend: DockerBackend, image: str) -> None:
    """A seat that takes every place for a process loses what it runs when the harness needs one: its cell is not void."""
    start = ["sh", "-c", 'python3 -c "$0" >/dev/null 2>&1 </dev/null & until [ -e full ]; do :; done; rm full', FILL]
    async with room(backend, image, caps=Caps(pids=24)) as workspace:
        await workspace.exec(start, timeout_s=30)
        await anyio.sleep(0.2)
        assert (await workspace.facts())["processes"] == 24
        assert (await workspace.exec(["echo", "in"])).stdout == b"in\n"
        await workspace.kill()
        await workspace.exec(start, timeout_s=30)
        await anyio.sleep(0.2)
        assert (await workspace.facts())["processes"] == 24
        await workspace.kill()
        after = await workspace.facts()
    assert (after["processes"], after["pids_limit"]) == (2, 24)


async def test_a_stream_leaves_the_seats_other_programs_alone(backend: DockerBackend, image: str) -> None:
    """Leaving a stream ends its program and what it began, and nothing that an exec left running."""
    async with room(backend, image) as workspace:
        await workspace.exec(["sh", "-c", "sleep 500 >/dev/null 2>&1 </dev/null &"])
        before = (await workspace.facts())["processes"]
        async with workspace.stream(["sh", "-c", "sleep 400 & cat; echo hidden >&2"]) as stream:
            await stream.send(b"ping")
            assert await stream.receive() == b"ping"
            assert (await workspace.facts())["processes"] > before
        assert (await workspace.facts())["processes"] == before == 3


async def test_weakened_walls_are_weak(backend: DockerBackend, image: str, tmp_path: Path) -> None:
    """Each weakening is in effect, so that a probe's control can succeed; and ending such a room harms nothing else."""
    (tmp_path / "canary").write_text("canary")
    mount = Mount(source=str(tmp_path), target="/shown")
    look = "id -u; cat /shown/canary; echo; touch /new && echo writable; ls /proc | grep -c '^[0-9]'; wc -c < /proc/kallsyms"
    changes = {
        "run_as_root": True,
        "mounts": (mount,),
        "read_only_root": False,
        "host_namespaces": ("pid",),
        "system_calls": "any",
        "masked": False,
    }
    async with room(backend, image, **changes) as weak:
        ran = await weak.exec(["sh", "-c", look])
        cut = await weak.exec(["sh", "-c", "setsid sleep 300 & sleep 300"], timeout_s=1)
        facts = await weak.facts()
    user, canary, writable, processes, symbols = ran.stdout.decode().split()
    assert (user, canary, writable, cut.timed_out) == ("0", "canary", "writable", True)
    assert (int(processes) > 10, int(symbols) > 0) == (True, True)
    assert (facts["pid_mode"], facts["read_only_root"], facts["seccomp"]) == ("host", False, False)
    async with room(backend, image, network="host") as weak:
        assert (await weak.facts())["network_mode"] == "host"


async def test_nothing_is_left_and_the_name_is_gone(backend: DockerBackend, image: str) -> None:
    """After the block neither the container nor a process of it exists, even when its body failed."""
    token = f"7{int(fresh_token(3), 16)}"
    name = ""
    with pytest.raises(KeyError):  # noqa: PT012 - what fails is the body of the block
        async with room(backend, image) as workspace:
            name = workspace.name
            await workspace.exec(
                ["sh", "-c", f"setsid sleep {token} >/dev/null 2>&1 & setsid sleep {token} >/dev/null 2>&1 &"]
            )
            assert await until(lambda: running(token) == 2)
            raise KeyError
    assert running(token) == 0
    with pytest.raises(NotFoundError):
        await backend._engine.call(lambda api: api.inspect_container(name))
    with pytest.raises(WorkspaceError, match="No such container"):
        await workspace.exec(["true"])


async def test_a_cancelled_opening_leaves_no_container(backend: DockerBackend, image: str) -> None:
    """Cancelled at any moment of its start, a workspace is there and used, or not there at all."""
    run = fresh_token()
    for step in range(4):
        with anyio.move_on_after(0.05 * step):
            async with backend.open(Walls(image=image), run=run) as workspace:
                await workspace.exec(["sleep", "100"])
    left = await backend._engine.call(lambda api: api.containers(all=True, filters={"label": f"{LABEL_RUN}={run}"}))
    assert left == []


async def test_a_killed_owners_container_is_reaped(backend: DockerBackend, image: str) -> None:
    """While the owner lives its container is kept; after its SIGKILL the next start removes it and says its name."""
    program = (
        "import anyio, sys\nfrom harness.walls import Walls\nfrom harness.workspaces.docker import DockerBackend\n"
        "async def main():\n async with DockerBackend().open(Walls(image=sys.argv[1]), run='orphan') as room:\n"
        "  print(room.name, flush=True)\n  await anyio.sleep(100)\nanyio.run(main)"
    )
    async with await anyio.open_process([sys.executable, "-c", program, image], stderr=None) as owner:
        assert owner.stdout is not None
        name = (await owner.stdout.receive()).decode().strip()
        kept = await backend.reap()
        os.kill(owner.pid, signal.SIGKILL)
    assert name.startswith("proctor-")
    assert name not in kept
    assert name in await backend.reap()
    with pytest.raises(NotFoundError):
        await backend._engine.call(lambda api: api.inspect_container(name))


async def test_the_dead_mans_switch_ends_a_room(backend: DockerBackend, image: str) -> None:
    """When its lifetime is over the container ends with everything in it, and says so to whoever asks on."""
    token = f"8{int(fresh_token(3), 16)}"
    async with room(backend, image, caps=Caps(lifetime_s=4)) as workspace:
        await workspace.exec(["sh", "-c", f"setsid sleep {token} >/dev/null 2>&1 &"])
        assert await until(lambda: running(token) == 1)
        assert await until(lambda: running(token) == 0)
        with pytest.raises(WorkspaceError, match=r"not running|stopped"):
            await workspace.exec(["true"])
        await workspace.kill()


async def test_the_digest_survives_being_loaded_again(image: str, backend: DockerBackend, tmp_path: Path) -> None:
    """Removed from the engine, an image is loaded again with the same digest and the same id; both backends agree."""
    store = ImageStore(tmp_path / "store")
    (tmp_path / "root" / "bin").mkdir(parents=True)
    (tmp_path / "root" / "bin" / "x").write_text(fresh_token())
    made = store.add("proctor-digest-test", tmp_path / "root", {})
    digests = []
    for _ in range(2):
        fresh = DockerBackend(store=store)
        digests.append(await fresh.image_digest("proctor-digest-test"))
        await backend._engine.call(lambda api: api.remove_image(made.engine_id, force=True))
    assert digests == [made.digest, made.digest]
    assert await backend.image_digest(image) == ImageStore().digest(image)


async def test_an_image_from_a_dockerfile(image: str, backend: DockerBackend, tmp_path: Path) -> None:
    """A Dockerfile on top of our own image builds without a registry, as one layer, and keeps its environment."""
    await backend.image_digest(image)
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nENV COLOUR=green\nCOPY note /opt/note\n")
    (tmp_path / "note").write_text("hello")
    store = ImageStore(tmp_path / "store")
    made = await anyio.to_thread.run_sync(
        lambda: build_from_dockerfile("proctor-dockerfile-test", tmp_path, store=store)
    )
    mine = DockerBackend(store=store)
    async with room(mine, "proctor-dockerfile-test") as workspace:
        ran = await workspace.exec(["sh", "-c", "cat /opt/note; echo $COLOUR; id -u"])
    await backend._engine.call(lambda api: api.remove_image(made.engine_id, force=True))
    assert ran.stdout.startswith(b"hellogreen\n2")


async def test_an_image_of_this_host(backend: DockerBackend, tmp_path: Path) -> None:
    """Python, shell and tools copied from this machine run as they are, twice the same image."""
    store = ImageStore(tmp_path / "store")
    made = await anyio.to_thread.run_sync(lambda: build_from_host("proctor-host-test", store=store))
    again = await anyio.to_thread.run_sync(lambda: build_from_host("proctor-host-again", store=store))
    mine = DockerBackend(store=store)
    async with room(mine, "proctor-host-test") as workspace:
        ran = await workspace.exec(
            ["bash", "-c", "python3 -c 'import json, ssl, sqlite3; print(json.dumps(1))' | sed s/1/ok/"]
        )
    await backend._engine.call(lambda api: api.remove_image(made.engine_id, force=True))
    assert (ran.stdout, ran.stderr) == (b"ok\n", b"")
    assert made.digest == again.digest
