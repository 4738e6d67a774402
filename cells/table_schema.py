"""The tables that are exported and queried: their names, columns and kinds, which are documented and stay."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["SCHEMA", "Kind", "Row"]

Kind: TypeAlias = Literal["text", "integer", "number", "flag"]
"""What a column holds; None stands for whatever is missing, unknown or undefined, in each of them."""

Row: TypeAlias = Mapping[str, str | int | float | bool | None]
"""A line of a table, by column."""

_WHOSE: dict[str, Kind] = {"source": "text", "reading": "text"}
_GROUP: dict[str, Kind] = dict.fromkeys(("benchmark", "task", "arm", "extras", "model"), "text")
_CELL: dict[str, Kind] = {
    **_WHOSE,
    "run": "text",
    "id": "text",
    **_GROUP,
    "replicate": "integer",
    "attempt": "integer",
    "tries": "integer",
    "class": "text",
    "halt_limit": "text",
    "void_cause": "text",
    "gate": "text",
    "passed": "flag",
    "would_be": "text",
    "tokens": "integer",
    **dict.fromkeys(("tokens_input", "tokens_cache_write_5m", "tokens_cache_write_1h", "tokens_cache_read"), "integer"),
    "tokens_output": "integer",
    "calls": "integer",
    "output_bytes": "integer",
    "wall_s": "number",
    "usd": "number",
    "price": "text",
    "served_models": "text",
    "load_1m": "number",
    "cells_under_way": "integer",
    "exhibit": "text",
    "transcript": "text",
}
_SCOPED: dict[str, Kind] = {**_WHOSE, "scope": "text", **_GROUP}
_TESTED: dict[str, Kind] = {
    "treatment": "text",
    "control": "text",
    "extras": "text",
    "model": "text",
    "alternative": "text",
    "qualifiers": "text",
    "status": "text",
}
_PAIRS: dict[str, Kind] = dict.fromkeys(
    ("declared", "both", "treatment_only", "control_only", "neither", "halted", "without_verdict"), "integer"
)
_SHARE: dict[str, Kind] = dict.fromkeys(("odds_ratio", "share", "share_low", "share_high"), "number")

SCHEMA: Mapping[str, Mapping[str, Kind]] = MappingProxyType(
    {
        "cells": _CELL,
        "tries": _CELL,
        "census": {
            **_SCOPED,
            **dict.fromkeys(
                ("planned", "buildable", "fired", "declared", "judged", "passed", "halted", "void", "failed_boot"),
                "integer",
            ),
            **dict.fromkeys(("unscorable", "refused", "missing", "priced", "lower_bounds"), "integer"),
            **dict.fromkeys(("pass_rate", "rate_low", "rate_high", "rate_lowest", "rate_highest"), "number"),
        },
        "classes": {**_SCOPED, "kind": "text", "name": "text", "cells": "integer"},
        "costs": {
            **_SCOPED,
            "quantity": "text",
            "median": "number",
            "bound": "text",
            "n": "integer",
            "unknown": "integer",
            "lower_bounds": "integer",
        },
        "contrasts": {
            **_WHOSE,
            "name": "text",
            "test": "text",
            "family": "text",
            "registered": "flag",
            **_TESTED,
            **_PAIRS,
            **dict.fromkeys(("p_value", "p_holm", "p_low", "p_high", "best_attainable_p"), "number"),
            **_SHARE,
            "supported": "flag",
        },
        "strata": {**_WHOSE, "contrast": "text", "stratum": "text", **_PAIRS, "p_value": "number", **_SHARE},
        "ratios": {
            **_WHOSE,
            "name": "text",
            "quantity": "text",
            **_TESTED,
            "sd_ln": "number",
            "min_n": "integer",
            **dict.fromkeys(("wins", "losses", "ties", "undefined"), "integer"),
            "p_value": "number",
            "best_attainable_p": "number",
        },
        "ratio_tasks": {
            **_WHOSE,
            "name": "text",
            "quantity": "text",
            "unit": "text",
            "treatment_median": "number",
            "treatment_n": "integer",
            "control_median": "number",
            "control_n": "integer",
            "ratio": "number",
            "bound": "text",
            "resolvable": "number",
            "resolved": "flag",
        },
        "probes": {
            "source": "text",
            **dict.fromkeys(("probe", "language", "expected", "finding_up", "evidence_up", "weakening"), "text"),
            "finding_down": "text",
            "evidence_down": "text",
            "holds": "flag",
            "ms": "number",
        },
    }
)
"""
The kind of each column of each table.

A row belongs to one `reading` of one `source`: whoever counts over several readings counts cells more than once.
"""
