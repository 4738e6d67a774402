"""Numbers the tries of samples: a log may hold a sample more than once, the later run in the place of the earlier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cells.declared.rows import ForeignCell

__all__ = ["Tries"]


class Tries:
    """
    The samples of a log so far, and how many tries each had.

    Inspect reads the last of several and forgets the others. Here each is a try of the cell, so that a sample that was
    run again after it was done with can be seen as what it is.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.superseded = 0

    def numbered(self, cells: Iterable[ForeignCell]) -> Iterator[ForeignCell]:
        """The cells of one record of a sample, numbered on from the tries that it had before."""
        before: int | None = None
        for cell in cells:
            if before is None:
                before = self.names.get(cell.cell.id, 0)
                self.superseded += before > 0
            numbered = replace(cell, attempt=before + cell.attempt)
            self.names[cell.cell.id] = numbered.attempt
            yield numbered
