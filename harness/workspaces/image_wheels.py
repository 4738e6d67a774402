"""Wheels, and the Python of an image that they are for: what was asked for, what a wheel holds and what it needs."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.errors import ImageError

__all__ = ["PythonTarget", "Wheel", "Wish", "lock_text", "wish"]

_OLDEST_GLIBC = {"x86_64": 5}
_LEGACY_TAGS = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}


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
    """A package that was asked for: as a requirement, and how pip is told of it."""

    requirement: Requirement
    argument: str

    @property
    def name(self) -> str:
        """Its name in normal form."""
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        return str(self.requirement)


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
    return Wish(requirement=found, argument=str(found))


def _wheel_file(text: str) -> Wish:
    path = Path(text)
    try:
        name, version, *_tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise ImageError(f"Python package {text!r} is refused: {error}") from None
    if not path.is_file():
        raise ImageError(f"Python package {text!r} is refused: there is no such file")
    return Wish(requirement=Requirement(f"{name}=={version}"), argument=str(path.absolute()))


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
