"""Making an amendment: its file is checked against the registration and the record as they stand, then appended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cells.amended import Amended, added_contrasts, amended_analysis, amended_plan, amendments_in
from cells.boards import boards
from cells.figure_reading import read_figure
from cells.plan import Progress, read_run
from cells.readings import Scoreboard
from harness.amendment import Amendment, load_amendment
from harness.analysis import Analysis
from harness.blobs import BlobStore
from harness.canonical import plain
from harness.clock import Clock, now_text
from harness.errors import ExperimentError, GateRefused, UsageError, unknown_name
from harness.experiment import Experiment
from harness.figure_refs import FigureRef, known_of, refuse_unknown
from harness.predictions import refs_of
from harness.record import Entry, Record
from harness.registration import Registration, load_registration
from harness.repository import repository_facts

__all__ = ["CheckReading", "Made", "amend", "read_checks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckReading:
    """One check of an amendment: the figure's value when it was looked up (None if it does not exist)."""

    name: str
    value: float | None
    holds: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """What an amendment came to. `entry` is None where it was only tried."""

    number: int
    checks: tuple[CheckReading, ...]
    added_cells: int
    withdrawn_cells: int
    outcomes: int
    entry: Entry | None


def amend(folder: Path, path: Path, *, clock: Clock, dry_run: bool = False) -> Made:
    """
    Append the amendment in the file `path` to the run in `folder`; nothing that is there already changes.

    Its checks are looked up in the reading in force. Raises `ExperimentError` for what the file may not say,
    `GateRefused` naming each check that does not hold, `BusyError` while another process has the run.
    """
    content, raw = load_amendment(path)
    registration = load_registration(folder)
    if dry_run:
        return _weigh(registration, read_run(folder)[0], content)
    repository = repository_facts(path.resolve())
    with Record(folder, registration_digest=registration.digest, clock=clock) as record:
        if record.head is None:
            raise UsageError(
                f"{folder} has no record yet: nothing was played, so change the experiment file and freeze again"
            )
        progress = read_run(folder)[0]
        made = _weigh(registration, progress, content)
        body = {
            "number": made.number,
            "dated": now_text(clock),
            "registration": registration.digest,
            "outcomes": made.outcomes,
            "file": BlobStore(folder / "blobs").put(raw),
            "content": content.model_dump(mode="json"),
            "checks": [{"name": item.name, "value": item.value, "holds": item.holds} for item in made.checks],
            "repository": repository,
        }
        entry = record.append("registration.amended", plain(body))
    return Made(
        number=made.number,
        checks=made.checks,
        added_cells=made.added_cells,
        withdrawn_cells=made.withdrawn_cells,
        outcomes=made.outcomes,
        entry=entry,
    )


def _weigh(registration: Registration, progress: Progress, content: Amendment) -> Made:
    """What the amendment would come to. Raises as `amend` does."""
    before = amendments_in(progress.amendments)
    _refuse_after_stop(progress, content)
    _refuse_unfit(registration, before, content)
    _refuse_unknown_figures(registration, before, content)
    checks = read_checks(content, boards(registration, progress, head=None).in_force)
    _refuse_unless_held(content, checks)
    after = (*before, _draft(len(before) + 1, content))
    was, will = (amended_plan(registration, items) for items in (before, after))
    return Made(
        number=len(before) + 1,
        checks=checks,
        added_cells=len(set(will.cells) - set(was.cells)),
        withdrawn_cells=len(set(was.cells) - set(will.cells)),
        outcomes=len(progress.outcomes()),
        entry=None,
    )


def _draft(number: int, content: Amendment) -> Amended:
    return Amended(number=number, dated="now", outcomes=0, content=content, checks=(), repository=None)


def read_checks(content: Amendment, board: Scoreboard) -> tuple[CheckReading, ...]:
    """Each check of an amendment, looked up in a scoreboard."""
    values = [(check, read_figure(check.ref, board)) for check in content.checks]
    return tuple(CheckReading(name=check.name, value=value, holds=check.contains(value)) for check, value in values)


def _refuse_unless_held(content: Amendment, checks: Sequence[CheckReading]) -> None:
    failed = [
        f"{item.name}: {check.ref} is {'undefined' if item.value is None else f'{item.value:g}'}, expected {check.span}"
        for check, item in zip(content.checks, checks, strict=True)
        if not item.holds
    ]
    if failed:
        raise GateRefused("amendment", "its checks do not hold now:\n  " + "\n  ".join(failed))


def _refuse_after_stop(progress: Progress, content: Amendment) -> None:
    """A stop is for good: what asks for more to be played could not be kept, and would only add cells never fired."""
    asked = [name for name in ("replicates", "void_retries") if getattr(content, name) is not None]
    if progress.stopped is not None and asked:
        raise ExperimentError(
            f"{' and '.join(asked)}: the registered rule {progress.stopped['rule']!r} ended this run, and nothing "
            "further starts: expected an amendment that plays nothing; for more cells freeze another experiment"
        )


