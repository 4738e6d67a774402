"""The rooms that samples are judged in: a referee's, behind the default fence, looked at before a verdict counts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from cells.backends import usable_backend
from fences.policy import FencePolicy
from fences.rendering import check_requires, render
from fences.running import check_running
from harness.canonical import digest_json
from harness.clock import fresh_token
from harness.errors import FenceError, GateRefused, WorkspaceError
from harness.ports import Workspace, WorkspaceBackend
from harness.walls import Caps, Walls

__all__ = ["JudgingRooms", "rooms_for"]

_SPARE_BYTES = 1 << 30
"""What a room has beyond the memory of one candidate: the zygote's, and what results take on their way out."""


@dataclass(frozen=True, kw_only=True)
class JudgingRooms:
    """
    Opens sealed rooms of one kind. `walls_digest` is the SHA-256 of what the backend is asked for, `policy` the digest
    of the fence's policy, `not_enforced` what this backend does not enforce here, with why.
    """

    backend: WorkspaceBackend
    walls: Walls
    image_digest: str
    walls_digest: str
    policy: FencePolicy
    not_enforced: dict[str, str]
    run: str

    def __call__(self) -> AbstractAsyncContextManager[Workspace]:
        """One fresh room."""
        return self.backend.open(self.walls, run=self.run)

    async def look(self) -> int:
        """
        Open a room, compare what is running with what was asked for, and say how many facts were told and agree.

        Raises `GateRefused` that names each fact that is not as asked, and `WorkspaceError` when, twice, no room opens.
        """
        try:
            facts = await self._facts()
        except WorkspaceError:
            facts = await self._facts()
        try:
            found = check_running(self.policy, self.walls, facts)
        except FenceError as error:
            raise GateRefused("fence", str(error)) from error
        return sum(fact.agrees is True for fact in found)

    async def _facts(self) -> Mapping[str, Any]:
        async with self() as room:
            return await room.facts()

    def to_json(self) -> dict[str, Any]:
        """The fence in short, for the summary."""
        return {
            "backend": self.backend.name,
            "image": self.walls.image,
            "image_digest": self.image_digest,
            "policy": self.policy.digest,
            "walls": self.walls_digest,
            "not_enforced": self.not_enforced,
        }


async def rooms_for(backend: str, image: str, *, candidate_bytes: int) -> JudgingRooms:
    """
    Rooms of the default policy, with the memory that a candidate of `candidate_bytes` needs, and no variable.

    Raises `UsageError` when no such backend can be used, and `GateRefused` when it can't give what the policy requires.
    """
    policy = FencePolicy()
    chosen = await usable_backend(backend, image)
    guarantees = await chosen.guarantees()
    check_requires(policy, guarantees)
    caps = Caps(memory_bytes=candidate_bytes + _SPARE_BYTES)
    walls = replace(render(policy, image).walls, caps=caps, environment={})
    return JudgingRooms(
        backend=chosen,
        walls=walls,
        image_digest=await chosen.image_digest(image),
        walls_digest=digest_json(dict(chosen.options(walls))),
        policy=policy,
        not_enforced={name: why for name, why in guarantees.items() if why is not None},
        run=f"judge-{fresh_token(6)}",
    )
