"""Readies a fresh root file system: takes out what no seat needs or what differs by build, puts in what we rely on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.errors import ImageError
from harness.workspaces.images import KEEPER, SEAT, SEATS

__all__ = ["furnish", "strip"]

_FOLDERS_EMPTIED = (
    "var/cache", "var/lib/apt", "var/lib/dpkg", "var/lib/systemd", "var/log", "var/tmp", "var/backups", "tmp", "boot",
    "usr/share/doc", "usr/share/info", "usr/share/man", "usr/share/locale", "usr/share/bug", "usr/share/lintian",
    "usr/share/i18n", "home", "root", "debootstrap",
)  # fmt: skip
_FILES_REMOVED = (
    "etc/machine-id", "var/lib/dbus/machine-id", "etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-",
    "etc/.pwd.lock", "etc/apt/sources.list", "var/lib/random-seed", "etc/mtab", "etc/ssl/private/ssl-cert-snakeoil.key",
)  # fmt: skip

_SEATS = {"seat" if uid == SEAT else f"seat-{uid}": uid for uid in SEATS}
_USERS = (
    "root:x:0:0:root:/root:/bin/bash",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    f"keeper:x:{KEEPER}:{KEEPER}:keeper:/nonexistent:/usr/sbin/nologin",
    *(f"{name}:x:{uid}:{uid}:seat:/workspace:/bin/bash" for name, uid in _SEATS.items()),
)
_GROUPS = (
    "root:x:0:", "tty:x:5:", "nogroup:x:65534:", f"keeper:x:{KEEPER}:",
    *(f"{name}:x:{uid}:" for name, uid in _SEATS.items()),
)  # fmt: skip
_HOSTS = "127.0.0.1 localhost seat\n::1 localhost ip6-localhost ip6-loopback\n"
# An engine gives a container without networking an empty /etc/hosts whatever its image says: there the module
# `myhostname`, which needs no file, answers for localhost and for the container's own name.
_NAMES = "passwd: files\ngroup: files\nshadow: files\nhosts: files myhostname dns\nservices: files\nprotocols: files\n"
_FOLDERS_MADE = ("workspace", "tmp", "dev", "proc", "sys", "run", "etc", "root", "var/tmp")


def strip(root: Path) -> None:
    """Remove caches, documentation, translations, machine ids, logs and package lists below `root`."""
    for name in _FOLDERS_EMPTIED:
        folder = _inside(root, name)
        if folder.is_dir() and not folder.is_symlink():
            _empty(folder)
    for name in _FILES_REMOVED:
        _inside(root, name).unlink(missing_ok=True)
    if (root / "debootstrap").is_dir():
        (root / "debootstrap").rmdir()


def furnish(root: Path) -> None:
    """Give `root` what a workspace relies on: keeper and seats, its mount points, and names that resolve."""
    for name in _FOLDERS_MADE:
        _inside(root, name).mkdir(parents=True, exist_ok=True)
    _write(root, "etc/passwd", _with(root, "etc/passwd", _USERS))
    _write(root, "etc/group", _with(root, "etc/group", _GROUPS))
    _write(root, "etc/shadow", "root:!::0:::::\n")
    _write(root, "etc/gshadow", "root:!::\n")
    _write(root, "etc/hosts", _HOSTS)
    _write(root, "etc/hostname", "seat\n")
    _write(root, "etc/resolv.conf", "")
    _write(root, "etc/nsswitch.conf", _NAMES)


def _with(root: Path, name: str, ours: Sequence[str]) -> str:
    """The lines of an account file, ours in place of those that have the same name or number."""
    path = _inside(root, name)
    theirs = path.read_text().splitlines() if path.is_file() and not path.is_symlink() else []
    taken = {line.split(":")[position] for line in ours for position in (0, 2)}
    kept = [line for line in theirs if line.count(":") >= 2 and not taken & {line.split(":")[0], line.split(":")[2]}]
    return "".join(f"{line}\n" for line in (*ours, *kept))


def _write(root: Path, name: str, text: str) -> None:
    path = _inside(root, name)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def _inside(root: Path, name: str) -> Path:
    """`name` below `root`. A link on the way would lead into the host's own file system, so it is refused."""
    path = root
    for part in Path(name).parent.parts:
        path = path / part
        if path.is_symlink():
            raise ImageError(f"{path} is a link: expected a folder of the image")
    return path / Path(name).name


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
