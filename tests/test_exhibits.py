"""What comes out of a workspace that has ended: filtered on this side too, whatever the far end says."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import anyio
import pytest

from harness.errors import WorkspaceError
from harness.tree import Dropped, Exhibit, ExhibitFilter, File, Tree, TreeCaps
from harness.workspaces import cell_archive, cell_helper
from harness.workspaces.exhibits import collect, put
from harness.workspaces.frames import BODY_ROOM, FileFailed, request
from tests.fake_workspace import FakeWorkspace, FarEnd

pytestmark = pytest.mark.anyio

CAPS = TreeCaps(total_bytes=1000, file_bytes=400, entries=3, depth=2)
END = {"ok": True, "dropped": []}


def frame(header, body=b""):
    """A frame as the far end makes it."""
    text = json.dumps(header).encode()
    return struct.pack(">II", len(text), len(body)) + text + body


class Forged(FakeWorkspace):
    """A room whose far end says what a test wants, whatever it is asked."""

    def __init__(self, said, *, ends=True):
        super().__init__()
        self.said = said
        self.ends = ends

    @asynccontextmanager
    async def stream(self, argv, *, cwd="/workspace"):
        """The far end."""
        far_end = FarEnd(self)

        async def said(item):
            far_end.say(self.said)
            if self.ends:
                await far_end.aclose()

        far_end.send = said
        yield far_end


async def collected(said, *, ends=True, timeout_s=20.0) -> Exhibit:
    """What is made of what a far end says."""
    async with Forged(said, ends=ends).remains() as rest:
        return await collect(rest, CAPS, timeout_s=timeout_s)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "./a",
        "",
        ".",
        "a\0b",
        "\ud800",
        None,
        7,
        ["a"],
        {"a": 1},
        "a/b/c/d",
        "x/",
    ],
    ids=repr,
)
async def test_no_path_leads_out_of_an_exhibit(path):
    """Absolute, with `..`, not in normal form, no text, too deep: dropped and named, and the good file comes in."""
    exhibit = await collected(frame({"path": path}, b"evil") + frame({"path": "good"}, b"1") + frame(END))
    assert dict(exhibit.tree.files) == {"good": File(data=b"1")}
    assert len(exhibit.dropped) == 1


async def test_the_caps_hold_whatever_the_far_end_sends():
    """Too many, too large, twice, too much in all: the filter of this side says no by itself."""
    sent = [("a", 400), ("a", 1), ("b", 401), ("c", 400), ("d", 300), ("e", 200), ("f", 0), ("h", 0)]
    said = b"".join(frame({"path": path, "executable": path == "c"}, b"x" * size) for path, size in sent)
    exhibit = await collected(said + frame({**END, "dropped": [{"path": "g", "why": "link"}, "odd"]}))
    assert {path: len(exhibit.tree[path]) for path in exhibit.tree} == {"a": 400, "c": 400, "e": 200}
    assert [path for path in exhibit.tree if exhibit.tree.files[path].executable] == ["c"]
    whys = {item.path + item.why[:12] for item in exhibit.dropped}
    assert whys == {"glink", "athe path is ", "bover the cap", "dthe tree wou", "*2 more entri"}


async def test_a_flood_of_bad_entries_is_named_up_to_a_bound():
    """What is dropped here takes bounded memory too."""
    exhibit = await collected(frame({"path": "../x"}) * 500 + frame(END))
    assert len(exhibit.dropped) == CAPS.entries + 1
    assert exhibit.dropped[-1].why == "497 more entries were left out"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        frame({"path": "a"}, b"1"),
        frame({"path": "a"}, b"1")[:-1],
        frame({"path": "a"}, b"x" * 402) + frame(END),
        struct.pack(">II", 0xFFFFFFFF, 0xFFFFFFFF),
        frame([1]),
        frame({"ok": True}),
        b"python3: not found\n",
    ],
)
async def test_what_is_not_whole_is_no_exhibit(said):
    """A part of what the seat left is never judged as the whole."""
    with pytest.raises(WorkspaceError):
        await collected(said)


async def test_a_far_end_that_never_ends_is_left():
    """Collecting has a time limit."""
    with pytest.raises(WorkspaceError, match=r"longer than 0\.2 s"):
        await collected(frame({"path": "a"}, b"1"), ends=False, timeout_s=0.2)


async def test_the_far_end_holds_the_caps_too():
    """What would burst a cap is not even sent: over it for one file, for all, for their number, and too deep."""
    room = FakeWorkspace(
        {"a": "x" * 400, "b": "x" * 401, "c": "x" * 400, "d": "x" * 300, "e": "", "f": "", "1/2/3": ""}
    )
    *files, (end, _) = cell_archive.archived(str(room.folder), asdict(CAPS))
    assert [(header["path"], len(data)) for header, data in files] == [("a", 400), ("c", 400), ("e", 0)]
    whys = {item["path"]: item["why"] for item in end["dropped"]}
    assert whys == {
        "b": "401 bytes, over the cap of 400 for one file",
        "d": "the tree would hold over 1000 bytes",
        "f": "more than 3 files",
        "1/2": "deeper than 2 folders",
    }


async def test_a_file_that_was_being_written_is_dropped_by_name():
    """A helper that is ended in the middle leaves a temporary file, which is none of the seat's work."""
    room = FakeWorkspace({"a": "1", ".proctor-0123456789abcdef": "half", "d/.proctor-x": "half", ".hidden": "2"})
    async with room.remains() as rest:
        exhibit = await collect(rest, TreeCaps())
    assert list(exhibit.tree) == [".hidden", "a"]
    assert {item.path for item in exhibit.dropped} == {".proctor-0123456789abcdef", "d/.proctor-x"}


