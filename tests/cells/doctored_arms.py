"""Packets that are not what they say: each breaks one audit."""

from __future__ import annotations

from arms.packets_facts import GENERIC, PacketCFSF, PacketGRShape
from harness.views import RoundView

__all__ = ["OtherFacts", "Telling"]


class OtherFacts(PacketCFSF):
    """A packet that words one fact otherwise."""

    def render(self, view: RoundView) -> str:
        """CF-SF's prompt, doctored."""
        return super().render(view).replace("must equal 0", "must equal 1")


class Telling(PacketGRShape):
    """A packet whose generic bullet names the function."""

    def render(self, view: RoundView) -> str:
        """GR-SHAPE's prompt, doctored."""
        return super().render(view).replace(GENERIC[0], f"- {view.details.get('entry_point')} must be right")
