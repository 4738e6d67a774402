"""The condition of a foreign cell: each part from its usual place, or from where a person says that it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cells.imports.options import PARTS, LogOptions
from harness.errors import DeclarationError

__all__ = ["TAG", "condition_of", "path_of", "places_below"]

TAG: Final = "tag:"
"""`tag:arm-` stands for what follows `arm-` in the one tag that begins so."""

Document = Mapping[str, Any]


def path_of(place: str | list[str]) -> tuple[str, ...]:
    """The names on the way to a value."""
    return tuple(place.split(".")) if isinstance(place, str) else tuple(place)


def places_below(options: LogOptions, *above: str) -> list[tuple[str, ...]]:
    """The ways that lead below `above`, without it: what has to be kept of a part that is large."""
    ways = [path_of(place) for part in PARTS if (place := getattr(options.places, part)) is not None]
    return [way[len(above) :] for way in ways if way[: len(above)] == above and len(way) > len(above)]


def condition_of(
    document: Document, options: LogOptions, usual: Callable[[str], str | None], where: str
) -> dict[str, str]:
    """
    The five parts. `usual` says where each stands when nobody says otherwise, None if the log does not say.

    Raises `DeclarationError` for a part that can't be found, or that is no single word.
    """
    found: dict[str, str] = {}
    for part in PARTS:
        constant, place = getattr(options.constants, part), getattr(options.places, part)
        if constant is not None:
            found[part] = constant
        elif place is not None:
            found[part] = _at(document, place, part, where)
        else:
            value = usual(part)
            if value is None:
                raise DeclarationError(
                    f"{where}: the log does not say the {part}: expected constants.{part} or places.{part}"
                )
            found[part] = value
    return found


def _at(document: Document, place: str | list[str], part: str, where: str) -> str:
    if isinstance(place, str) and place.startswith(TAG):
        return _tagged(document, place.removeprefix(TAG), part, where)
    value: Any = document
    for done, name in enumerate(path := path_of(place)):
        if not isinstance(value, Mapping) or name not in value:
            known = ", ".join(sorted(map(str, value))) if isinstance(value, Mapping) else "nothing"
            there = ".".join(path[:done]) or "the log"
            raise DeclarationError(f"{where}: places.{part}: {there} has no {name!r}; it has {known[:300]}")
        value = value[name]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)) and value != "":
        return str(value)
    raise DeclarationError(
        f"{where}: places.{part}: {'.'.join(path)} is {str(value)[:80]!r}: expected a text or a number"
    )


def _tagged(document: Document, prefix: str, part: str, where: str) -> str:
    tags = document.get("tags") or []
    fits = [tag for tag in tags if isinstance(tag, str) and tag.startswith(prefix) and tag != prefix]
    if len(fits) != 1:
        raise DeclarationError(
            f"{where}: places.{part}: {len(fits)} tags begin with {prefix!r} among {str(tags)[:200]}: expected one"
        )
    return fits[0].removeprefix(prefix)
