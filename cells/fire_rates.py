"""How often a controller has anything to say: on how many real candidates of a pool it fires, before any is scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cells.pools.candidates import Pool
from harness.ports import Arm
from harness.values import Unit
from harness.views import Previous, RoundView

__all__ = ["FireRate", "fire_lines", "fire_rate", "fire_rates"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FireRate:
    """
    Of `candidates` (those of a pool that have code and that the public tests rejected: no other is ever shown) the
    arm's controller `fires` on so many; of the `units` that have one, on some candidate of `units_fired`.
    """

    arm: str
    fires: int
    candidates: int
    units_fired: int
    units: int

    @property
    def rate(self) -> float | None:
        """The share of candidates, None of none."""
        return self.fires / self.candidates if self.candidates else None

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data."""
        return {**asdict(self), "rate": self.rate}


def fire_rate(arm: Arm, pool: Pool, units: Iterable[Unit]) -> FireRate | None:
    """An arm's fire rate on the units' candidates, each as a first round would show it; None without a controller."""
    if getattr(arm, "fires", None) is None:
        return None
    told = [[_fires(arm, one) for one in pool.previous(unit) if not one.reading.accepted] for unit in units]
    return FireRate(
        arm=arm.name,
        fires=sum(map(sum, told)),
        candidates=sum(map(len, told)),
        units_fired=sum(map(any, told)),
        units=sum(bool(one) for one in told),
    )


def _fires(arm: Any, previous: Previous) -> bool:
    return bool(arm.fires(RoundView(instruction="", previous=previous)))


def fire_rates(arms: Mapping[str, Arm], pool: Pool | None, units: Iterable[Unit]) -> list[dict[str, Any]]:
    """
    The fire rates of all arms with a controller, as an outlook keeps them. Without a pool there are no candidates, and
    each is kept by its name alone.
    """
    chosen = list(units)
    controlled = [arm for arm in arms.values() if getattr(arm, "fires", None) is not None]
    if pool is None:
        return [{"arm": arm.name, "rate": None} for arm in controlled]
    found = (fire_rate(arm, pool, chosen) for arm in controlled)
    return [one.to_json() for one in found if one is not None]


def fire_lines(shown: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The same for a person, a controller that never fires named aloud."""
    for row in shown:
        if "candidates" not in row:
            yield f"controller of {row['arm']}: its fire rate is not known, since there is no pool to try it on"
            continue
        rate = "undefined" if row["rate"] is None else f"{row['rate']:.1%}"
        yield (
            f"controller of {row['arm']}: fires on {row['fires']} of {row['candidates']} rejected candidates ({rate}), "
            f"in {row['units_fired']} of {row['units']} units"
        )
        if not row["fires"]:
            yield f"  IT NEVER FIRES: on this pool the packets of {row['arm']} are P's, and so are those of its mirrors"
