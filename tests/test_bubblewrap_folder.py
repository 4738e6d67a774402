"""A workspace's folder on the host, its owner, and its user."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.errors import WorkspaceError
from harness.workspaces import bubblewrap_owner
from harness.workspaces.bubblewrap_folder import _empty, leftovers
from harness.workspaces.bubblewrap_owner import Claim, claim, claims
from harness.workspaces.namespaces import Owner


def test_an_owner_is_told_from_a_later_process_with_its_number() -> None:
    """Number, start and boot make an owner; a wrong one of them is a dead owner, another namespace's can't be judged."""
    me = Owner.me()
    assert me.alive
    assert not replace(me, started=me.started + 1).alive
    assert not replace(me, boot="another").alive
    assert not replace(me, pid=2**22 + 1).alive
    assert replace(me, pid=2**22 + 1, pid_namespace=1).alive


def test_a_folder_is_emptied_whatever_a_seat_did_to_it(tmp_path: Path) -> None:
    """Nesting deeper than a path is long, rights taken away, links: all of it goes, nothing outside."""
    outside = tmp_path / "outside"
    outside.write_text("kept")
    room = tmp_path / "room"
    room.mkdir()
    (room / "link").symlink_to(outside)
    (room / "folder-link").symlink_to(tmp_path)
    at = os.open(room, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 20, dir_fd=at)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.fchmod(at, 0)
    os.close(at)
    (room / "closed").mkdir()
    (room / "closed" / "in").write_text("")
    (room / "closed").chmod(0)
    _empty(room)
    assert list(room.iterdir()) == []
    assert outside.read_text() == "kept"


def test_only_dead_owners_rooms_are_left_over(tmp_path: Path) -> None:
    """A room of a living owner is nobody else's to remove."""
    me = Owner.me()
    for name, owner in (("mine", me), ("dead", replace(me, started=1))):
        (tmp_path / f"{name}.json").write_text(json.dumps({"run": "r", "owner": asdict(owner), "user": 20007}))
    assert [(room.name, room.user) for room in leftovers(tmp_path)] == [("dead", 20007)]
    assert os.getpid() == me.pid


def test_each_workspace_gets_a_user_that_no_other_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of living and of dead owners are kept clear of, one let go of is free again, and none left is an error."""
    monkeypatch.setattr(bubblewrap_owner, "SEATS", range(20001, 20004))
    taken = [claim(tmp_path, f"room-{number}", "r", own_user=True) for number in range(3)]
    assert sorted(map(int, map(str, taken))) == [20001, 20002, 20003]
    assert [found.user for found in claims(tmp_path)] == taken
    with pytest.raises(WorkspaceError, match=r"all 3 users.*20001 to 20003.*proctor reap"):
        claim(tmp_path, "one-more", "r", own_user=True)
    Claim.file(tmp_path, "room-1").unlink()
    assert claim(tmp_path, "another", "r", own_user=True) == taken[1]
    assert claim(tmp_path, "ours", "r", own_user=False) is None


def test_claims_at_once_are_apart(tmp_path: Path) -> None:
    """Threads, like processes, choose one after the other."""
    with ThreadPoolExecutor(8) as pool:
        users = list(pool.map(lambda number: claim(tmp_path, f"room-{number}", "r", own_user=True), range(40)))
    assert len(set(users)) == 40


def test_a_file_that_is_no_claim_is_named(tmp_path: Path) -> None:
    """A missing user is not the first one: reaping names the file and what to do about it; opening goes on."""
    (tmp_path / "odd.json").write_text(json.dumps({"run": "r", "owner": asdict(Owner.me())}))
    with pytest.raises(WorkspaceError, match=r"odd\.json is no workspace's owner file.*remove it"):
        list(leftovers(tmp_path))
    assert claim(tmp_path, "room", "r", own_user=True) is not None
