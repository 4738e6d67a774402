"""
Records of a file of tasks that were parsed and found right before, so that no run does it again.

Each is kept below the state folder under the digest of its line and of the modules that read it: a line that changed,
or another version of them, finds nothing. What is kept is as trusted as the expected values that lie beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from harness import environment
from harness.canonical import digest_bytes
from harness.kept_file import read_kept, write_kept

__all__ = ["keep", "recall"]

_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution")
"""What a task's open half and its solution are made of, beside the whole text."""


def recall(line: str) -> tuple[dict[str, str], str] | None:
    """Those fields of the record that `line` says, and its canonical text; None when that was not kept whole."""
    data = read_kept(_path(line))
    if data is None:
        return None
    head, _, text = data.partition(b"\n")
    return json.loads(head), text.decode()


def keep(line: str, record: Mapping[str, object], text: str) -> None:
    """Keep what `recall` gives."""
    head = json.dumps({key: record[key] for key in _FIELDS})
    write_kept(_path(line), f"{head}\n{text}".encode())


def _path(line: str) -> Path:
    return environment.state_home() / "records" / digest_bytes(f"{_readers()}\n{line}".encode())


@cache
def _readers() -> str:
    """The digest of the modules that say what is right."""
    here = Path(__file__)
    names = ("evalplus.py", "evalplus_inputs.py", here.name)
    return digest_bytes(b"".join(here.with_name(name).read_bytes() for name in names))
