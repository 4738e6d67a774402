"""Control groups in both of the kernel's layouts, over folders that stand for the kernel's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
