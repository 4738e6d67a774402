"""What a registered analysis splits, clusters and resamples by, and what it expects: the small tables of a contrast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

__all__ = ["CLUSTERS", "STRATA", "Expected", "Grouping", "Resampling", "Splits", "Text", "unknown_splits"]

Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A name or sentence: neither empty nor blank, without outer spaces."""

STRATA = ("benchmark", "model")
"""The parts of a unit that strata may be made of, beside the groupings' names."""

CLUSTERS = ("task", "unit")
"""What a cluster may be, beside a grouping's stratum: `task` is a benchmark's task under all its models."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Grouping(_Table):
    """A named map from strata to what is in them, for what no part of a unit tells: a difficulty, a family of tasks."""

    name: Text
    """What a contrast's `strata` and `cluster` call it by."""

    members: Annotated[dict[Text, tuple[Text, ...]], Field(min_length=1)]
    """By stratum: tasks as `benchmark|task`, under every model, or single units as `benchmark|model|task`."""

    @field_validator("name")
    @classmethod
    def _no_part(cls, name: str) -> str:
        if name in (*STRATA, *CLUSTERS):
            raise ValueError(f"a grouping is called {name!r}, which is a part of every unit: expected another name")
        return name

    @field_validator("members")
    @classmethod
    def _each_once(cls, members: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        placed: dict[str, str] = {}
        for stratum, names in members.items():
            for name in names:
                if name.count("|") not in {1, 2}:
                    raise ValueError(f"{name!r} in {stratum!r}: expected `benchmark|task` or `benchmark|model|task`")
                if name in placed:
                    raise ValueError(f"{name!r} stands in {placed[name]!r} and in {stratum!r}: expected once")
                placed[name] = stratum
        return members


class Resampling(_Table):
    """A cluster bootstrap of the paired risk difference; every part of it is registered, the seed too."""

    cluster: Text
    """What is drawn whole: `task`, `unit`, or a grouping's name."""

    strata: tuple[Text, ...] = ()
    """What clusters are drawn within: `benchmark`, `model`, or groupings' names, crossed; empty is one stratum."""

    replicates: Annotated[int, Field(ge=1000, le=10_000_000)]
    """How many times the clusters are drawn."""

    seed: Annotated[int, Field(ge=0)]
    """Seeds the generator: an equal seed gives an equal interval."""

    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """The level of the interval."""


class Expected(_Table):
    """What a test is expected to meet; its exact conditional power follows, and is told before the run."""

    pairs: Annotated[int, Field(ge=1)]
    """Discordant pairs."""

    share: Annotated[float, Field(ge=0, le=1)]
    """The share of them that favours the treatment."""

    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The level that one test is held against; without it, the analysis's `alpha` over the size of the family."""


Splits: TypeAlias = Literal["strata", "cluster"]


def unknown_splits(what: Splits, names: Iterable[str], groupings: Iterable[str]) -> list[str]:
    """Those of `names` that are neither a part of a unit nor a grouping, as complaints."""
    known = (*(STRATA if what == "strata" else CLUSTERS), *groupings)
    return [f"{what}: unknown {name!r}: expected one of {', '.join(known)}" for name in names if name not in known]
