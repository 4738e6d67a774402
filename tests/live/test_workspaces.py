"""Both backends run the one suite that says what a workspace is; the embedded one also over the host's own `/usr`."""

from __future__ import annotations

from conformance import WorkspaceConformance


class TestBubblewrap(WorkspaceConformance):
    """The embedded sandbox over an image of the store."""

    spec = "harness.workspaces.bubblewrap:BubblewrapBackend"
    image = "proctor-seat"


class TestBubblewrapOverTheHost(WorkspaceConformance):
    """The embedded sandbox over this host's `/usr`."""

    spec = "harness.workspaces.bubblewrap:BubblewrapBackend"
    image = "host"


class TestDocker(WorkspaceConformance):
    """The container engine."""

    spec = "harness.workspaces.docker:DockerBackend"
    image = "proctor-seat"
