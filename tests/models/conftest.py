"""Fixtures of the model tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models.fault_server import FaultServer


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    """A server that answers as told."""
    with FaultServer().running() as server:
        yield server
