"""What a card of the `swebench` referee says of a task, its sealed record, and what an experiment may set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import ExperimentError, TaskError
from harness.tasks.card import Card, explain, read_card
from harness.tasks.task import SealedHalf
from harness.tree import clean_path

__all__ = ["SweBenchCard", "SweBenchOptions", "read_options", "record"]

_TEXTS = ("instance_id", "image", "repo", "version", "log_parser", "eval_type", "eval_script", "patch")
_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")


class SweBenchCard(Card):
    """What the `swebench` referee needs to know of a task."""

    image_id: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    """The id of the instance's image on the engine, whatever the record calls it: `docker inspect -f {{.Id}} IMAGE`."""
    instance: str = "instance.json"
    """The instance's record, in `tests/`, as SWE-bench's data sets have it since version 5."""
    patch: str = "patch.diff"
    """The exhibit's file with the candidate's patch; without it, the exhibit is compared with the environment."""
    timeout_s: Annotated[int, Field(ge=1)] = 1800
    """Seconds that the tests may take, by the clock."""

    @field_validator("instance", "patch")
    @classmethod
    def _clean(cls, value: str) -> str:
        return clean_path(value)


class SweBenchOptions(BaseModel):
    """The referee's options."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    memory_bytes: Annotated[int, Field(ge=256 << 20)] = 4 << 30
    """Memory of the instance's container, in bytes."""
    pids: Annotated[int, Field(ge=16)] = 1024
    """Processes in it at one time."""


def read_options(options: Mapping[str, Any]) -> SweBenchOptions:
    """The options of an experiment file. Raises `ExperimentError` that names what is wrong and what is known."""
    try:
        return SweBenchOptions.model_validate(dict(options))
    except ValidationError as error:
        faults = "\n  ".join(explain(error, SweBenchOptions, "options"))
        raise ExperimentError(f"options of referee 'swebench':\n  {faults}") from None


def record(sealed: SealedHalf) -> tuple[SweBenchCard, dict[str, Any]]:
    """The card, and the sealed record. Raises `TaskError` where either is none."""
    card = read_card(SweBenchCard, sealed.card, "swebench")
    if card.instance not in sealed.tests:
        raise TaskError(f"tests/ has no {card.instance}: it has {', '.join(sealed.tests) or 'no file'}")
    try:
        found = json.loads(sealed.tests[card.instance])
        made = {name: str(found[name]) for name in _TEXTS}
        lists = {name: _listed(found[name]) for name in _LISTS}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TaskError(
            f"tests/{card.instance} is no SWE-bench record: {type(error).__name__} {error}; it needs "
            f"{', '.join((*_TEXTS, *_LISTS))}"
        ) from None
    return card, {**made, **lists}


def _listed(value: Any) -> list[str]:
    """A list of tests, which the data sets keep as JSON in a text."""
    items = json.loads(value) if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise TypeError(f"expected a list of tests, not {str(items)[:80]!r}")
    return items
