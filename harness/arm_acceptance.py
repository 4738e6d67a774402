"""Whether a placebo can stand for its treatment: the findings that an arm's check and a freeze both look at."""

from __future__ import annotations

from collections.abc import Mapping

from harness import plugins
from harness.arm_check import ArmFinding
from harness.arm_folder import FolderArm, files_of
from harness.errors import unknown_name
from harness.placebo import accept
from harness.ports import Arm

__all__ = ["check_name", "check_placebo"]


def check_name(arm: Arm) -> list[ArmFinding]:
    """Whether the name of an arm that is a folder is a registered arm's; one that is this very folder's is no fault."""
    info = plugins.table("arms").get(arm.name)
    if info is None or not isinstance(arm, FolderArm) or files_of(plugins.load("arms", arm.name)()) == arm.files:
        return []
    return [_error("name", f"{arm.name!r} is taken by {info.target} of {info.distribution}: choose another name")]


def check_placebo(arm: Arm, arms: Mapping[str, Arm]) -> list[ArmFinding]:
    """What is found of `arm` beside its treatment among `arms`; nothing where it is no placebo."""
    if not isinstance(arm, FolderArm) or arm.placebo_for is None:
        return []
    treatment = arms.get(arm.placebo_for)
    if treatment is None and arm.placebo_for in plugins.table("arms"):
        treatment = plugins.load("arms", arm.placebo_for)()
    if treatment is None:
        said = unknown_name("treatment", arm.placebo_for, arms)
        return [
            _error(
                "placebo", f"{said}. It must be registered, an arm of the same experiment, or a folder beside this one"
            )
        ]
    text = getattr(treatment, "text", None)
    if not isinstance(text, str) or not text.strip():
        return [_error("placebo", f"{treatment.name!r} is no text: a placebo is measured against a text arm's text")]
    acceptance = accept(text, arm.text, arm.card.placebo)
    measured = [
        ArmFinding(
            rule="placebo",
            level="note" if one.held else "error",
            detail=f"{one.name} against {treatment.name!r}: {one.detail}",
        )
        for one in acceptance.measures
    ]
    controls = [
        _error("control", f"these limits accept {name} as a placebo too, so they tell nothing: make them narrower")
        for name in acceptance.let_through
    ]
    return [*controls, *sorted(measured, key=lambda finding: finding.level != "error")]


def _error(rule: str, detail: str) -> ArmFinding:
    return ArmFinding(rule=rule, level="error", detail=detail)
