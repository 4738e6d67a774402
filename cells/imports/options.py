"""What a person says about a foreign log: where the parts of a condition stand, and what its words count as."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cells.declared.words import EndWord
from harness.errors import DeclarationError
from harness.table_faults import explain

__all__ = ["PARTS", "HarborOptions", "InspectOptions", "LogOptions", "Places", "Said", "parse_options"]

PARTS = ("benchmark", "task", "arm", "extras", "model")
"""The parts of a condition."""

Place = Annotated[str, Field(min_length=1)]
Word = str | int | float | bool
Options = TypeVar("Options", bound="LogOptions")


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )


class Places(_Table):
    """Where each part of a condition stands in the log, as names with dots between, or as a list of names."""

    benchmark: Place | list[Place] | None = None
    """The benchmark."""
    task: Place | list[Place] | None = None
    """The task."""
    arm: Place | list[Place] | None = None
    """The arm."""
    extras: Place | list[Place] | None = None
    """The extras."""
    model: Place | list[Place] | None = None
    """The model."""


class Said(_Table):
    """What the log does not say, since all its cells share it."""

    benchmark: Place | None = None
    """The benchmark."""
    task: Place | None = None
    """The task."""
    arm: Place | None = None
    """The arm."""
    extras: Place | None = None
    """The extras."""
    model: Place | None = None
    """The model."""


class LogOptions(_Table):
    """What every importer can be told."""

    places: Places = Places()
    """Where parts of the condition stand, if elsewhere than where they usually do."""
    constants: Said = Said()
    """Parts of the condition that all cells share."""
    ends: dict[str, EndWord] = {}
    """What an exception or a limit of the log means, by its name: `DECLARED`, `HALT(limit)`, `VOID(cause)`, ..."""
    at_least: float | None = None
    """The number from which on a score or reward is accepted; without it, numbers in between are refused."""

    @model_validator(mode="after")
    def _says_each_part_once(self) -> LogOptions:
        for part in PARTS:
            if getattr(self.places, part) is not None and getattr(self.constants, part) is not None:
                raise ValueError(f"{part} has both a place and a constant: expected one of the two")
        return self


class HarborOptions(LogOptions):
    """What the importer of Harbor's jobs can be told."""

    reward: str = "reward"
    """The key of the reward that decides, where there are several."""


class InspectOptions(LogOptions):
    """What the importer of Inspect's logs can be told."""

    scorer: Place | None = None
    """The score that decides, by its name; it may be left out where samples have one score."""
    part: Place | None = None
    """The key that decides, of a score that is a dictionary."""
    accepted: list[Word] = ["C", True]
    """The values that are accepted."""
    rejected: list[Word] = ["I", False]
    """The values that are rejected."""
    unscorable: list[Word] = []
    """The values that decide nothing."""

    @model_validator(mode="after")
    def _reads_each_value_one_way(self) -> InspectOptions:
        words = [(type(word), word) for word in (*self.accepted, *self.rejected, *self.unscorable)]
        if twice := [word for kind, word in words if words.count((kind, word)) > 1]:
            raise ValueError(f"the score {twice[0]!r} is said to be two things: expected one")
        return self


def parse_options(kind: type[Options], given: Any, origin: str) -> Options:
    """The options of an importer. Raises `DeclarationError` that says what is wrong with them."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise DeclarationError(explain(error, origin, kind)) from None
