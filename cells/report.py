"""
The report of a run, in Markdown: what was asked, what was checked, what came out, and how to check it again.

Every figure in it is one of its arguments' figures; what does not exist is printed as `undefined`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cells.comparison_tables import contrast_sheets, ratio_sheets
from cells.figures import UNDEFINED, printable
from cells.gate_trips import GateTrips
from cells.readings import Scoreboard
from cells.score_tables import (
    Sheet,
    arm_cost_sheet,
    class_sheets,
    condition_cost_sheet,
    condition_sheet,
    halt_sheet,
    rate_sheet,
    standing,
    tries_sheet,
)

__all__ = ["markdown_report"]

PROBE_COLUMNS = ("probe", "language", "expected", "finding_up", "evidence_up", "weakening", "finding_down", "holds")
"""What is shown of a probe's row, by its names in the record."""

_SPECIAL = re.compile(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def markdown_report(
    registration: Mapping[str, Any],
    board: Scoreboard,
    *,
    probes: Sequence[Mapping[str, Any]],
    controls: Sequence[Mapping[str, Any]],
    plan: Mapping[str, Any],
    gates: GateTrips,
) -> str:
    """
    Write the report.

    `registration` is the content of `registration.json`. `probes` are the rows of the last fence probing, as the record
    keeps them. `controls` are the referee's: each row has `task`, `name`, `reading`, `standing`, `held`. `plan` holds
    facts about the run that stand in no other table, by name; `gates` what was refused, and how it would have read.
    """
    sections = [
        _head(registration, board),
        _section("Fence", [_probe_table(probes)]),
        _section("Controls", [_controls_table(controls)]),
        _section("Plan", [_facts(plan), _refused(registration.get("refused", ()))]),
        _section("Census", map(_sheet, [*class_sheets(board), rate_sheet(board)])),
        _section("Conditions", [_sheet(condition_sheet(board))]),
        _section("Contrasts", _tests(board)),
        _section("Cost", map(_sheet, [arm_cost_sheet(board), condition_cost_sheet(board)])),
        _section("Halts and voids", map(_sheet, [halt_sheet(board), *filter(None, [tries_sheet(board)])])),
        _section("Gates", [_gates(gates)]),
        _section("Check it again", [_how(board)]),
    ]
    return "\n".join(sections)


def _escape(value: object) -> str:
    """Text as Markdown shows it: no markup, no HTML, no line break of its own."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], printable(value).translate(_ENTITIES))


def _written(value: object) -> str:
    """A value of a record's row: words as they are, lists joined, the rest as JSON; None is undefined."""
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value)) or "none"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], *, left: int) -> str:
    heads = [_escape(head) for head in header]
    rule = ["---" if at < left else "---:" for at in range(len(heads))]
    lines = [heads, rule, *([_escape(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"## {title}", *(part for part in parts if part)]) + "\n"


def _sheet(sheet: Sheet) -> str:
    notes = "\n".join(f"- {_escape(note)}" for note in sheet.notes)
    table = _table(sheet.header, sheet.rows, left=sheet.left)
    return "\n\n".join([f"### {_escape(sheet.title)}", table, *([notes] if notes else [])])


def _head(registration: Mapping[str, Any], board: Scoreboard) -> str:
    facts = [line.removeprefix("- ") for line in standing(board)]
    frozen = registration.get("frozen_at")
    if frozen is not None:
        facts.insert(1, f"frozen at {frozen}")
    lines = "\n".join(f"- {_escape(fact)}" for fact in facts)
    name = _escape(registration.get("name", board.registration_id))
    return f"# Report: {name}\n\n> {_escape(registration.get('question', UNDEFINED))}\n\n{lines}\n"


def _probe_table(probes: Sequence[Mapping[str, Any]]) -> str:
    if not probes:
        return "No probe is in the record."
    known = [{**row, "holds": "not measured" if row.get("holds") is None else row["holds"]} for row in probes]
    rows = [[_written(row.get(column)) for column in PROBE_COLUMNS] for row in known]
    holds, breaks = (sum(row["holds"] is answer for row in known) for answer in (True, False))
    told = f"{holds} of {len(known)} rows hold, {breaks} do not, {len(known) - holds - breaks} were not measured."
    heads = [column.replace("_", " ") for column in PROBE_COLUMNS]
    return f"{told}\n\n" + _table(heads, rows, left=len(heads))


def _controls_table(controls: Sequence[Mapping[str, Any]]) -> str:
    """How many tasks each control was judged on, by reading; those that did not hold are named one by one."""
    if not controls:
        return "No control is in the record."
    kinds = Counter((row["name"], row["reading"], row["standing"], row["held"]) for row in controls)
    rows = [[_written(part) for part in kind] + [str(tasks)] for kind, tasks in kinds.items()]
    table = _table(["control", "reading", "standing", "holds", "tasks"], rows, left=4)
    failed = [row for row in controls if not row["held"]]
    held = f"{len(controls) - len(failed)} of {len(controls)} controls hold.\n\n{table}"
    return held if not failed else f"{held}\n\n### Controls that do not hold\n\n{_rows_table(failed)}"


def _rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of one kind, under the names that their fields have in the record."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    written = [[_written(row.get(column)) for column in columns] for row in rows]
    return _table([column.replace("_", " ") for column in columns], written, left=len(columns))


def _facts(plan: Mapping[str, Any]) -> str:
    return "\n".join(f"- {_escape(name.replace('_', ' '))}: {_escape(_written(value))}" for name, value in plan.items())


def _refused(rows: Sequence[Mapping[str, Any]]) -> str:
    """The cells that a gate did not let be built; they are no part of the declared set."""
    return "" if not rows else "### Cells refused at freeze\n\n" + _rows_table(rows)


def _gates(gates: GateTrips) -> str:
    """What gates refused, by arm; the readings without the gate are a diagnostic, and in no rate."""
    if not gates.counts:
        return "No gate refused anything."
    rows = []
    for count in gates.counts:
        here = (refusal for refusal in gates.refusals if (refusal.gate, refusal.arm) == (count.gate, count.arm))
        read = Counter(refusal.would_be for refusal in here)
        would_be = ", ".join(f"{reading} {number}" for reading, number in sorted(read.items())) or "none"
        rows.append([count.gate, count.arm, str(count.trips), str(count.of), would_be])
    table = _table(["gate", "arm", "refused", "of", "readings without the gate"], rows, left=2)
    return "\n".join([table, "", *(f"- {_escape(sentence)}" for sentence in gates.unequal)]).rstrip()


def _tests(board: Scoreboard) -> list[str]:
    sheets = [*contrast_sheets(board), *ratio_sheets(board)]
    return [_sheet(sheet) for sheet in sheets] or ["No test was registered."]


def _how(board: Scoreboard) -> str:
    head = "" if board.head is None else f" --head {printable(board.head)}"
    return "\n".join(
        [
            "With the run's folder as `RUN`:",
            "",
            "```sh",
            f"proctor verify RUN{head}  # the record, its blobs and transcripts are whole, up to this head",
            "proctor rescore RUN  # the referee judges the recorded exhibits again; no model is called",
            "proctor audit RUN  # what each gate refused, and what would have been accepted without it",
            "proctor score RUN --json  # every reading, made again from the record",
            "```",
        ]
    )
