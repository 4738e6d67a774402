"""An arm that is a byte-pinned text, registered by name or brought by an experiment: the text, then the task."""

from __future__ import annotations

import re
from pathlib import Path

from harness import plugins
from harness.canonical import digest_bytes
from harness.errors import PluginError
from harness.views import RoundView

__all__ = ["MAX_TEXT_BYTES", "SEAT_KINDS", "TextArm", "load_text_arm", "with_extras"]

MAX_TEXT_BYTES = 65_536
"""The longest text an arm may have, in bytes."""

SEAT_KINDS = frozenset({"oneshot", "loop", "command", "revise", "scripted"})
"""The kinds of seat that the design knows; a registered seat of a third party adds its own name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BOM = b"\xef\xbb\xbf"


class TextArm:
    """
    An instruction text, pinned byte by byte, that runs in every seat.

    Raises `PluginError` when the name or the text can't be used: the text must be UTF-8 without a byte order mark and
    without NUL, of at most `MAX_TEXT_BYTES` bytes.
    """

    __slots__ = ("_content", "_text", "name", "seats")

    def __init__(self, name: str, content: bytes) -> None:
        _check_name(name)
        self.name = name
        self.seats = SEAT_KINDS | frozenset(plugins.table("seats"))
        self._text = _decoded(name, content)
        self._content = content

    @property
    def content(self) -> bytes:
        """The text's own bytes."""
        return self._content

    @property
    def text(self) -> str:
        """The text itself, as a placebo is measured against it."""
        return self._text

    def render(self, view: RoundView) -> str:
        """
        The text, a blank line, the instruction, and after a blank line each the extras in the order of their names.
        Newlines at the text's end are not repeated. Every round is the same.
        """
        head = self._text.rstrip("\n")
        task = with_extras(view)
        return f"{head}\n\n{task}" if head else task

    def __repr__(self) -> str:
        return f"TextArm({self.name!r}, {len(self._content)} bytes, sha256={digest_bytes(self._content)[:12]})"


def with_extras(view: RoundView) -> str:
    """The instruction, unchanged, and below it the extras that the view has, verbatim, in the order of their names."""
    return "\n\n".join([view.instruction, *(view.extras[name] for name in sorted(view.extras))])


def load_text_arm(name: str, path: Path) -> TextArm:
    """
    An experiment's own text arm from a file. Raises `PluginError` when the file is missing, is no regular file, is
    blank or too long, or when its bytes are refused by `TextArm`.
    """
    if not path.is_file():
        state = "is not a regular file" if path.exists() else "does not exist"
        raise PluginError(f"arm {name!r}: {path} {state}: expected a UTF-8 text file")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise PluginError(f"arm {name!r}: {path} can't be read: {error.strerror}") from error
    try:
        arm = TextArm(name, content)
    except PluginError as error:
        raise PluginError(f"{error} (read from {path})") from None
    if not content.strip():
        raise PluginError(f"arm {name!r}: {path} is blank; for an arm without a text name the registered arm 'plain'")
    return arm


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise PluginError(
            f"arm name {name!r}: expected 1 to 64 of A-Z a-z 0-9 '.' '_' '-', starting with a letter or digit"
        )


def _decoded(name: str, content: bytes) -> str:
    if len(content) > MAX_TEXT_BYTES:
        raise PluginError(f"arm {name!r}: the text is longer than {MAX_TEXT_BYTES} bytes")
    if content.startswith(_BOM):
        raise PluginError(f"arm {name!r}: the text starts with a byte order mark: save it as UTF-8 without one")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PluginError(
            f"arm {name!r}: byte {error.start} of the text is 0x{content[error.start]:02x}, which is not UTF-8"
            f" ({error.reason})"
        ) from None
    if "\0" in text:
        raise PluginError(f"arm {name!r}: character {text.index(chr(0))} of the text is NUL")
    return text
