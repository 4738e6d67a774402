"""What differs between one workspace and the next behind the same walls: its name, its seat's user, what is its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.workspaces.docker_folder import folder_of
from harness.workspaces.docker_host import EngineHost
from harness.workspaces.docker_owner import labels
from harness.workspaces.images import SEATS

__all__ = ["PATTERN", "Place", "fresh_place"]

_REMAINS = "-remains"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """
    One workspace's own: `name` is the container's, `volume` that of its /workspace, which is `rest` where a container
    only looks at what another one left. `seat` is the number of the seat's user and group, and `uid` and `gid` are the
    same as the engine's host counts them. `folder` is the host folder that it is shown parts of, None where the engine
    sees no folder of this host.
    """

    name: str
    volume: str
    seat: str
    uid: str
    gid: str
    folder: str | None
    rest: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    def remains(self) -> Place:
        """The place of a container that looks at what this one's seat left."""
        return replace(self, name=self.name + _REMAINS, rest=True)


PATTERN = Place(name="{name}", volume="{name}", seat="{seat}", uid="{seat-uid}", gid="{seat-gid}", folder="{folder}")
"""The place that walls are rendered for before there is a workspace: what is filled in stands in braces."""


def fresh_place(run: str, host: EngineHost, *, taken: Collection[str]) -> Place:
    """
    A place on an engine with a new name, and one of the seats' users that are not `taken`, picked by chance: another
    process may be picking too. Raises `WorkspaceError` when none is free.
    """
    name = f"proctor-{fresh_token(8)}"
    free = [seat for seat in SEATS if str(seat) not in taken]
    if not free:
        raise WorkspaceError(
            f"every one of the {len(SEATS)} users for seats is taken on the engine at {host.url}: run fewer cells at "
            "once, or remove what dead runs left"
        )
    seat = free[int(fresh_token(4), 16) % len(free)]
    return Place(
        name=name,
        volume=name,
        seat=str(seat),
        uid=str(host.first_uid + seat),
        gid=str(host.first_gid + seat),
        folder=folder_of(name) if host.shares_files else None,
        labels=labels(run, name, str(seat)),
    )
