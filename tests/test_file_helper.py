"""A cell's helper that dies, lies, is late or can't be started: what the caller gets, and what is told of it."""

from __future__ import annotations

import json
import struct
import subprocess
import tracemalloc
from contextlib import asynccontextmanager

import anyio
import pytest

from harness.errors import WorkspaceError
from harness.tree import Tree
from harness.workspaces.file_helper import open_helper
from harness.workspaces.files import FileAbsent, FileFailed, Files, lay
from harness.workspaces.frames import FrameError, Frames, helper_argv, request
from tests.fake_workspace import FakeWorkspace, FarEnd, ran

pytestmark = pytest.mark.anyio

GIGABYTES = struct.pack(">II", 0xFFFFFFFF, 0xFFFFFFFF)


def frame(header, body=b""):
    """A frame as a forger would make it."""
    text = json.dumps(header).encode()
    return struct.pack(">II", len(text), len(body)) + text + body


class Troubled(FarEnd):
    """A far end that does its work until `trouble` comes to a request that is no ping."""

    def __init__(self, room, trouble):
        super().__init__(room)
        self.trouble = trouble

    async def send(self, item):
        """A request, and what comes of it."""
        ask = json.loads(item[8 : 8 + struct.unpack(">I", item[:4])[0]])
        if self.trouble is None or (ask["op"] == "ping" and self.trouble != "born dead"):
            await super().send(item)
        elif isinstance(self.trouble, bytes):
            self.say(self.trouble)
        elif callable(self.trouble):
            self.say(self.trouble(ask))
        elif self.trouble != "silent":
            await self.aclose()


class TroubledRoom(FakeWorkspace):
    """A room whose far ends have these troubles one after the other; an error is raised instead of starting one."""

    def __init__(self, *troubles, files=None, programs=None):
        super().__init__(files or {"a": "text"}, programs=programs or {"python3": lambda _: ran()})
        self.troubles = list(troubles)
        self.closing = None
        self.open = self.most_open = 0

    @asynccontextmanager
    async def stream(self, argv, *, cwd="/workspace"):
        """The next far end."""
        assert (tuple(argv), cwd) == (helper_argv(), "/")
        trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, Exception):
            raise trouble
        self.streams.append(Troubled(self, trouble))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        yield self.streams[-1]
        await anyio.sleep(0.01)  # ending one takes its time
        self.open -= 1
        if self.closing is not None:
            raise self.closing


@asynccontextmanager
async def helped(room, **options):
    """Files through a helper of a room, and the causes of the events that it tells."""
    causes = []
    async with open_helper(room, event=lambda cause, said: causes.append(cause)) as helper:
        yield Files(helper, **options), causes, helper


LIES = {
    "no frame": b"forged-by-seat\n",
    "four gigabytes": GIGABYTES,
    "a body over the cap": struct.pack(">II", 2, (1 << 20) + 1) + b"{}",
    "a header over the cap": struct.pack(">II", (4 << 20) + 1, 0),
    "no JSON": struct.pack(">II", 2, 0) + b"{[",
    "no object": frame([1]),
    "brackets without end": struct.pack(">II", 40_000, 0) + b"[" * 40_000,
    "another's answer": frame({"ok": True, "id": "0" * 16, "size": 4}, b"lies"),
    "no number": frame({"ok": True, "size": 4}, b"lies"),
    "two answers": lambda ask: frame({"ok": True, "id": ask["id"], "size": 4}, b"lies") * 2,
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_what_is_no_answer_is_an_event_and_asked_again(lie):
    """A forged frame is never taken for a file: the helper is started again, and the file is read."""
    room = TroubledRoom(lie)
    async with helped(room, timeout_s=2) as (files, causes, _):
        assert (await files.read("a")).data == b"text"
        assert causes == [("late" if lie == b"" else "forged")]
    assert len(room.streams) == 2


async def test_no_memory_is_taken_for_what_a_frame_claims():
    """Lengths of four gigabytes are refused by themselves; a claim under the cap is believed only as it arrives."""

    class Claim(FarEnd):
        def __init__(self, data):
            super().__init__(None)
            self.say(data)
            self._over = True

    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match="4294967295"):
            await Frames(Claim(GIGABYTES)).next(1 << 20)
        with pytest.raises(anyio.EndOfStream):
            await Frames(Claim(struct.pack(">II", 2, 1 << 30) + b"{}")).next(1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("trouble", "cause"), [("dies", "killed"), ("silent", "late"), ("born dead", "killed")])
