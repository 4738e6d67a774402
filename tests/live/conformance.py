"""
What every workspace backend must do, as one class of tests.

A backend's test file derives from it and says which backend and which image:

    class TestMine(WorkspaceConformance):
        spec = "my_package.my_module:MyBackend"
        image = "proctor-seat"

The programs that run inside need `/bin/sh` and `python3`. The host must be the machine that the workspaces run on, so
that their processes can be looked for from outside.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.to_thread
import pytest

from harness.clock import fresh_token
from harness.environment import state_home
from harness.errors import WorkspaceError
from harness.ports import Workspace, WorkspaceBackend
from harness.tree import File, Tree, TreeCaps
from harness.walls import Caps, ExecResult, Walls
from harness.workspaces.files import FileAbsent, FileFailed, FileRefused, Files, collect, put

__all__ = ["WorkspaceConformance", "alive"]

SMALL = Caps(pids=40, file_bytes=1 << 20, workspace_bytes=8 << 20, workspace_inodes=200, memory_bytes=256 << 20)

SLEEPER = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
MESS = f"""
import os, signal, subprocess, sys, time
token = sys.argv[1]
sleeper = [sys.executable, "-I", "-S", "-c", {SLEEPER!r}, token]
subprocess.Popen(sleeper, start_new_session=True)
stopped = subprocess.Popen(sleeper, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sleeper[0], sleeper)
    os._exit(0)
time.sleep(0.3)
os.kill(stopped.pid, signal.SIGSTOP)
print("made", flush=True)
time.sleep(float(sys.argv[2]))
"""
CONNECT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as peer:
        print(peer.recv(100).decode())
except OSError as error:
    print(type(error).__name__, error.errno)
"""
FORKS = """
import os, sys, time
made = 0
for _ in range(int(sys.argv[1])):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(5)
        os._exit(0)
    made += 1
print(made, flush=True)
"""
OWNER = """
import importlib, sys, anyio
from harness.walls import Walls
module, _, name = sys.argv[1].partition(":")
async def main():
    backend = getattr(importlib.import_module(module), name)()
    async with backend.open(Walls(image=sys.argv[2]), run="orphan") as room:
        print(room.name, flush=True)
        await room.exec(["python3", "-I", "-S", "-c", sys.argv[4], sys.argv[3]], timeout_s=100)
anyio.run(main)
"""


def alive(token: str) -> list[int]:
    """The Pythons alive on this host, zombies left out, that have `token` as the last word of their command line."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            state = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if b"python" in words[0] and words[-2:-1] == [token.encode()] and state not in "ZX":
            found.append(int(path.name))
    return found


async def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether `true()` came to hold within `seconds`."""
    with anyio.move_on_after(seconds):
        while not await anyio.to_thread.run_sync(true):  # noqa: ASYNC110  # the host's processes tell nobody
            await anyio.sleep(0.05)
        return True
    return False


def python(program: str, *words: str) -> list[str]:
    """The command that runs `program` with the workspace's own Python."""
    return ["python3", "-I", "-S", "-c", program, *words]


