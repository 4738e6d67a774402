"""
The promotion record: a line of the discovery's record, which the confirmation pins word for word.

The line is its own proof: its SHA-256 is over all that it says and over the line before it, so whoever holds the file
can tell whether it was changed, and whoever holds the discovery whether it stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cells.promotion.effect import Effect
from cells.promotion.links import KIND, line_of_file
from harness.analysis import Alternative
from harness.canonical import digest_json
from harness.confirmation import RunId
from harness.errors import IntegrityError
from harness.record import Entry, decode_line

__all__ = [
    "Audited",
    "Figures",
    "Promoted",
    "Promotion",
    "Target",
    "experiment_digest",
    "promoted_of",
    "promotions_in",
    "read_promotion",
]

NOTE = "discovery: seen before the confirmation was registered, and no evidence in it"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Audited(_Part):
    """What the audit said of the discovery at its promotion, and the verdicts that its record had kept before."""

    verdict: Literal["CLEAN"]
    head: str
    kept: tuple[str, ...]


class Figures(_Part):
    """The discovery's figures as they stood: the frozen reading and, of an amended run, the one in force."""

    label: Literal["discovery"]
    note: str
    reading: dict[str, Any]
    amended: dict[str, Any] | None


class Target(_Part):
    """The confirmation: `experiment` is the digest of its file's content, `file` that of its bytes, kept as a blob."""

    name: str
    seed_namespace: str
    contrast: str
    alternative: Alternative
    direction: str | None
    disjoint: bool
    shared_units: int
    experiment: str
    file: str


class Promotion(_Part):
    """
    What the line says. `discovery` and `registration` are the run's id and the digest of its frozen bytes, `head` the
    line of its record that the figures were read up to.
    """

    number: int
    dated: str
    discovery: RunId
    registration: str
    seed_namespace: str
    head: str
    audit: Audited
    effect: Effect
    figures: Figures
    confirmation: Target
    repository: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Promoted:
    """A promotion and the line that it is."""

    entry: Entry
    content: Promotion

    @property
    def line(self) -> str:
        """The line's place and digest, `SEQ:SHA256`."""
        return f"{self.entry.seq}:{self.entry.sha256}"

    def to_json(self) -> dict[str, Any]:
        """What it says, with its line."""
        return {"line": self.line, **self.content.model_dump(mode="json")}


def read_promotion(data: bytes, origin: str) -> Promoted:
    """
    The promotion whose line is `data`; `origin` is how messages call it.

    Raises `IntegrityError` where its bytes are not what its digest says, or say what no promotion says.
    """
    try:
        return promoted_of(line_of_file(data))
    except ValueError as error:
        raise IntegrityError(f"{origin}: {_first_line(error)}") from None


def promoted_of(entry: Entry) -> Promoted:
    """An entry `effect.promoted` as what it says. Raises `ValueError` where no promotion says it."""
    return Promoted(entry=entry, content=Promotion.model_validate(entry.body))


def _first_line(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    fault = error.errors(include_url=False)[0]
    return f"no promotion says this: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def promotions_in(folder: Path) -> Iterator[Promoted]:
    """
    The promotions of a run's record, in order, each whole in itself; other lines are not read, so whoever has to know
    that the chain holds reads that elsewhere. Raises `IntegrityError` for a line that says what no promotion says.
    """
    path, mark = folder / "record.jsonl", KIND.encode()
    with path.open("rb") if path.exists() else BytesIO() as file:
        for number, line in enumerate(file, start=1):
            if mark in line and line.endswith(b"\n"):
                try:
                    entry = decode_line(line[:-1])
                    found = promoted_of(entry) if entry.kind == KIND else None
                except ValueError as error:
                    raise IntegrityError(f"{path}, line {number}: {_first_line(error)}") from None
                if found is not None:
                    yield found


def experiment_digest(experiment: Mapping[str, Any]) -> str:
    """
    SHA-256 of the canonical JSON of an experiment file's content with every default written out, without what a freeze
    settles: the workspace's backend, and by which way each model is reached. The frozen experiment has the same.
    """
    kept = ("name", "rates", "rate_card")
    return digest_json(
        {
            **experiment,
            "workspace": {key: value for key, value in experiment["workspace"].items() if key != "backend"},
            "models": [{key: model[key] for key in kept} for model in experiment["models"]],
        }
    )
