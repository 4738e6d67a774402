"""What is the embedded sandbox's own: the holes that it is known to have when made carelessly, each seen closed."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from harness import environment
from harness.clock import fresh_token
from harness.errors import FenceError, ImageError, WorkspaceError
from harness.ports import Workspace
from harness.walls import Caps, Mount, Walls
from harness.workspaces.bubblewrap import BubblewrapBackend
from harness.workspaces.control_groups import Groups, groups_available
from harness.workspaces.images import SEATS
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture
def anyio_backend() -> str:
    """Both loops are tried by the suite of all backends."""
    return "asyncio"


WALLS = Walls(image="proctor-seat")
OPEN = {"keep_capabilities": True, "new_privileges": True, "system_calls": "any", "masked": False, "run_as_root": True}
CALLS = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(*arguments)
    print(name, "ok" if done >= 0 else errno.errorcode[ctypes.get_errno()])
def opened(name, *arguments):
    try:
        socket.socket(*arguments).close()
        print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
numbers = {"x86_64": (101, 250, 425, 321, 272, 157), "aarch64": (117, 219, 425, 280, 97, 167)}[os.uname().machine]
call("ptrace", numbers[0], 0, 0, 0, 0)
call("keyctl", numbers[1], 0, -3, 1)
call("unshare", numbers[4], 0x10000000)
opened("vsock", 40, socket.SOCK_STREAM)
opened("alg", 38, socket.SOCK_SEQPACKET)
opened("raw", socket.AF_INET, socket.SOCK_RAW)
opened("tcp", socket.AF_INET, socket.SOCK_STREAM)
opened("unix", socket.AF_UNIX, socket.SOCK_STREAM)
import threading
thread = threading.Thread(target=print, args=("thread ok",))
thread.start()
thread.join()
"""


@pytest.fixture(autouse=True, scope="module")
def _image() -> None:
    """The image that the workspaces start from is there."""
    seat_image()


def python(program: str, *words: str) -> list[str]:
    """The command that runs `program` with the workspace's own Python."""
    return ["python3", "-I", "-S", "-c", program, *words]


def named(name: str) -> list[int]:
    """Processes whose command line starts with a workspace's name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(name.encode() + b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def test_process_one_tells_nothing_of_the_host() -> None:
    """Bwrap is process 1 and of the seat's own user: its environment, command line and mounts name nothing of ours."""
    os.environ["PROCTOR_TEST_CANARY"] = token = fresh_token()
    try:
        async with BubblewrapBackend().open(WALLS, run=f"run-{token}") as room:
            ran = await room.exec(
                ["sh", "-c", "cat /proc/1/environ /proc/1/cmdline /proc/self/mountinfo; ls /proc/1/fd"]
            )
    finally:
        del os.environ["PROCTOR_TEST_CANARY"]
    assert b"--args" in ran.stdout, "the command line could be read, so there is something to be said of it"
    assert token.encode() not in ran.stdout
    assert str(environment.state_home() / "workspaces").encode() not in ran.stdout


async def test_no_descriptor_of_ours_is_inherited() -> None:
    """A program has its three streams and nothing else, and so has process 1, however many files the harness has open."""
    ours = os.memfd_create("ours")
    os.set_inheritable(ours, True)  # its one argument
    links = "import os\nfor pid in ('self', '1'):\n    for fd in os.listdir('/proc/%s/fd' % pid):\n        try: print(os.readlink('/proc/%s/fd/%s' % (pid, fd)))\n        except OSError: pass"
    try:
        async with BubblewrapBackend().open(WALLS, run="t") as room:
            ran = await room.exec(python(links))
    finally:
        os.close(ours)
    kinds = {line.partition(":")[0] for line in ran.stdout.decode().split()}
    assert kinds == {"pipe", "anon_inode"}, "the second is how process 1 tells the status, and can't be opened again"
    assert ran.stdout.count(b"pipe:") == 6


async def test_the_kernel_is_walled_in_and_programs_still_work() -> None:
    """What the list of calls leaves out is refused, what programs need works, and without the filter it is let through."""
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        strict = (await room.exec(python(CALLS))).stdout.decode().splitlines()
    async with BubblewrapBackend().open(replace(WALLS, system_calls="any", masked=False), run="t") as room:
        weak = (await room.exec(python(CALLS))).stdout.decode().splitlines()
    refused = {"ptrace EPERM", "keyctl EPERM", "unshare EPERM", "vsock EPERM", "alg EPERM", "raw EPERM"}
    assert refused | {"tcp ok", "unix ok", "thread ok"} == set(strict)
    assert {"ptrace ok", "keyctl ok", "unshare ok"} <= set(weak)


