"""Whose a workspace is: its owner on the host and, as root, the user that no other live workspace has."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.workspaces.images import SEATS
from harness.workspaces.namespaces import Owner

__all__ = ["Claim", "claim", "claims"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A workspace's name, the process that holds it, and its user on the host (None is the holder's own)."""

    name: str
    owner: Owner
    user: int | None

    @staticmethod
    def file(home: Path, name: str) -> Path:
        """Where the claim of a workspace below `home` is written."""
        return home / f"{name}.json"


def claim(home: Path, name: str, run: str, *, own_user: bool) -> int | None:
    """
    Write down that workspace `name` is ours, and with `own_user` choose it a user that no workspace below `home` has,
    those of dead owners included: something of theirs may be alive until they are reaped.

    Raises `OSError` where `home` can't be written, and `WorkspaceError` when no user is free.
    """
    with _alone(home):
        user = _free_user(_users(home), home) if own_user else None
        draft = home / f".{name}"
        draft.write_text(json.dumps({"run": run, "owner": asdict(Owner.me()), "user": user}))
        draft.rename(Claim.file(home, name))
    return user


def claims(home: Path) -> Iterator[Claim]:
    """Every workspace below `home`. Raises `WorkspaceError` for a file there that is no claim."""
    for path in sorted(home.glob("*.json")):
        if (found := _read(path)) is not None:
            yield found


def _read(path: Path) -> Claim | None:
    """A claim, or None when its owner has removed it just now."""
    try:
        said = json.loads(path.read_text())
        return Claim(name=path.stem, owner=Owner(**said["owner"]), user=said["user"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"{path} is no workspace's owner file ({type(error).__name__}: {error}): if no such workspace is "
            "alive, remove it"
        ) from error


def _users(home: Path) -> set[int | None]:
    """The users that are taken. A file that is no claim takes none: one bad file must not stop all runs."""
    taken: set[int | None] = set()
    for path in home.glob("*.json"):
        with suppress(WorkspaceError):
            found = _read(path)
            taken.add(None if found is None else found.user)
    return taken


def _free_user(taken: set[int | None], home: Path) -> int:
    # From a random place on, so that workspaces below other folders seldom have the same.
    first = int(fresh_token(4), 16)
    for step in range(len(SEATS)):
        user = SEATS[(first + step) % len(SEATS)]
        if user not in taken:
            return user
    raise WorkspaceError(
        f"all {len(SEATS)} users of workspaces ({SEATS[0]} to {SEATS[-1]}) are taken by those below {home}: "
        "end some, or `proctor reap` those whose owner is dead"
    )


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One process at a time chooses; the kernel lets go of the lock when its holder dies."""
    lock = os.open(home / ".claims", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
