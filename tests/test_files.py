"""The file tool and the collection of exhibits, against a fake workspace that runs the real far end on real files."""

from __future__ import annotations

import json
import os
import struct
from contextlib import asynccontextmanager

import pytest

from harness.errors import WorkspaceError
from harness.tree import Tree, TreeCaps
from harness.walls import ToolRules
from harness.workspaces.file_helper import open_helper
from harness.workspaces.files import FileAbsent, FileFailed, FileRefused, Files, collect, put
from harness.workspaces.frames import answer
from tests.fake_workspace import FakeWorkspace, ran

pytestmark = pytest.mark.anyio

CAPS = TreeCaps(total_bytes=1 << 20, file_bytes=64 << 10, entries=50, depth=6)


@asynccontextmanager
async def files_of(room, **options):
    """The files of a room, through a helper of its own."""
    async with open_helper(room) as helper:
        yield Files(helper, **options)


async def left_in(room, caps=CAPS):
    """What is collected from a room when it has ended."""
    async with room.remains() as rest:
        return await collect(rest, caps)


async def test_write_then_read_gives_the_same_bytes() -> None:
    """What is written is what is read, with its size and no cut, and folders on the way are made."""
    async with files_of(FakeWorkspace()) as files:
        await files.write("src/deep/a.bin", b"\x00\xff" * 10)
        reading = await files.read("/workspace/src/deep/a.bin")
        assert (reading.data, reading.size, reading.truncated) == (b"\x00\xff" * 10, 20, False)


async def test_read_is_cut_at_the_cap_and_says_so() -> None:
    """A file over the cap gives its first bytes, its whole size, and the truncated flag."""
    async with files_of(FakeWorkspace({"a": b"x" * 100})) as files:
        reading = await files.read("a", max_bytes=10)
    assert (reading.data, reading.size, reading.truncated) == (b"x" * 10, 100, True)


async def test_absent_is_told_apart_from_refused() -> None:
    """A missing file and a file in a folder that is a file are absent."""
    async with files_of(FakeWorkspace({"a": b""})) as files:
        for path in ("nothing", "a/b"):
            with pytest.raises(FileAbsent):
                await files.read(path)


async def test_edit_needs_exactly_one_match() -> None:
    """One match is replaced and its line told; none, two and overlapping ones are refused and change nothing."""
    room = FakeWorkspace({"a.py": "one\ntwo\nthree\n", "b": "aaa"})
    async with files_of(room) as files:
        assert await files.edit("a.py", "two", "2") == 2
        assert room.files["a.py"] == b"one\n2\nthree\n"
        for path, old in (("a.py", "four"), ("a.py", "e"), ("b", "aa"), ("b", "")):
            with pytest.raises(FileFailed, match=r"exactly (once|one)"):
                await files.edit(path, old, "x")
        assert room.files["b"] == b"aaa"


async def test_edit_keeps_the_executable_bit_and_leaves_nothing_beside_it() -> None:
    """A write replaces a file by rename: same mode, no temporary file left."""
    room = FakeWorkspace({"run.sh": "echo 1"})
    (room.folder / "run.sh").chmod(0o755)
    async with files_of(room) as files:
        await files.edit("run.sh", "1", "2")
    assert (room.folder / "run.sh").stat().st_mode & 0o777 == 0o755
    assert list(room.files) == ["run.sh"]


async def test_list_names_kinds_and_is_cut_at_its_cap() -> None:
    """Entries come in order with kind and size; one level unless asked for more; a cap sets the flag."""
    room = FakeWorkspace({"b.txt": b"123", "a/x": b"", "a/y/z": b""})
    async with files_of(room) as files:
        entries = (await files.list()).entries
        assert [(entry.path, entry.kind) for entry in entries] == [("a", "folder"), ("b.txt", "file")]
        assert entries[1].size == 3
        deep = await files.list(".", depth=3)
        assert [entry.path for entry in deep.entries] == ["a", "a/x", "a/y", "a/y/z", "b.txt"]
        cut = await files.list(".", depth=3, max_entries=2)
        assert cut.truncated
        assert len(cut.entries) == 2
        assert not deep.truncated


