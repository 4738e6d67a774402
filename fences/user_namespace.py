"""Probes of what a user namespace closes by itself: inside one a control has no wall to take down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fences.classifier import Try
from fences.programs import ProgramProbe
from fences.weakenings import NotMeasuredError
from harness.views import Attempt, Fence, Finding, Site

__all__ = ["OutsideProbe"]

_SIGNATURE = "USER NAMESPACE"

_LOOK = """
def outside():
    with open("/proc/self/uid_map") as told:
        return told.read().split() == ["0", "0", "4294967295"]
if args["control"] and not outside():
    tries.append({"what": "control", "signature": "USER NAMESPACE"})
"""


class OutsideProbe(ProgramProbe):
    """
    A probe of what can be had outside a user namespace only, whatever a workspace is given. Where a control finds
    itself inside one and is turned down, its row says "not measured". `core` is its own part of the body.
    """

    core: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.body = _LOOK + cls.core

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """Whether this is the control: whether everything that it takes down is down."""
        down = all(getattr(fence.walls, name) == value for name, value in self.down.items())
        return {**super().arguments(fence, site), "control": down}

    async def judge(self, tries: Sequence[Try] | str, arguments: Mapping[str, Any], site: Site) -> Attempt:
        """As of every program. Raises `NotMeasuredError` for a control in a user namespace that was turned down."""
        if isinstance(tries, str) or all(item.signature != _SIGNATURE for item in tries):
            return await super().judge(tries, arguments, site)
        found = await super().judge([item for item in tries if item.signature != _SIGNATURE], arguments, site)
        if found.finding is Finding.SERVED:
            return found
        raise NotMeasuredError(
            "this workspace is a user namespace, which closes this by itself: measure this weakening with the "
            "container backend"
        )
