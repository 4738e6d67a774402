"""Control groups in both of the kernel's layouts, over folders that stand for the kernel's."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import WorkspaceError
from harness.walls import Caps
from harness.workspaces import control_groups
from harness.workspaces.control_groups import Groups

CAPS = Caps(memory_bytes=(100 << 20) + 1, cpus=0.5)


@pytest.fixture(params=["one tree", "one tree a controller"])
def top(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like /sys/fs/cgroup. What the kernel would put into a new group by itself is put there by hand."""
    unified = request.param == "one tree"
    for name in ("memory", "cpu"):
        (tmp_path / name).mkdir()
    if unified:
        (tmp_path / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(control_groups, "_TOP", tmp_path)
    monkeypatch.setattr(control_groups, "_unified", lambda: unified)
    return tmp_path


def test_limits_are_written_and_told_as_asked(top: Path) -> None:
    """What was asked for reads back as asked, to the precision of the kernel; another value reads as what it is."""
    groups = Groups(name="room")
    groups.make(CAPS)
    memory = next(path for path in top.rglob("memory.*") if path.name in {"memory.max", "memory.limit_in_bytes"})
    assert memory.read_text() == str(CAPS.memory_bytes)
    memory.write_text(str(100 << 20))
    told = groups.told(CAPS)
    assert (told["memory_bytes"], told["nano_cpus"]) == (CAPS.memory_bytes, 500_000_000)
    memory.write_text(str(200 << 20))
    assert groups.told(CAPS)["memory_bytes"] == 200 << 20
    assert groups.told(replace(CAPS, cpus=2.0))["nano_cpus"] == 500_000_000


def test_an_unlimited_group_tells_no_limit(top: Path) -> None:
    """A limit that is not there is None, never a number."""
    groups = Groups(name="room")
    groups.make(CAPS)
    for path in top.rglob("room/*"):
        path.write_text("max")
    told = groups.told(CAPS)
    assert (told["memory_bytes"], told["memory_and_swap_bytes"], told["nano_cpus"]) == (None, None, None)


def test_a_process_joins_every_group(top: Path) -> None:
    """The number is written to each group's list, and the members are read from them."""
    groups = Groups(name="room")
    groups.make(CAPS)
    groups.join(41)
    lists = list(top.rglob("room/cgroup.procs"))
    assert lists
    assert all(path.read_text() == "41" for path in lists)
    assert groups.members() == [41]
    assert Groups(name="another").members() == []


@pytest.fixture
def kernel(top: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, where a new group has the files that a kernel with swap accounting gives it."""
    make = Path.mkdir

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        make(self, mode, parents, exist_ok)
        if self.name == "room":
            for name in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
                (self / name).write_text("max")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    return top


def test_swap_is_no_way_around_the_limit(kernel: Path) -> None:
    """Where swap is counted there is none for a workspace: version 1 limits the sum, version 2 the swap itself."""
    groups = Groups(name="room")
    groups.make(CAPS)
    unified = (kernel / "cgroup.subtree_control").exists()
    name, value = ("memory.swap.max", "0") if unified else ("memory.memsw.limit_in_bytes", str(CAPS.memory_bytes))
    (written,) = [path for path in kernel.rglob(f"room/{name}") if path.read_text() != "max"]
    assert written.read_text() == value
    limit = next(path for path in kernel.rglob("room/memory.*") if path.name in {"memory.max", "memory.limit_in_bytes"})
    limit.write_text(str(100 << 20))
    written.write_text("0" if unified else str(100 << 20))
    assert groups.told(CAPS)["memory_and_swap_bytes"] == CAPS.memory_bytes
    written.write_text(str(50 << 20) if unified else str(150 << 20))
    assert groups.told(CAPS)["memory_and_swap_bytes"] == 150 << 20


def test_one_tree_lets_its_groups_have_the_controllers(top: Path) -> None:
    """Version 2 gives a group only the controllers that every group above it lets be; version 1 knows no such thing."""
    Groups(name="room").make(CAPS)
    told = {path.parent.name: path.read_text() for path in top.rglob("cgroup.subtree_control")}
    unified = (top / "cgroup.subtree_control").exists()
    assert told == ({top.name: "+memory +cpu", "proctor": "+memory +cpu"} if unified else {})


def test_the_quota_is_of_whole_cores(top: Path) -> None:
    """The CPU time of a period is the cores times the period, and never less than what the kernel takes."""
    for name, cpus, quota in (("one", 1.0, 100_000), ("some", 2.5, 250_000), ("least", 0.0001, 1000)):
        Groups(name=name).make(replace(CAPS, cpus=cpus))
        (path,) = [path for path in top.rglob(f"{name}/cpu.*") if path.name in {"cpu.max", "cpu.cfs_quota_us"}]
        assert path.read_text() in {str(quota), f"{quota} 100000"}


def test_removing_says_when_somebody_is_still_there(top: Path) -> None:
    """A group that the kernel doesn't let go is named; one that isn't there is gone already."""
    groups = Groups(name="room")
    groups.remove()
    assert not groups.exist()
    groups.make(CAPS)
    assert groups.exist()
    with pytest.raises(WorkspaceError, match=r"room can't be removed.*Who is in it"):
        groups.remove()
    for path in top.rglob("room/*"):
        path.unlink()
    groups.remove()
    assert list(top.rglob("room")) == []


def test_an_orphan_that_was_not_yet_waited_for_is_waited_for(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zombie keeps its group busy until init reaps it; one that stays busy is still an error."""
    groups, real, busy = Groups(name="room"), Path.rmdir, [3]
    groups.make(CAPS)

    def rmdir(folder: Path) -> None:
        if busy[0]:
            busy[0] -= 1
            raise OSError(errno.EBUSY, "Device or resource busy")
        for path in folder.iterdir():
            path.unlink()
        real(folder)

    monkeypatch.setattr(Path, "rmdir", rmdir)
    monkeypatch.setattr("harness.workspaces.control_groups.pause", lambda _: None)
    groups.remove()
    assert list(top.rglob("room")) == []
    groups.make(CAPS)
    busy[0] = 10_000
    with pytest.raises(WorkspaceError, match="Who is in it"):
        groups.remove()


def test_killings_for_want_of_memory_are_counted(top: Path) -> None:
    """The count is the kernel's own; where it keeps none, none is known of."""
    groups = Groups(name="room")
    groups.make(CAPS)
    assert groups.starved() == 0
    unified = (top / "cgroup.subtree_control").exists()
    said = (
        "low 0\noom 5\noom_kill 3\noom_group_kill 1\n" if unified else "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
    )
    place = "proctor/room/memory.events" if unified else "memory/proctor/room/memory.oom_control"
    (top / place).write_text(said)
    assert groups.starved() == 3
    (top / place).write_text("oom_kill_disable 0\nunder_oom 0\n")
    assert groups.starved() == 0