async def test_a_debugger_works_where_it_is_asked_for() -> None:
    """`traced` lets ptrace through and nothing else of what the list leaves out."""
    async with BubblewrapBackend().open(replace(WALLS, system_calls="traced"), run="t") as room:
        said = set((await room.exec(python(CALLS))).stdout.decode().splitlines())
    assert {"ptrace ok", "keyctl EPERM", "unshare EPERM", "vsock EPERM", "alg EPERM", "raw EPERM"} <= said


@pytest.mark.parametrize(
    ("kind", "program"),
    [("uts", "hostname"), ("ipc", "readlink /proc/self/ns/ipc"), ("cgroup", "readlink /proc/self/ns/cgroup")],
)
async def test_each_namespace_is_a_wall_of_its_own(kind: str, program: str) -> None:
    """With one of the host's namespaces a program sees the host there, and the facts tell that one and no other."""
    here = (await anyio.run_process(["sh", "-c", program])).stdout
    modes = {}
    for shared in ((), (kind,)):
        async with BubblewrapBackend().open(replace(WALLS, host_namespaces=shared), run="t") as room:
            assert ((await room.exec(["sh", "-c", program])).stdout == here) == bool(shared)
            facts = await room.facts()
            modes[shared] = {name for name in ("uts", "ipc", "cgroup", "pid") if facts[f"{name}_mode"] == "host"}
    assert modes == {(): set(), (kind,): {kind}}


async def test_an_added_capability_is_there_and_told() -> None:
    """A capability that a control adds is in every set of the seat's programs; without it none is."""
    async with BubblewrapBackend().open(replace(WALLS, capabilities=("NET_RAW",)), run="t") as room:
        held = (await room.exec(["grep", "^Cap", "/proc/self/status"])).stdout
        facts = await room.facts()
    assert {int(line.split()[1], 16) for line in held.splitlines()} == {1 << 13}
    assert (facts["cap_add"], facts["cap_drop"]) == (["NET_RAW"], ["ALL"])


async def test_a_writable_root_is_writable_in_each_folder_and_the_image_is_not() -> None:
    """Files can be put into the folders of the root, for this execution alone: the stored image has none of them."""
    fill = "for d in / /etc /usr /var /root; do echo x > $d/probe && cat $d/probe; done"
    async with BubblewrapBackend().open(replace(WALLS, read_only_root=False), run="t") as room:
        assert (await room.exec(["sh", "-c", fill])).stdout == b"x\n" * 5
        assert (await room.exec(["ls", "/etc/probe"])).status != 0
        assert (await room.exec(python("import encodings, json; print(1)"))).stdout == b"1\n"


async def test_an_end_in_the_middle_of_a_start_is_an_end() -> None:
    """`remains` at any instant of another program's start: that ends without success or is refused, and none is alive."""
    for step in range(15):
        async with BubblewrapBackend().open(WALLS, run="t") as room, anyio.create_task_group() as tasks:
            ran: list[int | None] = []

            async def run(room: Workspace = room, ran: list[int | None] = ran) -> None:
                try:
                    ran.append((await room.exec(["sleep", "60"])).status)
                except WorkspaceError:
                    ran.append(None)  # it had not begun before the end

            tasks.start_soon(run)
            await anyio.sleep(step * 0.002)
            async with room.remains() as rest:
                assert rest.proof.alive == 0
                assert await anyio.to_thread.run_sync(named, room.name) == []
        assert ran[0] != 0


async def test_options_cut_short_start_nothing() -> None:
    """An execution that is ended while bwrap still reads its options never runs its program without the last of them."""
    look = ["sh", "-c", "grep Seccomp: /proc/self/status >> /workspace/ran"]
    large = {f"A{number}": "x" * 100_000 for number in range(10)}
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        for step in range(20):
            with anyio.move_on_after(step * 0.002):
                await room.exec(look, env=large)
            assert await anyio.to_thread.run_sync(named, room.name) == []
        assert (await room.exec(look, env=large)).status == 0
        assert set((await room.exec(["cat", "ran"])).stdout.splitlines()) == {b"Seccomp:\t2"}


