"""Where cells come from: files of rows, with a word on what each column says."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cells.declared.words import EndWord, VerdictEntry, verdict_of
from harness.values import Standing

__all__ = ["CONDITION", "Columns", "Constants", "Digest", "Source", "StrictTable"]

CONDITION = ("run", "benchmark", "task", "arm", "extras", "model")
"""What every cell has, from a column or, where all rows share it, as a constant."""

Column = Annotated[str, Field(min_length=1)]
Said = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256, in lowercase hexadecimal digits."""


class StrictTable(BaseModel):
    """A table of a file that a person wrote: nothing unknown, nothing of another type."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )


class Columns(StrictTable):
    """The column of each field. What has neither column nor constant is unknown, and never 0."""

    id: Column
    """What the cell is called in its run."""
    end: Column
    """How the session ended, in the words of `ends`."""
    run: Column | None = None
    """The run that the id belongs to: ids repeat across runs."""
    benchmark: Column | None = None
    """The benchmark."""
    task: Column | None = None
    """The task."""
    arm: Column | None = None
    """The arm."""
    extras: Column | None = None
    """The extras."""
    model: Column | None = None
    """The model."""
    replicate: Column | None = None
    """Which cell of its condition, from 1; without it, a contrast takes one cell a side."""
    attempt: Column | None = None
    """Which try of the cell, from 1; without it, every row is a first try."""
    reading: Column | None = None
    """What the referee said, in the words of `verdicts`; may be the column of `end`."""
    usd: Column | None = None
    """The price in US dollars."""
    lower_bound: Column | None = None
    """Whether the price is a lower bound, in the words of `yes` and `no`."""
    tokens: Column | None = None
    """Tokens of all directions."""
    calls: Column | None = None
    """Calls of the model."""
    wall_s: Column | None = None
    """Seconds of the seat."""


class Constants(StrictTable):
    """What all rows of the files share and no column says."""

    run: Said | None = None
    """The run."""
    benchmark: Said | None = None
    """The benchmark."""
    task: Said | None = None
    """The task."""
    arm: Said | None = None
    """The arm."""
    extras: Said | None = None
    """The extras; `none` where a card had none."""
    model: Said | None = None
    """The model."""


class Source(StrictTable):
    """Files of rows that say things alike: one row a try of a cell."""

    files: list[Said] = []
    """CSV, JSON Lines or Parquet, relative to the declaration; `--cells` takes their place."""
    sha256: list[Digest] = []
    """The digests of the files, in their order: another file is refused. Empty pins nothing."""
    format: Literal["csv", "jsonl", "parquet"] | None = None
    """The files' format; without it, what their names end in."""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    """What stands between the fields of a CSV file."""
    decimal: Literal[".", ","] = "."
    """What stands before the decimals of a number that is written as text."""
    missing: list[str] = [""]
    """The texts that mean that nothing was said."""
    yes: list[str] = ["True", "true", "TRUE", "yes", "1"]
    """The texts that mean yes."""
    no: list[str] = ["False", "false", "FALSE", "no", "0"]
    """The texts that mean no."""
    rounding: Literal["raw", "cents"] = "raw"
    """`cents` rounds each price to whole cents, a half to the even one; `raw` takes it as it stands."""
    columns: Columns
    """Which column says what."""
    constants: Constants = Constants()
    """What no column says, since all rows share it."""
    labels: dict[str, Column] = {}
    """Further columns that are kept with the cells and counted by nothing, under names of yours."""
    ends: Annotated[dict[str, EndWord], Field(min_length=1)]
    """Each word of the column `end`: `DECLARED`, `HALT(limit)`, `FAILED_BOOT`, `VOID(cause)` or `REFUSED(gate)`."""
    verdicts: dict[str, Standing | VerdictEntry] = {}
    """Each word of the column `reading`: `accepted`, `rejected` or `unscorable`, or a table with a `reading` too."""

    @model_validator(mode="after")
    def _says_each_thing_once(self) -> Source:
        for name in CONDITION:
            given = [getattr(table, name) is not None for table in (self.columns, self.constants)]
            if sum(given) != 1:
                how = "both a column and a constant" if all(given) else "neither a column nor a constant"
                raise ValueError(f"{name} has {how}: expected one of columns.{name} and constants.{name}")
        if self.columns.lower_bound is not None and self.columns.usd is None:
            raise ValueError("columns.lower_bound without columns.usd: expected the price that it speaks of")
        if self.sha256 and len(self.sha256) != len(self.files):
            raise ValueError(f"{len(self.sha256)} digests for {len(self.files)} files: expected one for each")
        if both := sorted({*self.yes} & {*self.no}):
            raise ValueError(f"{both[0]!r} means both yes and no: expected it in one of the two")
        return self

    @model_validator(mode="after")
    def _has_verdicts(self) -> Source:
        if "DECLARED" in self.ends.values() and (self.columns.reading is None or not self.verdicts):
            raise ValueError(
                "ends has a word for DECLARED: expected columns.reading and `verdicts` that say what of it"
            )
        for word, meaning in self.verdicts.items():
            try:
                verdict_of(word, meaning)
            except ValueError:
                raise ValueError(
                    f"the verdict {word!r} can't be called so here: give it a name in capitals that agrees with what "
                    "it counts as, such as { reading = 'NO_BUILD', standing = 'rejected' }"
                ) from None
        return self