def _refuse_unfit(registration: Registration, before: Sequence[Amended], content: Amendment) -> None:
    """Raise `ExperimentError` with a line for everything in it that does not fit the registration as amended so far."""
    faults = [
        *_number_faults(registration, before, content),
        *_name_faults(registration, before, content),
        *_reference_faults(registration, before, content),
    ]
    if faults:
        raise ExperimentError(f"the amendment does not fit {registration.id}:\n  " + "\n  ".join(faults))


def _refuse_unknown_figures(registration: Registration, before: Sequence[Amended], content: Amendment) -> None:
    """Checks look at what is in force now; predictions at what will be."""
    analysis = Analysis.model_validate(registration.experiment["analysis"])
    for items, refs in (
        (before, [check.ref for check in content.checks]),
        ((*before, _draft(len(before) + 1, content)), [ref for item in content.predictions for ref in item.refs]),
    ):
        tests = amended_analysis(analysis, items)
        whole = tests.model_copy(update={"contrasts": (*tests.contrasts, *added_contrasts(items))})
        known = known_of(whole, amended_plan(registration, items).cells)
        for ref in refs:
            refuse_unknown(ref, known)


def _number_faults(registration: Registration, before: Sequence[Amended], content: Amendment) -> Iterable[str]:
    now = amended_plan(registration, before)
    replicates = max((cell.replicate for cell in (*registration.cells, *now.added)), default=0)
    if content.replicates is not None and content.replicates <= replicates:
        yield f"replicates is {content.replicates}: expected more than the {replicates} in force; no cell is taken back"
    if content.void_retries is not None and content.void_retries <= now.void_retries:
        yield f"void_retries is {content.void_retries}: expected more than the {now.void_retries} in force"


def _name_faults(registration: Registration, before: Sequence[Amended], content: Amendment) -> Iterable[str]:
    """Names that are taken: what is added stands beside what is there, never in its place."""
    frozen = registration.experiment
    taken: dict[str, Collection[str]] = {
        "contrast": _names(frozen["analysis"]["contrasts"], [item.content.contrasts for item in before]),
        "ratio": _names(frozen["analysis"]["ratios"], [item.content.ratios for item in before]),
        "prediction": _names(frozen.get("predictions", ()), [item.content.predictions for item in before]),
    }
    new: dict[str, list[str]] = {
        "contrast": [item.name for item in content.contrasts],
        "ratio": [item.name for item in content.ratios],
        "prediction": [item.name for item in content.predictions],
    }
    for kind, names in new.items():
        for name in names:
            if name in taken[kind]:
                yield f"{kind} {name!r} is there already, and is not changed: choose another name"


def _names(rows: Iterable[Mapping[str, Any]], added: Iterable[Iterable[Any]]) -> set[str]:
    return {row["name"] for row in rows} | {item.name for items in added for item in items}


def _reference_faults(registration: Registration, before: Sequence[Amended], content: Amendment) -> Iterable[str]:
    """Arms, models, extras, tasks and tests that it names and that are not there."""
    frozen = Analysis.model_validate(registration.experiment["analysis"])
    arms = {cell.arm for cell in registration.cells}
    models, extras = ({getattr(cell, name) for cell in registration.cells} for name in ("model", "extras"))
    try:
        Analysis(contrasts=content.contrasts, ratios=content.ratios).validate_against(arms, models, extras)
    except ExperimentError as error:
        yield from str(error).splitlines()
    plan = amended_plan(registration, before)
    tasks = {f"{cell.benchmark}/{cell.task}" for cell in plan.cells}
    for row in content.withdrawn:
        if row.task not in tasks:
            yield f"withdrawn: {unknown_name('task', row.task, sorted(tasks))}"
    named = {ref.task: ref for ref in _registered_refs(registration) if ref.task is not None}
    for row in content.withdrawn:
        ref = named.get(row.task.partition("/")[2])
        if ref is not None:
            yield f"withdrawn: {row.task} stays, since the registration reads {ref}; a notice may say what is wrong"
    later = (*before, _draft(len(before) + 1, content))
    ratios = {item.name for item in amended_analysis(frozen, later).ratios}
    contrasts = {item.name for item in (*frozen.contrasts, *added_contrasts(later))}
    for notice in content.notices:
        if notice.contrast is not None and notice.contrast not in contrasts:
            yield f"notices: {unknown_name('contrast', notice.contrast, sorted(contrasts))}"
        if notice.ratio is not None and notice.ratio not in ratios:
            yield f"notices: {unknown_name('ratio', notice.ratio, sorted(ratios))}"


def _registered_refs(registration: Registration) -> list[FigureRef]:
    """The figures that the frozen predictions, outcomes, adverse outcomes and stop rules are about."""
    experiment = Experiment.model_validate(dict(registration.experiment))
    return refs_of(experiment.predictions, [*experiment.outcomes, *experiment.adverse], experiment.stops)
