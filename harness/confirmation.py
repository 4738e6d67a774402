"""The table of an experiment file that says which effect of a finished discovery run the experiment confirms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import unknown_name
from harness.grouping import Text

__all__ = ["ConfirmsEntry", "RunId", "refuse_bad_confirms"]


RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,76}$")]
"""An experiment's name and the 12 digits behind it: it names a folder, and never one elsewhere."""


class ConfirmsEntry(BaseModel):
    """One effect that is confirmed. The discovery's record says so too: `proctor promote` writes both ends' link."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)

    discovery: RunId
    """The id of the finished run that the effect was seen in."""
    effect: Text
    """The contrast's name there."""
    contrast: Text
    """The contrast of this experiment that tests the effect again."""
    promotion: Annotated[str, Field(min_length=1)]
    """The file that `proctor promote` writes, relative to the experiment file."""
    disjoint: bool = False
    """Whether no unit of this contrast may be one that the effect was seen on."""
    direction: Text | None = None
    """Why the contrast claims another direction than the discovery registered or saw; left out, it claims the same."""


def refuse_bad_confirms(entries: Sequence[ConfirmsEntry], contrasts: Collection[str]) -> None:
    """Raise `ValueError` for a contrast that isn't there, and for what two entries can't share."""
    for entry in entries:
        if entry.contrast not in contrasts:
            raise ValueError(f"confirms: {unknown_name('contrast', entry.contrast, contrasts)}")
    alone: dict[str, list[object]] = {
        "contrast": [entry.contrast for entry in entries],
        "promotion": [entry.promotion for entry in entries],
        "discovery and effect": [(entry.discovery, entry.effect) for entry in entries],
    }
    for what, values in alone.items():
        for value in values:
            if values.count(value) > 1:
                raise ValueError(f"confirms: {what} {value!r} stands {values.count(value)} times: expected once")
