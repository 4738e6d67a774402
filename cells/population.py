"""
Which units a registration is about: chosen by a pinned pool, cut and drawn by seeded hashes, counted at each step.

Nothing here looks at what an arm did: the flow is a function of the pool, the tasks, the models and the table alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cells.pools.candidates import Pool, parse_pool
from harness.canonical import digest_bytes
from harness.errors import ExperimentError
from harness.population import PopulationEntry
from harness.seeds import hash_order
from harness.tasks.task import Task
from harness.values import CellKey, Unit
from harness.views import Previous

__all__ = ["Flow", "Population", "flow_lines", "refuse_foreign_pool", "settle_population"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """
    One benchmark and model: `initial` units are `dead`, `alive` or `unknown`; of the `selected` ones `excluded` have
    too long a prompt and `capped` are over the cap; `primary` are what is left, `disjoint` a sample of the capped ones.
    """

    benchmark: str
    model: str
    initial: int
    dead: int
    alive: int
    unknown: int
    selected: int
    excluded: int
    capped: int
    primary: int
    disjoint: int


@dataclass(frozen=True, kw_only=True)
class Population:
    """The units that are played, their pool (with the `data` of its file), and the flow to them."""

    entry: PopulationEntry
    data: bytes = field(repr=False)
    pool: Pool = field(repr=False)
    units: frozenset[Unit]
    flow: tuple[Flow, ...]

    def candidates(self, cell: CellKey) -> tuple[Previous, ...]:
        """The pool of a cell's unit."""
        return self.pool.previous(cell.unit)

    def to_json(self) -> dict[str, Any]:
        """The flow as an outlook keeps it."""
        return {"sample": self.entry.sample, "select": self.entry.select, "flow": [asdict(row) for row in self.flow]}


def settle_population(
    entry: PopulationEntry, data: bytes, *, tasks: Mapping[str, Task], models: Sequence[str]
) -> Population:
    """
    The population of an experiment's tasks and models. Raises `ExperimentError` when the pool is not the pinned one, is
    not whole, lacks a unit, or leaves none to play; `IntegrityError` when its lines are not what they say.
    """
    found = digest_bytes(data)
    if found != entry.sha256:
        raise ExperimentError(
            f"population.pool: {entry.pool} has SHA-256 {found}: expected {entry.sha256}, which population.sha256 pins"
        )
    pool = parse_pool(data, entry.pool)
    if pool.missing:
        raise ExperimentError(
            f"population.pool: {entry.pool} lacks {pool.missing} candidates: `proctor pool make` goes on with it"
        )
    places: dict[tuple[str, str], list[Unit]] = {}
    for task in tasks.values():
        for model in models:
            unit = Unit(benchmark=task.open.benchmark, model=model, task=task.open.name)
            if unit not in pool.lines:
                raise ExperimentError(f"population.pool: {entry.pool} has no candidate of {unit}: make a pool with it")
            places.setdefault((unit.benchmark, unit.model), []).append(unit)
    samples = [_sampled(entry, pool, units) for _place, units in sorted(places.items())]
    chosen = frozenset(unit for _row, sample in samples for unit in sample)
    if not chosen:
        initial, dead = (sum(getattr(row, name) for row, _sample in samples) for name in ("initial", "dead"))
        raise ExperimentError(
            f"population: no unit of {initial} is left in the {entry.sample} sample (select is {entry.select!r}, "
            f"{dead} are dead): expected one at least"
        )
    return Population(entry=entry, data=data, pool=pool, units=chosen, flow=tuple(row for row, _sample in samples))


def _sampled(entry: PopulationEntry, pool: Pool, units: Sequence[Unit]) -> tuple[Flow, list[Unit]]:
    """The flow of one benchmark and model, and the units that are played of it."""
    states = Counter(pool.state(unit) for unit in units)
    selected = [unit for unit in units if entry.select == "all" or pool.state(unit) == "dead"]
    most = entry.max_prompt_chars
    eligible = {str(unit): unit for unit in selected if most is None or pool.prompt_chars(unit) <= most}
    order = hash_order(eligible, f"population|{entry.seed}|cap")
    primary, over = order[: entry.cap], order[len(order[: entry.cap]) :]
    disjoint = hash_order(over, f"population|{entry.seed}|disjoint")[: entry.disjoint or 0]
    row = Flow(
        benchmark=units[0].benchmark,
        model=units[0].model,
        initial=len(units),
        dead=states["dead"],
        alive=states["alive"],
        unknown=states["unknown"],
        selected=len(selected),
        excluded=len(selected) - len(eligible),
        capped=len(over),
        primary=len(primary),
        disjoint=len(disjoint),
    )
    return row, [eligible[name] for name in (primary if entry.sample == "primary" else disjoint)]


def refuse_foreign_pool(population: Population, pins: Mapping[str, Any]) -> None:
    """Raise `ExperimentError` when the pool's candidates are of other tasks, suites or models than are registered."""
    header = population.pool.header
    ours = {(unit.benchmark, unit.task) for unit in population.units}
    for task in header["tasks"]:
        key = f"{task['benchmark']}/{task['task']}"
        if (task["benchmark"], task["task"]) not in ours:
            continue
        now = {"open": pins[f"task {key}"]["open"], "suite": pins[f"suite {key}"]["digest"]}
        for what, digest in now.items():
            if task[what] != digest:
                raise ExperimentError(
                    f"population.pool: {what} of {key} was {task[what][:12]} when the pool was made and is "
                    f"{digest[:12]}: make the pool anew"
                )
    for model in sorted({unit.model for unit in population.units}):
        if header["models"][model] != pins[f"model {model}"]:
            raise ExperimentError(
                f"population.pool: model {model!r} was {header['models'][model]} when the pool was made and is "
                f"{pins[f'model {model}']}: make the pool anew"
            )


def flow_lines(shown: Mapping[str, Any] | None) -> Iterator[str]:
    """The flow for a person; nothing where there is no population."""
    if shown is None:
        return
    yield f"population, sample {shown['sample']!r}, select {shown['select']!r}:"
    for row in shown["flow"]:
        yield (
            f"  {row['benchmark']}, {row['model']}: {row['initial']} units, {row['dead']} dead, {row['alive']} alive, "
            f"{row['unknown']} unknown; {row['selected']} selected, {row['excluded']} excluded by length, "
            f"{row['capped']} over the cap; {row['primary']} primary, {row['disjoint']} disjoint"
        )