async def test_as_root_the_seat_is_nobody_on_the_host() -> None:
    """Files of the seat belong to an unprivileged user of the host, and not to root in disguise."""
    assert os.geteuid() == 0, "this one is about root"
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        await room.exec(["touch", "/workspace/mine"])
        place = environment.state_home() / "workspaces" / room.name / "files"
        seen = await anyio.to_thread.run_sync((place / "mine").stat)
    assert seen.st_uid == seen.st_gid
    assert seen.st_uid in SEATS


async def test_an_early_end_leaves_no_survivor() -> None:
    """An execution cancelled at any instant of its start is gone, the instants at which bwrap alone would leak included."""
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        for step in range(40):
            with anyio.move_on_after(step * 0.001):
                await room.exec(["sleep", "60"])
            assert await anyio.to_thread.run_sync(named, room.name) == []
        assert (await room.facts())["processes_left"] == 0


async def test_bwrap_ended_by_another_leaves_no_survivor() -> None:
    """The kernel, short of memory, may end bwrap itself just when it has cloned: what it had started is found and ended."""
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        for step in range(90):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    with suppress(WorkspaceError):
                        await room.exec(["sleep", "60"], timeout_s=0.5)

                tasks.start_soon(run)
                while not (started := room._alive):  # the instant is what this is about
                    await anyio.lowlevel.checkpoint()
                execution = next(iter(started))
                while not execution._begun:  # noqa: ASYNC110  # likewise
                    await anyio.sleep(0.0005)
                await anyio.sleep(step % 30 * 0.0005)
                with suppress(ProcessLookupError):
                    os.kill(execution.pid, signal.SIGKILL)
            assert await anyio.to_thread.run_sync(named, room.name) == []


async def test_a_shared_process_tree_is_swept_all_the_same() -> None:
    """With the host's process tree as a positive control, a detached child is still found and ended."""
    token = fresh_token()
    mess = (
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(os.getpid(), flush=True)"
    )
    async with BubblewrapBackend().open(replace(WALLS, host_namespaces=("pid",)), run="t") as room:
        ran = await room.exec(python(mess, token))
        assert await anyio.to_thread.run_sync(Path(f"/proc/{int(ran.stdout)}").exists) is False
        assert (await anyio.to_thread.run_sync(_with_word, token)) == []
    lifetime = 4_000_000 + int(token[:4], 16)  # no other forwarder has it
    walls = replace(WALLS, host_namespaces=("pid",), network="gateway", caps=Caps(lifetime_s=lifetime))
    async with BubblewrapBackend().open(walls, run="t") as room:
        seen = await room.exec(["sh", "-c", f"grep -l {lifetime} /proc/[0-9]*/cmdline | wc -l"])
        assert int(seen.stdout) > 1, "the forwarder, beside what looks for it"
        assert (await anyio.to_thread.run_sync(_with_word, str(lifetime))) == []


async def test_limits_of_the_sum_are_set_where_groups_can_be_made() -> None:
    """What the kernel says of the group is what the caps ask, and the group is gone with the room."""
    caps = Caps(memory_bytes=300 << 20, cpus=0.5)
    async with BubblewrapBackend().open(replace(WALLS, caps=caps), run="t") as room:
        facts = await room.facts()
    assert ((await BubblewrapBackend().guarantees())["memory_total"] is None) == groups_available()
    if groups_available():
        assert (facts["memory_bytes"], facts["nano_cpus"]) == (300 << 20, 500_000_000)
        assert Groups(name=room.name).told(caps)["memory_bytes"] is None


async def test_a_workspace_without_memory_is_its_seats_affair() -> None:
    """Files may take all the memory that programs need to start: such a program is killed, and that is no fault of ours."""
    caps = Caps(memory_bytes=64 << 20, workspace_bytes=70 << 20, file_bytes=100 << 20)
    async with BubblewrapBackend().open(replace(WALLS, caps=caps), run="t") as room:
        await room.exec(["sh", "-c", "head -c 100000000 /dev/zero > big"])
        ran = [await room.exec(["ls", "-l"]) for _ in range(15)]
        assert {result.status for result in ran} <= {0, None, 137}
        assert any(result.status != 0 for result in ran), "the memory was not full, so nothing is shown"
        async with room.remains() as rest:  # which has memory of its own
            shown = await rest.exec(["ls", "-l", "/workspace"])
        assert (shown.status, b" big\n" in shown.stdout) == (0, True)


