"""Seeds by namespace: the same cell and round always draw the same seed, and two experiments never share one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["SeedBook", "draw_order", "seed"]


def seed(payload: str) -> int:
    """The first use of `payload` decides: SHA-256 of its UTF-8 bytes, mod 2**32."""
    return int.from_bytes(hashlib.sha256(payload.encode()).digest(), "big") % 2**32


def draw_order(names: Iterable[str], draw_seed: int) -> list[str]:
    """The names in a reproducible random order: by the SHA-256 of `seed|name`, the same on every machine."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{draw_seed}|{name}".encode()).hexdigest())


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
