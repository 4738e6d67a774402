"""
Chooses the wheels that go into an image: resolved by pip on the host, for the image's Python and not for the host's.

Nothing of a package is run on the host: sources, whose build would be the package's own program, are never taken.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import TypeAlias

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness import environment
from harness.errors import ImageError

__all__ = ["PythonTarget", "Wheel", "WheelFinder", "Wish", "lock_text", "wish"]

Progress: TypeAlias = Callable[[str], None]
_ROUNDS = 10
_PATIENCE_S = 1800
_OLDEST_GLIBC = {"x86_64": 5}
_LEGACY_TAGS = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
_LINES_SHOWN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonTarget:
    """The Python of an image: its `version` (as `3.11`), the machine, and the minor version of the GNU C library 2."""

    version: str
    machine: str
    glibc: int

    def platforms(self) -> list[str]:
        """The platform tags of wheels that run there, best first."""
        tags = []
        for minor in range(self.glibc, _OLDEST_GLIBC.get(self.machine, 17) - 1, -1):
            tags.append(f"manylinux_2_{minor}_{self.machine}")
            if minor in _LEGACY_TAGS:
                tags.append(f"{_LEGACY_TAGS[minor]}_{self.machine}")
        return [*tags, f"linux_{self.machine}"]

    def markers(self) -> dict[str, str]:
        """What a requirement's marker is answered by. The patch version is not known; 0 asks for more, never less."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.version}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.version}.0",
            "python_version": self.version,
            "sys_platform": "linux",
        }

    def __str__(self) -> str:
        return f"Python {self.version} on {self.machine} with glibc 2.{self.glibc}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A package that was asked for: its name in normal form, its extras, and how pip is told of it."""

    name: str
    extras: frozenset[str]
    argument: str
    shown: str


def wish(text: str) -> Wish:
    """
    What `text` asks for: a requirement such as `mini-swe-agent==2.4.6`, or the path of a wheel.

    Raises `ImageError` for anything else: an option, an address, a marker, a file that is no wheel.
    """
    if text.endswith(".whl"):
        return _wheel_file(text)
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        raise ImageError(
            f"Python package {text!r} is refused: {str(error).splitlines()[0]}. Expected a requirement, such as "
            "'mini-swe-agent==2.4.6', or the path of a wheel"
        ) from None
    if found.url is not None or found.marker is not None:
        what = "an address" if found.url is not None else "a marker"
        raise ImageError(
            f"Python package {text!r} is refused: it has {what}; expected a name, extras and versions alone"
        )
    return Wish(
        name=canonicalize_name(found.name), extras=frozenset(found.extras), argument=str(found), shown=str(found)
    )


