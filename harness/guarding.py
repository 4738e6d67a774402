"""Guards as they are registered: predicates beside the tests, with every parameter written down before the run."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from harness.grouping import Text

__all__ = ["GuardEntry", "HarmGate", "MaterialRescue", "StratumGate"]


class _Guard(BaseModel):
    """What every guard has."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    name: Text
    """The name it is reported under, unique among the guards."""


class HarmGate(_Guard):
    """Passes while the treatment alone loses at most a share of a contrast's judged pairs."""

    kind: Literal["harm-gate"]
    """`harm-gate`."""

    contrast: Text
    """The contrast it looks at."""

    most: Annotated[float, Field(gt=0, lt=1)]
    """The largest share b10 / n that passes."""

    @property
    def contrasts(self) -> tuple[str, ...]:
        """The names of the contrasts that it reads."""
        return (self.contrast,)


class MaterialRescue(_Guard):
    """Passes while a placebo's net gain is less than a share of the treatment's, both against one control."""

    kind: Literal["material-rescue"]
    """`material-rescue`."""

    placebo: Text
    """The contrast of the placebo against the control."""

    treatment: Text
    """The contrast of the treatment against the same control."""

    share: Annotated[float, Field(gt=0, le=1)]
    """The share of the treatment's net that the placebo's must stay below."""

    @property
    def contrasts(self) -> tuple[str, ...]:
        """The names of the contrasts that it reads."""
        return (self.placebo, self.treatment)


class StratumGate(_Guard):
    """Passes while no stratum of a contrast turns round: by its net, or by its one-sided exact p of harm."""

    kind: Literal["stratum-gate"]
    """`stratum-gate`."""

    contrast: Text
    """The contrast whose strata it looks at."""

    worst_net: int
    """A stratum whose net b01 - b10 is this or less fails."""

    alpha: Annotated[float, Field(gt=0, lt=1)]
    """A stratum whose one-sided p of harm is below this fails."""

    @property
    def contrasts(self) -> tuple[str, ...]:
        """The names of the contrasts that it reads."""
        return (self.contrast,)


GuardEntry: TypeAlias = Annotated[HarmGate | MaterialRescue | StratumGate, Field(discriminator="kind")]
"""A guard of the experiment file, told apart by its `kind`."""
