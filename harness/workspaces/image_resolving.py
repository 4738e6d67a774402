"""
Chooses the wheels that go into an image: resolved by pip on the host, for the image's Python and not for the host's.

Nothing of a package is run on the host: sources, whose build would be the package's own program, are never taken.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness import environment
from harness.errors import ImageError
from harness.workspaces.image_wheels import PythonTarget, Wheel, Wish

__all__ = ["Progress", "WheelFinder"]

Progress: TypeAlias = Callable[[str], None]
_ROUNDS = 10
_PATIENCE_S = 1800
_LINES_SHOWN = 12


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
            needed = _Needed(self._target, wheels, self._without)
            needed.follow([one.requirement for one in wishes])
            if not needed.missing:
                return self._chosen(needed, wheels)
            missing = sorted(needed.missing)
            if self._lock is not None:
                raise ImageError(
                    f"{self._lock} lacks {', '.join(missing)}, needed on {self._target}: "
                    "make it anew, or leave that out"
                )
            # pip answers markers for the Python that it runs on: what only the image's needs is asked for by name.
            asked += missing
            for path in folder.iterdir():
                path.unlink()
        raise ImageError(f"what {', '.join(map(str, wishes))} needs on {self._target} could not be settled")

    def _chosen(self, needed: _Needed, wheels: Mapping[str, Wheel]) -> list[Wheel]:
        """The wheels of what is needed. Nothing may have been left out that nobody needs: that is a slip of the pen."""
        for name in sorted(self._without - needed.left_out):
            raise ImageError(
                f"{name!r} is to be left out, and nothing needs it on {self._target}: expected a dependency"
            )
        return [wheels[name] for name in sorted(needed.extras)]

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


class _Needed:
    """
    What a set of requirements needs of the wheels that are there: the `extras` of each package by its name, what is
    `missing` as requirements, and which names were `left_out`.
    """

    def __init__(self, target: PythonTarget, wheels: Mapping[str, Wheel], without: frozenset[str]) -> None:
        self.extras: dict[str, frozenset[str]] = {}
        self.missing: set[str] = set()
        self.left_out: set[str] = set()
        self._target = target
        self._wheels = wheels
        self._without = without

    def follow(self, requirements: Sequence[Requirement]) -> None:
        """Follow the requirements, and those of what they need."""
        waiting = list(requirements)
        while waiting:
            need = waiting.pop()
            name = canonicalize_name(need.name)
            if name in self._without:
                self.left_out.add(name)
            elif name not in self._wheels or not need.specifier.contains(self._wheels[name].version, prereleases=True):
                self.missing.add(_bare(need))
            elif name not in self.extras or not need.extras <= self.extras[name]:
                self.extras[name] = frozenset(need.extras) | self.extras.get(name, frozenset())
                waiting += [one for one in self._wheels[name].requirements() if self._applies(one, self.extras[name])]

    def _applies(self, need: Requirement, extras: frozenset[str]) -> bool:
        if need.marker is None:
            return True
        try:
            return any(need.marker.evaluate({**self._target.markers(), "extra": extra}) for extra in ("", *extras))
        except UndefinedEnvironmentName as error:
            raise ImageError(f"requirement {str(need)!r} can't be answered: {error}") from None


def _bare(need: Requirement) -> str:
    """The requirement without its marker."""
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    return f"{need.name}{extras}{need.specifier}"
