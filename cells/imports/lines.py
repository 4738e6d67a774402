"""Foreign cells as JSON Lines whose members are called as the columns of a declaration: what `proctor score` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cells.declared.rows import ForeignCell
from cells.imports.imported import label_of
from harness.errors import DeclarationError, StorageError
from harness.values import Declared, ExactPrice, FailedBoot, Halt, LowerBoundPrice, Refused, Void, VoidPrice

__all__ = ["line_of", "write_lines"]


def line_of(cell: ForeignCell) -> dict[str, Any]:
    """One row. What is unknown is null; `reading` beside a HALT is what the other referee said all the same."""
    reading = cell.verdict or cell.would_be
    price = cell.spend.price
    return {
        "run": cell.cell.run,
        "id": cell.cell.id,
        "benchmark": cell.cell.benchmark,
        "task": cell.cell.task,
        "arm": cell.cell.arm,
        "extras": cell.cell.extras,
        "model": cell.cell.model,
        "replicate": cell.cell.replicate,
        "attempt": cell.attempt,
        "end": "DECLARED" if isinstance(cell.end, Declared) else label_of(cell),
        "reading": None if reading is None else reading.reading,
        "usd": None if isinstance(price, VoidPrice) else price.usd,
        "lower_bound": None if isinstance(price, VoidPrice) else isinstance(price, LowerBoundPrice),
        "tokens": cell.spend.tokens,
        "calls": cell.spend.calls,
        "wall_s": cell.spend.wall_s,
        "detail": _detail(cell),
        "price_note": None if isinstance(price, ExactPrice) else price.reason,
        **{f"label.{name}": text for name, text in sorted(cell.labels.items())},
    }


def _detail(cell: ForeignCell) -> str | None:
    match cell.end:
        case Declared(note=detail) | FailedBoot(detail=detail) | Refused(detail=detail) | Void(detail=detail):
            return detail or None
        case Halt(bound=bound, spent=spent):
            told = {"bound": bound, "spent": spent}
            return ", ".join(f"{name} {value:g}" for name, value in told.items() if value is not None) or None


def write_lines(cells: Iterable[ForeignCell], out: Path) -> None:
    """
    Write a line a cell to `out`, which appears once it is whole.

    Raises `DeclarationError` if it is there already: what a comparison was declared over is not overwritten; and
    `StorageError` where the disk does not take it. Nothing half-written stays.
    """
    if out.exists() or out.is_symlink():
        raise DeclarationError(f"{out} is there already: expected a new name, so that nothing is overwritten")
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            for text in _texts(cells):
                file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.rename(out)
    except OSError as error:
        raise StorageError(f"{out} can't be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _texts(cells: Iterable[ForeignCell]) -> Iterator[str]:
    for cell in cells:
        # Lone surrogates of a hostile name can't be written as UTF-8: JSON's own escapes can.
        yield json.dumps(line_of(cell), ensure_ascii=True, allow_nan=False) + "\n"
