"""The scoreboard as tables of text: what the terminal shows and what the report shows are the same tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cells.conditions import CLASSES, Census
from cells.costs import Cost, Median
from cells.earlier import earlier_lines
from cells.figures import UNDEFINED, figure, rate_text, whole_text
from cells.groups import Group
from cells.readings import Scoreboard
from cells.registered import registered_lines

__all__ = [
    "Labels",
    "Sheet",
    "arm_cost_sheet",
    "class_sheets",
    "condition_cost_sheet",
    "condition_sheet",
    "halt_sheet",
    "rate_sheet",
    "standing",
    "tries_sheet",
]

PARTS = ("benchmark", "task", "arm", "extras", "model")
"""What a group is called by, in this order."""

SHORT = {
    "PASS": "PA",
    "FAIL": "FA",
    "NO_BUILD": "NB",
    "INTERFACE_MISS": "IM",
    "TIMEOUT": "TO",
    "MEMORY": "ME",
    "CRASH": "CR",
    "UNSCORABLE": "US",
    "HALT": "HA",
    "FAILED_BOOT": "FB",
    "VOID": "VO",
    "REFUSED": "RE",
    "MISSING": "MI",
    "DOUBLED": "DO",
}
"""The classes' column heads where every class of many conditions must fit a terminal's width."""

NAMED = 10
"""How many missing cells are named to a person; the JSON names them all."""

STAGES = ("planned", "buildable", "fired", "declared", "judged", "priced")
"""How far the cells of an arm came, as its census counts them."""

PARTED = {"HALT": "halts", "VOID": "voids", "REFUSED": "refusals"}
"""The classes that are counted by limit, cause or gate too, and where a census has that."""

BESIDE_EACH_OTHER = 4
"""How many arms' class counts stand in one table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """One table: the first `left` columns hold words, the others figures. A `long` one grows with the conditions."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    notes: tuple[str, ...] = ()
    long: bool = False


def standing(board: Scoreboard) -> list[str]:
    """What kind of scoreboard this is, in lines: its registration, its head, its status and its problems."""
    lines = [
        f"registration {board.registration_id}",
        f"record head {board.head or 'none: nothing is recorded yet'}",
        f"status {board.status}: {board.planned - _unsaid(board)} of {board.planned} declared cells in the record",
    ]
    if board.stop is not None:
        lines.append(board.stop.sentence)
    if board.status != "final":
        lines.append(f"every verdict is withheld until the record is whole; {len(board.problems)} problems:")
    missing = set(board.problems[len(board.problems) - len(board.missing) :])
    shown = [problem for problem in board.problems if problem not in missing]
    shown += [problem for problem in board.problems if problem in missing][:NAMED]
    lines += [f"- {problem}" for problem in shown]
    if len(board.missing) > NAMED:
        lines.append(f"- and {len(board.missing) - NAMED} more missing cells, all named in the JSON")
    if board.repeated:
        lines.append(f"outcomes recorded a second time, word for word, each counted once: {board.repeated}")
    lines += [f"not enforced where these cells were played: {name}: {why}" for name, why in board.not_enforced.items()]
    lines += earlier_lines(board.earlier)
    lines += registered_lines(board.outcome, board.adverse)
    return lines


def _unsaid(board: Scoreboard) -> int:
    """The declared cells that the record says nothing of."""
    return len(board.missing) + (0 if board.stop is None else len(board.stop.unfired))


class Labels:
    """How groups of one table are called: by what differs between them; what all share is said once, in a note."""

    def __init__(self, groups: Iterable[Group], kept: Iterable[str]) -> None:
        groups = tuple(groups)
        values = {name: {getattr(group, name) for group in groups} - {None} for name in PARTS}
        keep = set(kept)
        self._shown = [name for name in PARTS if len(values[name]) > 1 or (name in keep and values[name])]
        self.head = "|".join(self._shown)
        shared = [f"{name} {min(values[name])}" for name in PARTS if values[name] and name not in self._shown]
        self.notes = (f"The same in all rows: {', '.join(shared)}.",) if shared else ()

    def __call__(self, group: Group) -> str:
        """The group's label in this table."""
        return "|".join(str(getattr(group, name)) for name in self._shown)


def rate_sheet(board: Scoreboard) -> Sheet:
    """The pass rates of the arms, each with the counts it may not be shown without."""
    label = Labels((arm.group for arm in board.arms), ["arm"])
    bounds = [("if halts fail", "rate_low"), ("if halts pass", "rate_high")]
    if any(arm.unscorable for arm in board.arms):
        bounds += [("and unscorable fail", "rate_lowest"), ("and unscorable pass", "rate_highest")]
    return Sheet(
        title="Pass rates by arm",
        header=(label.head, "beside", "passed", "rate", *(head for head, _name in bounds)),
        rows=tuple(
            (
                label(arm.group),
                arm.beside,
                figure(arm.passed),
                rate_text(arm.pass_rate),
                *(rate_text(getattr(arm, name)) for _head, name in bounds),
            )
            for arm in board.arms
        ),
        left=2,
        notes=(*label.notes, f"The rates under other readings are bounds over {board.over}.", *board.sentences),
    )


