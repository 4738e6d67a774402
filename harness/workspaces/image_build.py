"""Builds images into the store. From Debian's packages here; the other two ways come from files of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from harness import environment
from harness.errors import ImageError
from harness.workspaces.image_dockerfile import build_from_dockerfile
from harness.workspaces.image_host import build_from_host
from harness.workspaces.image_python import AGENT_FOLDER, NO_PACKAGES, PythonPackages, add_python_packages
from harness.workspaces.image_rootfs import furnish, strip
from harness.workspaces.images import DEFAULT_IMAGE, ImageStore, StoredImage

__all__ = ["DEFAULT_PACKAGES", "build_from_debian", "build_from_dockerfile", "build_from_host", "host_mirror"]

DEFAULT_PACKAGES = ("libnss-myhostname", "python3", "python3-pytest")
"""What an image has beside Debian's own minimum (bash, coreutils, grep, sed, findutils, tar, diffutils, perl)."""

Progress: TypeAlias = Callable[[str], None]
_LINES_SHOWN = 12
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_SUITE = re.compile(r"[a-z0-9][a-z0-9.-]*")


def _silent(_line: str) -> None:
    """Progress that nobody asked to see."""


def build_from_debian(
    name: str = DEFAULT_IMAGE,
    *,
    packages: Sequence[str] = DEFAULT_PACKAGES,
    suite: str = "bookworm",
    mirror: str | None = None,
    python: PythonPackages = NO_PACKAGES,
    store: ImageStore | None = None,
    progress: Progress = _silent,
) -> StoredImage:
    """
    Build image `name` with debootstrap, and `python` packages in it. `mirror` is a Debian archive's address, by default
    the host's own.

    Raises `ImageError` when this is not root, when debootstrap or a mirror is missing, and when the build fails.
    """
    store = store if store is not None else ImageStore()
    _check_words(packages, suite)
    _need_root()
    _need_debootstrap(progress)
    mirror = mirror if mirror is not None else host_mirror(suite)
    with store.scratch("layers") as scratch:
        root = Path(scratch) / "root"
        command = ["debootstrap", "--force-check-gpg", "--variant=minbase", f"--include={','.join(sorted(packages))}"]
        _run([*command, suite, str(root), mirror], progress)
        made = {"by": "debootstrap", "suite": suite, "packages": " ".join(sorted(packages))}
        made |= add_python_packages(root, python, progress)
        _compile(root, progress)
        strip(root)
        furnish(root)
        progress("packing the layer")
        return store.add(name, root, made)


def _check_words(packages: Sequence[str], suite: str) -> None:
    for package in packages:
        if not _PACKAGE.fullmatch(package):
            raise ImageError(f"package {package!r} is refused: expected a Debian package's name, such as 'python3'")
    if not _SUITE.fullmatch(suite):
        raise ImageError(f"suite {suite!r} is refused: expected a Debian release's code name, such as 'bookworm'")


def _need_root() -> None:
    if os.geteuid() != 0:
        raise ImageError(
            "building from Debian needs root, since debootstrap makes a root file system and runs its install scripts: "
            "run it as root, or build from this host or from a Dockerfile instead"
        )


def _need_debootstrap(progress: Progress) -> None:
    path = environment.terminal_env()["PATH"]
    if shutil.which("debootstrap", path=path) is not None:
        return
    if shutil.which("apt-get", path=path) is None:
        raise ImageError("debootstrap is not installed and there is no apt-get: install debootstrap, then try again")
    progress("installing debootstrap")
    _run(["apt-get", "update", "-q"], progress)  # a fresh machine has no lists, and old ones name what is gone
    _run(["apt-get", "install", "-y", "--no-install-recommends", "debootstrap"], progress)


def _compile(root: Path, progress: Progress) -> None:
    """Byte-compile Python ahead of time: a read-only image can't, and its own way depends on the files' dates."""
    folders = [path for path in ("/usr/lib/python3", *_stdlib(root)) if (root / path.lstrip("/")).is_dir()]
    python = ["python3", "-S", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]
    if folders:
        progress("compiling the Python library")
        _run(["chroot", str(root), *python, *folders], progress, env={"PYTHONHASHSEED": "0"})
    if (root / AGENT_FOLDER.lstrip("/")).is_dir():
        progress("compiling the Python packages")
        # Packages bring templates and other Pythons' files that do not compile: 1 says that there were some.
        _run(["chroot", str(root), *python, AGENT_FOLDER], progress, env={"PYTHONHASHSEED": "0"}, good=(0, 1))


def _stdlib(root: Path) -> list[str]:
    return [f"/usr/lib/{path.name}" for path in sorted((root / "usr" / "lib").glob("python3.*"))]


def _run(
    command: Sequence[str], progress: Progress, env: Mapping[str, str] | None = None, good: Sequence[int] = (0,)
) -> None:
    last: deque[str] = deque(maxlen=_LINES_SHOWN)
    everything = {**environment.terminal_env(), "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        errors="replace", env=everything,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        for line in program.stdout:
            last.append(line.rstrip())
            progress(line.rstrip())
    if program.returncode not in good:
        raise ImageError(f"`{' '.join(command[:2])}` ended with status {program.returncode}:\n" + "\n".join(last))


def host_mirror(suite: str, sources: Path = Path("/etc/apt")) -> str:
    """The address from which this host gets Debian's `suite`, by its apt sources. Raises `ImageError` when none."""
    for uris, suites in _apt_entries(sources):
        if suite in suites and uris:
            return uris[0]
    raise ImageError(
        f"{sources} names no archive that has Debian's {suite!r}: name a mirror, or build from this host instead"
    )


def _apt_entries(sources: Path) -> Iterator[tuple[list[str], list[str]]]:
    lists = [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*.list"))]
    for path in lists:
        for line in path.read_text().splitlines() if path.is_file() else ():
            words = re.sub(r"\[.*?\]", "", line.partition("#")[0]).split()
            if len(words) >= 3 and words[0] == "deb":  # deb ADDRESS SUITE COMPONENT...
                yield [words[1]], [words[2]]
    for path in sorted((sources / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"^(\w[\w-]*):[ \t]*(.*)$", stanza, flags=re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes").lower() != "no":
                yield fields.get("URIs", "").split(), fields.get("Suites", "").split()
