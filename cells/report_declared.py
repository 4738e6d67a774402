"""The report of a declared set: what its readings say of each other, where they disagree first, then each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cells.cell_lines import CellLine, cell_lines
from cells.cost_marks import cost_marks
from cells.declared.as_json import side_by_side_to_json
from cells.declared.side_by_side import DeclaredReading, SideBySide
from cells.declared.view import accord_lines, reading_lines, source_lines
from cells.report_document import Commands, Document, Facts, Part, Prose, Section
from cells.report_plots import cost_plot, discordant_plot, premium_plots
from cells.score_view import sheets_of
from cells.settled import settle

__all__ = ["DeclaredFacts", "declared_document", "declared_facts", "declared_to_json"]

BULLET = "- "


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredFacts:
    """What the report of a declared set, called `name`, is made of; `cells` are the lines of each reading."""

    name: str
    found: SideBySide
    cells: Mapping[str, tuple[CellLine, ...]]


def declared_facts(found: SideBySide, name: str) -> DeclaredFacts:
    """The facts of the readings that were `found`."""
    cells = {
        reading.name: tuple(cell_lines(name, settle(reading.found.cells, reading.found.outcomes)))
        for reading in found.readings
    }
    return DeclaredFacts(name=name, found=found, cells=cells)


def declared_to_json(facts: DeclaredFacts) -> dict[str, Any]:
    """The facts as JSON data."""
    marks = {name: cost_marks(cells) for name, cells in facts.cells.items()}
    return {
        **side_by_side_to_json(facts.found),
        "name": facts.name,
        "cells": {name: [asdict(cell) for cell in cells] for name, cells in facts.cells.items()},
        "counts": {
            name: {
                "cells": len(facts.cells[name]),
                "cells_by_cost": {f"{word}, {arm}": len(group) for (word, arm), group in found.rows.items()},
                "cells_without_cost": found.unknown,
            }
            for name, found in marks.items()
        },
    }


def declared_document(facts: DeclaredFacts) -> Document:
    """The report: agreement, sources, each reading with its tables and figures, and how to check it again."""
    found = facts.found
    readings = [
        Section(name=f"reading-{at}", title=f"Reading {reading.name}", parts=tuple(_reading(reading, facts)))
        for at, reading in enumerate(found.readings, start=1)
    ]
    return Document(
        title=facts.name,
        question=found.question,
        head=_lines(accord_lines(found)) or ("one reading, held against no other",),
        sections=(
            Section(name="sources", title="Sources", parts=(Facts(lines=_lines(source_lines(found))),)),
            *readings,
            Section(name="check-it-again", title="Check it again", parts=_how()),
        ),
    )


def _lines(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.removeprefix(BULLET) for line in lines)


def _reading(reading: DeclaredReading, facts: DeclaredFacts) -> list[Part]:
    board = reading.board
    plots = [discordant_plot(board), *premium_plots(board), cost_plot(facts.cells[reading.name])]
    head = Facts(lines=_lines(reading_lines(reading)))
    return [head, *sheets_of(board), *(plot for plot in plots if plot is not None)]


def _how() -> tuple[Part, ...]:
    return (
        Prose(text="With the declaration as FILE.toml, and the sources at hand that it names:"),
        Commands(
            lines=(
                "proctor score --declaration FILE.toml --json # every reading, made again from the sources",
                "proctor report --declaration FILE.toml --out DIR # this report: the same sources give the same bytes",
            )
        ),
    )
