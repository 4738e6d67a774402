"""What a seat sits down to: everything it may use, and nothing sealed."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.messages import Decoding
from harness.mirror_line import MirrorEnd
from harness.ports import Arm, Model, PublicCheck, Workspace
from harness.seeds import SeedBook
from harness.tasks.task import OpenHalf
from harness.transcript import Transcript
from harness.views import Previous
from harness.walls import GatewayRules, ToolRules
from harness.workspaces.file_helper import Asking

__all__ = ["Desk"]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """
    One seat's place. `model` is metered: a call past a limit never reaches the server, and the seat is cancelled.

    `helper` is what reaches the workspace's files; without one, each call of a tool opens one for itself. `check` is
    the public tier, for seats that work in rounds, or None where the referee has none. `gateway` are the rules for a
    program that is not ours. `pool` are candidates of the unit that are older than every round, the oldest first;
    `mirror` is the line to the cells that are played in lockstep with this one, None where there are none.
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
    helper: Asking | None = None
    check: PublicCheck | None = None
    gateway: GatewayRules = field(default_factory=GatewayRules)
    pool: tuple[Previous, ...] = ()
    mirror: MirrorEnd | None = None
