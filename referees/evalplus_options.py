"""What an experiment may set of the `evalplus` referee. Every option is part of the suite's digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import ExperimentError
from harness.tree import clean_path

__all__ = ["EvalPlusOptions", "read_options"]


class EvalPlusOptions(BaseModel):
    """The options with their defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    hidden_cap: int | Literal["all"] = 300
    """How many plus inputs make the hidden tier, in source order, or "all"."""

    public_tier: Literal["full", "to-first-violation"] = "full"
    """Whether each public test has a reading, or the tier ends at the first violation, as EvalPlus's does."""

    prelude: bool = True
    """Whether the prompt's imports, helpers and constants run before the candidate."""

    memory_bytes: int = Field(default=2 << 30, ge=64 << 20)
    """Address space of one candidate, in bytes. A room with less than this and 64 MiB is refused."""

    min_time_s: float = Field(default=1.0, gt=0, le=600)
    """The least CPU time that a call may take, in seconds. Building may take twice that."""

    time_factor: float = Field(default=4.0, ge=1, le=1000)
    """A call may take this many times the reference's CPU time, if that is more."""

    file: str = "solution.py"
    """The candidate's file, by its path in the exhibit."""

    python: str = Field(default="3.11", pattern=r"^3\.[0-9]{1,3}$")
    """
    The version of Python that the room must have. Some expected values depend on it: sums of floats since 3.12.
    """

    @field_validator("hidden_cap")
    @classmethod
    def _not_negative(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError('expected 1 or more, or "all"')
        return value

    @field_validator("file")
    @classmethod
    def _clean(cls, value: str) -> str:
        return clean_path(value)


def read_options(options: Mapping[str, Any]) -> EvalPlusOptions:
    """The options of an experiment file. Raises `ExperimentError` that names what is wrong and what is known."""
    try:
        return EvalPlusOptions.model_validate(dict(options))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))} = {fault['input']!r}: {fault['msg']}" for fault in error.errors()
        )
        known = ", ".join(EvalPlusOptions.model_fields)
        raise ExperimentError(f"options of referee 'evalplus': {faults}. Known: {known}.") from error
