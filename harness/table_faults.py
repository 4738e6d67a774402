"""What is wrong with a file of tables that a person wrote: lines that name the place, the value and the known keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from harness.errors import unknown_name

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["expected", "explain"]

_TAGS = {"constrained-str", "ArmEntry", "ArmFolderEntry", "ArmOptionsEntry"}
"""What pydantic says of which kind of entry a fault is in, which is nothing that a person wrote."""


def explain(error: ValidationError, origin: str, root: type[BaseModel]) -> str:
    """One line a fault of the file `origin`, whose whole is a `root`: where it is, what is there, what was expected."""
    lines = []
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"] if part not in _TAGS)
        if fault["type"] == "extra_forbidden":
            known = _fields_at(fault["loc"][:-1], root)
            lines.append(f"{where}: " + unknown_name("key", str(fault["loc"][-1]), known))
        elif fault["type"] == "missing":
            lines.append(f"{where}: missing, and required")
        else:
            lines.append(f"{where or 'file'}: {expected(fault)}")
    return f"{origin} can't be used:\n  " + "\n  ".join(lines)


def expected(fault: ErrorDetails) -> str:
    """What was expected and what is there instead; of the whole file what was expected alone, which names the place."""
    said = fault["msg"].removeprefix("Value error, ")
    shown = repr(fault["input"])
    return f"{said}, got {shown if len(shown) <= 80 else shown[:77] + '...'}" if fault["loc"] else said


def _fields_at(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """The field names of the table that stands at a validation error's location."""
    tables: list[type[BaseModel]] = [root]
    for part in location:
        if isinstance(part, int):
            continue
        inner = [
            found
            for table in tables
            if part in table.model_fields
            for found in _tables_in(table.model_fields[part].annotation)
        ]
        tables = inner or [table for table in tables if table.__name__ == part] or tables
    return sorted({field.alias or name for table in tables for name, field in table.model_fields.items()})


def _tables_in(annotation: Any) -> list[type[BaseModel]]:
    """The table types inside an annotation such as `list[TaskEntry]` or `TaskDraw | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _tables_in(part)]
