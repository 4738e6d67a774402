"""
Promoting an effect: a finished, clean discovery is asked once more, then a line of its record says where it goes.

Everything that a freeze of the confirmation would refuse is refused before that line is written, since an effect is
promoted once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from cells.audit.auditing import audit_run
from cells.boards import boards
from cells.freeze import settle_for_confirming
from cells.plan import Progress, read_run
from cells.promotion.confirming import GATE
from cells.promotion.effect import Effect, effect_of, seen_in
from cells.promotion.fitting import Discovered, confirmed_effect, declares_disjoint, shared_units, unfit
from cells.promotion.links import line_bytes
from cells.promotion.promoted import (
    NOTE,
    Audited,
    Figures,
    Promoted,
    Promotion,
    Target,
    experiment_digest,
    promotions_in,
)
from cells.readings import scoreboard_to_json
from cells.seed_spaces import refuse_shared_namespace
from harness.blobs import BlobStore
from harness.canonical import digest_bytes, plain
from harness.clock import Clock, now_text
from harness.confirmation import ConfirmsEntry
from harness.errors import BusyError, GateRefused, StorageError, UsageError
from harness.experiment import Experiment, load_experiment
from harness.record import Head, Record
from harness.registration import Registration, load_registration
from harness.repository import repository_facts

__all__ = ["Made", "promote"]

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """
    What a promotion came to. `file` is where the confirmation looks for it; `promoted` is None where it was only tried;
    `again` says that the same promotion was there already.
    """

    content: Promotion
    file: Path
    promoted: Promoted | None
    again: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What is to be promoted where; `first` is the line that says so already."""

    folder: Path
    registration: Registration
    effect: Effect
    entry: ConfirmsEntry
    target: Path
    first: Promoted | None

    @property
    def file(self) -> Path:
        """Where the confirmation looks for the promotion."""
        return self.target.parent / self.entry.promotion


async def promote(
    folder: Path, contrast: str, target: Path, *, clock: Clock, say: Say = lambda _text: None, dry_run: bool = False
) -> Made:
    """
    Promote the effect of `contrast`, of the discovery in `folder`, to the experiment file `target`, which names it.

    The same promotion made twice is harmless: its file is written again. Raises `UsageError` for what isn't there,
    `GateRefused` (gate `promotion`) for what may not be, `BusyError` while another process has the run.
    """
    asked = await anyio.to_thread.run_sync(_ask, folder, contrast, target)
    if asked.first is None:
        audited, progress = await anyio.to_thread.run_sync(_audited, folder)
        figures = _figures(asked.registration, progress, asked.effect)
        confirmation = (await settle_for_confirming(target, clock=clock, say=say)).registration
        weighed = await anyio.to_thread.run_sync(_weigh, asked, audited, figures, confirmation, clock)
        if dry_run:
            return Made(content=weighed, file=asked.file, promoted=None, again=False)
        made = await anyio.to_thread.run_sync(_append, asked, weighed, clock)
    else:
        made = asked.first
    if not dry_run:
        await anyio.to_thread.run_sync(_write, asked.file, line_bytes(made.entry))
    return Made(content=made.content, file=asked.file, promoted=made, again=asked.first is not None)


def _ask(folder: Path, contrast: str, target: Path) -> _Asked:
    """Look the effect up on both ends. Raises `UsageError` and `GateRefused` as `promote` does."""
    registration = load_registration(folder)
    experiment, effect = load_experiment(target), effect_of(registration, contrast)
    entry = _named(experiment, registration, contrast, target)
    first = _first(folder, effect, experiment_digest(experiment.model_dump(mode="json")))
    asked = _Asked(folder=folder, registration=registration, effect=effect, entry=entry, target=target, first=first)
    if asked.file.exists() and (first is None or asked.file.read_bytes() != line_bytes(first.entry)):
        # Once promoted, another name in the experiment file would make another experiment of it.
        step = "expected another name in [[confirms]]" if first is None else "move it away, then promote again"
        raise UsageError(f"{asked.file} is there already and isn't this promotion: {step}")
    if not asked.file.parent.is_dir():
        raise UsageError(f"{asked.file.parent} is no folder: expected the one that {asked.file.name} goes to, make it")
    return asked


def _named(experiment: Experiment, registration: Registration, contrast: str, target: Path) -> ConfirmsEntry:
    """The table in which the confirmation names the effect: its author says so, and not only the promoter."""
    for entry in experiment.confirms:
        if (entry.discovery, entry.effect) == (registration.id, contrast):
            return entry
    raise UsageError(
        f"{target} does not confirm {contrast!r} of {registration.id}: expected a table in it that says so:\n"
        f'  [[confirms]]\n  discovery = "{registration.id}"\n  effect = "{contrast}"\n'
        '  contrast = "the contrast there that tests it"\n  promotion = "a file that this command writes"'
    )


