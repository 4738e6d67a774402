"""
What else differed between the arms whose cost is compared: the load, cells at once, who served, the rates, the backend.

A premium in dollars or seconds is the treatment's only if nothing else was different. So what was is told beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

from cells.declared.rows import ForeignCell
from cells.figures import figure
from cells.readable import Outcome
from harness.outcome import CellOutcome
from harness.registration import Registration
from harness.values import Declared, Halt

__all__ = ["LOAD_MARGIN", "Circumstances", "circumstances", "confounds", "facts_of_run", "labels_of"]

T = TypeVar("T")

LOAD_MARGIN = 0.25
"""Arms' median loads differ where they are further apart than this, in threads that run or wait, a CPU."""


class Circumstances(NamedTuple):
    """
    Under what one cell was played, None where nobody wrote it down. `load` is the one-minute load average a CPU, the
    mean of the cell's start and end; `at_once` the most cells under way; `served` who answered, `rate_card` the date
    of the rates, `run` whose cell it is.
    """

    arm: str
    extras: str
    model: str
    run: str | None = None
    load: float | None = None
    at_once: float | None = None
    served: str | None = None
    rate_card: str | None = None
    backend: str | None = None


def circumstances(outcomes: Iterable[Outcome], of_run: Mapping[str, str]) -> list[Circumstances]:
    """
    The circumstances of the cells that cost something: of recorded ones by the record, of foreign ones by their labels.

    `of_run` is what all recorded cells share: `backend`, `run`, and `rate_card MODEL` for each model.
    """
    return [_one(outcome, of_run) for outcome in outcomes if isinstance(outcome.end, (Declared, Halt))]


def facts_of_run(registration: Registration) -> dict[str, str]:
    """What all cells of a run share, by its registration: the run, the backend, and the date of each model's rates."""
    experiment = registration.experiment
    facts = {"run": registration.id, "backend": str(experiment["workspace"]["backend"])}
    for model in experiment["models"]:
        dated = "no rates" if model["rates"] is None else "undated, in the experiment file"
        if model["rate_card"] is not None:
            dated = str(registration.pins[f"rate card {model['rate_card']}"]["date"])
        facts[f"rate_card {model['name']}"] = dated
    return facts


def labels_of(outcome: Outcome, of_run: Mapping[str, str]) -> dict[str, str]:
    """The circumstances of one recorded cell as labels, for a set that has cells of other runs too."""
    found = _one(outcome, of_run)
    values = {name: getattr(found, name) for name in ("load", "at_once", "served", "rate_card", "backend")}
    return {name: str(value) for name, value in values.items() if value is not None}


def _one(outcome: Outcome, of_run: Mapping[str, str]) -> Circumstances:
    cell = outcome.cell
    match outcome:
        case CellOutcome():
            looks = [look for look in outcome.room.get("load", {}).values() if look.get("load_1m") is not None]
            return Circumstances(
                arm=cell.arm,
                extras=cell.extras,
                model=cell.model,
                run=of_run.get("run"),
                load=sum(look["load_1m"] / look["cpus"] for look in looks) / len(looks) if looks else None,
                at_once=max((look["cells"] for look in looks), default=None),
                served=", ".join(outcome.served_models) or None,
                rate_card=of_run.get(f"rate_card {cell.model}"),
                backend=of_run.get("backend"),
            )
        case ForeignCell(labels=labels):
            return Circumstances(
                arm=cell.arm,
                extras=cell.extras,
                model=cell.model,
                run=outcome.cell.run,
                load=_number(labels.get("load")),
                at_once=_number(labels.get("at_once")),
                served=labels.get("served"),
                rate_card=labels.get("rate_card"),
                backend=labels.get("backend"),
            )
        case _:
            return Circumstances(arm=cell.arm, extras=cell.extras, model=cell.model)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


Arms: TypeAlias = Mapping[str, Counter[Circumstances]]
"""How many cells of each arm were played under each circumstances."""


