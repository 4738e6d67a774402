"""The judged candidates of one cell, where more than the one that ships are judged, and which of them decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.values import STRICT, Verdict

__all__ = ["JudgedCandidate", "deciding"]


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCandidate:
    """
    The candidate of one round and the referee's word on it. `code_sha256` is of its code, as the transcript has it;
    `exhibit` is the digest of the tree that was judged: what the seat left, with this code in the place of what ships.
    """

    __pydantic_config__ = STRICT
    round: int
    code_sha256: str
    exhibit: str
    verdict: Verdict


def deciding(candidates: Sequence[JudgedCandidate]) -> JudgedCandidate:
    """
    The one that a cell's reading is of, of one candidate at least, in the order of rounds: the newest that the referee
    accepted; else the newest that it could not decide on, since that one might have passed; else the newest.
    """
    for standing in ("accepted", "unscorable"):
        for one in reversed(candidates):
            if one.verdict.standing == standing:
                return one
    return candidates[-1]
