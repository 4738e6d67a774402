"""Which workspace backend is used: the one that is named, or for `auto` the first that can be."""

from __future__ import annotations

from harness import plugins
from harness.errors import ImageError, UsageError, WorkspaceError
from harness.ports import WorkspaceBackend

__all__ = ["AUTO", "candidates", "usable_backend"]

AUTO = "auto"


def candidates(name: str) -> tuple[str, ...]:
    """The backends that `name` allows, in the order in which they are tried."""
    return ("docker", "bubblewrap") if name == AUTO else (name,)


async def usable_backend(name: str, image: str) -> WorkspaceBackend:
    """
    The first backend that `name` allows whose engine answers and that has `image`.

    Raises `UsageError` with the reason of each that can't be used.
    """
    reasons = []
    for candidate in candidates(name):
        backend: WorkspaceBackend = plugins.load("workspaces", candidate)()
        try:
            await backend.engine()
            await backend.image_digest(image)
        except (WorkspaceError, ImageError) as error:
            reasons.append(f"{candidate}: {error}")
            continue
        return backend
    raise UsageError("no workspace backend can be used:\n  " + "\n  ".join(reasons))
