"""
Jobs of Harbor as cells: a folder with `result.json` and `config.json`, and a folder a trial with the same two.

Read by the files' own facts, without Harbor: names are never split, and no file of an agent is opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cells.declared.rows import ForeignCell, ForeignKey
from cells.imports.fields import Fields
from cells.imports.foreign_files import open_regular, skim_file
from cells.imports.harbor_trial import TRIAL, Trial, read_trial, unfinished
from cells.imports.imported import Seen
from cells.imports.options import HarborOptions
from cells.imports.skim import Wanted
from cells.imports.verdicts_of import UNDECIDED
from harness.errors import DeclarationError
from harness.values import Declared, Halt

__all__ = ["files_of_job", "harbor_cells"]

_JOB: Final[Wanted] = {
    "schema_version": None,
    "id": None,
    "n_total_trials": None,
    "finished_at": None,
    "stats": {"n_retries": None},
}
_CONFIG: Final[Wanted] = {
    "job_name": None,
    "retry": None,
    "orchestrator": {"retry": None},
    **dict.fromkeys(("trial_name", "task", "agent")),
}
_VERSIONS: Final = {None, 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """A job's own facts: `retried` says why the spend of earlier tries may be lost, None if there were none."""

    run: str
    planned: int | None
    retried: str | None


def harbor_cells(jobs: Sequence[Path], options: HarborOptions, seen: list[Seen]) -> Iterator[ForeignCell]:
    """
    The cells of the `jobs`, one a trial; what is noted beside them goes to `seen`.

    Harbor does not number the trials of a condition: they are numbered in the order in which they began, over all the
    jobs in the order given. Raises `DeclarationError` for what can't be read as Harbor writes it.
    """
    numbers: defaultdict[tuple[str, ...], int] = defaultdict(int)
    runs: dict[str, Path] = {}
    for folder in jobs:
        note = Seen(log=str(folder))
        seen.append(note)
        job = _read_job(folder)
        if (other := runs.setdefault(job.run, folder)) != folder:
            raise DeclarationError(f"{folder} and {other} are the same job {job.run}: expected each job once")
        trials = _trials(folder, options, job, note)
        note.results, note.planned = len(trials), job.planned
        if job.retried is not None:
            note.remarks.append(job.retried)
        for trial in sorted(trials, key=lambda trial: (trial.started, trial.id)):
            condition = tuple(trial.condition.values())
            numbers[condition] += 1
            yield _cell(trial, job.run, numbers[condition])


def files_of_job(folder: Path) -> Iterator[Path]:
    """The files of a job that its cells come from, in order."""
    for path in (folder, *(path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink())):
        yield from (path / name for name in ("config.json", "result.json") if (path / name).is_file())


def _cell(trial: Trial, run: str, replicate: int) -> ForeignCell:
    try:
        key = ForeignKey(run=run, id=trial.id, replicate=replicate, **trial.condition)
    except ValueError as error:
        raise DeclarationError(f"trial {trial.id!r} of {run}: {error}") from None
    return ForeignCell(
        cell=key,
        end=trial.end,
        spend=trial.spend,
        verdict=(trial.reading or UNDECIDED) if isinstance(trial.end, Declared) else None,
        would_be=trial.reading if isinstance(trial.end, Halt) else None,
        labels=trial.labels,
    )


def _read_job(folder: Path) -> _Job:
    if not folder.is_dir():
        raise DeclarationError(f"{folder} is no folder: expected that of a job, such as jobs/2026-12-01__10-00-00")
    result, config = folder / "result.json", folder / "config.json"
    if not config.exists() and not result.exists():
        raise DeclarationError(f"{folder} has neither result.json nor config.json: expected a job that Harbor wrote")
    told = Fields(skim_file(config, _CONFIG) if config.exists() else {}, str(config))
    if told.raw("trial_name") is not None:
        raise DeclarationError(f"{folder} is a trial: expected the folder of its job, {folder.parent}")
    if _empty(result):
        return _Job(run=folder.name, planned=None, retried=_retries(told, None))
    job = Fields(skim_file(result, _JOB), str(result))
    if job.raw("schema_version") not in _VERSIONS:
        raise job.fault("schema_version", "1, or none: another version may mean other things by the same names")
    stats = job.maybe_part("stats")
    retries = stats.maybe_whole("n_retries") if stats is not None else None
    return _Job(run=job.text("id"), planned=job.whole("n_total_trials"), retried=_retries(told, retries))


def _retries(config: Fields, counted: int | None) -> str | None:
    """Harbor removes the folder of a trial that it tries again: what that try cost is not told anywhere."""
    if counted:
        return f"{counted} tries were made again, and Harbor keeps nothing of the first ones: prices are lower bounds"
    above = config.maybe_part("retry") or (
        orchestrator.maybe_part("retry") if (orchestrator := config.maybe_part("orchestrator")) is not None else None
    )
    if counted is None and above is not None and above.maybe_whole("max_retries"):
        return "trials may have been tried again, which this job does not count: prices are lower bounds"
    return None


def _trials(folder: Path, options: HarborOptions, job: _Job, note: Seen) -> list[Trial]:
    trials: dict[str, Trial] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_dir():
            continue
        if path.is_symlink():
            raise DeclarationError(f"{path} is a link: expected the folder of a trial itself")
        if not any((path / name).exists() for name in ("result.json", "config.json")):
            note.remarks.append(f"the folder {path.name!r} is no trial, and was left out")
            continue
        trial = _trial(path, options, job)
        if trial.id in trials:
            raise DeclarationError(f"{path}: trial {trial.id!r} is there twice: expected each trial once")
        trials[trial.id] = trial
    return list(trials.values())


def _trial(path: Path, options: HarborOptions, job: _Job) -> Trial:
    result, config = path / "result.json", path / "config.json"
    if not _empty(result):
        return read_trial(skim_file(result, TRIAL), str(result), options, retried=job.retried)
    if _empty(config):
        raise DeclarationError(f"{path} has no result.json and no config.json with anything in it: what was it of?")
    return unfinished(skim_file(config, {**_CONFIG, **TRIAL}), str(config), options)


def _empty(path: Path) -> bool:
    """Whether there is nothing in it: Harbor was ended before it had written it, or just as it began to."""
    if not path.exists() and not path.is_symlink():
        return True
    with open_regular(path) as file:
        return not file.read(1 << 16).strip()
