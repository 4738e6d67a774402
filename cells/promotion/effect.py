"""
What an effect is: the comparison of two arms by a test over a population, whatever the contrast is called.

Two contrasts are one effect when they compare the same bytes of arms, by the same test, on the same units: a name, a
side, a direction, a family or a stratum more makes no other effect of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from harness.analysis import Alternative, Analysis, Contrast, TestName
from harness.canonical import digest_json
from harness.errors import UsageError, unknown_name
from harness.registration import Registration

__all__ = ["Effect", "Seen", "contrast_of", "effect_of", "seen_in"]

Seen: TypeAlias = Literal["greater", "less", "none"]
"""The side that the figures lean to: the treatment passed more, less, or neither."""

_SIDES = ("treatment", "control")


class Effect(BaseModel):
    """A registered contrast as what it compares. `units` are sorted; the digests are of the arms' pins."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    contrast: str
    treatment: str
    control: str
    treatment_sha256: str
    control_sha256: str
    test: TestName
    cluster: str | None
    separation: int | str | None
    alternative: Alternative
    extras: str
    model: str | None
    family: str
    qualifiers: tuple[str, ...]
    setting: dict[str, str]
    units: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of what makes it this effect and no other: arms, test and population."""
        arms = sorted((self.treatment_sha256, self.control_sha256))
        return digest_json({"arms": arms, "test": self.test, "extras": self.extras, "units": list(self.units)})


def contrast_of(registration: Registration, name: str) -> Contrast:
    """The frozen contrast of that name. Raises `UsageError` with the known ones."""
    contrasts = {item.name: item for item in _analysis(registration).contrasts}
    if name not in contrasts:
        raise UsageError(
            f"{registration.id}: {unknown_name('contrast', name, sorted(contrasts))} What an amendment added was not "
            "registered before the data, and isn't promoted"
        )
    return contrasts[name]


def effect_of(registration: Registration, name: str) -> Effect:
    """The effect that a frozen contrast is about. Raises `UsageError` for one that isn't in the registration."""
    item = contrast_of(registration, name)
    arms = {side: getattr(item, side) for side in _SIDES}
    units = {
        str(cell.unit)
        for cell in registration.cells
        if cell.arm in arms.values() and cell.extras == item.extras and item.model in {None, cell.model}
    }
    return Effect(
        contrast=name,
        **arms,
        **{f"{side}_sha256": digest_json(registration.pins[f"arm {arm}"]) for side, arm in arms.items()},
        test=item.test,
        cluster=item.cluster,
        separation=item.separation,
        alternative=item.alternative,
        extras=item.extras,
        model=item.model,
        family=_analysis(registration).family_of(item),
        qualifiers=item.qualifiers,
        setting=_setting(registration),
        units=tuple(sorted(units)),
    )


def _analysis(registration: Registration) -> Analysis:
    return Analysis.model_validate(registration.experiment["analysis"])


def _setting(registration: Registration) -> dict[str, str]:
    """Who worked and who judged: a confirmation may differ in it, and then says so."""
    experiment, pins = registration.experiment, registration.pins
    served = sorted(
        f"{name.removeprefix('model ')}: {pins[name]['served']}" for name in pins if name.startswith("model ")
    )
    return {
        "models": ", ".join(served),
        "seat": experiment["seat"]["kind"],
        "referee": experiment["referee"]["name"],
        "code": f"{pins['code']['version']}, {pins['code']['sha256'][:12]}",
    }


def seen_in(reading: Mapping[str, Any]) -> Seen:
    """The side that a contrast's reading leans to: by its discordant pairs or, without pairs, by shares of passes."""
    groups = reading["groups"]
    if groups is None:
        lean = reading["pairs"]["treatment_only"] - reading["pairs"]["control_only"]
    else:
        (treatment, control), failed = groups["passed"], groups["failed"]
        # The shares p / (p + f) of both arms, compared without a division.
        lean = treatment * (control + failed[1]) - control * (treatment + failed[0])
    return "none" if lean == 0 else "greater" if lean > 0 else "less"
