"""
What `coqchk` says, read strictly: which modules it checked, declaration by declaration, and its context summary.

Every line between the first module and the summary must be of a known form, and every declaration must lie in the
module that is being checked: a compiled file that was written by hand may carry declarations under the names of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Checked", "MisplacedError", "OutputError", "read_coqchk"]

SUCCESS = "Modules were successfully checked"
# A name may hold any sign that is a letter to Rocq, as the blank that does not break (U+00A0).
_LIBRARY = re.compile(r"(Admitting|Checking) library: ([^ ]+)")
_DECLARATION = re.compile(r" +checking ([a-z ]+): ?([^ ]+)")
_TITLES = (
    "Theory",
    "Axioms",
    "Constants/Inductives relying on type-in-type",
    "Constants/Inductives relying on unsafe (co)fixpoints",
    "Inductives whose positivity is assumed",
)
_THEORY = "Set is predicative"


class OutputError(ValueError):
    """Output that is not what the checker is known to say."""


class MisplacedError(ValueError):
    """A module that declares something under another module's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """By module the names it checked; the axioms of the whole context; what in it relies on less than the theory."""

    names: Mapping[str, frozenset[str]]
    axioms: tuple[str, ...]
    unsafe: tuple[str, ...]


def read_coqchk(text: str, modules: Sequence[str]) -> Checked:
    """
    The report of a run that checked `modules` and took the rest as given.

    Raises `MisplacedError` where one of them holds a foreign declaration, `OutputError` for output in any other form.
    """
    lines = [line.rstrip(" ") for line in text.split("\n")]
    if lines.count(SUCCESS) != 1:
        raise OutputError(f"it says {lines.count(SUCCESS)} times that the modules were successfully checked")
    end = lines.index(SUCCESS)
    names = _names(lines[:end])
    if sorted(names) != sorted(modules):
        raise OutputError(f"it checked {', '.join(names) or 'nothing'}: expected {', '.join(modules)}")
    axioms, unsafe = _summary(lines[end + 1 :])
    return Checked(names={name: frozenset(found) for name, found in names.items()}, axioms=axioms, unsafe=unsafe)


def _names(lines: Sequence[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    current, begun = None, False
    for line in lines:
        if library := _LIBRARY.fullmatch(line):
            current, begun = (library[2] if library[1] == "Checking" else None), True
            if current in names:
                raise OutputError(f"it checked {current} twice")
            if current is not None:
                names[current] = []
        elif declaration := _DECLARATION.fullmatch(line):
            _placed(names, current, declaration[1], declaration[2])
        elif begun and line:
            raise OutputError(f"it says {line[:200]!r}")
    return names


def _placed(names: dict[str, list[str]], module: str | None, kind: str, name: str) -> None:
    if module is None:
        raise OutputError(f"it checked {name[:200]} outside of any module")
    if name != module and not name.startswith(f"{module}."):
        raise MisplacedError(f"the file of {module} declares {name[:200]}")
    if not names[module] and (kind, name) != ("module", module):
        raise OutputError(f"it began {module} with the {kind} {name[:200]}")
    names[module].append(name)


def _summary(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axioms, and what is unsafe, each with what it relies on."""
    parts = dict(_parts([line for line in lines if line]))
    if tuple(parts) != _TITLES:
        raise OutputError(f"its summary has the parts {', '.join(parts)[:300]}")
    theory, axioms, *others = parts.values()
    unsafe = [f"{name} ({title})" for title, found in zip(_TITLES[2:], others, strict=True) for name in found]
    if theory != [_THEORY]:
        unsafe.insert(0, f"Theory: {' '.join(theory)}")
    return tuple(axioms), tuple(unsafe)


def _parts(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Title and entries of each part of the summary."""
    if lines[:1] != ["CONTEXT SUMMARY"] or set("".join(lines[1:2])) != {"="}:
        raise OutputError("its context summary does not begin as one")
    title, entries = "", list[str]()
    for line in lines[2:]:
        if line.startswith("* "):
            if title:
                yield title, entries
            title, colon, rest = line[2:].partition(":")
            if not colon:
                raise OutputError(f"its summary says {line[:200]!r}")
            entries = [rest.strip()] if rest.strip() not in {"", "<none>"} else []
        elif line.startswith("    ") and title and " " not in line.strip():
            entries.append(line.strip())
        else:
            raise OutputError(f"its summary says {line[:200]!r}")
    if title:
        yield title, entries
