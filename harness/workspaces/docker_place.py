"""What differs between one workspace and the next behind the same walls: its name, its seat's user, what is its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.clock import fresh_token
from harness.workspaces.docker_folder import folder_of
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


def fresh_place(run: str, *, first_uid: int, first_gid: int, shares_files: bool) -> Place:
    """
    A place with a new name and one of the seats' users, picked by chance. User and group 0 of its containers are
    `first_uid` and `first_gid` of the engine's host, which `shares_files` with this one or does not.
    """
    name = f"proctor-{fresh_token(8)}"
    seat = SEATS[int(fresh_token(4), 16) % len(SEATS)]
    return Place(
        name=name,
        volume=name,
        seat=str(seat),
        uid=str(first_uid + seat),
        gid=str(first_gid + seat),
        folder=folder_of(name) if shares_files else None,
        labels=labels(run, name, str(seat)),
    )
