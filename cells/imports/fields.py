"""Fields of a foreign document: each has the type that is expected, or an error names file, member and field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from cells.declared.reading_values import IN_REACH, in_reach
from harness.errors import DeclarationError

__all__ = ["Fields"]


class Fields:
    """
    An object of a foreign document. `where` names the file and the member of it; `path` is where the object stands.

    A field that may be missing is None if it is missing or null; any other type than the expected one is refused.
    Fields that nobody asks for are the other harness's own business.
    """

    def __init__(self, data: Any, where: str, path: str = "") -> None:
        if not isinstance(data, Mapping):
            raise DeclarationError(f"{where}: {path or 'the whole'} is {_shown(data)}: expected a JSON object")
        self._data: Mapping[str, Any] = data
        self.where = where
        self.path = path

    def fault(self, name: str, expected: str) -> DeclarationError:
        """An error that names the file, the field and the value."""
        shown = _shown(self._data[name]) if name in self._data else "missing"
        return DeclarationError(f"{self.where}: {self._at(name)} is {shown}: expected {expected}")

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> Any:
        """The value as it is, None if there is none."""
        return self._data.get(name)

    def text(self, name: str) -> str:
        """A text that has to be there, and not empty."""
        found = self.maybe_text(name)
        if not found:
            raise self.fault(name, "a text")
        return found

    def maybe_text(self, name: str) -> str | None:
        """A text."""
        found = self._data.get(name)
        if found is not None and not isinstance(found, str):
            raise self.fault(name, "a text")
        return found

    def whole(self, name: str, *, at_least: int = 0) -> int:
        """A whole number that has to be there."""
        found = self.maybe_whole(name, at_least=at_least)
        if found is None:
            raise self.fault(name, f"a whole number from {at_least}")
        return found

    def maybe_whole(self, name: str, *, at_least: int = 0) -> int | None:
        """A whole number of at least so much."""
        found = self._data.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not at_least <= found < 1 << 53:
            raise self.fault(name, f"a whole number from {at_least}")
        return found

    def maybe_amount(self, name: str) -> float | None:
        """A finite number that is not negative, and in reach."""
        found = self._data.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self.fault(name, "a number from 0")
        if (isinstance(found, int) and found >= 1 << 53) or not math.isfinite(found) or found < 0:
            raise self.fault(name, "a finite number from 0")
        if not in_reach(found):
            raise self.fault(name, IN_REACH)
        return float(found)

    def maybe_time(self, name: str) -> datetime | None:
        """A moment in the form of ISO 8601."""
        found = self.maybe_text(name)
        if not found:
            return None
        try:
            return datetime.fromisoformat(found)
        except ValueError:
            raise self.fault(name, "a moment such as 2026-12-01T10:00:00Z") from None

    def part(self, name: str) -> Fields:
        """An object that has to be there."""
        if self._data.get(name) is None:
            raise self.fault(name, "a JSON object")
        return Fields(self._data[name], self.where, self._at(name))

    def maybe_part(self, name: str) -> Fields | None:
        """An object."""
        return None if self._data.get(name) is None else self.part(name)

    def parts(self, name: str) -> tuple[Fields, ...]:
        """The objects of a list; none if it is missing or null."""
        found = self._data.get(name)
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self.fault(name, "a list of JSON objects")
        return tuple(Fields(item, self.where, f"{self._at(name)}[{at}]") for at, item in enumerate(found))

    def named_parts(self, name: str) -> Iterator[tuple[str, Fields]]:
        """The members of an object that are objects themselves, by name."""
        whole = self.maybe_part(name)
        for key in whole._data if whole is not None else ():  # noqa: SLF001  # of the same class
            assert whole is not None
            yield key, whole.part(key)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
