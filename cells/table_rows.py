"""The rows of the tables, from a scoreboard, the cells it was read from, and the probes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cells.cell_lines import CellLine, cell_lines, try_lines
from cells.conditions import Census
from cells.contrasts import ContrastReading
from cells.costs import Cost, Median
from cells.figures import printable
from cells.groups import Group
from cells.pair_counts import PairCounts
from cells.ratios import RatioReading
from cells.readings import Scoreboard
from cells.settled import Settled
from cells.table_schema import SCHEMA, Kind, Row

__all__ = ["TableSource", "tables_of"]

RENAMED = {"outcome_class": "class"}
"""Columns of cells that are called otherwise in the code, where the name is taken."""

QUANTITIES = ("tokens", "calls", "wall_s", "usd", "usd_exact")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSource:
    """
    What tables are made of: one `reading` of one `source` (a registration's id, or a declaration's name), the cells it
    was read from, and the probes of its fence, which are given once a source.
    """

    source: str
    reading: str
    board: Scoreboard
    settled: Settled
    probes: Sequence[Mapping[str, Any]] = ()


def tables_of(sources: Iterable[TableSource]) -> dict[str, list[Row]]:
    """All rows of every table of the schema, at none too."""
    tables: dict[str, list[Row]] = {name: [] for name in SCHEMA}
    for source in sources:
        whose = {"source": source.source, "reading": source.reading}
        for name, rows in _made(source).items():
            kinds = SCHEMA[name]
            tables[name] += [_plain(kinds, {**whose, **row}) for row in rows]
    return tables


def _made(source: TableSource) -> dict[str, Iterable[Mapping[str, Any]]]:
    board = source.board
    return {
        "cells": map(_cell, cell_lines(source.source, source.settled)),
        "tries": map(_cell, try_lines(source.source, source.settled)),
        "census": ({**_scope(item.group), **_named(SCHEMA["census"], item)} for item in _censuses(board)),
        "classes": (row for item in _censuses(board) for row in _classes(item)),
        "costs": (row for item in (*board.arm_costs, *board.costs) for row in _costs(item)),
        "contrasts": map(_contrast, _contrasts(board)),
        "strata": (row for item in _contrasts(board) for row in _strata(item)),
        "ratios": map(_ratio, board.ratios),
        "ratio_tasks": (row for item in board.ratios for row in _ratio_tasks(item)),
        "probes": source.probes,
    }


def _plain(kinds: Mapping[str, Kind], row: Mapping[str, Any]) -> Row:
    """The columns of a row in their order: text as it is printed, figures finite, and None for what is not there."""
    return {name: _value(kind, row.get(name)) for name, kind in kinds.items()}


def _value(kind: Kind, value: Any) -> str | int | float | bool | None:
    if value is None:
        return None
    match kind:
        case "text":
            texts = value if isinstance(value, list | tuple) else [value]
            return "; ".join(map(printable, texts)) or None
        case "flag":
            return bool(value)
        case "integer":
            return int(value)
        case "number":
            return float(value) if math.isfinite(value) else None


def _cell(line: CellLine) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in asdict(line).items()}


def _censuses(board: Scoreboard) -> tuple[Census, ...]:
    return (*board.arms, *board.conditions)


def _contrasts(board: Scoreboard) -> tuple[ContrastReading, ...]:
    return (*board.contrasts, *board.added)


def _scope(group: Group) -> dict[str, Any]:
    """Which cells are counted together: those of an arm over all tasks, or those of a condition."""
    return {"scope": "arm" if group.task is None else "condition", **asdict(group)}


def _classes(item: Census) -> Iterator[dict[str, Any]]:
    """Every count by name: the classes, halts by limit, voids by cause, refusals by gate, would-be readings."""
    kinds = {
        "class": item.classes,
        "halt": item.halts,
        "void": item.voids,
        "refusal": item.refusals,
        "would_be": item.would_be,
    }
    for kind, counts in kinds.items():
        for name, cells in counts.items():
            yield {**_scope(item.group), "kind": kind, "name": name, "cells": cells}


def _costs(item: Cost) -> Iterator[dict[str, Any]]:
    for quantity in QUANTITIES:
        median: Median = getattr(item, quantity)
        counts = {"n": median.n, "unknown": median.unknown, "lower_bounds": median.lower_bounds}
        yield {**_scope(item.group), "quantity": quantity, "median": median.value, "bound": median.bound, **counts}


def _named(kinds: Mapping[str, Kind], item: object) -> dict[str, Any]:
    """The columns that are fields of `item`."""
    return {name: getattr(item, name) for name in kinds if hasattr(item, name)}


def _pairs(pairs: PairCounts) -> dict[str, Any]:
    return asdict(pairs)


def _contrast(item: ContrastReading) -> dict[str, Any]:
    return {**_named(SCHEMA["contrasts"], item), **_pairs(item.pairs)}


def _strata(item: ContrastReading) -> Iterator[dict[str, Any]]:
    for stratum in item.strata:
        figures = _named(SCHEMA["strata"], stratum)
        yield {**figures, "contrast": item.name, "stratum": stratum.name, **_pairs(stratum.pairs)}


def _ratio(item: RatioReading) -> dict[str, Any]:
    return _named(SCHEMA["ratios"], item)


def _ratio_tasks(item: RatioReading) -> Iterator[dict[str, Any]]:
    for task in item.tasks:
        sides = {
            "treatment_median": task.treatment.value,
            "treatment_n": task.treatment.n,
            "control_median": task.control.value,
            "control_n": task.control.n,
        }
        yield {**_named(SCHEMA["ratio_tasks"], task), "name": item.name, "quantity": item.quantity, **sides}
