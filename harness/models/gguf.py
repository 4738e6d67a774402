"""Reading what a GGUF file says of itself, without loading it: its architecture, window and chat template."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import ExperimentError

__all__ = ["GgufFacts", "file_digest", "read_facts"]

MAGIC = b"GGUF"
VERSIONS = frozenset({2, 3})
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, ARRAY = 8, 9
LONGEST_TEXT = 1 << 24
MOST_KEYS = 1 << 16
BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufFacts:
    """What a file says of itself. `trained_ctx` is in tokens; each is None where the file is silent."""

    architecture: str | None
    trained_ctx: int | None
    chat_template: str | None

    @property
    def tools(self) -> bool:
        """Whether the chat template has a place for tools."""
        return self.chat_template is not None and "tools" in self.chat_template


def file_digest(path: Path) -> str:
    """The SHA-256 of the file, computed once as long as its path, size and modification time stay the same."""
    status = path.stat()
    return _file_digest(path.absolute(), status.st_size, status.st_mtime_ns)


@cache
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    del size, mtime_ns  # they are in the key alone
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_facts(path: Path) -> GgufFacts:
    """What the GGUF file at `path` says of itself. Raises `ExperimentError` when it is none, or is cut off."""
    try:
        with path.open("rb", buffering=BLOCK) as stream:
            keys = _read_keys(stream)
    except OSError as error:
        raise ExperimentError(f"the model file {path} can't be read: {error.strerror}") from error
    except (ValueError, struct.error) as error:
        raise ExperimentError(f"{path} is no usable GGUF file: {error}") from error
    architecture = keys.get("general.architecture")
    window = keys.get(f"{architecture}.context_length")
    template = keys.get("tokenizer.chat_template")
    return GgufFacts(
        architecture=architecture if isinstance(architecture, str) else None,
        trained_ctx=window if isinstance(window, int) and window > 0 else None,
        chat_template=template if isinstance(template, str) else None,
    )


def _read_keys(stream: BinaryIO) -> Mapping[str, Any]:
    """All keys with a single value; an array is read over."""
    if (magic := stream.read(4)) != MAGIC:
        raise ValueError(f"it begins with {magic!r}: expected {MAGIC!r}")
    version, _, count = struct.unpack("<IQQ", _exactly(stream, 20))
    if version not in VERSIONS:
        raise ValueError(f"its format is version {version}: expected one of {sorted(VERSIONS)}")
    if count > MOST_KEYS:
        raise ValueError(f"it claims {count} keys: expected {MOST_KEYS} at most")
    keys: dict[str, Any] = {}
    for _ in range(count):
        name = _text(stream)
        (kind,) = struct.unpack("<I", _exactly(stream, 4))
        if kind == ARRAY:
            _skip_array(stream)
        else:
            keys[name] = _text(stream) if kind == TEXT else _scalar(stream, kind)
    return keys


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise ValueError("it ends inside its own description")
    return data


def _text(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _exactly(stream, 8))
    if length > LONGEST_TEXT:
        raise ValueError(f"it claims a text of {length} bytes: expected {LONGEST_TEXT} at most")
    return _exactly(stream, length).decode("utf-8", "replace")


def _scalar(stream: BinaryIO, kind: int) -> Any:
    if kind not in SCALARS:
        raise ValueError(f"it has a value of the unknown kind {kind}")
    layout = SCALARS[kind]
    return struct.unpack(layout, _exactly(stream, struct.calcsize(layout)))[0]


def _skip_array(stream: BinaryIO) -> None:
    kind, count = struct.unpack("<IQ", _exactly(stream, 12))
    if kind in SCALARS:
        stream.seek(count * struct.calcsize(SCALARS[kind]), 1)
    elif kind == TEXT:
        for _ in range(count):
            _text(stream)
    else:
        raise ValueError(f"it has an array of the unknown kind {kind}")
