"""What a pool says, cell by cell of the study's own kind: a benchmark and a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cells.pools.candidates import Pool, wanted
from harness.values import Unit

__all__ = ["pool_lines", "pool_to_json"]


def pool_to_json(pool: Pool) -> dict[str, Any]:
    """The pool's digest, the dead units by name, and counts and rates of each benchmark and model."""
    units = list(dict.fromkeys(unit for unit, _index in wanted(pool.header)))
    places = list(dict.fromkeys((unit.benchmark, unit.model) for unit in units))
    return {
        "sha256": pool.digest,
        "n": pool.n,
        "missing": pool.missing,
        "seed_namespace": pool.header["seed_namespace"],
        "models": pool.header["models"],
        "cells": [_cell(pool, [unit for unit in units if (unit.benchmark, unit.model) == place]) for place in places],
        "dead": [str(unit) for unit in units if pool.state(unit) == "dead"],
    }


def _cell(pool: Pool, units: list[Unit]) -> dict[str, Any]:
    states = Counter(pool.state(unit) for unit in units)
    lines = [line for unit in units for line in pool.lines.get(unit, ())]
    told = [line for line in lines if "void" not in line]
    return {
        "benchmark": units[0].benchmark,
        "model": units[0].model,
        "units": len(units),
        "dead": states["dead"],
        "alive": states["alive"],
        "unknown": states["unknown"],
        "candidates": len(lines),
        "void": len(lines) - len(told),
        "accepted_standard": sum(line["standard"]["reading"]["accepted"] for line in told),
        "accepted_robust": sum(line["robust"]["reading"]["accepted"] for line in told),
        "accepted_robust_alone": sum(
            line["robust"]["reading"]["accepted"] and not line["standard"]["reading"]["accepted"] for line in told
        ),
        "without_code": sum(not line["standard"]["code"] and not line["robust"]["code"] for line in told),
        "accepted_rate": _rate(sum(line["standard"]["reading"]["accepted"] for line in told), len(told)),
        "dead_rate": _rate(states["dead"], states["dead"] + states["alive"]),
    }


def _rate(part: int, whole: int) -> float | None:
    """A share, None of nothing."""
    return part / whole if whole else None


def pool_lines(shown: Mapping[str, Any]) -> Iterator[str]:
    """The same for a person."""
    yield f"pool {shown['sha256']}"
    yield f"  {shown['n']} candidates a unit, seeds of {shown['seed_namespace']!r}"
    if shown["missing"]:
        yield f"  not whole: {shown['missing']} candidates are missing; `proctor pool make` with the same file goes on"
    for cell in shown["cells"]:
        rate = "undefined" if cell["accepted_rate"] is None else f"{cell['accepted_rate']:.1%}"
        yield (
            f"  {cell['benchmark']}, {cell['model']}: {cell['dead']} of {cell['units']} units dead, "
            f"{cell['alive']} alive, {cell['unknown']} unknown"
        )
        yield (
            f"    {cell['candidates']} candidates ({cell['void']} void, {cell['without_code']} without code): "
            f"{cell['accepted_standard']} accepted by the public tests ({rate}), "
            f"{cell['accepted_robust_alone']} more under the robust extraction alone"
        )
