"""The census of classes, of one condition or of an arm over all its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from cells.groups import Group, Members, Seen
from harness.values import Limit

__all__ = ["CAUSES", "CLASSES", "Census", "Unbuilt", "census", "censuses", "unbuilt"]

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


def _counted(known: Iterable[str], counts: Mapping[str, int]) -> dict[str, int]:
    """How often each was counted: the known ones first, at zero too, then the others by name."""
    names = tuple(known)
    return {name: counts.get(name, 0) for name in (*names, *sorted(counts.keys() - set(names)))}


def _words(seen: Mapping[Seen, int], get: Callable[[Seen], str | None]) -> Counter[str]:
    """How often each word is there, where there is one."""
    words = Counter[str]()
    for each, times in seen.items():
        if (word := get(each)) is not None:
            words[word] += times
    return words


def _what(kind: str) -> Callable[[Seen], str | None]:
    """The limit, cause or gate of the ends of one kind."""
    return lambda each: each.what if each.kind == kind else None


def _sum(seen: Mapping[Seen, int], holds: Callable[[Seen], bool]) -> int:
    return sum(times for each, times in seen.items() if holds(each))


def census(group: Group, seen: Mapping[Seen, int], without: Mapping[str, int], gates: Sequence[str]) -> Census:
    """
    Count the classes of the outcomes that are `seen`, of the cells `without` one, and of those that a gate refused
    before the run.
    """
    labels = Counter(without) + _words(seen, lambda each: each.outcome_class) + Counter(["REFUSED"] * len(gates))
    classes, turned_away = _counted(CLASSES, labels), _words(seen, _what("REFUSED"))
    buildable, costed = labels.total() - len(gates), _sum(seen, lambda each: each.costed)
    judged, passed = _sum(seen, lambda each: each.passed is not None), _sum(seen, lambda each: each.passed is True)
    halted, undecided = classes["HALT"], _sum(seen, lambda each: each.undecided)
    return Census(
        group=group,
        planned=labels.total(),
        buildable=buildable,
        fired=buildable - labels["MISSING"] - labels["NOT_FIRED"] - turned_away.total(),
        declared=costed - halted,
        judged=judged,
        passed=passed,
        halted=halted,
        void=classes["VOID"],
        failed_boot=classes["FAILED_BOOT"],
        unscorable=undecided,
        refused=classes["REFUSED"],
        missing=classes["MISSING"],
        priced=_sum(seen, lambda each: each.costed and each.priced != "void"),
        lower_bounds=_sum(seen, lambda each: each.costed and each.priced == "lower_bound"),
        classes=classes,
        halts=_counted(get_args(Limit), _words(seen, _what("HALT"))),
        voids=_counted(CAUSES, _words(seen, _what("VOID"))),
        refusals=_counted((), turned_away + Counter(gates)),
        would_be=_counted((), _words(seen, lambda each: each.would_be)),
        pass_rate=_rate(passed, judged),
        rate_low=_rate(passed, judged + halted),
        rate_high=_rate(passed + halted, judged + halted),
        rate_lowest=_rate(passed, judged + halted + undecided),
        rate_highest=_rate(passed + halted + undecided, judged + halted + undecided),
    )


def censuses(groups: Iterable[Members], refused: Iterable[Mapping[str, str]], *, tasks: bool) -> tuple[Census, ...]:
    """
    The census of each of the conditions, or with `tasks` False of the arms: those with a declared cell first, in order.

    `refused` are a registration's rows of planned cells that were not built.
    """
    cells = {each.group: each for each in groups}
    gated: dict[Group, list[str]] = {}
    for row in unbuilt(refused):
        benchmark, task = (row.benchmark, row.task) if tasks else (None, None)
        group = Group(benchmark=benchmark, task=task, arm=row.arm, extras=row.extras, model=row.model)
        gated.setdefault(group, []).append(row.gate)
    found = []
    for group in dict.fromkeys((*cells, *gated)):
        each = cells.get(group)
        seen, without = ({}, {}) if each is None else (each.seen, each.without)
        found.append(census(group, seen, without, gated.get(group, ())))
    return tuple(found)
