"""Placeholders in the words of a command, in its variables and in its files: `{seat.model}` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.errors import PluginError, unknown_name

__all__ = ["check_placeholders", "filled"]

_PLACEHOLDER = re.compile(r"\{seat\.([^{}]*)\}")


def check_placeholders(where: str, text: str, known: Iterable[str]) -> None:
    """Raise `PluginError` that begins with `where` for a `{seat.NAME}` in `text` whose name is not a known one."""
    names = tuple(known)
    for name in _PLACEHOLDER.findall(text):
        if name not in names:
            raise PluginError(f"{where}: {unknown_name('placeholder', name, names)}")


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with each placeholder's value in its place. Braces of any other kind stay, those in values too."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
