"""Who a container belongs to: labels that tell, after a crash, whether its owner still lives."""

from __future__ import annotations

from collections.abc import Mapping

from harness.workspaces.namespaces import Owner

__all__ = ["LABEL_OWNER", "LABEL_RUN", "LABEL_SEAT", "LABEL_WORKSPACE", "labels", "owner_gone"]

LABEL_RUN = "proctor.run"
LABEL_OWNER = "proctor.owner"
LABEL_WORKSPACE = "proctor.workspace"
LABEL_SEAT = "proctor.seat"

_PARTS = 4


def labels(run: str, workspace: str, seat: str) -> Mapping[str, str]:
    """The labels of a new container, whose owner is this process and whose seat is the user `seat`."""
    me = Owner.me()
    owner = f"{me.pid}:{me.started}:{me.boot}:{me.pid_namespace}"
    return {LABEL_RUN: run, LABEL_OWNER: owner, LABEL_WORKSPACE: workspace, LABEL_SEAT: seat}


def owner_gone(label: str, *, running: bool) -> bool:
    """
    Whether the owner that `label` names is dead for sure. `running` tells if its container still runs.

    The owner may live on another machine that has the same engine, in another container or before a reboot; then its
    number says nothing here, and only a container that has ended by itself may be taken away.
    """
    parts = label.split(":")
    if len(parts) != _PARTS or not all(parts[index].isdecimal() for index in (0, 1, 3)):
        return not running
    owner = Owner(pid=int(parts[0]), started=int(parts[1]), boot=parts[2], pid_namespace=int(parts[3]))
    me = Owner.me()
    if (owner.boot, owner.pid_namespace) != (me.boot, me.pid_namespace):
        return not running
    return not owner.alive
