"""
The report of a run: what was asked, what was checked, what came out, and how to check it again.

It is one document, written as Markdown and as a page. Every figure in it is one of its facts' figures; what does not
exist is printed as `undefined`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from shlex import quote

from cells.audit.kept import audit_lines
from cells.comparison_tables import contrast_sheets, ratio_sheets
from cells.cost_tables import cost_sheets
from cells.figures import UNDEFINED
from cells.promotion.beside import confirmed_parts
from cells.readings import Scoreboard
from cells.report_document import Commands, Document, Facts, Part, Prose, Section
from cells.report_facts import ReportFacts
from cells.report_plots import cost_plot, discordant_plot, premium_plots, unlock_plot
from cells.report_predictions import prediction_parts
from cells.report_sections import (
    audit_parts,
    control_parts,
    fence_parts,
    gate_parts,
    plan_parts,
    registration_parts,
    rows_sheet,
)
from cells.revision_view import WITHHELD, revision_sheets
from cells.score_tables import (
    arm_cost_sheet,
    class_sheets,
    condition_cost_sheet,
    condition_sheet,
    halt_sheet,
    rate_sheet,
    standing,
    tries_sheet,
)
from cells.score_view import sheets_of

__all__ = ["document_of"]


def document_of(facts: ReportFacts) -> Document:
    """The report of a run."""
    board, registration = facts.board, facts.registration
    sections = [
        _section("Registration", registration_parts(facts)),
        _section("Fence", fence_parts(facts)),
        _section("Controls", control_parts(facts)),
        _section("Plan", plan_parts(facts)),
        _section("Census", [*class_sheets(board), rate_sheet(board)]),
        _section("Conditions", [condition_sheet(board)]),
        _section("Contrasts", _tests(facts)),
        *_revision_sections(facts),
        *_promotion_sections(facts),
        _section("Predictions", prediction_parts(facts.foretold)),
        _section("Cost", _costs(facts)),
        _section("Halts and voids", [halt_sheet(board), tries_sheet(board)]),
        _section("Gates", gate_parts(facts.gates)),
        _section("Audit", audit_parts(facts)),
    ]
    further = _further(facts, sections)
    sections += [_section("Further tables", further)] if further else []
    sections += [_section("As amended", _amended_parts(facts.amended))] if facts.amended is not None else []
    return Document(
        title=str(registration.get("name", board.registration_id)),
        question=str(registration.get("question", UNDEFINED)),
        head=_head(facts),
        sections=(*sections, _section("Check it again", _how(facts))),
    )


def _head(facts: ReportFacts) -> tuple[str, ...]:
    """The statistical side and the audit's, side by side: neither verdict is a part of the other."""
    amended = () if facts.amended is None else (f"amended {facts.counts['amendments']} times: see As amended",)
    return (*_head_lines(facts.board), *amended, *audit_lines(facts.audits))


def _section(title: str, parts: Iterable[Part | None]) -> Section:
    name = title.lower().replace(" ", "-")
    return Section(name=name, title=title, parts=tuple(part for part in parts if part is not None))


def _costs(facts: ReportFacts) -> list[Part | None]:
    board = facts.board
    return [arm_cost_sheet(board), condition_cost_sheet(board), *cost_sheets(board), cost_plot(facts.cells)]


def _tests(facts: ReportFacts) -> list[Part | None]:
    board = facts.board
    sheets = [*contrast_sheets(board), *ratio_sheets(board)]
    if not sheets:
        return [Prose(text="No test was registered."), unlock_plot(facts.unlocks)]
    return [*sheets, discordant_plot(board), *premium_plots(board), unlock_plot(facts.unlocks)]


def _revision_sections(facts: ReportFacts) -> list[Section]:
    """What revisions kept, lost, harmed and repaired: of a run whose seat revises."""
    if facts.revisions is None or not facts.revisions.arms:
        return []
    final = facts.board.status == "final"
    sheets: list[Part | None] = [*revision_sheets(facts.revisions, final=final)]
    return [_section("Revisions", sheets if final else [*sheets, Prose(text=f"{WITHHELD.capitalize()}.")])]


def _promotion_sections(facts: ReportFacts) -> list[Section]:
    """What this run confirms, and where effects of its own went: of most runs neither."""
    confirms = confirmed_parts(facts.confirms, facts.board, facts.audits)
    promoted = [rows_sheet("Effects that were promoted", facts.promotions)] if facts.promotions else []
    named: dict[str, Sequence[Part]] = {"Discovery": confirms, "Promotions": promoted}
    return [_section(title, parts) for title, parts in named.items() if parts]


def _further(facts: ReportFacts, sections: Iterable[Section]) -> list[Part]:
    """The tables of the scoreboard that no section has: what the terminal shows is never missing here."""
    placed = {part for section in sections for part in section.parts}
    return [sheet for sheet in sheets_of(facts.board) if sheet not in placed]


def _amended_parts(board: Scoreboard) -> list[Part]:
    """The reading as it is now, all that its scoreboard says: beside the frozen reading and never in its place."""
    sheets = [replace(sheet, title=f"{sheet.title} [as amended]") for sheet in sheets_of(board)]
    plots = [discordant_plot(board), *premium_plots(board)]
    shown = [replace(plot, title=f"{plot.title} [as amended]") for plot in plots if plot is not None]
    return [Facts(lines=_head_lines(board)), *sheets, *shown]


def _head_lines(board: Scoreboard) -> tuple[str, ...]:
    """What a scoreboard is of, and whether its verdicts may be read."""
    return tuple(line.removeprefix("- ") for line in standing(board))


def _how(facts: ReportFacts) -> list[Part]:
    head = "" if facts.board.head is None else f" --head {quote(facts.board.head)}"
    return [
        Prose(text="With the run's folder as RUN:"),
        Commands(
            lines=(
                f"proctor verify RUN{head} # the record, its blobs and transcripts are whole, up to this head",
                "proctor rescore RUN # the referee judges the recorded exhibits again; no model is called",
                "proctor audit RUN # the record is held to every invariant, and what each gate refused",
                "proctor score RUN --json # every reading, made again from the record",
                "proctor report RUN # this report, made again: the same record gives the same bytes",
            )
        ),
    ]
