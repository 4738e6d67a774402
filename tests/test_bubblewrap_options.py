"""Walls as bwrap's options, the limits as the launcher's script, the facts of a running sandbox, and owners."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.errors import FenceError, ImageError
from harness.walls import Caps, Mount, Walls
from harness.workspaces.bubblewrap_facts import facts_of
from harness.workspaces.bubblewrap_folder import _empty, leftovers
from harness.workspaces.bubblewrap_options import (
    Root,
    SmallFile,
    base_environment,
    bwrap_options,
    check_walls,
    environment_options,
    launcher,
    marker,
)
from harness.workspaces.namespaces import Owner

SEALED = Walls(image="host")
HOST = Root(folder=None)


def options(walls: Walls = SEALED, root: Root = HOST) -> list[str]:
    """The options as text, small files by their content."""
    words = [*bwrap_options(walls, root, "/host/room"), *environment_options(base_environment(walls))]
    return [word.data.decode() if isinstance(word, SmallFile) else word for word in words]


def has(words: list[str], *run: str) -> bool:
    """Whether `run` stands in `words`, in this order, side by side."""
    return any(tuple(words[at : at + len(run)]) == run for at in range(len(words)))


@pytest.fixture
def image(tmp_path: Path) -> Root:
    """A root file system with the folders that matter."""
    for name in ("workspace", "tmp", "dev", "proc", "usr/bin", "etc", "var/lib"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr/bin/sh").write_text("")
    return Root(folder=tmp_path)


def test_sealed_walls_unshare_everything_and_nest_nothing() -> None:
    """Each namespace is its own, the seat can make no further one, and the sandbox ends with its parent."""
    words = options()
    for flag in (
        "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--disable-userns", "--new-session", "--die-with-parent", "--clearenv",
    ):  # fmt: skip
        assert flag in words
    assert has(words, "--uid", "20001")
    assert "--cap-add" not in words


def test_sealed_walls_bind_one_writable_folder() -> None:
    """The workspace's folder is the only thing of the host's that can be written."""
    words = options()
    assert [words[at + 1 : at + 3] for at, word in enumerate(words) if word == "--bind"] == [
        ["/host/room", "/workspace"]
    ]
    assert words.index("--remount-ro") > words.index("--dev")
    assert has(words, "--remount-ro", "/")
    assert has(words, "--remount-ro", "/dev")


def test_memory_folders_have_a_size() -> None:
    """`/tmp` and `/dev/shm` end at the caps: an unlimited one would be the host's memory."""
    words = options(replace(SEALED, caps=Caps(tmp_bytes=1 << 20, shm_bytes=1 << 20)))
    for at, word in enumerate(words):
        if word == "--tmpfs":
            assert words[at - 2 : at] == ["--size", str(1 << 20)]
    assert words.count("--tmpfs") == 2


def test_nothing_of_the_hosts_etc_is_bound_for_the_host_image() -> None:
    """The accounts and names in a workspace over the host's `/usr` are made up, not the host's."""
    words = options()
    assert not has(words, "--ro-bind", "/etc")
    assert any(word.startswith("root:x:0:0:") and "20001" in word for word in words)


def test_an_image_is_bound_whole_and_read_only(image: Root) -> None:
    """A sealed workspace over an image of the store has one read-only root."""
    words = options(root=image)
    assert has(words, "--ro-bind", str(image.folder), "/")


def test_mounts_get_mount_points_that_the_image_lacks(image: Root) -> None:
    """A positive control may show a path anywhere: the folders above it are put together anew."""
    walls = replace(SEALED, mounts=(Mount(source="/srv/x", target="/var/lib/x"),))
    words = options(walls, image)
    assert has(words, "--ro-bind", "/srv/x", "/var/lib/x")
    assert has(words, "--dir", "/var/lib")
    assert has(words, "--symlink", "usr/bin", "/bin")
    assert not has(words, "--ro-bind", str(image.folder), "/")
    assert words.index("/srv/x") > words.index("/var/lib")


@pytest.mark.parametrize(
    ("change", "gone", "come"),
    [
        ({"network": "host"}, ["--unshare-net"], []),
        ({"host_namespaces": ("pid",)}, ["--unshare-pid"], []),
        ({"keep_capabilities": True}, ["--disable-userns"], ["--cap-add"]),
        ({"system_calls": "any", "masked": False}, ["--disable-userns", "/proc/vmstat"], []),
        ({"run_as_root": True}, ["20001"], ["0"]),
    ],
)
def test_each_weakening_takes_down_what_it_says(change: dict[str, object], gone: list[str], come: list[str]) -> None:
    """What a weakening removes is there without it, and what it adds is not."""
    strict, weak = options(), options(replace(SEALED, **change))
    for word in gone:
        assert word in strict
        assert word not in weak
    for word in come:
        assert word not in strict
        assert word in weak


def test_a_root_that_can_be_written_is_not_made_read_only() -> None:
    """`read_only_root = False` leaves the root's own memory file system writable."""
    assert not has(options(replace(SEALED, read_only_root=False)), "--remount-ro", "/")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"network": "bridge"}, "bridge"),
        ({"new_privileges": True}, "no-new-privileges"),
        ({"mounts": (Mount(source="x", target="/x"),)}, "absolute"),
    ],
)
def test_walls_that_cannot_be_had_are_refused(change: dict[str, object], said: str) -> None:
    """A weakening that would silently stay up is an error that says so."""
    with pytest.raises(FenceError, match=said):
        check_walls(replace(SEALED, **change))


