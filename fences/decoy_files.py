"""The folder that a stage's decoy files stand in: made, held against cleaners, laid out, and taken away again."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness.clock import Clock, fresh_token

__all__ = ["PREFIX", "Home", "lay_files", "set_user_id_program"]

_PLACE = Path("/tmp")  # noqa: S108 - each workspace has a /tmp of its own, where a control can show one of these paths
PREFIX = "proctor-stage-"
"""How the folder's name begins. The rest is new each time, so that the name itself is a mark to look for."""

_SETTLING_S = 60.0
"""A folder younger than this may be one that is just being made, and not held yet."""

_SET_USER_ID = ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/chsh", "/bin/su", "/bin/mount")


class Home:
    """
    A fresh folder for decoys. Making it takes away what a killed process of this user's left.

    The folder is locked while it stands: cleaners of temporary files that know locks let it be, and so does the next
    stage, however long this one stays.
    """

    def __init__(self, clock: Clock, *, place: Path = _PLACE) -> None:
        for old in place.glob(f"{PREFIX}*"):
            _take_away_if_left(old, clock)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        self._held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._held, fcntl.LOCK_SH)
        self.path.chmod(0o755)

    def remove(self) -> None:
        """Take it away with everything in it."""
        os.close(self._held)
        shutil.rmtree(self.path, ignore_errors=True)


def _take_away_if_left(folder: Path, clock: Clock) -> None:
    """Remove the folder unless a living process holds it, or it is so new that it may not be held yet."""
    with suppress(OSError):  # another process may be taking it away just now
        info = folder.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            return
        if clock.now().timestamp() - info.st_mtime <= _SETTLING_S:
            return
        looking = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(looking, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(looking)


def lay_files(home: Path, canaries: Mapping[str, str]) -> dict[str, str]:
    """Lay out every decoy file below `home`, and give their places by name."""
    sealed = home / "sealed"
    files = {
        "host-file": (home / "host-file", "host-file"),
        "sealed-file": (sealed / "tests" / f"test_hidden_{fresh_token(4)}.py", "sealed-file"),
        "sealed-solution": (sealed / "solution" / "solution.py", "sealed-file"),
    }
    places = {"home": str(home), "mark": home.name, "host-file-path": str(home / "host-file")}
    for name, (path, canary) in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {canaries[canary]}\n", "utf-8")
        path.chmod(0o644)
        places[name] = f"file {path}"
    for name in ("outside", "neighbour", "tools", "tools-open"):
        (home / name).mkdir()
        places[f"{name}-path"] = str(home / name)
    for folder in (home / "outside", home / "neighbour", home / "tools", home / "tools-open", sealed, sealed / "tests"):
        folder.chmod(0o777)  # whoever a workspace's user is, it could write here if the wall were down
    _lay_tools(home, canaries["tool"])
    return {**places, "sealed-path": str(sealed), "sealed-tests-path": str(sealed / "tests")}


def _lay_tools(home: Path, canary: str) -> None:
    """What each tool goes for, once for each side of the fence."""
    for name, text in (("secret.txt", f"needle {canary}"), (f"name-{canary}", "nothing"), ("editable.txt", "needle")):
        for folder in ("tools", "tools-open"):
            path = home / folder / name
            path.write_text(f"{text}\n", "utf-8")
            path.chmod(0o666)


def set_user_id_program() -> str | None:
    """A program of this host's that runs as root whoever starts it, or None if it has none that is known for it."""
    for path in map(Path, _SET_USER_ID):
        with suppress(OSError):
            info = path.stat()
            if info.st_mode & stat.S_ISUID and info.st_uid == 0 and not os.statvfs(path).f_flag & os.ST_NOSUID:
                return str(path.resolve())
    return None
