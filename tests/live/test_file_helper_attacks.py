"""
A seat against its own helper, live: it may look for it, stop it, kill it, crowd it out and race it. It learns nothing,
forges nothing, hangs nothing and voids nothing. Each attack is seen to work where nothing is in its way.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from harness.clock import fresh_token
from harness.ports import Workspace
from harness.walls import Caps, Mount
from harness.workspaces.file_helper import Helper, open_helper
from harness.workspaces.files import FileAbsent, FileFailed, FileRefused, Files, FileToolError
from tests.live.images import seat_image
from tests.live.rooms import SMALL, Rooms, alive, line_of, python, wait_until

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(180)]

FIND = """
import ctypes, errno, json, os, signal, subprocess, sys, time
def helpers():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if b"cell_" + b"helper" in open("/proc/%s/cmdline" % name, "rb").read(): found.append(int(name))
            except OSError: pass
    return found
"""
PEEK = f"""{FIND}
libc = ctypes.CDLL(None, use_errno=True)
def tried(do):
    try: do()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
def attach(pid):
    if libc.ptrace(16, pid, 0, 0): raise OSError(ctypes.get_errno(), "ptrace")
def vm_read(pid):
    class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    buf = ctypes.create_string_buffer(8)
    local, far = Vec(ctypes.addressof(buf), 8), Vec(0x400000, 8)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(far), 1, 0) < 0: raise OSError(ctypes.get_errno(), "vm")
def attacks(pid):
    return {{
        "stdin": tried(lambda: os.close(os.open("/proc/%d/fd/0" % pid, os.O_WRONLY | os.O_NONBLOCK))),
        "stdout": tried(lambda: os.write(os.open("/proc/%d/fd/1" % pid, os.O_WRONLY | os.O_NONBLOCK), b"forged-by-seat")),
        "environ": tried(lambda: open("/proc/%d/environ" % pid, "rb").read()),
        "mem": tried(lambda: os.close(os.open("/proc/%d/mem" % pid, os.O_RDWR))),
        "maps": tried(lambda: open("/proc/%d/maps" % pid, "rb").read()),
        "cwd": tried(lambda: os.listdir("/proc/%d/cwd" % pid)),
        "ptrace": tried(lambda: attach(pid)),
        "vm": tried(lambda: vm_read(pid)),
    }}
own = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
time.sleep(0.3)
print(json.dumps({{"helpers": [attacks(pid) for pid in helpers()], "own": attacks(own.pid)}}))
own.kill()
"""
SIGNAL = f"""{FIND}
for pid in helpers(): os.kill(pid, int(sys.argv[1]))
print(len(helpers()))
"""
HUNT = f"""{FIND}
print("hunting", flush=True)
while True:
    for pid in helpers():
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
"""
FILL = """
import os
with open("/tmp/full", "wb") as file:
    try:
        while True: file.write(bytes(1 << 20))
    except OSError: pass
made = 0
try:
    while True:
        os.close(os.open("/tmp/i%d" % made, os.O_CREAT | os.O_WRONLY)); made += 1
        if made > 20_000: break
except OSError: pass
"""
CROWD = f"""{FIND}
while True:
    try:
        if os.fork() == 0:
            time.sleep(600); os._exit(0)
    except OSError: break
for pid in helpers():
    try: os.kill(pid, signal.SIGKILL)
    except OSError: pass
print("crowded", flush=True)
time.sleep(600)
"""
RACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir("d"); open("d/passwd", "w").write("inside"); os.symlink(sys.argv[1], "l")
print("racing", flush=True)
while True:
    if libc.renameat2(-100, b"d", -100, b"l", 2): raise OSError(ctypes.get_errno(), "renameat2")
"""


@pytest.fixture(autouse=True, scope="module")
def _image() -> None:
    """The image that the workspaces start from is there."""
    seat_image()


@pytest.fixture
def canary() -> Iterator[Path]:
    """A folder of the host's, outside every workspace, with a file that only the host has. Nobody may change it."""
    folder, secret = Path(tempfile.mkdtemp(prefix="proctor-canary-")), f"canary-{fresh_token()}"
    (folder / "passwd").write_text(secret)
    folder.chmod(0o755)
    yield folder
    left = {path.name: path.read_text() for path in folder.iterdir()}
    shutil.rmtree(folder)
    assert left == {"passwd": secret}


