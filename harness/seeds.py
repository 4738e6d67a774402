"""Seeds by namespace: the same cell and round always draw the same seed, and two experiments never share one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["PoolSeeds", "SeedBook", "draw_order", "hash_order", "seed", "spaces_clash"]


def seed(payload: str) -> int:
    """The first use of `payload` decides: SHA-256 of its UTF-8 bytes, mod 2**32."""
    return int.from_bytes(hashlib.sha256(payload.encode()).digest(), "big") % 2**32


def draw_order(names: Iterable[str], draw_seed: int) -> list[str]:
    """The names in a reproducible random order: by the SHA-256 of `seed|name`, the same on every machine."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{draw_seed}|{name}".encode()).hexdigest())


def hash_order(names: Iterable[str], purpose: str) -> list[str]:
    """The names in a reproducible random order: by the SHA-256 of `purpose|name`. Another purpose, another order."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{purpose}|{name}".encode()).hexdigest())


def spaces_clash(one: str, other: str) -> bool:
    """Whether two namespaces can be taken for each other: they are equal, or one begins with the other."""
    return one.startswith(other) or other.startswith(one)


@dataclass(frozen=True, slots=True)
class PoolSeeds:
    """The seeds of one unit's pool, from the payload `namespace|pool|unit|index`, of fewer parts than any cell's."""

    namespace: str
    unit: str

    def payload(self, index: int) -> str:
        """The text that the seed of a candidate is the digest of; kept beside the candidate."""
        return f"{self.namespace}|pool|{self.unit}|{index}"

    def seed(self, index: int) -> int:
        """The seed of a candidate."""
        return seed(self.payload(index))


@dataclass(frozen=True, slots=True)
class SeedBook:
    """The seeds of one cell, one a call, from the payload `namespace|cell|call`."""

    namespace: str
    cell: str

    def payload(self, call: int) -> str:
        """The text that the seed of a call is the digest of; kept in the transcript."""
        return f"{self.namespace}|{self.cell}|{call}"

    def seed(self, call: int) -> int:
        """The seed of a call."""
        return seed(self.payload(call))
