"""Arms in folders, for tests: a good text, a placebo that is accepted for it, and a packet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["DIET", "LOOKALIKE", "PACKET", "packet_files", "text_files", "write_folder"]

DIET = """# Small steps

Read the task twice. Write one check first, then the code that makes it pass.

## While you work

- Keep every function short.
- Run the check after each change.
- Stop when it passes.
"""

LOOKALIKE = """# A grey wall

Mind the heron once. Mark any roof there, with the lamp that stands near it.

## Below the hills

- Name each harbour aloud.
- Draw a bridge over calm rivers.
- Wait while it rains.
"""

PACKET = '''"""A packet that says which round it is."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass
class Rounds:
    """Its words stand in words.json."""

    files: dict[str, bytes]

    def __post_init__(self) -> None:
        self.words = json.loads(self.files["words.json"])

    @property
    def content(self) -> bytes:
        """Every word that can get into a prompt."""
        return self.files["words.json"]

    def render(self, view) -> str:
        """The round and the task."""
        return f"{self.words['round']} {view.round}\\n\\n{view.instruction}"
'''


def text_files(name: str, text: str | bytes = DIET, more: str = "") -> dict[str, bytes]:
    """The files of a text arm; `more` are further lines of its card."""
    card = f'name = "{name}"\nkind = "text"\ntext = "text.md"\n{more}'
    return {"arm.toml": card.encode(), "text.md": text if isinstance(text, bytes) else text.encode()}


def packet_files(name: str, code: str = PACKET, more: str = "") -> dict[str, bytes]:
    """The files of a packet."""
    card = f'name = "{name}"\nkind = "packet"\nrenderer = "packet:Rounds"\n{more}'
    return {"arm.toml": card.encode(), "packet.py": code.encode(), "words.json": b'{"round": "Round"}'}


def write_folder(parent: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files into `parent/name`."""
    for path, data in files.items():
        place = parent / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return parent / name