@pytest.mark.live
@pytest.mark.anyio
@pytest.mark.timeout(120)
class WorkspaceConformance:
    """The suite. `spec` is `module:Class` of the backend, `image` the name of an image that it has."""

    spec: ClassVar[str]
    image: ClassVar[str]

    def backend(self) -> WorkspaceBackend:
        """A backend as a plugin's table makes it: with no argument."""
        module, _, name = self.spec.partition(":")
        made: WorkspaceBackend = getattr(importlib.import_module(module), name)()
        return made

    def walls(self, **changes: object) -> Walls:
        """Sealed walls with small caps."""
        return replace(Walls(image=self.image, caps=SMALL), **changes)

    def room(self, **changes: object) -> AbstractAsyncContextManager[Workspace]:
        """A fresh workspace behind these walls."""
        return self.backend().open(self.walls(**changes), run="conformance")

    @asynccontextmanager
    async def observed(self, token: str, least: int) -> AsyncIterator[Callable[[], int]]:
        """Looks meanwhile for processes with `token`; ends once `least` were seen at one time."""
        most = 0

        async def look() -> None:
            nonlocal most
            while most < least:
                most = max(most, len(await anyio.to_thread.run_sync(alive, token)))
                await anyio.sleep(0.05)  # the host's processes tell nobody when they come

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            yield lambda: most
            tasks.cancel_scope.cancel()

    async def test_exec_tells_status_and_both_outputs(self) -> None:
        """Input arrives, both outputs come apart, and the status is the program's own."""
        async with self.room() as room:
            ran = await room.exec(["sh", "-c", "cat; echo oops >&2; exit 7"], stdin=b"in\x00put")
            assert (ran.status, ran.stdout, ran.stderr) == (7, b"in\x00put", b"oops\n")
            assert (ran.timed_out, ran.stdout_cut, ran.stderr_cut) == (False, False, False)
            assert 0 < ran.seconds < 30
            assert (await room.exec(["true"])).status == 0

    async def test_a_signal_shows_in_the_status(self) -> None:
        """A program ended by a signal has status 128 + its number, so that it is never taken for success."""
        async with self.room() as room:
            assert (await room.exec(["sh", "-c", "kill -SEGV $$"])).status == 128 + signal.SIGSEGV
            assert (await room.exec(["sh", "-c", "kill -KILL $$"])).status == 128 + signal.SIGKILL

    async def test_a_missing_program_is_its_callers_affair(self) -> None:
        """A program that isn't there ends with 126 or 127, says so on stderr only, and breaks nothing."""
        async with self.room() as room:
            ran = await room.exec(["no-such-program"])
            assert (ran.status in {126, 127}, ran.stdout, ran.stderr != b"") == (True, b"", True)
            assert (await room.exec(["true"])).status == 0

    async def test_a_missing_folder_is_its_callers_affair(self) -> None:
        """A working folder that isn't there is no failure of the workspace: a seat may have removed it."""
        async with self.room() as room:
            ran = await room.exec(["true"], cwd="/workspace/gone")
            assert (ran.status in {126, 127}, ran.timed_out) == (True, False)

    async def test_output_is_cut_at_the_cap(self) -> None:
        """More than the cap is cut and said to be, on each stream by itself, and the program still ends by itself."""
        async with self.room() as room:
            ran = await room.exec(["sh", "-c", "head -c 3000000 /dev/zero; echo fine >&2"], output_bytes=1000)
            assert (ran.status, len(ran.stdout), ran.stdout_cut) == (0, 1000, True)
            assert (ran.stderr, ran.stderr_cut) == (b"fine\n", False)
            exact = await room.exec(["sh", "-c", "head -c 1000 /dev/zero"], output_bytes=1000)
            assert (len(exact.stdout), exact.stdout_cut) == (1000, False)

    async def test_large_input_and_output_do_not_lock_up(self) -> None:
        """A program that answers while it is still being fed gets and gives everything."""
        async with self.room() as room:
            data = os.urandom(1 << 20) * 3
            ran = await room.exec(["cat"], stdin=data, output_bytes=4 << 20)
            assert ran.stdout == data
            assert (await room.exec(["true"], stdin=data)).status == 0

    async def test_the_time_limit_ends_everything(self) -> None:
        """Detached, double-forked, TERM-proof and stopped children are gone when a timed-out exec returns."""
        token = fresh_token()
        async with self.room() as room, self.observed(token, 3) as most:
            began = anyio.current_time()
            ran = await room.exec(python(MESS, token, "600"), timeout_s=3)
            assert ran.timed_out
            assert ran.status != 0
            assert anyio.current_time() - began < 30
            assert most() == 3, "the mess was not made, so nothing is shown"
            assert alive(token) == []
            assert (await room.exec(["true"])).status == 0

    async def test_kill_ends_what_an_exec_left(self) -> None:
        """What a program leaves behind it does not outlive `kill()`; files do."""
        token = fresh_token()
        async with self.room() as room:
            ran = await room.exec(python(MESS, token, "0"), timeout_s=30)
            assert ran.stdout == b"made\n"
            await room.exec(["sh", "-c", "echo kept > /workspace/kept"])
            await room.kill()
            assert alive(token) == []
            assert (await room.exec(["cat", "/workspace/kept"])).stdout == b"kept\n"

    async def test_kill_ends_what_another_task_waits_for(self) -> None:
        """`kill()` ends a running exec, which then returns and is not taken for a success."""
        token = fresh_token()
        async with self.room() as room:
            ran: list[ExecResult] = []

            async def wait() -> None:
                ran.append(await room.exec(python(MESS, token, "600"), timeout_s=600))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                assert await wait_until(lambda: len(alive(token)) == 3)
                await room.kill()
                assert alive(token) == []
            assert ran[0].status != 0
            assert (await room.exec(["true"])).status == 0

    async def test_cancellation_returns_at_once_and_leaves_nothing(self) -> None:
        """A cancelled exec ends its program before it returns."""
        token = fresh_token()
        async with self.room() as room, self.observed(token, 3) as most:
            with anyio.move_on_after(3) as scope:
                await room.exec(python(MESS, token, "600"), timeout_s=600)
            assert scope.cancelled_caught
            assert most() == 3
            assert alive(token) == []
            assert (await room.exec(["true"])).status == 0

    async def test_cancellation_of_the_whole_room_leaves_nothing(self) -> None:
        """A workspace whose holder is cancelled takes its programs with it."""
        token = fresh_token()
        with anyio.move_on_after(5):
            async with self.room() as room:
                await room.exec(python(MESS, token, "600"), timeout_s=600)
        assert await wait_until(lambda: not alive(token), 5)

    async def test_nothing_is_left_of_a_closed_room(self) -> None:
        """No process, no mount, no folder; the name is free; and the closed room says that it is closed."""
        token = fresh_token()
        async with self.room() as room:
            await room.exec(python(MESS, token, "0"), timeout_s=30)
        assert alive(token) == []
        assert room.name not in _mounts()
        assert _folders(room.name) == []
        assert room.name not in await self.backend().reap()
        with pytest.raises(WorkspaceError):
            await room.exec(["true"])

    async def test_no_network(self) -> None:
        """A listener on the host's loopback answers the host and not the workspace; only loopback is there."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as server,
            anyio.create_task_group() as tasks,
        ):
            port = server.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # this is no database
            tasks.start_soon(server.serve, _greet)
            here = await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    [sys.executable, "-c", CONNECT, "127.0.0.1", str(port)], capture_output=True, check=True
                )
            )
            assert here.stdout == b"canary\n"
            async with self.room() as room:
                there = await room.exec(python(CONNECT, "127.0.0.1", str(port)))
                away = await room.exec(python(CONNECT, "192.0.2.1", "80"))
                names = await room.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"])
            async with self.room(network="host") as open_room:
                weak = await open_room.exec(python(CONNECT, "127.0.0.1", str(port)))
            tasks.cancel_scope.cancel()
        assert weak.stdout == b"canary\n", "the wall taken down lets it through, so the wall is what stopped it"
        assert there.stdout.startswith(b"ConnectionRefused")
        assert away.stdout == b"OSError 101\n"
        assert names.stdout.split() == [b"lo"]

    async def test_the_environment_holds_what_was_given(self) -> None:
        """The walls' and the call's variables, a path, a home and a locale: nothing of the harness' own."""
        os.environ["PROCTOR_TEST_CANARY"] = token = fresh_token()
        try:
            async with self.room(environment={"GIVEN": "by the walls"}) as room:
                ran = await room.exec(["env", "-0"], env={"CALLED": "by the call"})
                everywhere = await room.exec(["sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true"])
        finally:
            del os.environ["PROCTOR_TEST_CANARY"]
        found = dict(item.split(b"=", 1) for item in ran.stdout.split(b"\0") if item)
        assert (found.pop(b"GIVEN"), found.pop(b"CALLED")) == (b"by the walls", b"by the call")
        assert found.keys() <= {b"PATH", b"HOME", b"LANG", b"LC_ALL", b"PWD", b"HOSTNAME", b"TERM", b"SHLVL", b"_"}
        assert token.encode() not in everywhere.stdout

    async def test_the_hosts_files_are_not_there(self, tmp_path: Path) -> None:
        """Neither a file of ours nor the folder that holds the workspaces can be read."""
        (tmp_path / "canary").write_text("canary")
        async with self.room() as room:
            for place in (tmp_path / "canary", state_home(), Path(__file__)):
                assert (await room.exec(["ls", "-d", str(place)])).status != 0

    async def test_the_root_is_read_only_and_the_workspace_is_not(self) -> None:
        """The workspace and `/tmp` can be written, nothing else."""
        script = "for d in / /etc /usr /usr/bin /dev /proc /var /root /home; do echo x 2>/dev/null > $d/probe && echo $d; done"
        async with self.room() as room:
            ran = await room.exec(
                ["sh", "-c", f"{script}; echo x > /workspace/a && echo x > /tmp/a && cat /workspace/a /tmp/a"]
            )
            assert ran.stdout == b"x\nx\n"
            who = await room.exec(["id", "-u"])
            assert int(who.stdout) > 0

    async def test_the_number_of_processes_is_limited(self) -> None:
        """A program that forks without end is stopped below the cap, and the next one can fork again."""
        async with self.room() as room:
            ran = await room.exec(python(FORKS, "400"), timeout_s=30)
            assert 10 < int(ran.stdout) <= SMALL.pids
            await room.kill()
            assert (await room.exec(python(FORKS, "5"))).stdout == b"5\n"

    async def test_the_size_of_a_file_is_limited(self) -> None:
        """A file over the cap can't be made, one below it can."""
        program = "import sys\nwith open('/workspace/f', 'wb') as f: f.write(bytes(int(sys.argv[1])))\n"
        async with self.room() as room:
            assert (await room.exec(python(program, str(SMALL.file_bytes)))).status == 0
            assert (await room.exec(python(program, str(SMALL.file_bytes + 1)))).status != 0

    async def test_the_workspace_is_limited_where_it_is_said_to_be(self) -> None:
        """Bytes and inodes end where the caps say, if the backend guarantees it."""
        promised = await self.backend().guarantees()
        fill = "for n in $(seq 20); do head -c 1000000 /dev/zero > f$n || break; done 2>/dev/null; ls f* | wc -l"
        names = "for n in $(seq 400); do true > g$n || break; done 2>/dev/null; ls g* | wc -l"
        async with self.room() as room:
            filled = int((await room.exec(["sh", "-c", fill])).stdout)
            await room.exec(["sh", "-c", "rm -f f*"])
            named = int((await room.exec(["sh", "-c", names])).stdout)
        assert (promised["workspace_bytes"] is None) == (filled < 10)
        assert (promised["workspace_inodes"] is None) == (named < 200)

    async def test_memory_is_limited_in_sum_where_it_is_said_to_be(self) -> None:
        """Four processes together can't hold more than the cap, if the backend guarantees it."""
        promised = await self.backend().guarantees()
        one = "import sys, time; data = b'x' * (100 << 20); print('held', flush=True); time.sleep(1.5)"
        async with self.room() as room:
            ran = await room.exec(
                ["sh", "-c", 'for n in 1 2 3 4; do python3 -I -S -c "$0" & done; wait', one], timeout_s=60
            )
            assert (await room.exec(["true"])).status == 0
        assert (promised["memory_total"] is None) == (ran.stdout.count(b"held") < 4)

    async def test_two_rooms_do_not_see_each_other(self) -> None:
        """Neither files nor `/tmp` nor processes are shared."""
        token = fresh_token()
        async with self.room() as one, self.room() as two:
            assert one.name != two.name
            await one.exec(["sh", "-c", "echo x > /workspace/x; echo x > /tmp/x"])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.exec, python(SLEEPER, token))
                assert await wait_until(lambda: len(alive(token)) == 1)
                seen = await two.exec(["sh", "-c", "ls /workspace /tmp; cat /proc/[0-9]*/cmdline"])
                tasks.cancel_scope.cancel()
        assert token.encode() not in seen.stdout.replace(b"\0", b" ").split(b"sh -c")[0]
        assert b"x\n" not in seen.stdout

    async def test_a_stream_talks_until_it_is_left(self) -> None:
        """A long-lived program answers line by line, sees the end of its input, and is gone when the block is left."""
        token = fresh_token()
        echo = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)\nprint('end', flush=True)"
        async with self.room() as room:
            async with room.stream(python(echo, token)) as stream:
                await stream.send(b"abc\n")
                assert await _line(stream) == b"cba\n"
                assert len(alive(token)) == 1
                await stream.send_eof()
                assert await _line(stream) == b"end\n"
            assert alive(token) == []
            async with room.stream(python(SLEEPER, token)):
                assert await wait_until(lambda: len(alive(token)) == 1)
            assert alive(token) == []

    async def test_put_and_collect_make_the_round_trip(self) -> None:
        """What was laid down comes out with the same digest."""
        files = {
            "a.py": File(data=b"x = 1\n"),
            "d/run.sh": File(data=b"#!/bin/sh\n", executable=True),
            "e": File(data=b""),
        }
        tree = Tree({**files, "big": File(data=os.urandom(900_000)), "ü/line\nbreak": File(data=b"1")})
        async with self.room() as room:
            await put(room, tree)
            ran = await room.exec(["sh", "-c", "cat a.py; test -x d/run.sh && ls d"])
            assert ran.stdout == b"x = 1\nrun.sh\n"
            exhibit = await collect(room, TreeCaps())
        assert (exhibit.digest, exhibit.dropped) == (tree.digest, ())

    async def test_the_file_tool_goes_through_nothing(self) -> None:
        """Links of every kind, devices, FIFOs and `..` give no byte of anything else, and do not hang."""
        traps = (
            "ln -s /etc/passwd abs; ln -s ../../etc/passwd rel; ln -s / root; ln -s /proc/self proc; ln -s /dev/zero zero;"
            "mkfifo pipe; ln -s real inner; echo real > real; ln real hard"
        )
        async with self.room() as room:
            assert (await room.exec(["sh", "-c", traps])).status == 0
            files = Files(room, timeout_s=20)
            for path in ("abs", "rel", "root/etc/passwd", "proc/environ", "zero", "pipe", "inner", "../etc/passwd"):
                with pytest.raises(FileRefused):
                    await files.read(path)
                with pytest.raises(FileRefused):
                    await files.write(path, b"evil")
            assert (await files.read("hard")).data == b"real\n"
            with pytest.raises(FileAbsent):
                await files.read("nothing")
            await files.write("new/file", b"1\n2\n")
            assert await files.edit("new/file", "2", "two") == 2
            assert [(m.path, m.line) for m in (await files.search("two")).matches] == [("new/file", 2)]
            assert {e.path: e.kind for e in (await files.list()).entries}["pipe"] == "FIFO"

    async def test_the_file_tool_reports_a_full_workspace(self) -> None:
        """A write that finds no room is a failed call; the old file stays whole."""
        if (await self.backend().guarantees())["workspace_bytes"] is not None:
            return
        async with self.room() as room:
            files = Files(room)
            await files.write("kept", b"old")
            await room.exec(
                ["sh", "-c", "for n in $(seq 20); do head -c 1000000 /dev/zero > f$n || break; done 2>/dev/null"]
            )
            with pytest.raises(FileFailed, match="space"):
                await files.write("kept", b"x" * 900_000)
            assert (await files.read("kept")).data == b"old"

    async def test_collect_withstands_a_hostile_workspace(self) -> None:
        """Whatever a seat leaves, the good file comes out and the rest is named: the seat can't void its own cell."""
        traps = """
import os, socket
os.symlink("/etc/passwd", "link"); os.symlink(".", "loop"); os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("sock")
open(b"bad\\xff", "w"); open("new\\nline", "w").write("n")
with open("sparse", "wb") as f: f.truncate(10 << 30)
with open("sixty", "wb") as f: f.truncate(60 << 20)
open("good", "w").write("good"); os.link("good", "hard")
open("dark", "w").write("x"); os.chmod("dark", 0)
os.mkdir("closed"); open("closed/in", "w"); os.chmod("closed", 0)
deep = "d/" * 80
os.makedirs(deep); open(deep + "f", "w")
os.makedirs("many")
for n in range(20_001): open("many/%d" % n, "w")
growing = open("good", "a")
if os.fork() == 0:
    os.setsid()
    os.close(2)
    while True:
        growing.write("more")
        growing.flush()
os.chmod(".", 0)
"""
        caps = Caps(file_bytes=20 << 30, workspace_bytes=64 << 20, workspace_inodes=30_000)
        async with self.room(caps=caps) as room:
            ran = await room.exec(python(traps), timeout_s=60)
            assert (ran.status, ran.stderr) == (0, b"")
            exhibit = await collect(room, TreeCaps())
        names = {item.path: item.why for item in exhibit.dropped}
        assert exhibit.tree["good"].startswith(b"good")
        assert {"hard", "new\nline", "many/0"} <= set(exhibit.tree)
        assert {"link", "loop", "pipe", "sock", "bad\\xff", "sparse", "sixty", "dark", "closed"} <= names.keys()
        assert len(exhibit.tree) == TreeCaps().entries
        assert len(names) <= 1001

    async def test_a_file_tool_killed_midway_is_a_failed_call(self) -> None:
        """A far end that the seat kills gives an error of the tool, and the next call works."""
        hunt = """
import os, signal, time
print("hunting", flush=True)
end = time.time() + 20
while time.time() < end:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid(), os.getppid()):
            try:
                if b"proctor-" in open("/proc/%s/cmdline" % name, "rb").read(): os.kill(int(name), signal.SIGKILL)
            except OSError: pass
"""
        async with self.room() as room:
            files = Files(room)
            await files.write("a", b"1")
            async with room.stream(python(hunt)) as stream:
                assert await _line(stream) == b"hunting\n"
                for _ in range(3):
                    outcome: object = None
                    try:
                        outcome = (await files.read("a")).data
                    except FileFailed as error:
                        outcome = error
                    assert outcome == b"1" or isinstance(outcome, FileFailed)
            assert (await files.read("a")).data == b"1"

    async def test_facts_and_engine_are_told(self) -> None:
        """A room and an engine say what they are; guarantees name each promise with None or a reason."""
        backend = self.backend()
        async with self.room() as room:
            facts = await room.facts()
        promised = await backend.guarantees()
        assert facts["network_mode"] == "none"
        assert facts["no_new_privileges"] is True
        assert facts["read_only_root"] is True
        assert facts["pids_limit"] == SMALL.pids
        assert promised["network"] is None
        assert all(reason is None or len(reason) > 20 for reason in promised.values())
        assert all(isinstance(value, str) and value for value in (await backend.engine()).values())
        assert len((await backend.image_digest(self.image)).removeprefix("sha256:")) == 64
        assert (
            backend.options(self.walls())
            == backend.options(self.walls())
            != backend.options(self.walls(network="host"))
        )

    async def test_a_dead_owner_is_reaped_and_a_living_one_is_not(self) -> None:
        """After SIGKILL of the process that held a workspace, `reap` ends it and names it; living rooms stay."""
        token = fresh_token()
        owner = _owner([self.spec, self.image, token, SLEEPER])
        try:
            assert owner.stdout is not None
            name = (await anyio.to_thread.run_sync(owner.stdout.readline)).decode().strip()
            assert name
            assert await wait_until(lambda: len(alive(token)) == 1)
            async with self.room() as mine:
                assert name not in await self.backend().reap(), "its owner is alive"
                owner.kill()
                await anyio.to_thread.run_sync(owner.wait)
                reaped = await self.backend().reap()
                assert name in reaped
                assert mine.name not in reaped
                assert (await mine.exec(["true"])).status == 0
        finally:
            owner.kill()
            await anyio.to_thread.run_sync(owner.wait)
            owner.stdout.close()
        assert await wait_until(lambda: not alive(token), 5)
        assert name not in _mounts()
        assert name not in await self.backend().reap()


def _mounts() -> str:
    return Path("/proc/mounts").read_text()


def _folders(name: str) -> list[Path]:
    return [path for path in state_home().glob("workspaces/*") if name in path.name]


def _owner(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE)


async def _greet(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await stream.send(b"canary")


async def _line(stream: anyio.abc.ByteStream) -> bytes:
    data = b""
    with anyio.fail_after(20):
        while not data.endswith(b"\n"):
            data += await stream.receive()
    return data
