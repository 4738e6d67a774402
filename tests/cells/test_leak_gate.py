"""What is frozen and run gives nothing sealed away: the gate says no and yes, and records what it could not see."""

import io
import json
import os

import pytest

from cells.leak_gate import refuse_leaking_tasks, search_the_image
from harness.errors import GateRefused, WorkspaceError
from harness.tasks import mark_search
from harness.tasks.image_leaks import scan_image
from tests.fake_workspace import FakeWorkspace, ran
from tests.tasks.test_leaks import SOLUTION, TESTS, task


def searcher(call):
    """The real search, over the folder that stands for the image; its own text is what was to run."""
    assert "Look into every regular file below" in call.argv[-1]
    asked = json.loads(call.stdin)
    assert asked["tops"] == ["/"]
    search = mark_search.Search(mark_search.Marks(**asked["marks"]))
    mark_search.look_below(search, str(call.workspace.folder), set())
    report = {"hits": search.hits, "unread": search.unread, "files": search.files, "git": search.git}
    return ran(stdout=json.dumps(report).encode())


class Book:
    """A journal that keeps what it was told."""

    def __init__(self):
        self.entries = []

    async def add(self, kind, body):
        """Keep it."""
        json.dumps(body)
        self.entries.append((kind, body))


class Parts:
    """As much of an experiment's parts as the gate looks at."""

    def __init__(self, room, *tasks):
        self.tasks = {one.key: one for one in tasks}
        self.backend = self.fence = self.experiment = self.workspace = self
        self.walls, self.image, self.room = None, "the-image", room

    def open(self, walls, *, run):
        """The room."""
        return self

    async def __aenter__(self):
        return self.room

    async def __aexit__(self, *_):
        return None


def test_a_leaking_task_is_refused_and_an_honest_one_is_not():
    """Each leak is named with its task, its place and the next step."""
    refuse_leaking_tasks([task({"README.md": "nothing\n"})])
    with pytest.raises(GateRefused) as refused:
        refuse_leaking_tasks([task({"a/copy.py": SOLUTION}), task({"b.py": "x = 1\n"})])
    assert refused.value.gate == "leaks"
    assert "b/t: environment/a/copy.py: " in refused.value.detail
    assert "proctor.leaks.shared" in refused.value.detail


def test_a_heap_of_leaks_is_told_in_short():
    """The first are named and the rest counted."""
    with pytest.raises(GateRefused, match="and 15 more"):
        refuse_leaking_tasks([task({f"f{number}.py": SOLUTION for number in range(35)})])


@pytest.mark.anyio
async def test_an_image_with_the_suite_in_it_is_refused():
    """The refusal is in the record before it is raised, and names the file."""
    room, book = (
        FakeWorkspace({"opt/build/test_x.py": TESTS, "opt/a.py": "x = 1\n"}, programs={"python3": searcher}),
        Book(),
    )
    with pytest.raises(GateRefused, match=r"opt/build/test_x.py: .* passages of the sealed tests/test_intervals.py"):
        await search_the_image(Parts(room, task()), book, run="r")
    ((kind, body),) = book.entries
    assert (kind, body["image"], body["files"], len(body["leaks"])) == ("leaks.searched", "the-image", 2, 1)


@pytest.mark.anyio
async def test_an_honest_image_passes_and_what_was_not_seen_is_recorded():
    """An unreadable archive and a sealed file that is too short are told."""
    room, book = FakeWorkspace({"x.zip": b"PK\x03\x04cut"}, programs={"python3": searcher}), Book()
    await search_the_image(Parts(room, task(solution="def f():\n    pass\n")), book, run="r")
    ((_, body),) = book.entries
    assert body["leaks"] == []
    assert [item["where"].endswith("x.zip") for item in body["not_looked_into"]] == [True]
    assert body["too_short_to_find"] == ["b/t: solution/intervals.py"]


@pytest.mark.anyio
async def test_what_was_not_seen_in_a_task_is_recorded():
    """The author's own archives that nothing here unpacks."""
    room, book = FakeWorkspace(programs={"python3": searcher}), Book()
    await search_the_image(Parts(room, task({"old.7z": b"7z\xbc\xaf\x27\x1c"})), book, run="r")
    assert [item["where"] for item in book.entries[0][1]["not_looked_into"]] == ["b/t: environment/old.7z"]


@pytest.mark.anyio
async def test_a_search_that_fails_is_nobody_s_result():
    """No report is no clean bill."""
    for broken in (ran(status=1, stderr=b"MemoryError"), ran(stdout=b"{", status=0)):
        room = FakeWorkspace(programs={"python3": lambda call, broken=broken: broken})
        with pytest.raises(WorkspaceError, match="no report"):
            await scan_image(room, [task()])


def test_the_search_follows_no_link_and_asks_no_special_file(tmp_path):
    """A link out of the image, a FIFO and a socket neither hang the search nor widen it."""
    (tmp_path / "image").mkdir()
    (tmp_path / "outside.py").write_text(SOLUTION)
    (tmp_path / "image" / "link").symlink_to(tmp_path / "outside.py")
    (tmp_path / "image" / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "image" / "fifo")
    search = mark_search.Search(mark_search.Marks(**marks()))
    mark_search.look_below(search, str(tmp_path / "image"), set())
    assert (search.files, search.hits) == (0, [])
    mark_search.look_below(search, str(tmp_path), set())
    assert [hit["where"] for hit in search.hits] == [str(tmp_path / "outside.py")]


def marks():
    """What is looked for."""
    from harness.tasks.leaks import sealed_marks

    return json.loads(json.dumps(sealed_marks(task()).told))


def test_the_search_s_own_program_reports_in_json(tmp_path, monkeypatch, capsys):
    """As it runs in a room: asked on stdin, answered on stdout."""
    (tmp_path / "copy").write_text(SOLUTION)
    asked = json.dumps({"marks": marks(), "tops": [str(tmp_path)]})
    monkeypatch.setattr("sys.stdin", io.StringIO(asked))
    mark_search.main()
    report = json.loads(capsys.readouterr().out)
    assert [hit["where"] for hit in report["hits"]] == [str(tmp_path / "copy")]
