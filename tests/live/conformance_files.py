"""What every workspace backend must do, the part about files: in, out, and through the file tool."""

from __future__ import annotations

import os

import anyio
import pytest

from harness.tree import File, Tree, TreeCaps
from harness.walls import Caps
from harness.workspaces.file_helper import open_helper
from harness.workspaces.files import FileAbsent, FileFailed, FileRefused, Files, collect, put
from tests.live.rooms import Rooms, line_of, python


class FileConformance(Rooms):
    """Files of a workspace, friendly and hostile."""

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
            async with room.remains() as rest:
                exhibit = await collect(rest, TreeCaps())
        assert (exhibit.digest, exhibit.dropped) == (tree.digest, ())

    async def test_the_file_tool_goes_through_nothing(self) -> None:
        """Links of every kind, devices, FIFOs and `..` give no byte of anything else, and do not hang."""
        traps = (
            "ln -s /etc/passwd abs; ln -s ../../etc/passwd rel; ln -s / root; ln -s /proc/self proc; ln -s /dev/zero zero;"
            "mkfifo pipe; ln -s real inner; echo real > real; ln real hard"
        )
        async with self.room() as room, open_helper(room) as helper:
            assert (await room.exec(["sh", "-c", traps])).status == 0
            files = Files(helper, timeout_s=20)
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
        async with self.room() as room, open_helper(room) as helper:
            files = Files(helper)
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
os.mkdir("many")
for n in range(20_001): open("many/%d" % n, "w")
home = os.getcwd()
for n in range(4_000): os.mkdir("d"); os.chdir("d")
open("f", "w")
os.chdir(home)
growing = open("good", "a")
if os.fork() == 0:
    os.setsid()
    os.close(2)
    while True:
        growing.write("more")
        growing.flush()
"""
        caps = Caps(file_bytes=20 << 30, workspace_bytes=64 << 20, workspace_inodes=30_000)
        async with self.room(caps=caps) as room:
            ran = await room.exec(python(traps), timeout_s=60)
            assert (ran.status, ran.stderr) == (0, b"")
            async with room.remains() as rest:
                with anyio.fail_after(60):
                    exhibit = await collect(rest, TreeCaps())
        names = {item.path: item.why for item in exhibit.dropped}
        assert exhibit.tree["good"].startswith(b"good")
        assert {"hard", "new\nline", "many/0"} <= set(exhibit.tree)
        assert {"link", "loop", "pipe", "sock", "bad\\xff", "sparse", "sixty", "dark", "closed"} <= names.keys()
        assert "deeper" in names["/".join(32 * "d")]
        assert len(exhibit.tree) == TreeCaps().entries
        assert len(names) <= 1001

    async def test_a_seat_that_closes_its_workspace_voids_nothing(self) -> None:
        """A root that its owner made unreadable is opened again, or is an empty exhibit that says so."""
        async with self.room() as room:
            assert (await room.exec(["sh", "-c", "echo x > a; chmod 0 /workspace"])).status == 0
            async with room.remains() as rest:
                exhibit = await collect(rest, TreeCaps())
        said = [(item.path, item.why) for item in exhibit.dropped]
        closed = [(".", "the folder can't be read: Permission denied")]
        assert (list(exhibit.tree), said) in [(["a"], []), ([], closed)]

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
        async with self.room() as room, open_helper(room) as helper:
            files = Files(helper)
            await files.write("a", b"1")
            async with room.stream(python(hunt)) as stream:
                assert await line_of(stream) == b"hunting\n"
                for _ in range(3):
                    outcome: object = None
                    try:
                        outcome = (await files.read("a")).data
                    except FileFailed as error:
                        outcome = error
                    assert outcome == b"1" or isinstance(outcome, FileFailed)
            assert (await files.read("a")).data == b"1"
