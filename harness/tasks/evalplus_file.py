"""Where a file in EvalPlus's schema is found, and its text: by name, by path, packed or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from harness import environment
from harness.errors import TaskError

__all__ = ["BENCHMARKS", "locate", "numbered_lines", "text_of"]

BENCHMARKS = ("humaneval", "mbpp")
"""The names that stand for EvalPlus's own files."""


def locate(source: str | Path) -> tuple[str, Path]:
    """The name of a benchmark, and its file. Raises `TaskError` when there is none, with what would name one."""
    if str(source) not in BENCHMARKS:
        path = Path(source)
        stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
        if not path.is_file() or stem == path.name:
            raise TaskError(
                f"{str(source)!r} is no task source: expected {' or '.join(map(repr, BENCHMARKS))}, or the path of "
                "an existing .jsonl or .jsonl.gz file"
            )
        return stem, path
    name = str(source)
    override = environment.evalplus_override(name)
    if override is not None:
        if not override.is_file():
            raise TaskError(f"{name.upper()}_OVERRIDE_PATH names {str(override)!r}, which is not a file")
        return name, override
    return name, _downloaded(name)


def _downloaded(name: str) -> Path:
    """The file that the `evalplus` package keeps, downloaded by it if need be."""
    variable = f"{name.upper()}_OVERRIDE_PATH"
    try:
        if name == "humaneval":
            from evalplus.data.humaneval import _ready_human_eval_plus_path as ready
        else:
            from evalplus.data.mbpp import _ready_mbpp_plus_path as ready
    except ImportError as error:
        raise TaskError(
            f"no file for benchmark {name!r}: set {variable} to a .jsonl or .jsonl.gz file of it, or "
            "`pip install 'proctor[evalplus]'` to let EvalPlus download it"
        ) from error
    try:
        return Path(ready())
    except Exception as error:  # a download by another project's code: whatever goes wrong, the next step is the same
        raise TaskError(
            f"EvalPlus could not provide {name!r} ({type(error).__name__}: {error}): set {variable} to a file of it"
        ) from error


def text_of(path: Path) -> str:
    """The text of a file, unpacked where it is packed. Raises `TaskError` when it can't be read."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TaskError(f"{path} can't be read: {error}") from error


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    # Not splitlines(): a JSON string may hold U+2028 and its like unescaped.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line
