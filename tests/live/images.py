"""The image that live tests start from, for every test file that needs it: `from tests.live.images import seat_image`."""

from __future__ import annotations

from harness.workspaces.image_build import build_from_debian
from harness.workspaces.images import DEFAULT_IMAGE, ImageStore

__all__ = ["seat_image"]


def seat_image() -> str:
    """The name of the default image, built first where this machine's store does not have it (about a minute)."""
    if ImageStore().find(DEFAULT_IMAGE) is None:
        build_from_debian()
    return DEFAULT_IMAGE