async def test_every_kind_of_thing_and_every_odd_name(tmp_path):
    """Hard links, names with newlines and quotes, sockets, FIFOs, links and loops: files come out, the rest is named."""
    room = FakeWorkspace({"a": "1", "new\nline": "2", "quo'te\"": "3", "back\\slash": "4", "-rf *": "5"})
    os.link(room.folder / "a", room.folder / "hard")
    (room.folder / "loop").symlink_to(".")
    (room.folder / "out").symlink_to(tmp_path)
    os.mkfifo(room.folder / "pipe")
    os.mknod(room.folder / "sock", 0o140644)
    (room.folder / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    async with room.remains() as rest:
        with anyio.fail_after(20):
            exhibit = await collect(rest, TreeCaps())
    assert set(exhibit.tree) == {"a", "hard", "new\nline", "quo'te\"", "back\\slash", "-rf *"}
    assert {item.path: item.why for item in exhibit.dropped} == {
        "loop": "link", "out": "link", "pipe": "FIFO", "sock": "socket", "\\xff\\xfe": "the name is not UTF-8",
    }  # fmt: skip


async def test_a_sparse_giant_costs_nothing():
    """Ten gigabytes of nothing are dropped by their size; a sparse file within the caps is a file."""
    room = FakeWorkspace()
    for name, size in (("giant", 10 << 30), ("fits", 300)):
        with (room.folder / name).open("wb") as file:
            file.truncate(size)
    tracemalloc.start()
    try:
        async with room.remains() as rest:
            exhibit = await collect(rest, CAPS)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert {path: exhibit.tree[path] for path in exhibit.tree} == {"fits": bytes(300)}


async def test_many_names_and_deep_folders_are_bounded():
    """Thousands of files and hundreds of folders in each other: as many as the caps allow, in a bounded time."""
    room = FakeWorkspace()
    (room.folder / "many").mkdir()
    for number in range(2000):
        (room.folder / f"many/{number}").touch()
    home = os.open(room.folder, os.O_RDONLY)
    folder = os.dup(home)
    for _ in range(400):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    async with room.remains() as rest:
        with anyio.fail_after(15):
            exhibit = await collect(rest, TreeCaps(entries=500))
    assert len(exhibit.tree) == 500
    assert exhibit.dropped[0].why.startswith("deeper than 32")
    assert len(exhibit.dropped) == 1001
    _remove_deep(home)


def _remove_deep(home):
    """Folders that no path can name are moved up one by one, so that they can be removed."""
    while True:
        try:
            os.rename("d/d", "e", src_dir_fd=home, dst_dir_fd=home)
        except FileNotFoundError:
            break
        os.rmdir("d", dir_fd=home)
        os.rename("e", "d", src_dir_fd=home, dst_dir_fd=home)
    os.close(home)


async def test_a_file_over_what_a_frame_takes_is_refused_by_its_size():
    """Both sides have the same cap, and this side says so in words before anything is sent."""
    assert cell_helper.MAX_BODY == BODY_ROOM

    class Large(bytes):
        def __len__(self):
            return BODY_ROOM + 1

    with pytest.raises(FileFailed, match=f"{BODY_ROOM + 1} bytes"):
        request({"op": "put"}, Large())


async def test_put_into_a_room_that_refuses_is_the_workspaces_failure():
    """Nothing was learned of the subject when the task could not be laid."""
    with pytest.raises(WorkspaceError, match="could not be laid into /elsewhere"):
        await put(FakeWorkspace(), Tree.of({"a": "1"}), folder="/elsewhere")


def test_an_exhibit_has_what_was_left_out_first():
    """What the far end dropped stands before what this side dropped; with more files than the cap, the rest is named."""
    taking = ExhibitFilter(replace(CAPS, entries=1))
    taking.take("a", b"", executable=False)
    taking.take("b", b"", executable=False)
    exhibit = taking.exhibit(left_out=(Dropped(path="c", why="link"),))
    assert exhibit.dropped == (Dropped(path="c", why="link"), Dropped(path="b", why="more than 1 files"))
