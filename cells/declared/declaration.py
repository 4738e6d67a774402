"""
The declaration of a set of cells: what is asked, where the cells are, which of them each reading is over, name by name.

No cell is ever taken by a pattern: who reads a set can see what is in it, and a file that grew is not read unawares.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from cells.declared.rows import name_of
from cells.declared.source import Digest, Source, StrictTable
from harness.analysis import Analysis, Contrast
from harness.canonical import digest_bytes
from harness.errors import DeclarationError, unknown_name
from harness.table_faults import explain
from harness.written import toml_of

__all__ = [
    "ASKED",
    "Agreement",
    "Declaration",
    "ImportEntry",
    "LeftOutEntry",
    "ReadingEntry",
    "load_declaration",
    "open_questions",
    "parse_declaration",
]

Text = Annotated[str, Field(min_length=1, pattern=r"^\S(.*\S)?$")]
ASKED = "?"
"""What a draft has where a person has to say something; no declaration with it can be used."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:+-]{0,63}$")]


class _Cells(StrictTable):
    """Cells by name."""

    cells: list[str] = Field(default_factory=list)
    """`run/id` each; a `/` in a run is written `%2F`, and a `%` `%25`."""
    cells_file: Text | None = None
    """A text file with one `run/id` a line, relative to the declaration; after a tab may stand the row's digest."""

    @model_validator(mode="after")
    def _names(self) -> _Cells:
        for cell in self.cells:
            name_of(cell)
        return self


class ReadingEntry(_Cells):
    """One reading: a set of cells, and the comparisons that are computed over it."""

    name: Name
    """What it is called."""
    note: str = ""
    """A sentence on what is in it and why."""
    includes: list[Name] = Field(default_factory=list)
    """Other readings whose cells are in this one too."""
    comparisons: list[str] | None = None
    """The contrasts and ratios that are computed over it; without it, all. A family of contrasts stays together."""
    digest: Digest | None = None
    """The set's digest as it was when a figure over it was told: a set that has changed since is refused."""


class LeftOutEntry(_Cells):
    """Cells that are known and in no reading."""

    reason: Text
    """Why; it is printed."""


class ImportEntry(StrictTable):
    """Cells from the logs of another harness."""

    importer: Name
    """The importer's name, such as `harbor` or `inspect`."""
    paths: Annotated[list[Text], Field(min_length=1)]
    """What it reads, relative to the declaration."""
    sha256: list[Digest] = Field(default_factory=list)
    """The digests of what it reads, in the order of `paths`: others are refused. Empty pins nothing."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The importer's own options."""


class Agreement(StrictTable):
    """When two readings count as one in magnitude."""

    magnitude: Annotated[float, Field(ge=0)] = 0.0
    """How far two ratios may differ, as a share of the smaller; 0 asks for the same four decimals."""


class Declaration(StrictTable):
    """The whole file."""

    question: Text
    """What the readings answer, in a sentence."""
    sources: list[Source] = Field(default_factory=list)
    """Files of rows."""
    runs: list[Text] = Field(default_factory=list)
    """Run folders of Proctor's own, relative to the declaration; a cell is `registration/cell key`."""
    imports: list[ImportEntry] = Field(default_factory=list)
    """Logs of other harnesses."""
    whole: bool = False
    """Whether the sources hold nothing else: then a cell in no reading and not left out refuses every reading."""
    analysis: Analysis = Analysis()
    """Contrasts and ratios, as in an experiment file."""
    agreement: Agreement = Agreement()
    """When two readings count as one in magnitude."""
    readings: Annotated[list[ReadingEntry], Field(min_length=1)]
    """The readings, computed side by side."""
    left_out: list[LeftOutEntry] = Field(default_factory=list)
    """Cells that are known and in no reading, each with why."""

    @model_validator(mode="after")
    def _refers_to_itself(self) -> Declaration:
        names = [reading.name for reading in self.readings]
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise ValueError(f"the reading {twice[0]!r} is there more than once: expected each name once")
        for reading in self.readings:
            for other in reading.includes:
                if other not in names:
                    raise ValueError(f"reading {reading.name!r}: {unknown_name('reading', other, names)}")
            if (fault := _family_fault(reading, self.analysis)) is not None:
                raise ValueError(f"reading {reading.name!r}: {fault}")
        return self


def _family_fault(reading: ReadingEntry, analysis: Analysis) -> str | None:
    """An adjusted p-value is one of its whole family: a reading that drops a test would make the others look better."""
    if reading.comparisons is None:
        return None
    known = [item.name for item in (*analysis.contrasts, *analysis.ratios)]
    for name in reading.comparisons:
        if name not in known:
            return unknown_name("comparison", name, known)
    taken = [item for item in analysis.contrasts if item.name in reading.comparisons]
    families = {analysis.family_of(item) for item in taken if analysis.family_size(item) > 1}
    return next(iter(_split(analysis.contrasts, families, taken, analysis)), None)


def _split(
    contrasts: Iterable[Contrast], families: set[str], taken: Iterable[Contrast], analysis: Analysis
) -> Iterable[str]:
    for item in contrasts:
        if analysis.family_of(item) in families and item not in taken:
            yield f"comparisons leaves out {item.name!r} of the family {analysis.family_of(item)!r}: expected all of it"


def load_declaration(path: Path) -> tuple[Declaration, str]:
    """A declaration and the SHA-256 of its bytes. Raises `DeclarationError` that says what is wrong with it."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise DeclarationError(f"{path} does not exist: `proctor declare CELLS OUT` writes a first one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"{path} can't be read: {error}") from None
    return parse_declaration(text, str(path)), digest_bytes(data)


def parse_declaration(text: str, origin: str = "declaration.toml") -> Declaration:
    """Validate the text of a declaration; `origin` is how messages call it."""
    try:
        data = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f"{origin} is not valid TOML: {error}") from None
    if asked := list(_asked(data, "")):
        raise DeclarationError(f"{origin} still has {ASKED!r} where something has to be said: {', '.join(asked)}")
    try:
        return Declaration.model_validate(data)
    except ValidationError as error:
        raise DeclarationError(explain(error, origin, Declaration)) from None


def open_questions(text: str) -> list[str]:
    """Where a draft still asks, by the names on the way there."""
    return list(_asked(toml_of(text), ""))


def _asked(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _asked(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for item in value:
            yield from _asked(item, where)
    elif value == ASKED:
        yield where
