"""Every extension contract, on one page. A plugin is a callable that makes one of these; see `harness/plugins.py`."""

from __future__ import annotations

# fmt: off
# The formatter would spread this page over two: the methods of a contract stand together here.
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import ByteStream

    from harness.messages import Completion, ModelIdentity, ModelSpec, Request
    from harness.seats.desk import Desk
    from harness.tasks.task import OpenHalf, SealedHalf
    from harness.tree import Exhibit, Tree
    from harness.values import Declared, Standing, Verdict
    from harness.views import Attempt, Fence, Finding, PublicReading, RoundView, Site
    from harness.walls import ExecResult, KillProof, Walls


class Workspace(Protocol):
    """
    One sealed room, alive inside the `async with` that opened it. Programs in it run as the seat's user.

    `gateway`: the host folder that it sees read-only as /run/gateway, where its walls have one. `sweep` ends what
    programs that are over have left alive, and counts it; `kill` ends open streams too; `remains` ends it for good.
    """

    name: str
    gateway: Path | None

    async def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0, output_bytes: int = 1 << 20,
        env: Mapping[str, str] | None = None, cwd: str = "/workspace",
    ) -> ExecResult: ...
    def stream(
        self, argv: Sequence[str], *, cwd: str = "/workspace"
    ) -> AbstractAsyncContextManager[ByteStream]: ...
    async def sweep(self) -> int | None: ...
    async def kill(self) -> None: ...
    def remains(self) -> AbstractAsyncContextManager[Remains]: ...
    async def facts(self) -> Mapping[str, Any]: ...


class Remains(Workspace, Protocol):
    """A fresh room that sees, read-only, what the seat left in /workspace. Nothing of the seat's lives in it."""

    proof: KillProof


class WorkspaceBackend(Protocol):
    """Makes workspaces. `guarantees` maps each promise to None if enforced, else to why it isn't."""

    name: str

    async def engine(self) -> Mapping[str, str]: ...
    async def image_digest(self, image: str) -> str: ...
    async def guarantees(self) -> Mapping[str, str | None]: ...
    def options(self, walls: Walls) -> Mapping[str, Any]: ...
    def open(self, walls: Walls, *, run: str) -> AbstractAsyncContextManager[Workspace]: ...
    async def reap(self) -> Sequence[str]: ...


RoomOpener: TypeAlias = "Callable[[], AbstractAsyncContextManager[Workspace]]"
"""Opens one fresh sealed workspace each time it is called."""


class Model(Protocol):
    """One model, ready to answer."""

    async def complete(self, request: Request) -> Completion: ...


class ModelProvider(Protocol):
    """A kind of model server."""

    name: str

    async def identify(self, spec: ModelSpec) -> ModelIdentity: ...
    def open(self, spec: ModelSpec) -> AbstractAsyncContextManager[Model]: ...


class Arm(Protocol):
    """What differs between conditions. `content` is what is pinned: its text, or its renderer's frozen templates."""

    name: str
    seats: frozenset[str]

    @property
    def content(self) -> bytes: ...
    def render(self, view: RoundView) -> str: ...


class Seat(Protocol):
    """An agent session. It returns when it declares itself done; limits end it from outside, by cancellation."""

    name: str

    def options(self) -> Mapping[str, Any]: ...
    async def sit(self, desk: Desk) -> Declared: ...


class PublicCheck(Protocol):
    """What a seat may learn of its own candidate between rounds: the public tier, and nothing of the hidden one."""

    async def __call__(self, code: str) -> PublicReading: ...


class Referee(Protocol):
    """Judges an exhibit against sealed material in workspaces of its own; `classes` maps each reading to a standing."""

    name: str
    classes: Mapping[str, Standing]

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]: ...
    def reference(self, sealed: SealedHalf) -> Tree: ...
    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]: ...
    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict: ...
    def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AbstractAsyncContextManager[PublicCheck | None]: ...


class Probe(Protocol):
    """An attempt to breach the fence, the evidence it must bring back, and a weakening under which it must succeed."""

    name: str
    language: str
    threat: str
    holds: frozenset[Finding]

    def weaken(self, fence: Fence, site: Site) -> Fence: ...
    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt: ...
