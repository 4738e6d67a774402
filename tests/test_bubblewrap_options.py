"""Walls as bwrap's options, and the limits as the launcher's script."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import FenceError, ImageError
from harness.walls import Caps, Mount, Walls
from harness.workspaces import bubblewrap_launcher
from harness.workspaces.bubblewrap_launcher import launcher, marker
from harness.workspaces.bubblewrap_options import (
    Places,
    Root,
    SmallFile,
    base_environment,
    bwrap_options,
    check_walls,
    environment_options,
)

SEALED = Walls(image="host")
HOST = Root(folder=None)
PLACES = Places(workspace="/host/room")


def options(walls: Walls = SEALED, root: Root = HOST, places: Places = PLACES) -> list[str]:
    """The options as text, small files by their content."""
    words = [*bwrap_options(walls, root, places), *environment_options(base_environment(walls))]
    return [word.data.decode() if isinstance(word, SmallFile) else word for word in words]


def has(words: list[str], *run: str) -> bool:
    """Whether `run` stands in `words`, in this order, side by side."""
    return any(tuple(words[at : at + len(run)]) == run for at in range(len(words)))


@pytest.fixture
def image(tmp_path: Path) -> Root:
    """A root file system with the folders that matter."""
    for name in ("workspace", "tmp", "dev", "proc", "run", "usr/bin", "etc", "var/lib"):
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
    words = options(replace(SEALED, caps=Caps(tmp_bytes=1 << 20, shm_bytes=2 << 20)))
    sizes = {words[at + 1]: words[at - 2 : at] for at, word in enumerate(words) if word == "--tmpfs"}
    assert sizes == {
        "/tmp": ["--size", str(1 << 20)],
        "/dev/shm": ["--size", str(2 << 20)],
    }


def test_the_gateway_is_shown_read_only_and_only_with_its_network() -> None:
    """Its folder is bound read-only, in a network namespace of its own; without that network there is none."""
    words = options(replace(SEALED, network="gateway"), places=replace(PLACES, gateway="/host/gateway"))
    assert has(words, "--ro-bind", "/host/gateway", "/run/gateway")
    assert "--unshare-net" in words
    assert words.index("/run/gateway") < len(words) - words[::-1].index("/run") - 1
    assert has(words, "--size", str(64 << 10), "--tmpfs", "/run")
    assert "/run/gateway" not in options()
    assert "/run" not in options()


def test_what_is_left_is_shown_read_only() -> None:
    """After the end the workspace's folder is bound so that nobody can write it."""
    words = options(places=replace(PLACES, ended=True))
    assert has(words, "--ro-bind", "/host/room", "/workspace")
    assert "--bind" not in words


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
        ({"host_namespaces": ("ipc",)}, ["--unshare-ipc"], []),
        ({"host_namespaces": ("uts",)}, ["--unshare-uts", "--hostname"], []),
        ({"host_namespaces": ("cgroup",)}, ["--unshare-cgroup-try"], []),
        ({"keep_capabilities": True}, ["--disable-userns"], ["--cap-add", "ALL"]),
        ({"capabilities": ("NET_RAW", "CAP_SYS_TIME")}, ["--disable-userns"], ["CAP_NET_RAW", "CAP_SYS_TIME"]),
        ({"system_calls": "any"}, ["--disable-userns"], []),
        ({"system_calls": "engine"}, ["--disable-userns"], []),
        ({"masked": False}, ["/proc/vmstat"], []),
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


def test_a_root_that_can_be_written_is_not_made_read_only(image: Root) -> None:
    """`read_only_root = False` leaves the root, and each folder in it, writable; the image itself stays as it is."""
    walls = replace(SEALED, read_only_root=False)
    assert not has(options(walls), "--remount-ro", "/")
    words = options(walls, image)
    assert not has(words, "--remount-ro", "/")
    for folder in ("/etc", "/usr", "/var"):
        assert has(words, "--perms", "0755", "--dir", folder)
    assert has(words, "--ro-bind", f"{image.folder}/usr/bin", "/usr/bin")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"network": "bridge"}, "bridge"),
        ({"new_privileges": True}, "no-new-privileges"),
        ({"keeper_apart": False}, "keeper_apart"),
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


def test_each_limit_is_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are told in the shell's unit; the reaper and the forwarder are let be beside the seat's processes."""
    caps = Caps(pids=500, core_bytes=4096, file_bytes=1 << 20, open_files=77, memory_bytes=1 << 30)
    script = launcher(replace(SEALED, caps=caps), "t", "/", ["true"], address_space=True)[2]
    for limit in ("-u 501", "-c 8", "-f 2048", "-n 77", f"-v {1 << 20}"):
        assert f"ulimit {limit}" in script
    joined = launcher(replace(SEALED, caps=caps, network="gateway"), "t", "/", ["true"], address_space=False)[2]
    assert "ulimit -u 502" in joined
    assert "ulimit -v" not in joined


def test_a_program_waits_for_the_forwarder(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the network `gateway` nothing starts before it listens, it is no child of the program's, and its end is none."""
    walls = replace(SEALED, network="gateway", caps=Caps(pids=500))
    program = "import os, time; print('listening', flush=True); time.sleep(1)"
    argv = ["sh", "-c", 'cat /proc/$$/task/$$/children; echo "<$*>"', "sh", "a b"]

    def ran(*forwarder: str) -> subprocess.CompletedProcess[bytes]:
        monkeypatch.setattr(bubblewrap_launcher, "forwarder_argv", lambda _: list(forwarder))
        words = launcher(walls, "t", "/", argv, address_space=False)
        return subprocess.run(words, capture_output=True, check=False, timeout=20)

    well = ran("python3", "-I", "-S", "-c", program)
    assert (well.returncode, well.stderr) == (0, marker("t"))
    children, _, said = well.stdout.rstrip(b"\n").rpartition(b"<")
    assert said == b"a b>"
    assert len(children.split()) <= 1, "cat alone"
    for broken in (("no-such-program",), ("echo", "something else"), ("true",)):
        ill = ran(*broken)
        assert (ill.returncode, ill.stdout) == (125, b"")
        assert b"does not listen" in ill.stderr
        assert marker("t") not in ill.stderr


def test_a_missing_program_or_folder_comes_after_the_mark() -> None:
    """Both are the caller's affair: the sandbox was there."""
    for ran, status in ((launched(Caps(), "no-such-program"), 127), (launched(Caps(), "true", cwd="/no/such"), 126)):
        assert ran.returncode == status
        assert ran.stderr.startswith(marker("t"))
