"""The table of an experiment file that says which units it is about, chosen by a pool of candidates made beforehand."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["PopulationEntry"]

Count = Annotated[int, Field(ge=1)]


class PopulationEntry(BaseModel):
    """Which units are played; without this table every task is, with every model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)

    pool: Annotated[str, Field(min_length=1)]
    """A file that `proctor pool make` wrote, relative to the experiment file."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The pool's digest, as `proctor pool show` prints it."""
    select: Literal["dead", "all"] = "dead"
    """`dead` takes the units none of whose candidates the public tests accept; `all` takes every unit."""
    max_prompt_chars: Count | None = None
    """Leave out units whose prompt in the pool is longer, in characters."""
    cap: Count | None = None
    """Take at most so many units of each benchmark and model, by a seeded hash."""
    disjoint: Count | None = None
    """A sensitivity sample of so many units of each benchmark and model, drawn from those that the cap left out."""
    sample: Literal["primary", "disjoint"] = "primary"
    """Which of the two samples this registration plays."""
    seed: int = 0
    """Decides both draws."""

    @model_validator(mode="after")
    def _drawable(self) -> PopulationEntry:
        if self.disjoint is not None and self.cap is None:
            raise ValueError("`disjoint` is drawn from what the cap leaves out: expected a `cap` beside it")
        if self.sample == "disjoint" and self.disjoint is None:
            raise ValueError("sample is 'disjoint': expected `disjoint`, the size of that sample")
        return self