async def test_a_lost_helper_is_started_again_and_asked_again(trouble, cause):
    """Killed in a request, stopped, or killed as it starts: reading, listing, searching and writing go on."""
    calls = {
        "read": lambda files: files.read("a"),
        "lines": lambda files: files.lines("a"),
        "list": lambda files: files.list(),
        "search": lambda files: files.search("text"),
        "stat": lambda files: files.stat("a"),
        "write": lambda files: files.write("b", b"new"),
    }
    for name, call in calls.items():
        if trouble == "silent" and name not in {"read", "write"}:
            continue  # each costs its time limit
        room = TroubledRoom(trouble)
        async with helped(room, timeout_s=1) as (files, causes, _):
            await call(files)
            assert causes == [cause], name
        assert room.most_open == 1, "the next one must wait until the last one is gone"
    assert room.files["b"] == b"new"


async def test_the_second_loss_in_one_call_fails_it_with_words():
    """A seat that kills the helper again and again loses that call, and no more: the next one is served."""
    room = TroubledRoom("dies", "silent")
    async with helped(room, timeout_s=1) as (files, causes, _):
        with pytest.raises(FileFailed, match="lost twice"):
            await files.read("a")
        assert (await files.read("a")).data == b"text"
        assert causes == ["killed", "late"]


async def test_an_edit_that_was_under_way_is_not_made_twice():
    """Nobody knows whether it was done: that is said. An edit that finds the helper dead beforehand is just made."""
    room = TroubledRoom("dies", None)
    async with helped(room) as (files, causes, _):
        with pytest.raises(FileFailed, match="may or may not have been done"):
            await files.edit("a", "text", "new")
        await room.streams[-1].aclose()
        assert await files.edit("a", "text", "new") == 1
        await room.streams[-1].aclose()
        assert await files.edit("a", "new", "newer") == 1
        assert causes == ["killed", "killed"]
    assert (room.files["a"], len(room.streams)) == (b"newer", 3)


async def test_a_workspace_that_fails_is_not_the_seats_doing():
    """When the engine goes, the stream ends too: that is a WorkspaceError, and no event blames the seat."""

    def gone(_):
        raise WorkspaceError("no engine")

    async with helped(TroubledRoom("dies", programs={"python3": gone})) as (files, causes, _):
        with pytest.raises(WorkspaceError, match="no engine"):
            await files.read("a")
        assert causes == []


async def test_a_workspace_without_python_is_told_as_that():
    """A far end that never starts because there is nothing to run it is the image's fault."""
    missing = ran(status=127, stderr=b"python3: not found")
    async with helped(TroubledRoom("born dead", programs={"python3": lambda _: missing})) as (files, causes, _):
        with pytest.raises(WorkspaceError, match="add python3"):
            await files.read("a")
        assert causes == []


async def test_before_the_seat_every_failure_is_the_workspaces():
    """A helper that does not start when nothing of the seat's lives is a workspace that does not work."""
    async with helped(TroubledRoom("born dead", "born dead")) as (_, _, helper):
        with pytest.raises(WorkspaceError, match="lost twice"):
            await helper.start()
        await helper.start()


async def test_a_helper_that_finds_no_place_costs_the_seat_what_it_runs():
    """All processes taken: everything in the workspace is ended, and it starts. A second refusal is the engine's."""
    room = TroubledRoom(WorkspaceError("no place"))
    async with helped(room) as (files, causes, _):
        assert (await files.read("a")).data == b"text"
    assert (causes, room.kills) == (["crowded"], 1)
    room = TroubledRoom(WorkspaceError("no place"), WorkspaceError("no place at all"))
    async with helped(room) as (files, causes, _):
        with pytest.raises(WorkspaceError, match="at all"):
            await files.read("a")
    assert causes == []


async def test_a_cancelled_request_leaves_a_usable_helper():
    """The late answer to a request that nobody waits for any more is never taken for the next one's."""
    room = TroubledRoom("silent")
    async with helped(room) as (files, causes, _):
        with anyio.move_on_after(0.05) as scope:
            await files.read("a")
        assert scope.cancelled_caught
        assert (await files.read("a")).data == b"text"
        assert causes == []
    assert len(room.streams) == 2