async def test_a_mount_of_a_positive_control_is_there() -> None:
    """A path of the host shown on purpose can be read, and written if it says so: its absence elsewhere means something."""
    async with BubblewrapBackend().open(
        replace(WALLS, mounts=(Mount(source="/etc/hostname", target="/srv/deep/name"),)), run="t"
    ) as room:
        ran = await room.exec(["cat", "/srv/deep/name"])
        assert ran.stdout == await anyio.to_thread.run_sync(Path("/etc/hostname").read_bytes)
        assert (await room.exec(["sh", "-c", "echo x > /srv/deep/name"])).status != 0


async def test_walls_down_are_down() -> None:
    """Root with all capabilities in its own namespace, and a root file system that can be written."""
    async with BubblewrapBackend().open(replace(WALLS, **OPEN), run="t") as room:
        ran = await room.exec(["sh", "-c", "id -u; grep CapEff /proc/self/status; grep Seccomp: /proc/self/status"])
        assert ran.stdout.split()[0] == b"0"
        assert int(ran.stdout.split()[2], 16) != 0
        assert ran.stdout.split()[-1] == b"0"
    async with BubblewrapBackend().open(replace(WALLS, read_only_root=False), run="t") as room:
        assert (await room.exec(["sh", "-c", "echo x > /probe && cat /probe"])).stdout == b"x\n"


async def test_what_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown image, walls that can't be had, a machine without bwrap, a closed folder: each its own error."""
    with pytest.raises(ImageError, match="no-such-image"):
        async with BubblewrapBackend().open(replace(WALLS, image="no-such-image"), run="t"):
            pass
    for change, said in (({"network": "bridge"}, "bridge"), ({"keeper_apart": False}, "keeper_apart")):
        with pytest.raises(FenceError, match=said):
            async with BubblewrapBackend().open(replace(WALLS, **change), run="t"):
                pass
    closed = tmp_path / "closed"
    with pytest.raises(WorkspaceError, match=r"chmod o\+x"):
        async with BubblewrapBackend(home=closed).open(WALLS, run="t"):
            pass
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkspaceError, match="install the package bubblewrap"):
        async with BubblewrapBackend().open(WALLS, run="t"):
            pass


async def test_a_sandbox_that_cannot_be_set_up_is_no_exit_status() -> None:
    """Bwrap's own failure is the workspace's, told with bwrap's own words, and never looks like a program's."""
    gone = Mount(source="/no/such/source", target="/srv/x")
    async with BubblewrapBackend().open(replace(WALLS, mounts=(gone,)), run="t") as room:
        with pytest.raises(WorkspaceError, match="/no/such/source"):
            await room.exec(["true"])


@pytest.mark.parametrize("value", ["x\0--bind\0/\0/workspace", "\ud800"])
async def test_no_variable_becomes_an_option(value: str) -> None:
    """Bwrap's options are told apart by NULs: a variable with one in it starts nothing."""
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        ran = await room.exec(["ls", "/workspace"], env={"A": value})
        assert (ran.status, ran.stdout) == (126, b"")
        assert (await room.exec(["sh", "-c", 'echo "$A"'], env={"A": "a\nb"})).stdout == b"a\nb\n"


async def test_a_life_has_an_end() -> None:
    """After `caps.lifetime_s` nothing starts any more, and what runs is stopped then."""
    async with BubblewrapBackend().open(replace(WALLS, caps=Caps(lifetime_s=1.5)), run="t") as room:
        assert (await room.exec(["sleep", "60"], timeout_s=100)).timed_out
        with pytest.raises(WorkspaceError, match="lifetime_s"):
            await room.exec(["true"])


async def test_many_executions_cost_little() -> None:
    """Descriptors and memory do not grow with the number of executions."""
    async with BubblewrapBackend().open(WALLS, run="t") as room:
        await room.exec(["true"])
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names alone
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(25):
            await room.exec(["sh", "-c", "head -c 100000 /dev/zero"])
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # noqa: PTH208  # likewise
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def _with_word(token: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found
