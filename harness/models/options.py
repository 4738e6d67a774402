"""Reading the options of a model from the experiment file: unknown keys are refused, with the nearest name given."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ExperimentError, unknown_name
from harness.messages import ModelSpec

__all__ = ["Options", "Strict", "read_options", "refuse_fields"]


class Strict(BaseModel):
    """A table of an experiment file: frozen, without unknown keys, NaN or infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Options(Strict):
    """What every provider's options have in common."""

    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds that a reply may take; a slower one is a failure of the model server."""


OptionsT = TypeVar("OptionsT", bound=Options)


def read_options(kind: type[OptionsT], spec: ModelSpec) -> OptionsT:
    """The options of `spec` as a `kind`. Raises `ExperimentError` that names each bad one and what was expected."""
    for key in spec.options:
        if key not in kind.model_fields:
            raise ExperimentError(f"model {spec.name!r}: {unknown_name('option', key, kind.model_fields)}")
    try:
        return kind.model_validate(dict(spec.options))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.200}"
            for item in error.errors()
        )
        raise ExperimentError(f"model {spec.name!r}: the options of provider {spec.provider!r}: {wrong}") from error


def refuse_fields(spec: ModelSpec, *fields: str) -> None:
    """Raises `ExperimentError` when `spec` sets one of `fields`, none of which its provider has a use for."""
    for name in fields:
        if getattr(spec, name) is not None:
            raise ExperimentError(
                f"model {spec.name!r}: provider {spec.provider!r} has no use for {name} = {getattr(spec, name)!r}; "
                "take it out, or name another provider"
            )