async def test_a_sweep_may_end_the_helper_without_a_word():
    """What we ended is not the seat's doing; what was lost before the sweep is, and is told."""

    class Sweeping(TroubledRoom):
        async def sweep(self):
            await self.kill()
            return 3

    room = Sweeping()
    async with helped(room) as (files, causes, helper):
        assert await helper.sweep() == 3
        assert room.streams == []
        await files.read("a")
        assert await helper.sweep() == 3
        await files.read("a")
        assert await helper.sweep() == 3
        assert (await files.edit("a", "text", "t"), causes) == (1, [])
        await room.streams[-1].aclose()
        await helper.sweep()
        assert causes == ["killed"]
        await files.read("a")
    assert (len(room.streams), causes) == (4, ["killed"])


async def test_a_sweep_that_spares_the_helper_costs_no_other():
    """Where streams are not swept, the same helper goes on."""
    room = TroubledRoom()
    async with helped(room) as (files, causes, helper):
        for _ in range(3):
            await files.read("a")
            await helper.sweep()
    assert (len(room.streams), causes, room.sweeps) == (1, [], 3)


async def test_requests_wait_for_each_other():
    """Many tasks may ask at once: each gets its own answer."""
    room = TroubledRoom(files={f"f{n}": str(n) for n in range(20)})
    found = {}

    async with helped(room) as (files, _, _):

        async def read(n):
            found[n] = (await files.read(f"f{n}")).data

        async with anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(read, n)
    assert found == {n: str(n).encode() for n in range(20)}


async def unlucky(room, error=None):
    """Read through a helper whose end fails, with an error of the block on top."""
    async with helped(room) as (files, _, _):
        await files.read("a")
        room.closing = WorkspaceError("could not be killed")
        if error is not None:
            raise error


async def test_what_is_raised_inside_comes_out_as_it_is():
    """An error of the block is not wrapped in a group, and wins over one of the helper's end."""
    with pytest.raises(KeyError, match="mine"):
        await unlucky(TroubledRoom(), KeyError("mine"))


async def test_a_helper_that_can_not_be_ended_is_the_workspaces_failure():
    """At the end, and when another would have to take its place."""
    with pytest.raises(WorkspaceError, match="could not be killed"):
        await unlucky(TroubledRoom())
    room = TroubledRoom("dies")
    room.closing = WorkspaceError("could not be killed")
    with pytest.raises(WorkspaceError, match="could not be killed"):
        await unlucky(room)


async def test_trees_are_laid_in_one_request():
    """The batch way in: replaced, executable bits kept, and a failure is the workspace's."""
    room = TroubledRoom()
    async with helped(room) as (_, _, helper):
        await lay(helper, Tree.of({"x/y": "1", "z": "2"}))
        assert (room.files["x/y"], room.files["z"]) == (b"1", b"2")
        room.files["file"] = b""
        with pytest.raises(WorkspaceError, match="could not be laid"):
            await lay(helper, Tree.of({"in": ""}), folder="/elsewhere")


async def test_a_search_that_never_ends_gives_up_by_itself():
    """A pattern that takes for ever is a failed call of a helper that lives on: the far end itself, as a program."""
    slow = FakeWorkspace({"a": "a" * 60 + "\n"})
    asks = [
        {"op": "search", "root": str(slow.folder), "path": ".", "pattern": "(a+)+b", "id": "1", "skip": [],
         "max_matches": 5, "max_bytes": 999, "seconds": 0.2},
        {"op": "read", "root": str(slow.folder), "path": "gone", "max_bytes": 9, "id": "2"},
        {"op": "nonsense", "id": "3"},
        {"op": "ping", "id": "4"},
    ]  # fmt: skip
    far_end = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            helper_argv(), input=b"".join(map(request, asks)), capture_output=True, timeout=20, check=True
        )
    )
    said, heads = far_end.stdout, []
    while said:
        size = struct.unpack(">II", said[:8])
        heads.append(json.loads(said[8 : 8 + size[0]]))
        said = said[8 + sum(size) :]
    assert [(head["id"], head["ok"]) for head in heads] == [("1", False), ("2", False), ("3", False), ("4", True)]
    assert "too long" in heads[0]["said"]
    assert heads[1]["sort"] == "absent"


async def test_absent_stays_absent_through_a_restart():
    """What was answered is raised as it is, and is no loss."""
    async with helped(TroubledRoom("dies")) as (files, causes, _):
        for _ in range(2):
            with pytest.raises(FileAbsent):
                await files.read("nothing")
        assert causes == ["killed"]
