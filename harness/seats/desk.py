"""What a seat sits down to: everything it may use, and nothing sealed."""

from __future__ import annotations

from dataclasses import dataclass

from harness.messages import Decoding
from harness.ports import Arm, Model, PublicCheck, Workspace
from harness.seeds import SeedBook
from harness.tasks.task import OpenHalf
from harness.transcript import Transcript
from harness.walls import ToolRules

__all__ = ["Desk"]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """
    One seat's place. `model` is metered: a call past a limit never reaches the server, and the seat is cancelled.

    `check` is the public tier, for seats that work in rounds, or None where the referee has none.
    """

    cell: str
    task: OpenHalf
    extras: str
    arm: Arm
    model: Model
    decoding: Decoding
    workspace: Workspace
    rules: ToolRules
    seeds: SeedBook
    transcript: Transcript
    check: PublicCheck | None = None
