"""Builds an image out of this machine's own Python, shell and tools, with no network and without being root."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from harness import environment
from harness.errors import ImageError
from harness.workspaces.image_python import AGENT_FOLDER, NO_PACKAGES, PythonPackages, add_python_packages
from harness.workspaces.image_rootfs import furnish
from harness.workspaces.images import DEFAULT_IMAGE, ImageStore, StoredImage

__all__ = ["build_from_host"]

_PYTHON = Path("/usr/bin/python3")
_TOOLS = (
    "bash", "sh", "env", "cat", "chmod", "cp", "cut", "date", "dd", "dirname", "basename", "du", "df", "echo",
    "expr", "false", "find", "grep", "egrep", "fgrep", "head", "id", "install", "ln", "ls", "mkdir", "mkfifo",
    "mktemp", "mv", "nl", "nproc", "od", "paste", "printf", "pwd", "readlink", "realpath", "rm", "rmdir", "sed",
    "seq", "sha256sum", "sleep", "sort", "split", "stat", "stty", "sync", "tac", "tail", "tar", "tee", "test",
    "timeout", "touch", "tr", "true", "truncate", "tty", "uname", "uniq", "wc", "whoami", "xargs", "yes", "cmp",
    "diff", "diff3", "sdiff", "awk", "gzip", "setsid",
)  # fmt: skip
_LIBRARY_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "dist-packages", "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip",
    "lib2to3", "config-*", "EXTERNALLY-MANAGED",
)  # fmt: skip
_PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "attr", "attrs", "tomli", "exceptiongroup")
_ASK = """
import importlib.util, json, sys, sysconfig
found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "stdlib": sysconfig.get_path("stdlib"),
    "modules": [spec.origin for spec in found.values() if spec is not None and spec.origin],
}))
"""
_LIBRARY = re.compile(r"(?:=>\s*)?(/\S+)\s+\(0x")
_FOR_WHEELS = (
    "libstdc++.so.6",
    "libz.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libm.so.6",
)
_RESOLVERS = ("libnss_files.so.2", "libnss_dns.so.2", "libnss_myhostname.so.2", "libgcc_s.so.1")


def build_from_host(
    name: str = DEFAULT_IMAGE,
    *,
    python: PythonPackages = NO_PACKAGES,
    store: ImageStore | None = None,
    progress: Callable[[str], None] = lambda _line: None,
) -> StoredImage:
    """
    Build image `name` from this host's `/usr/bin/python3` and its library, bash, the usual tools and pytest if present,
    with `python` packages in it.

    Raises `ImageError` when this is no Linux machine, or has no Python or shell in the usual place.
    """
    store = store if store is not None else ImageStore()
    if sys.platform != "linux" or not _PYTHON.exists() or shutil.which("bash", path="/usr/bin:/bin") is None:
        raise ImageError(f"this host can't be copied: expected Linux with {_PYTHON} and bash; use a Dockerfile instead")
    with store.scratch("layers") as scratch:
        root = Path(scratch) / "root"
        _skeleton(root)
        progress("copying Python")
        version = _copy_python(root)
        progress("copying the tools")
        _copy_tools(root)
        progress("copying shared libraries")
        _copy_libraries(root)
        made = {"by": "host", "python": version, **add_python_packages(root, python, progress)}
        if python.wishes:
            _ready_packages(root)
        furnish(root)
        progress("packing the layer")
        return store.add(name, root, made)


def _skeleton(root: Path) -> None:
    (root / "usr" / "bin").mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        link = Path("/") / name
        if link.is_symlink():
            (root / "usr" / name).mkdir(exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
    if not (root / "bin").exists():
        (root / "bin").symlink_to("usr/bin")


def _ask(command: list[str], *, timeout_s: float = 60) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=timeout_s, env=environment.terminal_env()
    )
    return done.stdout if done.returncode == 0 else ""


def _copy_python(root: Path) -> str:
    answer = _ask([str(_PYTHON), "-I", "-c", _ASK, *_PYTEST])
    if not answer:
        raise ImageError(f"{_PYTHON} does not run: this host can't be copied")
    facts = json.loads(answer)
    version, stdlib = facts["version"], Path(facts["stdlib"])
    _copy_file(_PYTHON.resolve(), root / "usr" / "bin" / f"python{version}")
    for alias in ("python3", "python"):
        (root / "usr" / "bin" / alias).symlink_to(f"python{version}")
    library = root / str(stdlib).lstrip("/")
    shutil.copytree(stdlib, library, ignore=_LIBRARY_LEFT_OUT, symlinks=False, ignore_dangling_symlinks=True)
    packages = root / "usr" / "lib" / "python3" / "dist-packages"
    packages.mkdir(parents=True, exist_ok=True)
    for origin in map(Path, facts["modules"]):
        _copy_module(origin, packages)
    # Compiled here and not on first use, since an image is read-only; by content, since dates are not kept.
    _compile(root, library, packages)
    return str(version)


def _compile(root: Path, *folders: Path) -> None:
    flags = ["-q", "-s", str(root), "--invalidation-mode", "unchecked-hash"]
    _ask([str(_PYTHON), "-S", "-m", "compileall", *flags, *map(str, folders)], timeout_s=900)


def _ready_packages(root: Path) -> None:
    """Compile the packages, and bring what every wheel may count on: its own files are not asked what they link."""
    _compile(root, root / AGENT_FOLDER.lstrip("/"))
    for folder in {path.parent for path in root.glob("usr/lib/**/libc.so.6")}:
        for name in _FOR_WHEELS:
            source = Path("/") / folder.relative_to(root) / name
            if source.is_file() and not (folder / name).exists():
                _copy_file(source.resolve(), folder / name)


def _copy_module(origin: Path, packages: Path) -> None:
    if origin.name == "__init__.py":
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(origin.parent, packages / origin.parent.name, ignore=ignore, dirs_exist_ok=True)
        title = origin.parent.name
    else:
        _copy_file(origin, packages / origin.name)
        title = origin.stem
    above = origin.parent.parent if origin.name == "__init__.py" else origin.parent
    for facts in (*above.glob(f"{title}-*.dist-info"), *above.glob(f"{title}-*.egg-info")):
        if facts.is_dir():
            shutil.copytree(facts, packages / facts.name, dirs_exist_ok=True)


def _copy_tools(root: Path) -> None:
    for tool in _TOOLS:
        if (found := shutil.which(tool, path="/usr/bin:/bin")) is not None:
            _copy_file(Path(found).resolve(), root / "usr" / "bin" / tool)


def _copy_libraries(root: Path) -> None:
    programs = [path for path in (root / "usr" / "bin").iterdir() if not path.is_symlink()]
    modules = list((root / "usr" / "lib").glob("python3*/**/*.so"))
    for library in _needed([*programs, *modules]):
        target = root / str(library).lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy_file(library.resolve(), target)
    locale = Path("/usr/lib/locale/C.utf8")
    if locale.is_dir():
        shutil.copytree(locale, root / "usr" / "lib" / "locale" / "C.utf8")


def _needed(files: Iterable[Path]) -> list[Path]:
    """The shared libraries that `files` are linked with, and those that the C library loads by name when asked."""
    needed: set[Path] = set()
    for path in files:
        needed.update(map(Path, _LIBRARY.findall(_ask(["ldd", str(path)]))))
    folders = {path.parent for path in needed}
    needed.update(folder / name for folder in folders for name in _RESOLVERS if (folder / name).is_file())
    return sorted(needed)


def _copy_file(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(source.stat().st_mode & 0o755 | 0o400)
