"""
Puts Python packages into an image: in an environment of their own below /opt/agent, so that neither the image's Python
nor a task's programs see them. Only the commands of what was asked for are on the PATH.
"""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name

from harness.errors import ImageError
from harness.workspaces.image_resolving import Progress, WheelFinder
from harness.workspaces.image_wheels import PythonTarget, Wheel, Wish, lock_text, wish

__all__ = ["AGENT_FOLDER", "NO_PACKAGES", "PythonPackages", "add_python_packages", "python_target"]

AGENT_FOLDER = "/opt/agent"
"""Where an image has the packages: an environment with `bin/python3`, its libraries, and `requirements.txt`."""

_COMMANDS = "usr/local/bin"
_PLACES_OF_COMMANDS = (_COMMANDS, "usr/bin", "bin", "usr/sbin", "sbin")
_GLIBC = re.compile(rb"stable release version 2\.(\d+)")


@dataclass(frozen=True, kw_only=True)
class PythonPackages:
    """
    The packages for an image: `wishes`, the lock that pins them (None: what pip resolves today), and the names of
    dependencies to leave out.
    """

    wishes: tuple[Wish, ...] = ()
    lock: Path | None = None
    without: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, requirements: Sequence[str], *, lock: Path | None = None, without: Sequence[str] = ()) -> Self:
        """Check what was asked for. Raises `ImageError` that names the requirement which can't be used."""
        wishes = tuple(map(wish, requirements))
        names = [one.name for one in wishes]
        for one in wishes:
            if names.count(one.name) > 1:
                raise ImageError(
                    f"Python package {one.name!r} is asked for {names.count(one.name)} times: expected once"
                )
        for name in without:
            if canonicalize_name(name) in names:
                raise ImageError(f"Python package {name!r} is asked for and is to be left out: expected one of the two")
        if not wishes and (lock is not None or without):
            raise ImageError("name the Python package whose commands the image is to have: --python-package NAME")
        if lock is not None and not lock.is_file():
            raise ImageError(
                f"{lock} is no file: expected requirements with hashes, as `proctor image lock` prints them"
            )
        return cls(wishes=wishes, lock=lock, without=tuple(without))


NO_PACKAGES = PythonPackages()
"""An image without Python packages of its own."""


def add_python_packages(root: Path, packages: PythonPackages, progress: Progress) -> dict[str, str]:
    """
    Fetch the packages and install them into the root file system at `root`; not compiled yet.

    Returns how it was done, for the image's description: empty when there are none. Raises `ImageError`.
    """
    if not packages.wishes:
        return {}
    target = python_target(root)
    finder = WheelFinder(target, lock=packages.lock, without=packages.without, progress=progress)
    with tempfile.TemporaryDirectory(prefix="proctor-wheels-") as folder:
        wheels = finder.find(packages.wishes, Path(folder))
        progress(f"installing {len(wheels)} Python packages")
        _Installation(root, target).install(wheels, packages.wishes)
    made = {"python_packages": " ".join(map(str, packages.wishes)), "python_lock": lock_text(wheels)}
    return {**made, "python_without": " ".join(packages.without)} if packages.without else made


def python_target(root: Path) -> PythonTarget:
    """What the Python and the C library of an image are. Raises `ImageError` when it has none that are known."""
    link = root / "usr" / "bin" / "python3"
    version = re.fullmatch(r"python(3\.\d+)", link.readlink().name) if link.is_symlink() else None
    if version is None:
        raise ImageError("the image has no /usr/bin/python3 that says its version: Python packages need one")
    for library in sorted(root.glob("usr/lib/*/libc.so.6")) or sorted(root.glob("lib*/**/libc.so.6")):
        found = _GLIBC.search(library.read_bytes())
        if found is not None:
            return PythonTarget(version=version[1], machine=platform.machine(), glibc=int(found[1]))
    raise ImageError("the image has no GNU C library: Python packages are installed from wheels, which need one")


class _Installation:
    """One environment below `root`, laid out as `python3 -m venv` would, without running anything."""

    def __init__(self, root: Path, target: PythonTarget) -> None:
        self._root = root
        self._version = target.version
        self._library = f"{AGENT_FOLDER}/lib/python{target.version}/site-packages"

    def install(self, wheels: Sequence[Wheel], wishes: Sequence[Wish]) -> None:
        """Lay out the environment, put every wheel into it, and the wishes' commands on the PATH."""
        self._lay_out()
        for wheel in wheels:
            self._put(wheel)
        self._below(AGENT_FOLDER, "requirements.txt").write_text(lock_text(wheels))
        by_name = {wheel.name: wheel for wheel in wheels}
        for one in wishes:
            for command in self._commands(by_name[one.name]):
                self._link(command, one)

    def _lay_out(self) -> None:
        folder = self._below("/opt", "agent")
        if folder.exists():
            raise ImageError(f"the image has {AGENT_FOLDER} already: expected one without Python packages of its own")
        (folder / "bin").mkdir(parents=True)
        self._below(self._library).mkdir(parents=True)
        settings = {"home": "/usr/bin", "include-system-site-packages": "false", "version": f"{self._version}.0"}
        (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        (folder / "bin" / "python3").symlink_to(f"/usr/bin/python{self._version}")
        (folder / "bin" / "python").symlink_to("python3")

    def _put(self, wheel: Wheel) -> None:
        from installer import install
        from installer.destinations import SchemeDictionaryDestination
        from installer.exceptions import InstallerError
        from installer.sources import WheelFile

        places = {"purelib": self._library, "platlib": self._library, "scripts": f"{AGENT_FOLDER}/bin"}
        destination = SchemeDictionaryDestination(
            {**places, "headers": f"{AGENT_FOLDER}/include/{wheel.name}", "data": AGENT_FOLDER},
            interpreter=f"{AGENT_FOLDER}/bin/python3",
            script_kind="posix",
            destdir=str(self._root),
            overwrite_existing=True,  # packages of one name space may bring the same file, as pip lets them
        )
        try:
            with WheelFile.open(wheel.path) as source:
                install(source, destination, additional_metadata={"INSTALLER": b"proctor\n"})
        except (InstallerError, ValueError, OSError) as error:
            raise ImageError(f"{wheel.path.name} can't be installed: {error}") from error

    def _commands(self, wheel: Wheel) -> list[str]:
        for facts in sorted(self._below(self._library).glob("*.dist-info")):
            found = PathDistribution(facts)
            if canonicalize_name(found.name) == wheel.name:
                return sorted({entry.name for entry in found.entry_points.select(group="console_scripts")})
        return []

    def _link(self, command: str, one: Wish) -> None:
        if "/" in command:
            raise ImageError(f"{one} brings the command {command!r}: expected a name without '/'")
        places = [self._root / place / command for place in _PLACES_OF_COMMANDS]
        taken = [path for path in places if path.exists() or path.is_symlink()]
        if taken:
            where = taken[0].relative_to(self._root)
            raise ImageError(f"{one} brings the command {command!r}, and the image has /{where} already")
        path = self._below(f"/{_COMMANDS}", command)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(f"{AGENT_FOLDER}/bin/{command}")

    def _below(self, folder: str, *names: str) -> Path:
        """A path of the image. A link on the way would lead into the host's own file system, so it is refused."""
        path = self._root
        for part in (*Path(folder).parts[1:], *names):
            if path.is_symlink():
                raise ImageError(f"{path} is a link: expected a folder of the image")
            path = path / part
        return path
