"""
An amendment: a dated addition to a frozen experiment, appended to its record; nothing before it changes.

It says why, what changes, and which checks must hold at the moment it is made. What may be said is the list of fields
below and nothing else: an arm's text, a task, a limit or an outcome can't be amended, only registered anew.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.analysis import Contrast, Ratio
from harness.errors import ExperimentError, unknown_name
from harness.grouping import Text
from harness.predictions import Condition, Prediction
from harness.table_faults import expected
from harness.written import toml_of

__all__ = ["NEVER", "Amendment", "AmendmentCheck", "Notice", "Withdrawal", "load_amendment", "parse_amendment"]

NEVER = {
    "alpha": "the level that p-values are held against",
    "analysis": "the registered tests; add new ones as `contrasts` or `ratios`",
    "arms": "the frozen arms; another arm is another registration",
    "budgets": "the limits that cells were stopped by",
    "cells": "the declared cells; more of them come by `replicates`",
    "extras": "the extras that conditions were frozen with",
    "family": "the registered family of tests",
    "fence": "the fence that cells were played behind",
    "models": "the models",
    "outcomes": "recorded outcomes and the table that reads them",
    "question": "what the experiment asks",
    "referee": "the referee and its limits",
    "seat": "the seat and its seeds",
    "tasks": "the frozen tasks; one that is broken goes by `withdrawn`",
    "verdicts": "recorded verdicts",
    "workspace": "the workspace that cells were played in",
}
"""What somebody might try to amend, and what it is: each is refused in words of its own."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class AmendmentCheck(Condition):
    """A figure, and the region that it must be in at the moment the amendment is made; looked up by machine."""

    name: Text
    """The name it is told under, unique in the amendment."""

    @model_validator(mode="after")
    def _can_hold(self) -> AmendmentCheck:
        if not any(point in self.span for point in self.ref.spec.domain.points([self.span])):
            raise ValueError(f"check {self.name!r}: {self.ref} is never {self.span}: expected what can hold")
        return self


class Withdrawal(_Part):
    """A task that leaves the amended reading, in all arms alike. The frozen reading keeps it."""

    task: Text
    """The task, as `benchmark/task`."""
    reason: Text
    """Why: printed beside every amended figure's table."""


class Notice(_Part):
    """A correction that stands at the number it is about: it is printed with the test's p-value from here on."""

    contrast: Text | None = None
    """The contrast it is about; or leave it out and name a `ratio`."""
    ratio: Text | None = None
    """The ratio it is about."""
    text: Text
    """The sentence."""

    @model_validator(mode="after")
    def _one_place(self) -> Notice:
        if (self.contrast is None) == (self.ratio is None):
            raise ValueError("a notice stands at one number: give either `contrast` or `ratio`")
        return self


class Amendment(_Part):
    """The whole file."""

    reason: Text
    """Why the registration does not suffice, in a sentence."""
    changes: Text
    """What changes, in a sentence."""
    checks: Annotated[tuple[AmendmentCheck, ...], Field(min_length=1)]
    """What must hold when it is made, for it to be legal: that no cell it is about was judged yet, say."""
    predictions: tuple[Prediction, ...] = ()
    """Its own predictions, scored over the amended reading and shown apart."""
    contrasts: tuple[Contrast, ...] = ()
    """Comparisons of verdicts added after the data: outside the family, never adjusted with it."""
    ratios: tuple[Ratio, ...] = ()
    """Comparisons of cost added after the data."""
    replicates: Annotated[int, Field(ge=1)] | None = None
    """From now on each condition is run so often: more than before, never fewer."""
    void_retries: Annotated[int, Field(ge=0, le=10)] | None = None
    """From now on a VOID is tried again so often in a session: more than before, never fewer."""
    withdrawn: tuple[Withdrawal, ...] = ()
    """Tasks that leave the amended reading, in all arms alike."""
    notices: tuple[Notice, ...] = ()
    """Corrections that are printed at the number they are about."""

    @model_validator(mode="after")
    def _sound(self) -> Amendment:
        kinds: dict[str, list[str]] = {
            "check": [item.name for item in self.checks],
            "prediction": [item.name for item in self.predictions],
            "contrast": [item.name for item in self.contrasts],
            "ratio": [item.name for item in self.ratios],
            "withdrawn task": [item.task for item in self.withdrawn],
        }
        for kind, names in kinds.items():
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{kind} {name!r} stands {names.count(name)} times: expected once")
        effects = (self.predictions, self.contrasts, self.ratios, self.withdrawn, self.notices)
        if not any(effects) and self.replicates is None and self.void_retries is None:
            raise ValueError(
                "it changes nothing: expected one of predictions, contrasts, ratios, replicates, void_retries, "
                "withdrawn, notices"
            )
        return self


def load_amendment(path: Path) -> tuple[Amendment, bytes]:
    """Read and validate an amendment's file; its bytes are kept with the run. Raises `ExperimentError`."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8")
    except FileNotFoundError:
        raise ExperimentError(
            f"{path} does not exist: expected a TOML file with `reason`, `changes`, `checks`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path} can't be read: {error}") from None
    return parse_amendment(text, str(path)), raw


def parse_amendment(text: str, origin: str = "amendment.toml") -> Amendment:
    """Validate the text of an amendment; `origin` is how messages call it. Raises `ExperimentError`."""
    try:
        data = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{origin} is not valid TOML: {error}") from None
    _refuse_what_is_frozen(data, origin)
    try:
        return Amendment.model_validate(data)
    except ValidationError as error:
        raise ExperimentError(f"{origin} can't be used:\n  " + "\n  ".join(_faults(error))) from None


def _refuse_what_is_frozen(data: Mapping[str, Any], origin: str) -> None:
    """Raise `ExperimentError` that names each part of the registration that no amendment may touch."""
    touched = sorted(set(data) & set(NEVER))
    if touched:
        lines = [f"{key}: an amendment never touches {NEVER[key]}" for key in touched]
        raise ExperimentError(f"{origin} can't be used:\n  " + "\n  ".join(lines))


def _faults(error: ValidationError) -> Collection[str]:
    lines = []
    for fault in error.errors(include_url=False):
        where = ".".join(map(str, fault["loc"])) or "file"
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            lines.append(f"{where}: {unknown_name('key', where, sorted(Amendment.model_fields))}")
        elif fault["type"] == "extra_forbidden":
            lines.append(f"{where}: unknown key")
        elif fault["type"] == "missing":
            lines.append(f"{where}: missing, and required")
        else:
            lines.append(f"{where}: {expected(fault)}")
    return lines
