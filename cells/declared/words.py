"""The words of another harness, each said to be one of ours: how a session ended, and what a verdict counts as."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness.values import Declared, End, FailedBoot, Halt, Limit, Refused, Standing, Void

__all__ = ["EndWord", "VerdictEntry", "end_of", "is_end_word", "verdict_of"]

_WORD = re.compile(r"(DECLARED|FAILED_BOOT|HALT|VOID|REFUSED)(?:\(([A-Za-z0-9][A-Za-z0-9._-]*)\))?")

_ENDS_ONLY = frozenset({"DECLARED", "HALT", "VOID", "FAILED_BOOT", "REFUSED", "MISSING", "DOUBLED"})
"""What a reading may not be called: a census counts these as ends, or as cells without one."""

_FIXED: dict[str, Standing] = {
    "PASS": "accepted",
    "FAIL": "rejected",
    "NO_BUILD": "rejected",
    "INTERFACE_MISS": "rejected",
    "UNSCORABLE": "unscorable",
}
"""Readings whose standing is in their name."""


def _is_end(word: str) -> str:
    found = _WORD.fullmatch(word)
    kind, what = found.groups() if found is not None else (None, None)
    limits = get_args(Limit)
    if kind == "HALT" and what not in limits:
        raise ValueError(f"expected HALT with its limit, one of {', '.join(f'HALT({limit})' for limit in limits)}")
    if kind is None or ((kind in {"VOID", "REFUSED"}) != (what is not None) and kind != "HALT"):
        raise ValueError("expected DECLARED, HALT(limit), FAILED_BOOT, VOID(cause) or REFUSED(gate)")
    return word


def is_end_word(word: str) -> bool:
    """Whether a word is an end as it is written here."""
    try:
        _is_end(word)
    except ValueError:
        return False
    return True


EndWord = Annotated[str, AfterValidator(_is_end)]
"""An end as text: `DECLARED`, `HALT(usd)`, `FAILED_BOOT`, `VOID(cause)`, `REFUSED(gate)`."""


@cache
def end_of(meaning: str, word: str) -> End:
    """The end that an `EndWord` means; the other harness's own `word` is kept as its detail."""
    kind, _, rest = meaning.partition("(")
    what: Any = rest.rstrip(")")
    made: dict[str, Callable[[], End]] = {
        "DECLARED": Declared,
        "HALT": lambda: Halt(limit=what, scope="cell", bound=None, spent=None),
        "FAILED_BOOT": lambda: FailedBoot(detail=word),
        "VOID": lambda: Void(cause=what, detail=word),
        "REFUSED": lambda: Refused(gate=what, detail=word),
    }
    return made[kind]()


class VerdictEntry(BaseModel):
    """What a word of the other harness's referee is called here, and what it counts as."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    reading: Annotated[str, Field(pattern=r"^[A-Z0-9][A-Z0-9_]{0,39}$")]
    """The class that is printed: `PASS`, `FAIL`, `NO_BUILD`, or a finer one in capitals."""
    standing: Standing
    """`accepted`, `rejected` or `unscorable`."""

    @model_validator(mode="after")
    def _agrees_with_its_name(self) -> VerdictEntry:
        if self.reading in _ENDS_ONLY:
            raise ValueError(f"the reading {self.reading!r} is the name of an end: say it in `ends`")
        if _FIXED.get(self.reading, self.standing) != self.standing:
            raise ValueError(f"{self.reading} is {_FIXED[self.reading]}, and can't be {self.standing}")
        return self


def verdict_of(word: str, meaning: Standing | VerdictEntry) -> VerdictEntry:
    """A word's meaning in full: one that is given by its standing alone is called as it is written."""
    if isinstance(meaning, VerdictEntry):
        return meaning
    return VerdictEntry(reading=word, standing=meaning)