def class_sheets(board: Scoreboard) -> list[Sheet]:
    """How far each arm's cells came, then each class, at zero too: halts by limit, voids by cause, refusals by gate."""
    names = (*CLASSES, *_finer(board.arms))
    label = Labels((arm.group for arm in board.arms), ["arm"])
    chunks = [board.arms[at : at + BESIDE_EACH_OTHER] for at in range(0, len(board.arms), BESIDE_EACH_OTHER)]
    return [
        Sheet(
            title="Outcome classes by arm",
            header=("class", *(label(arm.group) for arm in arms)),
            rows=(*_stage_rows(arms), *_class_rows(arms, names, board.arms)),
        )
        for arms in chunks
    ]


def _finer(censuses: Iterable[Census]) -> list[str]:
    return sorted({name for census in censuses for name in census.classes} - set(CLASSES))


def _stage_rows(arms: Sequence[Census]) -> Iterable[tuple[str, ...]]:
    for name in STAGES:
        yield name, *(figure(getattr(arm, name)) for arm in arms)


def _class_rows(arms: Sequence[Census], names: Iterable[str], every: Sequence[Census]) -> Iterable[tuple[str, ...]]:
    """The rows of `arms`; what is counted by limit, cause or gate anywhere in `every` arm has its row."""
    for name in names:
        yield name, *(figure(arm.classes.get(name, 0)) for arm in arms)
        part = PARTED.get(name)
        if part is not None:
            for kind in dict.fromkeys(kind for arm in every for kind in getattr(arm, part)):
                yield f"- {name}({kind})", *(figure(getattr(arm, part).get(kind, 0)) for arm in arms)


def condition_sheet(board: Scoreboard) -> Sheet:
    """Every class by condition, at zero too."""
    names = (*CLASSES, *_finer(board.conditions))
    label = Labels((item.group for item in board.conditions), ["task", "arm"])
    return Sheet(
        title="Outcome classes by condition",
        header=(label.head, *(SHORT.get(name, name) for name in names)),
        rows=tuple(
            (label(item.group), *(figure(item.classes.get(name, 0)) for name in names)) for item in board.conditions
        ),
        notes=(*label.notes, ", ".join(f"{short} {name}" for name, short in SHORT.items())),
        long=True,
    )


def _median(value: Median, written: Callable[[float | None], str]) -> str:
    if value.value is None:
        return f"{UNDEFINED} ({value.unknown} unknown)" if value.unknown else UNDEFINED
    return ("at least " if value.bound == "at_least" else "") + written(value.value)


def _cost_sheet(
    title: str, costs: Sequence[Cost], kept: Iterable[str], *, long: bool, notes: Iterable[str] = ()
) -> Sheet:
    label = Labels((cost.group for cost in costs), kept)
    return Sheet(
        title=title,
        header=(label.head, "n", "tokens", "calls", "wall s", "usd", "exact/bound/void"),
        rows=tuple(
            (
                label(cost.group),
                figure(cost.n),
                _median(cost.tokens, whole_text),
                _median(cost.calls, whole_text),
                _median(cost.wall_s, lambda value: figure(value, 2)),
                _median(cost.usd, lambda value: figure(value, 4)),
                f"{cost.usd.exact}/{cost.usd.lower_bounds}/{cost.usd.unknown}",
            )
            for cost in costs
        ),
        notes=(
            *label.notes,
            "Medians over the n cells that ended by themselves or at a limit; one unknown figure makes one undefined.",
            "exact/bound/void: how many of the n prices are which.",
            *notes,
        ),
        long=long,
    )


def arm_cost_sheet(board: Scoreboard) -> Sheet:
    """Medians of cost by arm, over all its tasks."""
    title = "Cost by arm: medians over n declared or halted cells"
    note = "usd, exact alone: over the exact prices, as if all others had been left out."
    sheet = _cost_sheet(title, board.arm_costs, ["arm"], long=False, notes=(note, *board.confounds))
    exact = [_median(cost.usd_exact, lambda value: figure(value, 4)) for cost in board.arm_costs]
    rows = tuple((*row, text) for row, text in zip(sheet.rows, exact, strict=True))
    return replace(sheet, header=(*sheet.header, "usd, exact alone"), rows=rows)


def condition_cost_sheet(board: Scoreboard) -> Sheet:
    """Medians of cost by condition."""
    title = "Cost by condition: medians over n declared or halted cells"
    return _cost_sheet(title, board.costs, ["task", "arm"], long=True)


def halt_sheet(board: Scoreboard) -> Sheet:
    """What the referee would have said of the halted cells' exhibits: a diagnostic, and no part of any rate."""
    label = Labels((arm.group for arm in board.arms), ["arm"])
    readings = sorted({name for arm in board.arms for name in arm.would_be})
    return Sheet(
        title="Halted cells, and the would-be readings of their exhibits (a diagnostic, in no rate and no test)",
        header=(label.head, "halted", "void", *readings),
        rows=tuple(
            (
                label(arm.group),
                figure(arm.halted),
                figure(arm.void),
                *(figure(arm.would_be.get(name, 0)) for name in readings),
            )
            for arm in board.arms
        ),
        notes=(*label.notes, *board.sentences),
    )


def tries_sheet(board: Scoreboard) -> Sheet | None:
    """The cells that were tried more than once, with each try's class; None if there is none."""
    if not board.tries:
        return None
    return Sheet(
        title="Cells tried more than once",
        header=("cell", "tries in order"),
        rows=tuple((item.cell, ", ".join(item.classes)) for item in board.tries),
        left=2,
        long=True,
    )
