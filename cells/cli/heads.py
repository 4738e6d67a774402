"""The option `--head`: a record's last line, as somebody outside the run has kept it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record import Head

__all__ = ["witness_of"]


def witness_of(text: str | None) -> Head | None:
    """The head that an option holds, None where it was not given. Raises `UsageError` that says what was expected."""
    from harness.errors import UsageError
    from harness.record import Head

    try:
        return None if text is None else Head.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
