"""
What a task folder's `[proctor]` table may say, validated whole; a referee's part travels as the sealed card.

A task for the `pytest` referee has that referee's keys in the table itself. A task for any other has them in a table of
their own, `[proctor.card]`, which the referee reads with `read_card` by a model of its own, a subclass of `Card`.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness.canonical import canonical_bytes
from harness.errors import TaskError, unknown_name
from harness.tasks.task import Form

__all__ = [
    "Card",
    "CardTable",
    "Interface",
    "Leaks",
    "Limits",
    "ProctorTable",
    "SuiteCard",
    "explain",
    "read_card",
    "suite_card",
]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{7,64}$")]
Module = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )


class Interface(_Table):
    """One module that the subject must provide, and the names that the suite may take from it."""

    module: Module
    """As the suite imports it: `lru`, or `shop.stock`."""
    names: list[Identifier] = []
    """Functions and classes."""
    exceptions: list[Identifier] = []
    """Exception classes, which the suite may name in `pytest.raises`."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.module.partition(".")[0] in sys.stdlib_module_names:
            raise ValueError(f"module {self.module!r} has the name of a standard module: choose another")
        if not self.names and not self.exceptions:
            raise ValueError(f"module {self.module!r} declares no name: give `names`, `exceptions` or both")
        _once(f"names of {self.module}", [*self.names, *self.exceptions])
        return self


class Limits(_Table):
    """What the subject may use while one whole suite runs; a limit left out is the referee's own."""

    cpu_s: Annotated[int, Field(ge=1)] | None = None
    """Seconds of the processor."""
    wall_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds spent waiting for the subject."""
    memory_bytes: Annotated[int, Field(ge=32 << 20)] | None = None
    """Bytes of address space."""


class Leaks(_Table):
    """What the search for leaks has to know of a task."""

    forbidden_commits: list[Commit] = []
    """Commits (by their id, or its first seven digits or more) that no repository given to the seat may still hold."""
    shared: list[str] = []
    """Sealed files that the seat is shown on purpose, as `tests/test_public.py`: not searched for."""


class Card(_Table):
    """What every card may say, whoever judges: subclass it for a referee of your own."""

    image: str = ""
    """The image of the rooms that the task is judged in; empty takes the experiment's."""
    forbidden: list[str] = []
    """Words that a screen of the referee's refuses; the instruction must name each."""
    leaks: Leaks = Leaks()
    """What the search for leaks has to know."""


C = TypeVar("C", bound=Card)


class SuiteCard(Card):
    """What the `pytest` referee needs to know of a task."""

    ids: Annotated[list[str], Field(min_length=1)]
    """Every test of the withheld suite, as pytest names it from the `tests` folder: `test_lru.py::test_evicts`."""
    public: list[str] = []
    """Those of `ids` that a seat may learn of between rounds."""
    interface: Annotated[list[Interface], Field(min_length=1)]
    """The modules that the subject must provide."""
    forbidden: list[Identifier] = []
    """Words that no Python file of the exhibit may use as a name or import; the instruction must name each."""
    limits: Limits = Limits()
    """What the subject may use."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _once("ids", self.ids)
        _once("public", self.public)
        _once("modules", [module.module for module in self.interface])
        for test in self.public:
            if test not in self.ids:
                raise ValueError(f"public names a test that is not in ids: {unknown_name('test', test, self.ids)}")
        return self


class _TaskTable(Card):
    """The keys of a `[proctor]` table that say what the task is, whoever judges it."""

    benchmark: Name
    """The benchmark that the task belongs to; part of every unit."""
    name: Name
    """The task's name in the benchmark; part of every unit."""
    form: Form = "greenfield"
    """`greenfield`, `brownfield`, `embedded` or `change`."""
    extras: list[Name] = []
    """Named additions, each in `extras/NAME.md`; `none` always exists and has no file."""
    details: dict[str, str] = {}
    """Facts that a packet may use."""

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        _once("extras", self.extras)
        if "none" in self.extras:
            raise ValueError("extras names 'none', which every task has: leave it out")
        return self


class ProctorTable(_TaskTable, SuiteCard):
    """The whole `[proctor]` table of a `task.toml` for the `pytest` referee."""

    def sealed(self) -> dict[str, Any]:
        """The part for the sealed card, as JSON data."""
        return self.model_dump(mode="json", include=set(SuiteCard.model_fields))


class CardTable(_TaskTable):
    """The whole `[proctor]` table of a `task.toml` for any other referee, whose own keys are in `[proctor.card]`."""

    card: dict[str, Any]
    """What the referee needs to know of the task; the referee says which keys it knows."""

    @field_validator("card")
    @classmethod
    def _json(cls, card: dict[str, Any]) -> dict[str, Any]:
        """Dates, times and what is no number have no canonical form, and so no digest."""
        canonical_bytes(card)
        return card

    @model_validator(mode="after")
    def _apart(self) -> Self:
        doubled = sorted(set(self.card) & set(Card.model_fields))
        if doubled:
            raise ValueError(f"card gives {', '.join(doubled)}: expected in [proctor] itself, whoever judges")
        return self

    def sealed(self) -> dict[str, Any]:
        """The part for the sealed card, as JSON data."""
        return {**self.card, **self.model_dump(mode="json", include=set(Card.model_fields))}


def _once(what: str, items: list[str]) -> None:
    doubled = sorted({item for item in items if items.count(item) > 1})
    if doubled:
        raise ValueError(f"{what}: {', '.join(map(repr, doubled))} listed more than once")


def _known(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the table at `path` knows; none where it is no table."""
    table: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str) and table is not None:
            field = table.model_fields.get(step)
            table = None if field is None else _table_in(field.annotation)
    return [] if table is None else sorted(table.model_fields)


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `Leaks`, `list[Interface]` or `Limits | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_table_in, get_args(annotation))), None)


def explain(error: ValidationError, model: type[BaseModel], table: str) -> Iterator[str]:
    """One sentence a fault: where, what was found, what was expected, and the nearest known name of an unknown key."""
    for fault in error.errors():
        *above, last = fault["loc"] or (table,)
        where = ".".join([table, *map(str, fault["loc"])])
        if fault["type"] == "extra_forbidden":
            known = _known(model, tuple(above))
            close = difflib.get_close_matches(str(last), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            yield f"{where}: unknown key.{hint} Known: {', '.join(known)}."
        elif fault["type"] == "missing":
            yield f"{where}: missing"
        else:
            yield f"{where} is {str(fault['input'])[:120]!r}: {fault['msg']}"


def read_card(model: type[C], card: Mapping[str, Any], referee: str) -> C:
    """
    The sealed card as the referee named `referee` reads it.

    Raises `TaskError` with a sentence for each key that the model does not know, misses or refuses.
    """
    try:
        return model.model_validate(dict(card))
    except ValidationError as error:
        faults = "\n  ".join(explain(error, model, "card"))
        raise TaskError(f"the sealed card is not one for the {referee} referee:\n  {faults}") from None


def suite_card(card: Mapping[str, Any]) -> SuiteCard:
    """The sealed card as the `pytest` referee reads it. Raises `TaskError` for a card that is not one."""
    return read_card(SuiteCard, card, "pytest")
