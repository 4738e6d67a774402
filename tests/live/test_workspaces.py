"""Both backends run the one suite that says what a workspace is; the embedded one also over the host's own `/usr`."""

from __future__ import annotations

import pytest

from tests.live.images import seat_image

_PARTS = ("", "_apart", "_end", "_files", "_gateway")
pytest.register_assert_rewrite(*(f"tests.live.conformance{part}" for part in _PARTS), "tests.live.rooms")

from tests.live.conformance import WorkspaceConformance  # noqa: E402  # after it is registered, so that its asserts explain themselves


@pytest.fixture(scope="module")
def default_image() -> None:
    """The image that the workspaces start from is there."""
    seat_image()


@pytest.mark.usefixtures("default_image")
class FromTheStore(WorkspaceConformance):
    """Backends that start from the default image."""

    image = "proctor-seat"


class OnOneLoop:
    """Backends whose own tests run on both loops need not run the whole suite twice."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """asyncio, which the command line uses."""
        return "asyncio"


class TestBubblewrap(FromTheStore):
    """The embedded sandbox over an image of the store, on both loops."""

    spec = "harness.workspaces.bubblewrap:BubblewrapBackend"


class TestBubblewrapOverTheHost(OnOneLoop, WorkspaceConformance):
    """The embedded sandbox over this host's `/usr`."""

    spec = "harness.workspaces.bubblewrap:BubblewrapBackend"
    image = "host"


class TestDocker(OnOneLoop, FromTheStore):
    """The container engine."""

    spec = "harness.workspaces.docker:DockerBackend"