async def test_search_finds_lines_and_passes_over_binaries_and_links() -> None:
    """Matches carry path and line; a binary is passed over, a link not followed, a bad pattern explained."""
    room = FakeWorkspace({"a.py": "x = 1\ny = 22\n", "d/b.py": "z = 22", "bin": b"\x0022"})
    (room.folder / "link").symlink_to("a.py")
    async with files_of(room) as files:
        found = await files.search(r"\d\d")
        assert [(m.path, m.line, m.text) for m in found.matches] == [("a.py", 2, "y = 22"), ("d/b.py", 1, "z = 22")]
        assert (await files.search("=", max_matches=2)).truncated
        with pytest.raises(FileFailed, match="regular expression"):
            await files.search("(")


async def test_stat_tells_a_link_as_a_link() -> None:
    """Stat follows nothing."""
    room = FakeWorkspace({"a": b"12"})
    (room.folder / "l").symlink_to("/etc/passwd")
    async with files_of(room) as files:
        assert ((await files.stat("a")).size, (await files.stat("l")).kind) == (2, "link")


@pytest.mark.parametrize(
    "path", ["abs", "rel", "folder/passwd", "proc/self/environ", "inner", "alias/real", "pipe", "sock"]
)
async def test_nothing_but_a_regular_file_is_read_or_written(path: str) -> None:
    """Links of every kind, FIFOs and sockets are refused for reading and writing, at once and without effect."""
    room = FakeWorkspace({"real": b"kept"})
    (room.folder / "abs").symlink_to("/etc/passwd")
    (room.folder / "rel").symlink_to("../../../../../../etc/passwd")
    (room.folder / "folder").symlink_to("/etc")
    (room.folder / "proc").symlink_to("/proc")
    (room.folder / "inner").symlink_to("real")
    (room.folder / "alias").symlink_to(".")
    os.mkfifo(room.folder / "pipe")
    os.mknod(room.folder / "sock", 0o140644)
    async with files_of(room) as files:
        with pytest.raises(FileRefused):
            await files.read(path)
        with pytest.raises(FileRefused):
            await files.write(path, b"evil")
        assert room.files["real"] == b"kept"


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../../b", "/workspace2/a", "a\0b", "/workspace/../etc"])
async def test_a_path_outside_of_the_roots_never_reaches_the_workspace(path: str) -> None:
    """The client refuses by containment, not by prefix."""
    room = FakeWorkspace()
    async with files_of(room) as files:
        with pytest.raises(FileRefused):
            await files.read(path)
    assert room.streams == []


async def test_rules_bind_by_containment_and_denied_wins() -> None:
    """A tool reads below readable, writes below writable, and touches nothing below denied; an empty rule refuses all."""
    room = FakeWorkspace({"src/a": b"1", "src/secret/b": b"2", "docs/c": b"3"})
    rules = ToolRules(
        tools=frozenset({"read"}),
        readable=("/workspace",),
        writable=("/workspace/src",),
        denied=("/workspace/src/secret",),
    )
    async with files_of(room, roots=rules.readable, writable=rules.writable, denied=rules.denied) as files:
        assert (await files.read("docs/c")).data == b"3"
        await files.write("src/new", b"")
        for attempt in (files.read("src/secret/b"), files.write("src/secret/x", b""), files.write("docs/c", b"")):
            with pytest.raises(FileRefused):
                await attempt
    async with files_of(room, roots=()) as files:
        with pytest.raises(FileRefused, match="none is open"):
            await files.read("docs/c")


async def test_put_and_collect_give_back_the_same_tree() -> None:
    """Bytes, paths and executable bits make the round trip; what is alive is killed before anything is read."""
    tree = Tree.of({"a.py": "x", "d/e/f.bin": b"\0" * 1000, "ü/ñ\n.txt": "odd name"})
    room = FakeWorkspace()
    await put(room, tree)
    exhibit = await left_in(room)
    assert (tree.digest, (), 1) == (exhibit.digest, exhibit.dropped, room.kills)


async def test_put_replaces_whatever_stands_in_its_way() -> None:
    """A seat can't keep the harness from laying a file down by putting a link or a folder in its place."""
    room = FakeWorkspace({"folder/x": b""})
    outside = room.folder.parent / f"{room.folder.name}-outside"
    (room.folder / "file").symlink_to(outside)
    (room.folder / "up").symlink_to("/tmp")
    await put(room, Tree.of({"file": "1", "folder": "2", "up/in": "3"}))
    assert [room.files[path] for path in ("file", "folder", "up/in")] == [b"1", b"2", b"3"]
    assert not outside.exists()


