"""
Named parts of a benchmark that a study used without saying which tasks they were.

A profile states its rule and the ids that it leaves out, and is held to the digest of the ids that it keeps: another
version of the data set is refused, not silently cut elsewhere. Each is a reconstruction, and its name says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from harness.canonical import digest_json
from harness.errors import TaskError, unknown_name

__all__ = ["PROFILES", "TaskProfile", "hidden_over", "ids_digest", "profile"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskProfile:
    """
    Part of a benchmark: what is left out, by which rule, and how that was found. `ids_sha256` is the digest of the
    canonical JSON of the ids that are kept, sorted.
    """

    name: str
    rule: str
    standing: str
    left_out: tuple[str, ...]
    kept: int
    ids_sha256: str

    def keeps(self, ids: Collection[str]) -> list[str]:
        """Those of `ids`, all of the benchmark, that are in the profile. Raises `TaskError` for another data set."""
        missing = [name for name in self.left_out if name not in ids]
        if missing:
            raise TaskError(
                f"profile {self.name!r} leaves out {', '.join(missing[:3])}, and the source has no such task: expected "
                f"the data set that the profile was made for, of {self.kept + len(self.left_out)} tasks"
            )
        out = frozenset(self.left_out)
        kept = [name for name in ids if name not in out]
        found = ids_digest(kept)
        if found != self.ids_sha256:
            raise TaskError(
                f"profile {self.name!r} would keep {len(kept)} tasks with digest {found[:12]}: expected {self.kept} "
                f"with {self.ids_sha256[:12]}. The source is another version of the data set; name its tasks by `ids`"
            )
        return kept

    @property
    def digest(self) -> str:
        """SHA-256 over all that the profile says."""
        return digest_json(self.to_json())

    def to_json(self) -> dict[str, object]:
        """What a registration pins of it."""
        return {
            "name": self.name,
            "rule": self.rule,
            "standing": self.standing,
            "left_out": list(self.left_out),
            "kept": self.kept,
            "ids_sha256": self.ids_sha256,
        }


def ids_digest(ids: Iterable[str]) -> str:
    """The digest of a set of task ids, whatever their order."""
    return digest_json(sorted(ids))


def _mbpp(*numbers: int) -> tuple[str, ...]:
    return tuple(f"Mbpp/{number}" for number in numbers)


_STANDING = (
    "reconstruction: the study names 365 tasks of MBPP+ and none of the 13 that it left out; this rule leaves out as "
    "many, and others do too"
)

PROFILES: Mapping[str, TaskProfile] = MappingProxyType(
    {
        item.name: item
        for item in (
            TaskProfile(
                name="mbpp365-reconstruction-isclose",
                rule="left out: tasks with a tolerance (atol is not 0), whose public tests call math.isclose",
                standing=_STANDING,
                left_out=_mbpp(82, 85, 98, 120, 124, 137, 139, 233, 276, 293, 300, 312, 742),
                kept=365,
                ids_sha256="e53589813b3d081b7960cb234d57780f93efb5c79cdc1f4394d43c493874cd73",
            ),
            TaskProfile(
                name="mbpp365-reconstruction-oracles",
                rule="left out: the tasks that EvalPlus compares by an oracle of their own, and the one without plus "
                "inputs",
                standing=_STANDING + ". It takes two rules, and fits less well than isclose",
                left_out=_mbpp(2, 7, 111, 140, 232, 558, 579, 581, 737, 769, 787, 793, 794),
                kept=365,
                ids_sha256="5faa830af5c991971c85a8af54597adcc1be36e75b1c707b284cb8700a58831c",
            ),
        )
    }
)
"""The profiles by name."""


def profile(name: str) -> TaskProfile:
    """The profile of that name. Raises `TaskError` with the names there are."""
    if name not in PROFILES:
        raise TaskError(unknown_name("profile", name, PROFILES))
    return PROFILES[name]


def hidden_over(records: Iterable[Mapping[str, Sequence[object]]], cap: int) -> int:
    """How many records in EvalPlus's schema have more than `cap` plus inputs, which are the hidden tests."""
    return sum(len(record["plus_input"]) > cap for record in records)
