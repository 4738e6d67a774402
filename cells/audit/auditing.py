"""
The audit of a run, in one pass over its record: a verdict of its own, beside whatever the figures say.

An audit that is kept is an entry of the record: a failure stays there, and what a later audit says stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cells.audit.files import CHAIN, CHAIN_SAYS
from cells.audit.findings import AuditedRun, Finding, Invariant
from cells.audit.table import INVARIANTS
from harness.canonical import digest_json, plain
from harness.clock import Clock
from harness.code import proctor_version
from harness.errors import IntegrityError, UsageError
from harness.record import Entry, Head, Record
from harness.verify import Problem, verify_chain

__all__ = ["AuditReading", "AuditVerdict", "audit_run", "check", "keep_audit", "names_of_invariants", "says"]

AuditVerdict: TypeAlias = Literal["CLEAN", "AUDIT-FAILURE"]
"""Never merged with a statistical verdict: figures may be right of a record that is not, and the other way round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditReading:
    """
    What an audit found. `counts` are the diagnostics of each invariant that has any; `unchecked` are the invariants
    that nothing can be said of, since the record is not whole; `head` is the entry that the audit read up to.
    """

    registration: str | None
    head: str | None
    findings: tuple[Finding, ...]
    counts: Mapping[str, Mapping[str, int]]
    invariants: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def verdict(self) -> AuditVerdict:
        """Clean, if nothing at all was found and everything was looked at."""
        return "AUDIT-FAILURE" if self.findings or self.unchecked else "CLEAN"

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the findings."""
        return digest_json([asdict(finding) for finding in self.findings])

    def to_json(self) -> dict[str, Any]:
        """The reading for a script."""
        return {
            "verdict": self.verdict,
            "registration": self.registration,
            "head": self.head,
            "findings": [asdict(finding) for finding in self.findings],
            "findings_digest": self.digest,
            "counts": {name: dict(found) for name, found in self.counts.items()},
            "invariants": list(self.invariants),
            "unchecked": list(self.unchecked),
        }


def names_of_invariants() -> tuple[str, ...]:
    """The names of all invariants, the chain's first."""
    return (CHAIN, *(kind.name for kind in INVARIANTS))


def audit_run(
    folder: Path, *, witness: Head | None = None, kinds: Sequence[type[Invariant]] = INVARIANTS
) -> AuditReading:
    """
    Hold the run in `folder` to every invariant. `witness` is a head that was kept outside; without one the run's own
    stands in. Memory grows with the registered cells and not with the record. O(bytes of record and transcripts).

    Raises `UsageError` when nothing was recorded yet.
    """
    names = [kind.name for kind in kinds]
    try:
        run = AuditedRun.of(folder)
    except (IntegrityError, ValueError) as error:
        broken = Finding(invariant=CHAIN, where="registration.json", what=str(error).splitlines()[0])
        return _reading(None, None, [broken], [], names, unchecked=names)
    path = folder / "record.jsonl"
    if not path.exists() and not (folder / "head").exists():
        raise UsageError(f"{folder} has no record: run it first")
    invariants, findings = [kind(run) for kind in kinds], list[Finding]()

    def saw(entry: Entry) -> None:
        for one in invariants:
            findings.extend(_guarded(one, one.saw(entry), f"line {entry.seq + 1}"))

    local = _local_head(folder, findings)
    chain = verify_chain(path, genesis=run.registration.digest, witness=witness or local, saw=saw)
    findings.extend(_of_the_chain(problem) for problem in chain.problems)
    if chain.problems:
        return _reading(run, chain.head, findings, invariants, names, unchecked=names)
    for one in invariants:
        findings.extend(_guarded(one, one.ended(), "the whole record"))
    return _reading(run, chain.head, findings, invariants, names, unchecked=())


def check(kind: type[Invariant], folder: Path) -> tuple[Finding, ...]:
    """What one invariant alone finds in a run whose chain is whole."""
    found = audit_run(folder, kinds=[kind])
    return tuple(finding for finding in found.findings if finding.invariant == kind.name)


def _guarded(one: Invariant, found: Iterable[Finding], where: str) -> list[Finding]:
    """Its findings. A body of a form that it can't read is one of them: no honest session wrote it."""
    told: list[Finding] = []
    try:
        told.extend(found)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        told.append(one.found(where, f"what stands there can't be read: {type(error).__name__}: {error}"))
    return told


def _of_the_chain(problem: Problem) -> Finding:
    return Finding(invariant=CHAIN, where=problem.where, what=problem.what)


def _local_head(folder: Path, findings: list[Finding]) -> Head | None:
    path = folder / "head"
    try:
        return Head.parse(path.read_text("ascii")) if path.exists() else None
    except ValueError as error:
        findings.append(Finding(invariant=CHAIN, where="head", what=str(error)))
        return None


def _reading(
    run: AuditedRun | None,
    head: Head | None,
    findings: Sequence[Finding],
    invariants: Sequence[Invariant],
    names: Sequence[str],
    *,
    unchecked: Sequence[str],
) -> AuditReading:
    order = {name: at for at, name in enumerate((CHAIN, *names))}
    return AuditReading(
        registration=None if run is None else run.registration.id,
        head=None if head is None else str(head),
        findings=tuple(sorted(findings, key=lambda finding: order[finding.invariant])),
        counts={one.name: dict(sorted(one.counts.items())) for one in invariants if any(one.counts.values())},
        invariants=(CHAIN, *names),
        unchecked=tuple(unchecked),
    )


def keep_audit(folder: Path, found: AuditReading, *, clock: Clock) -> Entry:
    """
    Append what an audit said to the run's record. An earlier audit stays as it is: this one stands beside it.

    Raises `IntegrityError` where the chain itself is broken: nothing can be appended to it, and the failure is kept
    outside; `BusyError` while another process has the run.
    """
    registration = AuditedRun.of(folder).registration
    with Record(folder, registration_digest=registration.digest, clock=clock) as record:
        body = {
            "verdict": found.verdict,
            "head": found.head,
            "findings": len(found.findings),
            "findings_digest": found.digest,
            "by_invariant": {name: _count(found, name) for name in found.invariants},
            "unchecked": list(found.unchecked),
            "proctor": proctor_version(),
        }
        return record.append("run.audited", plain(body))


def _count(found: AuditReading, name: str) -> int:
    return sum(finding.invariant == name for finding in found.findings)


def says(name: str) -> str:
    """What an invariant says of every honest record."""
    if name == CHAIN:
        return CHAIN_SAYS
    (kind,) = (kind for kind in INVARIANTS if kind.name == name)
    return kind.says