async def test_rights_taken_away_from_the_folder_itself_keep_no_file_out() -> None:
    """A seat that closes its own folder can't keep the harness from laying files into it."""
    room = FakeWorkspace({"a": b"1"})
    room.folder.chmod(0)
    await put(room, Tree.of({"b": "2"}))
    assert room.files["b"] == b"2"


async def test_collect_of_an_empty_workspace_is_one_exec() -> None:
    """An empty workspace gives an empty exhibit."""
    exhibit = await left_in(FakeWorkspace())
    assert (len(exhibit.tree), exhibit.dropped) == (0, ())


async def test_collect_drops_and_names_what_is_no_file_or_over_a_cap() -> None:
    """Links, FIFOs, odd names, unreadable, too large, too deep and too many: each is left out with its reason."""
    room = FakeWorkspace({"good": b"1", "large": b"x" * (65 << 10), "1/2/3/4/5/6/deep": b""})
    (room.folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(room.folder / "pipe")
    (room.folder / os.fsdecode(b"bad\xff")).write_bytes(b"")
    exhibit = await left_in(room)
    assert list(exhibit.tree) == ["good"]
    why = {item.path: item.why for item in exhibit.dropped}
    assert why.keys() == {"large", "1/2/3/4/5/6", "link", "pipe", "bad\\xff"}
    assert "over the cap" in why["large"]
    assert why["link"] == "link"


async def test_no_heap_of_files_crowds_out_what_is_near_the_root() -> None:
    """With more files than the cap, the shallow ones come out, whatever their names sort like."""
    room = FakeWorkspace({**{f"aaa/{n:03}": b"" for n in range(100)}, "solution.py": b"x"})
    exhibit = await left_in(room, TreeCaps(entries=10))
    assert "solution.py" in exhibit.tree
    assert len(exhibit.tree) == 10


async def test_collect_names_a_bounded_number_of_what_it_drops() -> None:
    """Thousands of entries over the cap make a short list and one line that counts the rest."""
    room = FakeWorkspace({f"f{n:04}": b"" for n in range(1200)})
    exhibit = await left_in(room, TreeCaps(entries=100))
    assert (len(exhibit.tree), len(exhibit.dropped)) == (100, 1001)
    assert "100 more entries" in exhibit.dropped[-1].why


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"\0\0\0\x05",
        b"\xff" * 8,
        struct.pack(">II", 2, 9) + b"{}",
        struct.pack(">II", 2, 0) + b"[]",
        struct.pack(">II", 2, 0) + b"{}",
        struct.pack(">II", 40000, 0) + b"[" * 40000,
    ],
)
async def test_an_answer_that_is_none_is_a_failed_call(stdout: bytes) -> None:
    """A far end that was killed or forged never looks like a file, and never raises anything but the tool's errors."""
    with pytest.raises(FileFailed):
        await answer(ran(stdout=stdout, status=137), "read 'a'")


async def test_a_refusal_is_safe_text() -> None:
    """A forged message with lone surrogates can still be written down."""
    text = json.dumps({"ok": False, "sort": "refused", "said": "\ud800" * 5000}).encode()
    with pytest.raises(FileRefused) as caught:
        await answer(ran(stdout=struct.pack(">II", len(text), 0) + text), "read 'a'")
    assert len(str(caught.value).encode()) < 10_000


async def test_an_unknown_status_and_a_missing_python_are_the_workspaces_fault() -> None:
    """Neither says anything of a file, so both are blamed on the workspace."""
    with pytest.raises(WorkspaceError, match="not known"):
        await answer(ran(status=None), "read 'a'")
    with pytest.raises(WorkspaceError, match="add python3"):
        await answer(ran(status=127, stderr=b"not found"), "read 'a'")


async def test_collect_that_dies_midway_is_no_exhibit() -> None:
    """A cut archive raises: a part of what the seat left is never judged as the whole."""
    room = FakeWorkspace({"a": b"x" * 5000})
    whole = room._helper

    def torn(stdin: bytes) -> bytes:
        room.streams[-1]._over = True
        return whole(stdin)[:2000]

    room._helper = torn
    with pytest.raises(WorkspaceError, match="not whole"):
        await left_in(room)
