"""How the forwarder (`forwarder.py`) is started in a workspace that has the network `gateway`."""

from __future__ import annotations

from functools import cache
from importlib import resources

from harness.walls import GATEWAY_FOLDER, GATEWAY_PORT, GATEWAY_SOCKET

__all__ = ["LISTENING", "forwarder_argv"]

LISTENING = b"listening\n"
"""What the forwarder says on its output once it can be connected to."""


def forwarder_argv(seconds: float) -> list[str]:
    """The command that runs the forwarder for `seconds`: its text travels with it, so the image needs only Python."""
    path = f"{GATEWAY_FOLDER}/{GATEWAY_SOCKET}"
    return ["python3", "-I", "-S", "-c", _text(), path, str(GATEWAY_PORT), f"{seconds:.0f}"]


@cache
def _text() -> str:
    return resources.files("harness.workspaces").joinpath("forwarder.py").read_text(encoding="utf-8")
