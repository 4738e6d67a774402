"""The invariants that need no reading of what entries say: the chain and its end, and the files that they name."""

from __future__ import annotations

from collections.abc import Iterable

from cells.audit.findings import AuditedRun, Finding, Invariant
from cells.verifying import missing_pins
from harness.record import Entry
from harness.verify import FileCheck

__all__ = ["CHAIN", "CHAIN_SAYS", "Files"]

CHAIN = "chain"
CHAIN_SAYS = (
    "the registration is the one frozen, every line of the record hangs on the one before it, and the last one is no "
    "earlier than its head says"
)


class Files(Invariant):
    """What outcomes name is there."""

    name = "files"
    says = (
        "every exhibit and transcript that an outcome names, and every pinned task and arm, is there, byte for byte; "
        "every blob is what its name says"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._check = FileCheck(run.folder)

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if self.run.outcome(entry) is None:  # a line that is no outcome is reported as that, once
            return ()
        self._check.saw(entry)
        return self._told()

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        self._check.ended()
        self._check.problems += missing_pins(self.run.store, self.run.registration.pins)
        self.counts.update({f"{name} looked at": count for name, count in self._check.looked_at.items()})
        return self._told()

    def _told(self) -> Iterable[Finding]:
        found = [self.found(problem.where, problem.what) for problem in self._check.problems]
        self._check.problems.clear()
        return found