def confounds(cells: Iterable[Circumstances]) -> tuple[str, ...]:
    """A sentence for each circumstance in which arms under the same extras and model differ, or that is not known."""
    alike: dict[tuple[str, str], dict[str, Counter[Circumstances]]] = {}
    for cell, times in Counter(cells).items():
        alike.setdefault((cell.extras, cell.model), {}).setdefault(cell.arm, Counter())[cell] = times
    sentences: list[str] = []
    for (extras, model), arms in alike.items():
        if len(arms) > 1:
            where = f"between the arms (extras {extras}, model {model})"
            sentences += _differences(arms, where)
            sentences += _unknown(arms, f"extras {extras}, model {model}")
    return tuple(sentences)


def _differences(arms: Arms, where: str) -> Iterable[str]:
    loads = _medians(arms, lambda cell: cell.load)
    if len(loads) == len(arms) and max(loads.values()) - min(loads.values()) > LOAD_MARGIN:
        yield f"The machine's load differs {where}, medians a CPU: {_listed(loads)}; seconds are no clean comparison."
    at_once = _medians(arms, lambda cell: cell.at_once)
    if len(at_once) == len(arms) and len(set(at_once.values())) > 1:
        yield f"Cells at once differ {where}, medians: {_listed(at_once)}; seconds are no clean comparison."
    for what, get, then in _WORDS:
        shares = {arm: _said(cells, get) for arm, cells in arms.items()}
        if all(shares.values()) and len({_share(words) for words in shares.values()}) > 1:
            counts = "; ".join(f"{arm} {_counts(words)}" for arm, words in shares.items())
            yield f"{what} differs {where}: {counts}; {then}."


_WORDS: tuple[tuple[str, Callable[[Circumstances], str | None], str], ...] = (
    ("The served model", lambda cell: cell.served, "dollars and tokens are of different models"),
    ("The date of the rates", lambda cell: cell.rate_card, "dollars are of different prices"),
    ("The backend", lambda cell: cell.backend, "seconds are of different machinery"),
    ("The run", lambda cell: cell.run, "whatever changed between the runs changed between the arms"),
)
"""What is a word of a cell's, and what follows where it differs."""


def _medians(arms: Arms, get: Callable[[Circumstances], float | None]) -> dict[str, float]:
    """The arms' medians of the figures that are known; an arm without any is left out."""
    known = {arm: list(_said(cells, get).elements()) for arm, cells in arms.items()}
    return {arm: float(median(values)) for arm, values in known.items() if values}


def _said(cells: Counter[Circumstances], get: Callable[[Circumstances], T | None]) -> Counter[T]:
    """How often each thing was said; what nobody said is not among them."""
    said = Counter[T]()
    for cell, times in cells.items():
        if (value := get(cell)) is not None:
            said[value] += times
    return said


def _listed(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{arm} {figure(value, 2)}" for arm, value in figures.items())


def _share(words: Counter[str]) -> tuple[tuple[str, Fraction], ...]:
    return tuple((word, Fraction(count, words.total())) for word, count in sorted(words.items()))


def _counts(words: Counter[str]) -> str:
    return ", ".join(f"{word} {count} of {words.total()}" for word, count in sorted(words.items()))


def _unknown(arms: Arms, where: str) -> list[str]:
    """What was not written down of every cell can't be compared, and is no reason to think that it was the same."""
    cells = sum(arms.values(), Counter())
    names = {
        "load": "load",
        "at_once": "cells at once",
        "served": "served model",
        "rate_card": "date of the rates",
        "backend": "backend",
    }
    missing = {
        words: sum(times for cell, times in cells.items() if getattr(cell, name) is None)
        for name, words in names.items()
    }
    told = ", ".join(f"{words} ({count} of {cells.total()} cells)" for words, count in missing.items() if count)
    return [f"Not known, and so perhaps different between the arms ({where}): {told}."] if told else []
