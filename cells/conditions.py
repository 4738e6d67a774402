"""The census of classes, of one condition or of an arm over all its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from cells.readable import Cell
from cells.settled import Settled
from harness.values import Declared, ExactPrice, Halt, Limit, LowerBoundPrice, Refused, Void

__all__ = ["CAUSES", "CLASSES", "Census", "Group", "Unbuilt", "by_arm", "by_condition", "census", "censuses", "unbuilt"]

CLASSES = (
    *("PASS", "FAIL", "NO_BUILD", "INTERFACE_MISS", "TIMEOUT", "MEMORY", "CRASH", "UNSCORABLE"),
    *("HALT", "FAILED_BOOT", "VOID", "REFUSED", "MISSING", "DOUBLED"),
)
"""The classes that every census prints, at zero too; a referee's finer ones stand after them."""

CAUSES = (
    *("model-server", "request-refused", "context-truncated", "workspace", "fence", "referee", "seat"),
    *("mirror", "mirror-audit", "tokens-audit", "no briefing", "interrupted", "harness", "unknown"),
)
"""The causes of a VOID that every census prints, at zero too; those of plugins stand after them."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Group:
    """Cells counted together: a condition, or an arm with its extras and model over all tasks (`task` is None)."""

    benchmark: str | None
    task: str | None
    arm: str
    extras: str
    model: str

    @property
    def label(self) -> str:
        """The group as text, with `|` between its parts."""
        head = () if self.task is None else (str(self.benchmark), self.task)
        return "|".join((*head, self.arm, self.extras, self.model))


@dataclass(frozen=True, kw_only=True, slots=True)
class Unbuilt:
    """A planned cell that a gate refused to build before the run; it is no cell of the registration."""

    benchmark: str
    task: str
    arm: str
    extras: str
    model: str
    gate: str


def unbuilt(rows: Iterable[Mapping[str, str]]) -> tuple[Unbuilt, ...]:
    """The refused cells of a registration, from its rows of `cell` (a key as text) and `gate`."""
    found = []
    for row in rows:
        benchmark, task, arm, extras, model, _replicate = row["cell"].split("|")
        found.append(Unbuilt(benchmark=benchmark, task=task, arm=arm, extras=extras, model=model, gate=row["gate"]))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Census:
    """
    How the cells of a group ended. Every cell has one class, and the counts of `classes` add up to `planned`.

    `buildable` are the planned cells that no gate refused before the run, `fired` those that were tried, `declared`
    those whose seat stopped by itself. `judged` cells passed or failed; `unscorable` are those that the referee could
    not decide, whatever it calls that. `refused` are all that a gate did not build, before the run or in it, and
    `refusals` says which gate. Of the declared and halted cells `priced` have a price in dollars, `lower_bounds` of
    them a lower bound only.

    `pass_rate` is over judged cells, None if there is none; with the halts counted as failures it is `rate_low`, with
    them as passes `rate_high`; with halts and unscorable cells so counted, `rate_lowest` and `rate_highest`. `would_be`
    counts what the referee read of halted cells' exhibits, a diagnostic.
    """

    group: Group
    planned: int
    buildable: int
    fired: int
    declared: int
    judged: int
    passed: int
    halted: int
    void: int
    failed_boot: int
    unscorable: int
    refused: int
    missing: int
    priced: int
    lower_bounds: int
    classes: Mapping[str, int]
    halts: Mapping[str, int]
    voids: Mapping[str, int]
    refusals: Mapping[str, int]
    would_be: Mapping[str, int]
    pass_rate: float | None
    rate_low: float | None
    rate_high: float | None
    rate_lowest: float | None
    rate_highest: float | None

    @property
    def unpriced(self) -> int:
        """Declared and halted cells without a price."""
        return self.declared + self.halted - self.priced

    @property
    def beside(self) -> str:
        """What the pass rate is never shown without."""
        others = self.planned - self.judged - self.halted - self.void - self.unscorable
        rest = f", {self.unscorable} unscorable" if self.unscorable else ""
        rest += f", {others} otherwise unjudged" if others else ""
        return f"{self.judged} of {self.planned} judged, {self.halted} halted, {self.void} void{rest}"


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _counted(known: Iterable[str], seen: Iterable[str]) -> dict[str, int]:
    """How often each is seen: the known ones first, at zero too, then the others by name."""
    counts, names = Counter(seen), tuple(known)
    return {name: counts[name] for name in (*names, *sorted(counts.keys() - set(names)))}


def census(group: Group, cells: Iterable[Cell], settled: Settled, refused: Iterable[Unbuilt] = ()) -> Census:
    """Count the classes of `cells`, and of those that were `refused` before the run."""
    keys, gates = tuple(cells), [cell.gate for cell in refused]
    there = [settled.outcomes.get(key) for key in keys]
    found = [outcome for outcome in there if outcome is not None]
    labels = [outcome.outcome_class for outcome in found] + ["REFUSED"] * len(gates)
    labels += [settled.label(key) for key, outcome in zip(keys, there, strict=True) if outcome is None]
    classes = _counted(CLASSES, labels)
    turned_away = [outcome.end.gate for outcome in found if isinstance(outcome.end, Refused)]
    costed = [outcome for outcome in found if isinstance(outcome.end, (Declared, Halt))]
    judged = [outcome.passed for outcome in found if outcome.passed is not None]
    passed, halted, undecided = sum(judged), classes["HALT"], sum(outcome.undecided for outcome in found)
    return Census(
        group=group,
        planned=len(labels),
        buildable=len(keys),
        fired=len(keys) - labels.count("MISSING") - labels.count("NOT_FIRED") - len(turned_away),
        declared=len(costed) - halted,
        judged=len(judged),
        passed=passed,
        halted=halted,
        void=classes["VOID"],
        failed_boot=classes["FAILED_BOOT"],
        unscorable=undecided,
        refused=classes["REFUSED"],
        missing=classes["MISSING"],
        priced=sum(isinstance(outcome.spend.price, (ExactPrice, LowerBoundPrice)) for outcome in costed),
        lower_bounds=sum(isinstance(outcome.spend.price, LowerBoundPrice) for outcome in costed),
        classes=classes,
        halts=_counted(get_args(Limit), (outcome.end.limit for outcome in found if isinstance(outcome.end, Halt))),
        voids=_counted(CAUSES, (outcome.end.cause for outcome in found if isinstance(outcome.end, Void))),
        refusals=_counted((), gates + turned_away),
        would_be=_counted((), (outcome.would_be.reading for outcome in found if outcome.would_be is not None)),
        pass_rate=_rate(passed, len(judged)),
        rate_low=_rate(passed, len(judged) + halted),
        rate_high=_rate(passed + halted, len(judged) + halted),
        rate_lowest=_rate(passed, len(judged) + halted + undecided),
        rate_highest=_rate(passed + halted + undecided, len(judged) + halted + undecided),
    )


def censuses(settled: Settled, refused: Iterable[Mapping[str, str]], *, tasks: bool) -> tuple[Census, ...]:
    """
    The census of each condition, or with `tasks` False of each arm: those with a declared cell first, in order.

    `refused` are a registration's rows of planned cells that were not built.
    """
    cells = _grouped(settled.declared, tasks=tasks)
    gated: dict[Group, list[Unbuilt]] = {}
    for row in unbuilt(refused):
        gated.setdefault(_group(row, tasks=tasks), []).append(row)
    return tuple(
        census(group, cells.get(group, ()), settled, gated.get(group, ())) for group in dict.fromkeys((*cells, *gated))
    )


def _group(cell: Cell | Unbuilt, *, tasks: bool) -> Group:
    benchmark, task = (cell.benchmark, cell.task) if tasks else (None, None)
    return Group(benchmark=benchmark, task=task, arm=cell.arm, extras=cell.extras, model=cell.model)


def _grouped(cells: Iterable[Cell], *, tasks: bool) -> dict[Group, list[Cell]]:
    # Looked up by a plain tuple: cells are many, and a group's hash costs more than all else here.
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        condition = (cell.benchmark, cell.task) if tasks else ()
        found.setdefault((*condition, cell.arm, cell.extras, cell.model), []).append(cell)
    return {_group(members[0], tasks=tasks): members for members in found.values()}


def by_condition(cells: Iterable[Cell]) -> dict[Group, list[Cell]]:
    """The cells of each condition, in the order declared."""
    return _grouped(cells, tasks=True)


def by_arm(cells: Iterable[Cell]) -> dict[Group, list[Cell]]:
    """The cells of each arm with its extras and model, in the order declared."""
    return _grouped(cells, tasks=False)