class HelperAttacks(Rooms):
    """The attacks. `sees` is whether a seat's programs see the helper at all."""

    image = "proctor-seat"
    sees: bool

    @pytest.fixture
    def anyio_backend(self) -> str:
        """asyncio, which the command line uses."""
        return "asyncio"

    @asynccontextmanager
    async def cell(self, **caps: int) -> AsyncIterator[tuple[Workspace, Helper, list[str]]]:
        """A room with a helper that is there before anything of the seat's, and the causes of its events."""
        causes: list[str] = []
        async with (
            self.room(caps=replace(SMALL, **caps)) as room,
            open_helper(room, event=lambda cause, _: causes.append(cause)) as helper,
        ):
            await helper.start()
            await Files(helper).write("a", b"text")
            yield room, helper, causes

    async def test_nobody_of_its_user_looks_into_it(self) -> None:
        """Its streams, environment, memory and maps are closed to the seat, whose own child has all of them open."""
        async with self.cell() as (room, helper, causes):
            ran = await room.exec(python(PEEK), timeout_s=30)
            said = json.loads(ran.stdout)
            assert (await Files(helper).read("a")).data == b"text"
        assert causes == []
        assert len(said["helpers"]) == self.sees
        for tries in said["helpers"]:
            assert set(tries.values()) <= {"EACCES", "EPERM"}, tries
        open_to_all = {"stdin", "stdout", "environ", "mem", "maps", "cwd"}
        assert {name for name, outcome in said["own"].items() if outcome == "done"} >= open_to_all, said["own"]

    @pytest.mark.parametrize(
        ("number", "cause"), [(9, "killed"), (19, "late"), (14, "killed"), (2, "killed"), (15, "killed")]
    )
    async def test_a_signal_is_an_event_and_no_more(self, number: int, cause: str) -> None:
        """KILL, STOP, ALRM, INT and TERM: told, started again, and the file is read."""
        async with self.cell() as (room, helper, causes):
            await room.exec(python(SIGNAL, str(number)), timeout_s=30)
            assert (await Files(helper, timeout_s=3).read("a")).data == b"text"
            assert causes == [cause] * self.sees
            assert (await Files(helper).read("a")).data == b"text"

    async def test_kill_everything_is_an_event_and_no_more(self) -> None:
        """`kill -9 -1` as the seat ends what is the seat's: the keeper and the cell go on."""
        async with self.cell() as (room, helper, causes):
            await room.exec(["sh", "-c", "kill -9 -1"], timeout_s=30)
            assert (await Files(helper).read("a")).data == b"text"
            assert causes == ["killed"] * self.sees
            assert (await room.exec(["true"])).status == 0

    async def test_one_that_hunts_it_for_ever_hangs_nothing(self) -> None:
        """Each call is served or fails with words, in a bounded time; after the hunter's end all are served."""
        async with self.cell() as (room, helper, causes):
            files = Files(helper, timeout_s=5)
            async with room.stream(python(HUNT)) as hunter:
                assert await line_of(hunter) == b"hunting\n"
                for _ in range(3):
                    with anyio.fail_after(40):
                        try:
                            assert (await files.read("a")).data == b"text"
                        except FileFailed as error:
                            assert "lost" in str(error)  # noqa: PT017 - either is right
            assert (await files.read("a")).data == b"text"
            assert bool(causes) == self.sees
            assert set(causes) <= {"killed", "crowded"}

    async def test_a_full_tmp_keeps_no_helper_out(self) -> None:
        """It needs no file of its own to start."""
        async with self.cell() as (room, helper, causes):
            assert (await room.exec(python(FILL), timeout_s=60)).status == 0
            await room.exec(python(SIGNAL, "9"), timeout_s=30)
            assert (await Files(helper).read("a")).data == b"text"
            assert causes == ["killed"] * self.sees

    async def test_a_full_workspace_is_told_and_can_still_be_read(self) -> None:
        """A write that finds no room fails with words, and reading goes on."""
        if (await self.backend().guarantees())["workspace_bytes"] is not None:
            return
        async with self.cell() as (room, helper, causes):
            files = Files(helper)
            await room.exec(["sh", "-c", "for n in $(seq 300); do head -c 900000 /dev/zero > f$n; done 2>/dev/null"])
            with pytest.raises(FileFailed, match="No space"):
                await files.write("b", b"x" * 1_000_000)
            assert (await files.read("a")).data == b"text"
            assert causes == []

    @pytest.mark.parametrize("before", [True, False], ids=["killed then crowded out", "crowded out from the start"])
    async def test_all_processes_taken_fails_a_call_at_most(self, *, before: bool) -> None:
        """No place to start in: what the seat runs is ended, the call is served or fails with words, the cell goes on."""
        causes: list[str] = []
        async with self.room() as room, open_helper(room, event=lambda cause, _: causes.append(cause)) as helper:
            await room.exec(["sh", "-c", "printf text > a"])
            if before:
                await helper.start()
            async with room.stream(python(CROWD)) as crowd:
                assert await line_of(crowd) == b"crowded\n"
                with anyio.fail_after(100):
                    try:
                        assert (await Files(helper).read("a")).data == b"text"
                    except FileFailed as error:
                        assert "lost" in str(error)  # noqa: PT017 - either is right
            assert (await Files(helper).read("a")).data == b"text"
            assert (await room.exec(["true"])).status == 0
        assert set(causes) <= {"killed", "crowded"}

    async def test_a_mount_below_the_workspace_is_not_entered(self, canary: Path) -> None:
        """Sealed walls have none; with one shown by weakened walls, a program reads it and the file tool does not."""
        shown = (Mount(source=str(canary), target="/workspace/mounted"),)
        async with self.room(mounts=shown) as room, open_helper(room) as helper:
            ran = await room.exec(["cat", "/workspace/mounted/passwd"])
            assert ran.stdout.startswith(b"canary-"), ran.stderr
            files = Files(helper)
            for attempt in (files.read("mounted/passwd"), files.write("mounted/new", b""), files.list("mounted")):
                with pytest.raises(FileRefused, match="out of its root"):
                    await attempt
            assert (await files.search("canary-")).matches == ()

    async def test_a_race_of_renames_serves_nothing_from_outside(self, canary: Path) -> None:
        """
        A folder and a link out of the workspace change places all the time. Of 4,000 reads none gives what is outside;
        opening the same path on the host gives the host's canary.
        """
        secret = (canary / "passwd").read_bytes()
        for target, calls in ((str(canary), 3000), ("/etc", 1000)):
            token = fresh_token()
            async with self.cell() as (room, helper, causes), room.stream(python(RACE, target, token)) as racer:
                assert await line_of(racer) == b"racing\n"
                read, refused = await _reads(Files(helper), calls)
                assert read == {b"inside"}
                assert refused > 0, "the link was never there, so nothing is shown"
                await _changes(Files(helper), 150)
                assert causes == []
                if target == str(canary):
                    assert await wait_until(lambda token=token: len(alive(token)) == 1)
                    path = Path(f"/proc/{alive(token)[0]}/root/workspace/d/passwd")
                    served = await anyio.to_thread.run_sync(_naive, path, secret, 4000)
                    assert served > 0, "the careless way was never led out, so nothing is shown"


