"""
Qualification: the whole probe table, taken once for an engine, image, policy and set of probes, and kept for the same.

A kept table counts for the very receipt it was taken for and no other. One that is damaged, that lacks a registered
probe or that does not hold is taken again. Its digest finds damage and accidents; whoever can write to the state folder
can write another, so a run's record holds all of the rows that it started with.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from fences.gate import refusals
from fences.policy import FencePolicy
from fences.receipt import Receipt, receipt_from_json, registered_probes, take_receipt
from fences.rows import ProbeRow, rows_from_json, rows_to_json
from fences.table import Progress, probe_all
from harness.canonical import canonical_bytes, digest_json
from harness.clock import Clock, fresh_token, now_text
from harness.environment import state_home
from harness.errors import StorageError
from harness.ports import WorkspaceBackend

__all__ = ["Qualification", "QualificationShelf", "Qualified", "qualify"]

SCHEMA = "proctor-qualification/1"

NONE_KEPT = "no table was kept for this engine, image, policy and set of probes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Qualification:
    """A probe table, what it was taken for, and when (RFC 3339)."""

    receipt: Receipt
    rows: tuple[ProbeRow, ...]
    taken_at: str

    def to_json(self) -> dict[str, Any]:
        """What is kept, without its digest."""
        return {
            "schema": SCHEMA,
            "receipt": self.receipt.to_json(),
            "rows": rows_to_json(self.rows),
            "taken_at": self.taken_at,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all of it."""
        return digest_json(self.to_json())


@dataclass(frozen=True, kw_only=True, slots=True)
class Qualified:
    """
    What qualifying came to: the table, whether it is a kept one, and every reason why it does not hold.

    `passed_over` is what was wrong with a kept one that did not count.
    """

    qualification: Qualification
    reused: bool
    faults: tuple[str, ...]
    passed_over: str | None = None


class QualificationShelf:
    """The kept tables, one file a receipt. By default they are below the state folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else state_home() / "qualifications"

    def path(self, receipt: Receipt) -> Path:
        """Where the table of a receipt is, if there is one."""
        return self.root / f"{receipt.digest}.json"

    def keep(self, qualification: Qualification) -> Path:
        """Keep a table: all of it is on the disk, or nothing. Raises `StorageError` when it can't be written."""
        path = self.path(qualification.receipt)
        scratch = path.with_name(f".{path.stem}.{fresh_token(8)}.new")
        data = canonical_bytes({**qualification.to_json(), "sha256": qualification.digest})
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with scratch.open("wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except OSError as error:
            with suppress(OSError):
                scratch.unlink()
            raise StorageError(
                f"the probe table can't be kept in {self.root}: {error.strerror}. Make room there, or set PROCTOR_HOME"
            ) from error
        return path

    def find(self, receipt: Receipt, policy: FencePolicy, probes: Iterable[str]) -> Qualification | str:
        """The kept table of this very receipt, or why there is none that counts."""
        path = self.path(receipt)
        try:
            data = json.loads(_own_bytes(path))
        except FileNotFoundError:
            return NONE_KEPT
        except (OSError, ValueError) as error:
            return f"{path.name} can't be read: {type(error).__name__}: {error}"
        try:
            found = _read(data)
        except (ValueError, LookupError, TypeError) as error:
            return f"{path.name} is damaged: {type(error).__name__}: {str(error).splitlines()[0]}"
        faults = refusals(found.rows, policy, probes=probes, taken_for=found.receipt, now=receipt)
        return f"{path.name} does not hold: {faults[0]}" if faults else found


def _own_bytes(path: Path) -> bytes:
    """What is in a file of our own. Raises `OSError` for a link, and for what another user put there or could."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
            raise PermissionError(f"expected a regular file of user {os.geteuid()}, which nobody else may write to")
        return file.read()


def _read(data: Any) -> Qualification:
    """The kept table in `data`. Raises `ValueError` and the like for whatever is not exactly one."""
    if set(data) != {"schema", "receipt", "rows", "taken_at", "sha256"} or data["schema"] != SCHEMA:
        raise ValueError(f"expected {SCHEMA} with receipt, rows, taken_at and sha256")
    found = Qualification(
        receipt=receipt_from_json(data["receipt"]),
        rows=rows_from_json(data["rows"]),
        taken_at=str(data["taken_at"]),
    )
    if found.digest != data["sha256"]:
        raise ValueError(f"its content has SHA-256 {found.digest}, it says {data['sha256']}")
    return found


async def qualify(
    backend: WorkspaceBackend,
    policy: FencePolicy,
    image: str,
    *,
    run: str,
    clock: Clock,
    shelf: QualificationShelf | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Qualified:
    """
    The kept table of what is here now, or a new one (always with `again`), which is kept if it holds.

    Raises `WorkspaceError` when the backend fails, `StorageError` when the table can't be kept.
    """
    shelf = shelf if shelf is not None else QualificationShelf()
    receipt = await take_receipt(backend, policy, image)
    names = [probe.name for probe in registered_probes()]
    passed_over = None
    if not again:
        found = await anyio.to_thread.run_sync(shelf.find, receipt, policy, names)
        if isinstance(found, Qualification):
            return Qualified(qualification=found, reused=True, faults=())
        passed_over = None if found == NONE_KEPT else found
    rows = await probe_all(backend, policy, image, run=run, progress=progress, clock=clock)
    now = await take_receipt(backend, policy, image)
    faults = refusals(rows, policy, probes=names, taken_for=receipt, now=now)
    taken = Qualification(receipt=receipt, rows=rows, taken_at=now_text(clock))
    if not faults:
        await anyio.to_thread.run_sync(shelf.keep, taken)
    return Qualified(qualification=taken, reused=False, faults=faults, passed_over=passed_over)