def _wheel_file(text: str) -> Wish:
    path = Path(text)
    try:
        name, version, *_tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise ImageError(f"Python package {text!r} is refused: {error}") from None
    if not path.is_file():
        raise ImageError(f"Python package {text!r} is refused: there is no such file")
    return Wish(name=name, extras=frozenset(), argument=str(path.absolute()), shown=f"{name}=={version}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """One wheel: where it lies, what it holds, and the SHA-256 of its bytes."""

    path: Path
    name: str
    version: str
    sha256: str

    @classmethod
    def at(cls, path: Path) -> Wheel:
        """The wheel in the file `path`."""
        name, version, *_tags = parse_wheel_filename(path.name)
        with path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
        return cls(path=path, name=name, version=str(version), sha256=digest)

    def requirements(self) -> list[Requirement]:
        """What it says it needs. Raises `ImageError` when it says so in no known way."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                (member,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
                text = archive.read(member).decode()
            return [Requirement(line) for line in HeaderParser().parsestr(text).get_all("Requires-Dist", [])]
        except (ValueError, zipfile.BadZipFile) as error:
            raise ImageError(f"{self.path.name} is no wheel that can be used: {error}") from error


def lock_text(wheels: Iterable[Wheel]) -> str:
    """The wheels as pip's requirements with hashes, a line each: what builds the same image again."""
    lines = (f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in wheels)
    return "".join(f"{line}\n" for line in sorted(lines))


class WheelFinder:
    """
    Finds the wheels for `wishes` and for all that they need, in the versions that pip resolves, or in those of `lock`,
    a file of requirements with hashes. `without` are dependencies that are left out on purpose.
    """

    def __init__(
        self, target: PythonTarget, *, lock: Path | None = None, without: Sequence[str] = (), progress: Progress
    ) -> None:
        self._target = target
        self._lock = lock
        self._without = frozenset(canonicalize_name(name) for name in without)
        self._progress = progress

    def find(self, wishes: Sequence[Wish], folder: Path) -> list[Wheel]:
        """
        The wheels, fetched into `folder`, sorted by name: all that are needed on the image's Python, and no others.

        Raises `ImageError` that names the requirement for which there is none.
        """
        asked = [one.argument for one in wishes]
        for _ in range(_ROUNDS):
            self._fetch(asked, folder)
            wheels = {wheel.name: wheel for wheel in map(Wheel.at, sorted(folder.glob("*.whl")))}
            needed, missing = self._closure(wishes, wheels)
            if not missing:
                return [wheels[name] for name in sorted(needed)]
            if self._lock is not None:
                raise ImageError(f"{self._lock} has no {', '.join(missing)}, which {self._target} needs: make it anew, or leave it out")
            # pip answers markers for the Python that it runs on: what only the image's needs is asked for by name.
            asked += missing
            for path in folder.iterdir():
                path.unlink()
        raise ImageError(f"what {', '.join(one.shown for one in wishes)} needs on {self._target} could not be settled")

    def _closure(self, wishes: Sequence[Wish], wheels: Mapping[str, Wheel]) -> tuple[set[str], list[str]]:
        """The names of what is needed, and the requirements of it that no wheel is there for."""
        reached: dict[str, frozenset[str]] = {}
        missing: set[str] = set()
        waiting = [(one.name, one.extras, one.shown) for one in wishes]
        while waiting:
            name, extras, shown = waiting.pop()
            known = reached.get(name)
            if name in self._without or (known is not None and extras <= known):
                continue
            if name not in wheels:
                missing.add(shown)
                continue
            reached[name] = extras | (known or frozenset())
            for need in wheels[name].requirements():
                if self._applies(need, reached[name]):
                    bare = (
                        f"{need.name}{'[' + ','.join(sorted(need.extras)) + ']' if need.extras else ''}{need.specifier}"
                    )
                    waiting.append((canonicalize_name(need.name), frozenset(need.extras), bare))
        return set(reached), sorted(missing)

    def _applies(self, need: Requirement, extras: frozenset[str]) -> bool:
        if need.marker is None:
            return True
        try:
            return any(need.marker.evaluate({**self._target.markers(), "extra": extra}) for extra in ("", *extras))
        except UndefinedEnvironmentName as error:
            raise ImageError(f"requirement {str(need)!r} can't be answered: {error}") from None

    def _fetch(self, asked: Sequence[str], folder: Path) -> None:
        what = asked if self._lock is None else ["--require-hashes", "--no-deps", "-r", str(self._lock)]
        self._progress(f"fetching wheels for {self._target}: {' '.join(asked)}")
        where = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", self._target.version]
        for tag in self._target.platforms():
            where += ["--platform", tag]
        self._pip(["download", "--dest", str(folder), *where, *what], asked)

    def _pip(self, words: Sequence[str], asked: Sequence[str]) -> None:
        if importlib.util.find_spec("pip") is None:
            raise ImageError(f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`, then try again")
        command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE_S,
                stdin=subprocess.DEVNULL, env=environment.installer_env(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ImageError(f"pip did not fetch {', '.join(asked)} within {_PATIENCE_S} s") from None
        if done.returncode != 0:
            raise ImageError(self._explain(done.stderr, asked))

    def _explain(self, output: str, asked: Sequence[str]) -> str:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        told = [line for line in lines if line.startswith("ERROR:")] or lines
        return (
            f"{', '.join(asked)} can't be had as wheels for {self._target}:\n  "
            + "\n  ".join(told[-_LINES_SHOWN:])
            + "\nA package that is published as source alone is not built here: build a wheel of it and name the file, "
            "or use a Dockerfile."
        )
