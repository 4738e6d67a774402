"""Which arm mirrors which, held to what can be played before anything is."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import ExperimentError
from harness.ports import Arm

__all__ = ["mirror_sources"]


def mirror_sources(arms: Mapping[str, Arm]) -> dict[str, str]:
    """
    The source of each mirroring arm. Raises `ExperimentError` for a source that is not in the experiment, or that
    mirrors another arm itself.
    """
    told = {name: getattr(arm, "mirrors", None) for name, arm in arms.items()}
    found = {name: str(source) for name, source in told.items() if source is not None}
    for name, source in found.items():
        if source not in arms:
            raise ExperimentError(f"arm {name!r} mirrors {source!r}, which is not in `arms`: add it there")
        if source in found:
            raise ExperimentError(
                f"arm {name!r} mirrors {source!r}, which mirrors {found[source]!r} itself: expected an arm with rounds "
                "of its own"
            )
    return found
