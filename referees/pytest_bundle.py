"""What the `pytest` referee sends into its rooms: its own two programs, and a copy of this environment's pytest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import marshal
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from harness.canonical import digest_bytes, digest_json
from harness.errors import RefereeError

__all__ = ["archive", "command", "runner_digest", "versions"]

_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
_DISTRIBUTIONS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
_LEXERS = frozenset({"__init__.py", "_mapping.py", "python.py", "diff.py"})
_SENT = {
    "judge": ("pytest_wire", "pytest_confine", "pytest_watch", "pytest_raised", "pytest_remote", "pytest_judge"),
    "subject": ("pytest_wire", "pytest_confine", "pytest_watch", "pytest_subject", "pytest_monitor"),
}
_OURS = (
    *dict.fromkeys(name for names in _SENT.values() for name in names),
    *("frame_line", "pytest_bridge", "pytest_room", "pytest_report", "pytest_screen", "pytest_suite"),
)

_BOOT = """\
import sys, types
sys.modules["referees"] = package = types.ModuleType("referees")
package.__path__ = []
for name, text in {sources!r}.items():
    module = types.ModuleType("referees." + name)
    sys.modules[module.__name__] = module
    exec(compile(text, name + ".py", "exec"), module.__dict__)
module.main(sys.argv[1])
"""

_CLEAN = ("env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=/workspace")


@cache
def _source(name: str) -> str:
    return resources.files("referees").joinpath(f"{name}.py").read_text(encoding="utf-8")


def command(program: str) -> tuple[str, ...]:
    """
    The command of `judge` or `subject`: an isolated Python in a cleared environment, its program in the arguments.

    The judge's has no site packages: the pytest that judges is the one that the harness sends, with no plugin.
    """
    text = _BOOT.format(sources={name: _source(name) for name in _SENT[program]})
    flags = ("PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", "python3", "-I", "-S") if program == "judge" else ("python3", "-I")
    return (*_CLEAN, *flags, "-c", text, "/workspace")


def _files() -> Iterator[tuple[str, Path]]:
    """Each module of the bundle: its path in the archive and its source on this machine."""
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise RefereeError(f"the pytest referee needs the package {package!r} here: install pytest")
        root = Path(spec.origin).parent
        if spec.submodule_search_locations is None:
            yield f"{package}.py", Path(spec.origin)
            continue
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root.parent)
            if inside.parts[:2] != ("pygments", "lexers") or inside.name in _LEXERS:
                yield inside.as_posix(), path


@cache
def archive(magic: str) -> bytes:
    """
    The bundle as a zip for the Python whose bytecode has the magic number `magic` (hexadecimal).

    Compiled where that is this Python's too. Reads some three hundred files: call it from a worker thread.
    """
    compiled = importlib.util.MAGIC_NUMBER.hex() == magic
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for inside, path in _files():
            if not compiled:
                made.writestr(inside, path.read_bytes())
                continue
            code = SourceFileLoader(inside, str(path)).get_code(inside)
            assert code is not None  # there is a source, so there is code
            body = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(_placed(code, inside))
            made.writestr(f"{inside}c", body)
    return buffer.getvalue()


def _placed(code: CodeType, name: str) -> CodeType:
    """The same code under another file name: a path of this machine has no business in a room."""
    constants = tuple(_placed(item, name) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_filename=name, co_consts=constants)


@cache
def runner_digest() -> str:
    """SHA-256 over the sources of everything of ours and of pytest's that takes part in a judgement."""
    return digest_json(
        {
            **{inside: digest_bytes(path.read_bytes()) for inside, path in _files()},
            **{f"referees/{name}.py": digest_bytes(_source(name).encode()) for name in _OURS},
        }
    )


@cache
def versions() -> dict[str, str]:
    """The versions of the bundle's distributions, for people."""
    return {name: importlib.metadata.version(name) for name in _DISTRIBUTIONS}
