"""Who a container belongs to: labels that tell, after a crash, whether its owner still lives; and its namespace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.workspaces.namespaces import Namespace, Owner

__all__ = ["LABEL_OWNER", "LABEL_RUN", "LABEL_WORKSPACE", "Witness", "labels", "owner_gone"]

LABEL_RUN = "proctor.run"
LABEL_OWNER = "proctor.owner"
LABEL_WORKSPACE = "proctor.workspace"

_PARTS = 4


def labels(run: str, workspace: str) -> Mapping[str, str]:
    """The labels of a new container, whose owner is this process."""
    me = Owner.me()
    owner = f"{me.pid}:{me.started}:{me.boot}:{me.pid_namespace}"
    return {LABEL_RUN: run, LABEL_OWNER: owner, LABEL_WORKSPACE: workspace}


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """
    A container's PID namespace, seen from outside. It is held by a descriptor, since the kernel gives the number of a
    namespace that is gone to the next one.
    """

    descriptor: int

    @classmethod
    def of(cls, pid: int, container: str) -> Witness | None:
        """
        The namespace of a container's first process, or None when this process can't look at it.

        A number is taken for the container's only if the process's control group names the container: with an engine
        on another machine the same number is some other process here.
        """
        folder = Path("/proc") / str(pid)
        try:
            if container not in (folder / "cgroup").read_text():
                return None
            witness = cls(descriptor=os.open(folder / "ns" / "pid", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return None
        if witness.namespace.inode == (Path("/proc/self/ns/pid")).stat().st_ino:
            witness.close()
            return None
        return witness

    @property
    def namespace(self) -> Namespace:
        """The namespace by its number."""
        return Namespace(kind="pid", inode=os.fstat(self.descriptor).st_ino)

    def members(self) -> list[int]:
        """The processes alive in it."""
        return self.namespace.members()

    def only(self, user: int) -> bool:
        """
        Whether every process alive in it belongs to `user` by the word of the kernel, which says root of a process that
        hides. One that ends meanwhile counts as there: it is asked after again, the other way.
        """
        try:
            return all((Path("/proc") / str(pid)).stat().st_uid == user for pid in self.members())
        except OSError:
            return False

    def close(self) -> None:
        """Let the namespace go."""
        os.close(self.descriptor)
