"""Tables full of what can be in them, for the tests of exports and queries."""

from __future__ import annotations

from functools import cache

from cells.readings import score
from cells.settled import settle
from cells.table_rows import TableSource, tables_of
from tests.cells.report_cases import ANALYSIS, PROBES, outcomes_of
from tests.cells.scoring_cases import key, outcome


def source_of(declared, outcomes, **more) -> TableSource:
    """The tables' source for a set of outcomes."""
    board = score(declared, outcomes, ANALYSIS, head="9:feed", registration_id="full-0123456789ab")
    given = {"source": "full-0123456789ab", "reading": "frozen", "probes": PROBES} | more
    return TableSource(board=board, settled=settle(declared, outcomes), **given)


@cache
def full_tables():
    """The tables of the run full of data, with a cell missing, one tried twice, and one without any figure."""
    declared, outcomes = outcomes_of()
    unknown = outcome(declared[1], "PASS", tokens=None, usd=None, calls=0)
    first = outcome(declared[2], "VOID(fence)", usd=1.25)
    again = outcome(declared[2], "PASS", attempt=2, usd=0.5)
    return tables_of([source_of(declared, [unknown, first, again, *outcomes[3:]])])


@cache
def final_tables():
    """The tables of the same run as it was."""
    return tables_of([source_of(*outcomes_of())])


FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@sum",
    "'quoted",
    "=cmd' /C calc'!A0",
    "plain, with a comma",
    'a "quote"',
    "1e5",
    "007",
)
"""Names as somebody may choose them, most of which a spreadsheet would run or change."""


@cache
def hostile_tables():
    """Tables whose tasks have such names, and controls and line breaks in a probe's evidence."""
    declared = [key(name, arm) for name in FORMULAS for arm in ("treated", "plain")]
    outcomes = [outcome(cell, "PASS", usd=0.1 + 0.2) for cell in declared]
    probes = [{"probe": "=x", "evidence_up": "a\n=b\t\x1b[2J\u202e", "expected": ["DENIED", "ABSENT"], "holds": False}]
    return tables_of([source_of(declared, outcomes, probes=probes)])
