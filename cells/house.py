"""The house of a run: its parts, opened once and shared by all of its cells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from cells.freeze import Frozen
from cells.parts import Parts, model_spec
from cells.price_lists import price_list
from cells.turns import Turns
from fences.cell_gate import CellGate
from harness.blobs import BlobStore
from harness.clock import Clock
from harness.errors import ImageError, WorkspaceError
from harness.experiment import Budget
from harness.messages import ModelIdentity
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.money import dollars
from harness.ports import Model, RoomOpener, Workspace
from harness.pricing import PriceList
from harness.registration import Registration
from harness.tasks.task import Task
from harness.values import CellKey
from harness.walls import Caps, Walls

__all__ = ["House", "bounds", "open_models"]


@dataclass(frozen=True, kw_only=True)
class House:
    """
    What every cell of a run works with. `arm_ledgers` and `run_ledger` hold what the run has spent so far; `playing`
    are the cells under way; `gate` is that of this session's cells, once the fence was qualified; `turns` are those of
    judging.
    """

    registration: Registration
    parts: Parts
    identities: Mapping[str, ModelIdentity]
    folder: Path
    clock: Clock
    models: dict[str, Model] = field(default_factory=dict)
    run_ledger: Ledger = field(default_factory=Ledger)
    arm_ledgers: dict[str, Ledger] = field(default_factory=dict)
    playing: set[str] = field(default_factory=set)
    gate: CellGate | None = None
    turns: Turns = field(default_factory=Turns)

    @classmethod
    def of(cls, frozen: Frozen, *, clock: Clock) -> House:
        """The house of a registration whose pins were just looked at again."""
        return cls(
            registration=frozen.registration,
            parts=frozen.parts,
            identities=frozen.identities,
            folder=frozen.folder,
            clock=clock,
            arm_ledgers={name: Ledger() for name in frozen.parts.arms},
        )

    @property
    def store(self) -> BlobStore:
        """The run's blobs."""
        return BlobStore(self.folder / "blobs")

    def seat_room(self) -> AbstractAsyncContextManager[Workspace]:
        """A fresh workspace for a seat."""
        return self._room(self.parts.fence.walls)

    @property
    def referee_images(self) -> tuple[str, ...]:
        """The images that referees' rooms start from, each once."""
        return tuple(sorted({self.parts.judging_image(task) for task in self.parts.tasks.values()}))

    def rooms(self, task: Task) -> RoomOpener:
        """
        Opens a fresh workspace of the task's referee each time it is called. Its walls are the seat's, with the
        referee's own image and limits and an empty environment.
        """
        caps = Caps(**self.parts.experiment.referee.limits.model_dump())
        walls = replace(self.parts.fence.walls, image=self.parts.judging_image(task), caps=caps, environment={})
        return partial(self._room, walls)

    @asynccontextmanager
    async def _room(self, walls: Walls) -> AsyncIterator[Workspace]:
        """
        A workspace of the run. Raises `WorkspaceError` for an image that is gone, as for any other room that can't be
        had: the run's images were there when it was frozen.
        """
        async with AsyncExitStack() as stack:
            try:
                room = await stack.enter_async_context(self.parts.backend.open(walls, run=self.registration.id))
            except ImageError as error:
                raise WorkspaceError(f"no room can be opened: {error}") from error
            yield room

    def rates(self, model: str) -> PriceList | None:
        """What a model of the experiment is priced by."""
        experiment = self.parts.experiment
        (entry,) = (entry for entry in experiment.models if entry.name == model)
        served = self.identities[model].served
        return price_list(entry, self.parts.cards, served=served, rounding=experiment.cost.rounding)

    def meter(self, cell: CellKey) -> Meter:
        """A meter for one try of `cell`, which charges the arm's and the run's ledgers too."""
        budgets = self.parts.experiment.budgets
        scopes = (
            Scope(name="cell", bounds=bounds(budgets.cell), ledger=Ledger()),
            Scope(name="arm", bounds=bounds(budgets.arm), ledger=self.arm_ledgers[cell.arm]),
            Scope(name="run", bounds=bounds(budgets.run), ledger=self.run_ledger),
        )
        return Meter(scopes, clock=self.clock, rates=self.rates(cell.model))


def bounds(budget: Budget) -> Bounds:
    """A budget of the experiment file as the bounds of a scope."""
    return Bounds(
        tokens=budget.tokens,
        usd=None if budget.usd is None else dollars(budget.usd),
        calls=budget.calls,
        wall=budget.wall_s,
        output=budget.output_bytes,
    )


@asynccontextmanager
async def open_models(house: House) -> AsyncIterator[None]:
    """Open every model of the experiment for as long as the context lasts."""
    async with AsyncExitStack() as stack:
        for entry in house.parts.experiment.models:
            provider = house.parts.providers[entry.name]
            house.models[entry.name] = await stack.enter_async_context(provider.open(model_spec(entry)))
        try:
            yield
        finally:
            house.models.clear()
