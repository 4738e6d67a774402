"""Verification of a whole run folder, as an auditor sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cells.plan import Progress, unsaid
from cells.promotion.links import PIN, end_faults
from harness.blobs import BlobStore
from harness.casebook import recall_tasks
from harness.errors import IntegrityError
from harness.record import Entry, Head
from harness.registration import load_registration
from harness.verify import ChainReading, FileCheck, Problem, verify_chain

__all__ = ["RunReading", "missing_pins", "verify_run"]


@dataclass(frozen=True, kw_only=True)
class RunReading:
    """What a run folder's files say. `ok` means that nothing was found wrong with them."""

    folder: Path
    registration: str | None
    chain: ChainReading
    looked_at: dict[str, int]
    problems: tuple[Problem, ...]
    witness: str

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def lines(self) -> Iterator[str]:
        """The reading for a person."""
        yield f"{'ok' if self.ok else 'FAILED'}: {self.folder}"
        yield f"  registration: {self.registration or 'damaged'}"
        yield f"  record: {self.chain.entries} entries, head {self.chain.head or 'none'}"
        yield f"  end: {self.chain.completeness} ({self.witness})"
        yield f"  session: {self._session()}"
        yield "  looked at: " + (", ".join(f"{count} {name}" for name, count in self.looked_at.items()) or "no files")
        for problem in self.problems:
            yield f"  problem at {problem.where}: {problem.what}"

    def _session(self) -> str:
        if self.chain.closed:
            return "closed"
        if not self.chain.sessions and not self.chain.torn:
            return "none was started yet"
        torn = ", its last line is torn" if self.chain.torn else ""
        return f"not closed{torn}: it is running, or its process died"

    def to_json(self) -> dict[str, Any]:
        """The reading for a script."""
        return {
            "ok": self.ok,
            "folder": str(self.folder),
            "registration": self.registration,
            "entries": self.chain.entries,
            "head": str(self.chain.head) if self.chain.head else None,
            "complete": self.chain.complete,
            "completeness": self.chain.completeness,
            "witness": self.witness,
            "closed": self.chain.closed,
            "torn": self.chain.torn,
            "looked_at": self.looked_at,
            "problems": [asdict(problem) for problem in self.problems],
        }


def verify_run(folder: Path, *, witness: Head | None = None) -> RunReading:
    """
    Check everything in a run folder against everything else in it, and the record's end against `witness`.

    Without a witness the run's own `head` file stands in: it shows an accident or a careless cut, but whoever cut the
    record could have rewritten it too, and the reading says so.
    """
    problems: list[Problem] = []
    try:
        registration = load_registration(folder)
        identity, genesis = registration.id, registration.digest
        problems.extend(missing_pins(BlobStore(folder / "blobs"), registration.pins))
    except IntegrityError as error:
        problems.append(Problem(where="registration.json", what=str(error)))
        identity, genesis = None, ""
    said, local = "head given from outside", None
    if witness is None:
        local = _local_head(folder, problems)
        said = "by the run's own head file, which is no outside witness" if local else "no head to hold it against"
    files = FileCheck(folder)
    saw = partial(_saw, files)
    chain = verify_chain(folder / "record.jsonl", genesis=genesis, witness=witness or local, saw=saw)
    files.ended()
    problems.extend(Problem(where=where, what=what) for where, what in end_faults(folder))
    if local is not None and chain.complete:
        chain.complete, chain.completeness = (
            None,
            "prefix intact, completeness unknown; it ends where its own head file says",
        )
    return RunReading(
        folder=folder,
        registration=identity,
        chain=chain,
        looked_at=files.looked_at,
        problems=(*problems, *chain.problems, *files.problems),
        witness=said,
    )


def _saw(files: FileCheck, entry: Entry) -> None:
    """Look at one entry: at the files that it names, and whether it says what the commands that read a run take."""
    before = len(files.problems)
    files.saw(entry)
    if len(files.problems) == before and (what := unsaid(Progress(), entry)):
        files.problems.append(Problem(where=f"line {entry.seq + 1}", what=what))


def missing_pins(store: BlobStore, pins: Mapping[str, Any]) -> Iterator[Problem]:
    """Whatever of the frozen tasks, arm texts and promotions is not in the run's blobs any more."""
    for name, pin in pins.items():
        try:
            if name.startswith("task "):
                recall_tasks(store, pins, [name.removeprefix("task ")])
            elif name.startswith(("arm ", PIN)):
                store.get(pin["sha256"])
        except (IntegrityError, KeyError, TypeError, ValueError) as error:
            yield Problem(where=f"registration, {name}", what=f"{error}")


def _local_head(folder: Path, problems: list[Problem]) -> Head | None:
    path = folder / "head"
    if not path.exists():
        return None
    try:
        return Head.parse(path.read_text("ascii"))
    except ValueError as error:
        problems.append(Problem(where="head", what=str(error)))
        return None
