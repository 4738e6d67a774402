"""The arms that an experiment file brings itself, a text or a folder, and registered ones that it gives options."""

from __future__ import annotations

import difflib
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

__all__ = ["ArmChoice", "ArmEntry", "ArmFolderEntry", "ArmOptionsEntry"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


class ArmEntry(_Table):
    """An arm whose text stands in a file of the experiment's own."""

    name: Name
    """The arm's name in this experiment; it must not be taken."""
    file: str
    """A UTF-8 text file, relative to the experiment file; its bytes are pinned."""


class ArmFolderEntry(_Table):
    """An arm in a folder of the experiment's own; it is called as its folder is."""

    folder: Annotated[str, Field(pattern=r"(^|/)[A-Za-z0-9][A-Za-z0-9._-]{0,63}/?$")]
    """A folder with an `arm.toml`, relative to the experiment file; the bytes of every file in it are pinned."""

    @property
    def name(self) -> str:
        """The folder's name, which its `arm.toml` must give too."""
        return PurePosixPath(self.folder).name


class ArmOptionsEntry(_Table):
    """A registered arm with options of the experiment's own."""

    name: Name
    """The registered arm's name."""
    options: dict[str, Any] = {}
    """What the arm is made with, by the names that it knows; they are part of what is pinned of it."""
    corpus: str | None = None
    """A file that the arm works with, relative to the experiment file; its bytes are pinned."""


def _nearly(table: dict[str, Any], key: str) -> bool:
    return bool(difflib.get_close_matches(key, map(str, table), n=1, cutoff=0.7))


def _kind(value: Any) -> str:
    """
    Which of the four an entry is meant to be, so that a fault is told of that one alone: a name and nothing else is a
    registered arm's, as a bare name is, and a key that is nearly one of a kind's own stands for it.
    """
    if isinstance(value, dict):
        if "folder" in value or _nearly(value, "folder"):
            return "ArmFolderEntry"
        options = set(value) == {"name"} or _nearly(value, "options") or _nearly(value, "corpus")
        return "ArmOptionsEntry" if options and "file" not in value else "ArmEntry"
    known = isinstance(value, (ArmEntry, ArmFolderEntry, ArmOptionsEntry))
    return type(value).__name__ if known else "constrained-str"


ArmChoice: TypeAlias = Annotated[
    Annotated[Name, Tag("constrained-str")]
    | Annotated[ArmEntry, Tag("ArmEntry")]
    | Annotated[ArmFolderEntry, Tag("ArmFolderEntry")]
    | Annotated[ArmOptionsEntry, Tag("ArmOptionsEntry")],
    Discriminator(_kind),
]
"""A registered name, one with options, or an arm of the experiment's own."""
