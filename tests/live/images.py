"""The images that live tests start from, for every test file that needs one: `from tests.live.images import seat_image`."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from harness.environment import state_home
from harness.workspaces.image_build import DEFAULT_PACKAGES, build_from_debian
from harness.workspaces.images import DEFAULT_IMAGE, ImageStore

__all__ = ["PROVERS", "prover_image", "seat_image"]

PROVERS = "proctor-provers"
"""The name of the image that has the proof kernels and program verifiers."""

ROCQ_PACKAGES = ("coq", "libcoq-core-ocaml", "libfindlib-ocaml", "libzarith-ocaml", "ocaml-base")
"""Debian's `coq`, and what gives the virtual packages that it depends on: debootstrap does not find those by itself."""


def seat_image() -> str:
    """The name of the default image, built first where this machine's store does not have it (about a minute)."""
    if ImageStore().find(DEFAULT_IMAGE) is None:
        build_from_debian()
    return DEFAULT_IMAGE


def prover_image() -> str:
    """The name of the image with Rocq (`coq`) and Dafny, built first where this machine's store does not have it."""
    with _alone(PROVERS):
        if ImageStore().find(PROVERS) is None:
            build_from_debian(PROVERS, packages=(*DEFAULT_PACKAGES, *ROCQ_PACKAGES, "dafny"))
    return PROVERS


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process at a time builds image `name`: another that asks meanwhile waits for it."""
    path = state_home() / "images" / f".{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