def test_an_image_without_mount_points_is_refused(tmp_path: Path, image: Root) -> None:
    """The missing folder is named, with the next step; a whole image passes."""
    image.check()
    (tmp_path / "workspace").rmdir()
    with pytest.raises(ImageError, match=r"workspace.*proctor image build"):
        image.check()


def test_the_environment_is_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours gets in, and what the walls give wins."""
    monkeypatch.setenv("PROCTOR_TEST_SECRET", "canary")
    made = base_environment(replace(SEALED, environment={"A": "1", "HOME": "/elsewhere"}))
    assert made.keys() == {"A", "HOME", "LANG", "PATH"}
    assert made["HOME"] == "/elsewhere"
    assert "canary" not in " ".join(options())


def launched(caps: Caps, *argv: str, cwd: str = "/") -> subprocess.CompletedProcess[bytes]:
    """The launcher run on this host, for its script alone."""
    words = launcher(replace(SEALED, caps=caps), "t", cwd, argv, address_space=True)
    return subprocess.run(words, capture_output=True, check=False, timeout=20)


def test_the_launcher_sets_limits_and_becomes_the_program() -> None:
    """The program has the limits, gets its words unchanged, and is announced first."""
    ran = launched(
        Caps(pids=500, file_bytes=1 << 20, open_files=77), "sh", "-c", 'ulimit -n; ulimit -f; echo "$0"', "a b$c'"
    )
    assert ran.stdout == b"77\n2048\na b$c'\n"
    assert ran.stderr == marker("t")
    assert ran.returncode == 0


def test_a_launcher_that_cannot_set_a_limit_starts_nothing() -> None:
    """No program runs without its limits, and no mark says that one does."""
    words = launcher(SEALED, "t", "/", ["echo", "ran"], address_space=False)
    words[2] = words[2].replace("ulimit -c 0", "ulimit -c nonsense")
    ran = subprocess.run(words, capture_output=True, check=False, timeout=20)
    assert (ran.returncode != 0, ran.stdout) == (True, b"")
    assert marker("t") not in ran.stderr


def test_a_missing_program_or_folder_comes_after_the_mark() -> None:
    """Both are the caller's affair: the sandbox was there."""
    for ran, status in ((launched(Caps(), "no-such-program"), 127), (launched(Caps(), "true", cwd="/no/such"), 126)):
        assert ran.returncode == status
        assert ran.stderr.startswith(marker("t"))


SAID = """Name:\tcat
Uid:\t20001\t20001\t20001\t20001
Gid:\t20001\t20001\t20001\t20001
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
==
Limit                     Soft Limit           Hard Limit           Units
Max file size             1024                 1024                 bytes
Max processes             41                   41                   processes
==
1 0 0:1 / / ro,nosuid - ext4 x ro
2 1 0:2 / /dev ro,nosuid - tmpfs x rw
3 1 0:3 / /workspace rw,nosuid - tmpfs x rw
4 2 0:4 /null /dev/null rw - devtmpfs x rw
==
Inter-|   Receive
 face |bytes
    lo:       0
==
net:[1]
pid:[2]
ipc:[3]
uts:[4]
mnt:[5]
user:[6]
"""
OUTSIDE = ["net:[11]", "pid:[12]", "ipc:[13]", "uts:[14]", "mnt:[15]", "user:[16]"]


def test_facts_of_a_sealed_sandbox() -> None:
    """What the kernel says of a strict one reads as strict."""
    facts = facts_of(SAID, SEALED, OUTSIDE)
    assert (facts["network_mode"], facts["pid_mode"], facts["ipc_mode"]) == ("none", "private", "private")
    assert (facts["cap_drop"], facts["seccomp"], facts["no_new_privileges"]) == (["ALL"], True, True)
    assert (facts["read_only_root"], facts["mounts"], facts["devices"]) == (True, [], [])
    assert (facts["pids_limit"], facts["exec_user"], facts["privileged"]) == (40, "20001:20001", False)


@pytest.mark.parametrize(
    ("before", "after", "key", "value"),
    [
        ("net:[1]", "net:[11]", "network_mode", "host"),
        ("    lo:       0", "    lo:       0\n  eth0: 1", "network_mode", "host"),
        ("pid:[2]", "pid:[12]", "pid_mode", "host"),
        ("user:[6]", "user:[16]", "privileged", True),
        ("CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400", "cap_drop", []),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "no_new_privileges", False),
        ("Seccomp:\t2", "Seccomp:\t0", "seccomp", False),
        ("/ / ro,", "/ / rw,", "read_only_root", False),
        ("/dev/null rw", "/dev/sda rw", "devices", ["sda"]),
        ("41                   41 ", "unlimited            unlimited ", "pids_limit", None),
        (
            "/null /dev/null",
            "/x /srv/secret",
            "mounts",
            [{"source": None, "target": "/srv/secret", "read_only": False}],
        ),
    ],
)
def test_facts_tell_each_hole(before: str, after: str, key: str, value: object) -> None:
    """A sandbox that is not what was asked for does not read as if it were."""
    assert before in SAID
    assert facts_of(SAID.replace(before, after), SEALED, OUTSIDE)[key] == value


def test_facts_that_were_cut_are_no_facts() -> None:
    """Too little said is an error, never a default."""
    with pytest.raises(ValueError, match="parts of 5"):
        facts_of(SAID.rpartition("==\n")[0], SEALED, OUTSIDE)


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
        (tmp_path / f"{name}.json").write_text(json.dumps({"run": "r", "owner": asdict(owner)}))
    assert [room.name for room in leftovers(tmp_path)] == ["dead"]
    assert os.getpid() == me.pid