def _first(folder: Path, effect: Effect, experiment: str) -> Promoted | None:
    """The promotion that is there already, if it is this one. Raises `GateRefused` where the effect went elsewhere."""
    for earlier in promotions_in(folder):
        was = earlier.content
        if was.effect.digest != effect.digest:
            continue
        if (was.effect.contrast, was.confirmation.experiment) == (effect.contrast, experiment):
            return earlier
        raise GateRefused(
            GATE,
            f"this effect was promoted already, as {was.effect.contrast!r} to {was.confirmation.name} (namespace "
            f"{was.confirmation.seed_namespace!r}) by promotion {was.number} of {was.dated}, line "
            f"{earlier.entry.seq + 1} of the record: an effect is promoted once, whatever its contrast is called",
        )
    return None


def _weigh(asked: _Asked, audited: Audited, figures: Figures, confirmation: Registration, clock: Clock) -> Promotion:
    """What the promotion says. Raises `GateRefused` for an experiment that can't confirm the effect."""
    found = Discovered(
        effect=asked.effect,
        seen=seen_in(figures.reading),
        seed_namespace=asked.registration.experiment["seat"]["seed_namespace"],
    )
    faults = unfit(found, asked.entry, confirmation)
    if faults:
        raise GateRefused(
            GATE, f"{asked.target.name} can't confirm {asked.effect.contrast!r}:\n  " + "\n  ".join(faults)
        )
    refuse_shared_namespace(asked.folder.resolve().parent, confirmation)
    return Promotion(
        number=sum(1 for _one in promotions_in(asked.folder)) + 1,
        dated=now_text(clock),
        discovery=asked.registration.id,
        registration=asked.registration.digest,
        seed_namespace=found.seed_namespace,
        head=audited.head,
        audit=audited,
        effect=asked.effect,
        figures=figures,
        confirmation=_target(found, asked.entry, confirmation, asked.target),
        repository=repository_facts(asked.target.resolve()),
    )


def _audited(folder: Path) -> tuple[Audited, Progress]:
    """The audit of the discovery as it is now, which must be clean, and what its record says."""
    found = audit_run(folder)
    progress, head = read_run(folder)
    if found.verdict != "CLEAN" or found.head is None:
        told = [f"{one.invariant}: {one.where}: {one.what}" for one in found.findings[:5]]
        raise GateRefused(
            GATE,
            f"the audit of {folder.name} is {found.verdict}: expected CLEAN, see `proctor audit`\n  "
            + "\n  ".join(told),
        )
    if str(head) != found.head:
        raise BusyError(f"{folder} grew while it was audited: expected a finished run, try again")
    return Audited(verdict="CLEAN", head=found.head, kept=tuple(body["verdict"] for body in progress.audits)), progress


def _figures(registration: Registration, progress: Progress, effect: Effect) -> Figures:
    """The contrast's figures, of a run that has nothing left to play."""
    found = boards(registration, progress, head=None)
    if found.in_force.status != "final":
        raise GateRefused(
            GATE,
            f"{registration.id} is {found.in_force.status}: {len(found.in_force.missing)} cells have no outcome yet, "
            "expected a finished discovery",
        )
    readings = [
        next(row for row in scoreboard_to_json(board)["contrasts"] if row["name"] == effect.contrast)
        for board in (found.frozen, found.amended)
        if board is not None
    ]
    if readings[0]["status"] != "final":
        raise GateRefused(GATE, f"{effect.contrast!r} has no verdict yet: its reading is {readings[0]['status']}")
    return Figures(
        label="discovery", note=NOTE, reading=plain(readings[0]), amended=plain(readings[1]) if readings[1:] else None
    )


def _target(found: Discovered, entry: ConfirmsEntry, confirmation: Registration, target: Path) -> Target:
    again = confirmed_effect(entry, confirmation)
    return Target(
        name=confirmation.name,
        seed_namespace=confirmation.experiment["seat"]["seed_namespace"],
        contrast=entry.contrast,
        alternative=again.alternative,
        direction=entry.direction,
        disjoint=declares_disjoint(entry, confirmation),
        shared_units=len(shared_units(found, again)),
        experiment=experiment_digest(confirmation.experiment),
        file=digest_bytes(target.read_bytes()),
    )


def _append(asked: _Asked, weighed: Promotion, clock: Clock) -> Promoted:
    """Write the line, on top of the very one that was audited."""
    digest = asked.registration.digest
    with Record(asked.folder, registration_digest=digest, clock=clock) as record:
        if record.head != Head.parse(weighed.head):
            raise BusyError(f"{asked.folder} grew while the promotion was weighed: try again")
        if BlobStore(asked.folder / "blobs").put(asked.target.read_bytes()) != weighed.confirmation.file:
            raise BusyError(f"{asked.target} changed while the promotion was weighed: try again")
        entry = record.append("effect.promoted", plain(weighed.model_dump(mode="json")))
    return Promoted(entry=entry, content=weighed)


def _write(path: Path, data: bytes) -> None:
    """Write the file whole, or not at all; the line is in the record, and the same command writes it again."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.write_bytes(data)
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        raise StorageError(
            f"{path} could not be written: {error}. Make room, then promote again: it is the same"
        ) from error