async def _reads(files: Files, calls: int) -> tuple[set[bytes], int]:
    """What so many reads gave, and how many were refused."""
    read, refused = set(), 0
    for _ in range(calls):
        try:
            read.add((await files.read("d/passwd")).data)
        except (FileRefused, FileAbsent):
            refused += 1
    return read, refused


async def _changes(files: Files, calls: int) -> None:
    """Writes, searches and listings in the race: served or refused, and of nothing that is outside."""
    for _ in range(calls):
        try:
            await files.write("d/new", b"inside")
        except FileToolError:
            continue
    assert {match.text for match in (await files.search(":|canary-|inside")).matches} <= {"inside"}
    for number in range(calls):
        listed = await files.list(".", depth=3)
        assert {entry.path.rpartition("/")[2] for entry in listed.entries} <= {"a", "d", "l", "passwd", "new"}, number


def _naive(path: Path, secret: bytes, calls: int) -> int:
    """How often an open on the host gives the host's own file."""
    served = 0
    for _ in range(calls):
        try:
            served += path.read_bytes() == secret
        except OSError:
            continue
    return served


class TestDocker(HelperAttacks):
    """In one process tree with the seat's programs."""

    spec = "harness.workspaces.docker:DockerBackend"
    sees = True


class TestBubblewrap(HelperAttacks):
    """In a process tree of its own, as every program is."""

    spec = "harness.workspaces.bubblewrap:BubblewrapBackend"
    sees = False


def test_the_caps_leave_room_to_crowd() -> None:
    """The rooms of these tests have a limit on processes that a program can reach."""
    assert 0 < SMALL.pids < Caps().pids
