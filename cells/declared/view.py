"""Readings side by side as text: first where they disagree, then each with its set, its figures and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cells.contrasts import ContrastReading
from cells.declared.labels import Labels
from cells.declared.side_by_side import DeclaredReading, SideBySide
from cells.figures import WITHHELD, figure, p_text
from cells.ratios import RatioReading, TaskRatio
from cells.score_tables import NAMED
from cells.score_view import Part, sheets_of
from cells.stats import best_attainable_p

__all__ = ["accord_lines", "parts_of", "reading_lines", "source_lines"]

SHORT = 12
"""Digits of a set's digest beside a table; the reading's own lines and the JSON have all."""


def parts_of(found: SideBySide) -> list[Part]:
    """Everything that a person is shown, in order."""
    parts: list[Part] = [accord_lines(found), source_lines(found)]
    for reading in found.readings:
        parts.append(reading_lines(reading))
        over = f"{reading.name}, set {reading.digest[:SHORT]}"
        parts += [replace(sheet, title=f"{sheet.title} [{over}]") for sheet in sheets_of(reading.board)]
    return [part for part in parts if part]


def accord_lines(found: SideBySide) -> list[str]:
    """What the readings say of each other, where they disagree first."""
    apart = [accord.sentence for accord in found.accords if not accord.whole]
    alike = [accord.sentence for accord in found.accords if accord.whole]
    lines = [f"the readings disagree, or can't be held against each other, in {len(apart)} ways:"] if apart else []
    return [*lines, *(f"- {line}" for line in apart), *alike]


def source_lines(found: SideBySide) -> list[str]:
    """What was asked, by which declaration, of which files; and the cells that are in no reading."""
    lines = [f"question: {found.question}", f"declaration {found.declaration}"]
    lines += [f"source {path}, SHA-256 {digest}" for path, digest in found.sources.items()]
    if found.elsewhere:
        lines.append(f"in no reading, and of no reading's condition: {_named(found.elsewhere)}")
    lines += list(found.remarks)
    reasons: dict[str, list[str]] = {}
    for name, why in found.left_out.items():
        reasons.setdefault(why, []).append(name)
    return [*lines, *(f"left out, {why}: {_named(names)}" for why, names in reasons.items())]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more, all named in the JSON" if len(names) > NAMED else ""
    return f"{len(names)} cells: " + ", ".join(names[:NAMED]) + more


def reading_lines(reading: DeclaredReading) -> list[str]:
    """A reading's set, its size, its problems, and what each comparison came to."""
    board = reading.board
    note = f": {reading.note}" if reading.note else ""
    lines = [
        f"reading {reading.name}{note}",
        f"set {reading.digest}: {_size(reading)}",
        f"status {board.status}",
    ]
    if reading.without_price:
        lines.append(f"without a price: {_named(reading.without_price)}")
    if reading.again:
        lines.append(f"said again word for word, each counted once: {_named(reading.again)}")
    lines += [f"names from {path}, SHA-256 {digest}" for path, digest in reading.lists.items()]
    lines += [f"- {problem}" for problem in _problems(board.problems)]
    lines += [_ratio(item, board.alpha) for item in board.ratios]
    lines += [_contrast(item) for item in board.contrasts]
    if reading.unread_guards:
        lines.append(f"guards not read, a contrast of theirs is not compared here: {', '.join(reading.unread_guards)}")
    lines.append("classes: " + ", ".join(f"{name} {count}" for name, count in reading.classes.items()))
    return [*lines, *board.sentences]


def _size(reading: DeclaredReading) -> str:
    return f"{reading.declared} declared, {reading.priced} priced, {len(reading.without_price)} refused a price"


def _problems(problems: Sequence[str]) -> Iterator[str]:
    """What refuses the comparison; of many problems of one kind, the first are named to a person."""
    kinds: dict[str, int] = {}
    for problem in problems:
        kind = problem.partition(" ")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= NAMED:
            yield problem
    for kind, count in kinds.items():
        if count > NAMED:
            yield f"and {count - NAMED} more that are {kind}, all named in the JSON"


def _ratio(item: RatioReading, alpha: float) -> str:
    """One line of what a comparison of cost came to: a reader must not have to count rows of a table."""
    defined = item.wins + item.losses + item.ties
    if item.status != "final":
        return f"{item.name}: {WITHHELD}"
    ahead = item.losses if item.alternative == "less" else item.wins
    way = "below" if item.alternative == "less" else "above"
    best = best_attainable_p(defined, alternative=item.alternative) if defined else None
    parts = [
        f"{item.name}: {ahead} of {defined} tasks {way} 1, p {p_text(item.p_value)}, {_verdict(item, best, alpha)}"
    ]
    if item.sd_ln is not None:
        label = Labels(task.unit for task in item.tasks)
        known = [task for task in item.tasks if task.resolved is not None]
        parts.append(f"clear the floor: {_tasks(known, label, resolved=True)}")
        parts.append(f"below it: {_tasks(known, label, resolved=False)}")
    if item.undefined:
        label = Labels(task.unit for task in item.tasks)
        parts.append("undefined: " + ", ".join(label.of(task.unit) for task in item.tasks if task.ratio is None))
    return "; ".join(parts)


def _verdict(item: RatioReading, best: float | None, alpha: float) -> str:
    if best is None or best > alpha:
        return f"no verdict: best attainable p {p_text(best)} at level {alpha:g}"
    supported = item.p_value is not None and item.p_value <= alpha
    return f"{'supported' if supported else 'not supported'} at level {alpha:g}, best attainable p {p_text(best)}"


def _tasks(tasks: Iterable[TaskRatio], label: Labels, *, resolved: bool) -> str:
    chosen = (f"{label.of(task.unit)} {figure(task.ratio, 4)}" for task in tasks if task.resolved is resolved)
    return ", ".join(chosen) or "none"


def _contrast(item: ContrastReading) -> str:
    if item.status != "final":
        return f"{item.name}: {WITHHELD}"
    verdict = {True: "supported", False: "not supported", None: "no verdict"}[item.supported]
    return (
        f"{item.name}: b01 {item.pairs.treatment_only}, b10 {item.pairs.control_only} of {item.pairs.declared} pairs, "
        f"p {p_text(item.p_value)}, Holm p {p_text(item.p_holm)}, {verdict}"
    )
