"""The desk that tests of seats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.seats.desks import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches, each with a folder and a transcript of its own, closed at the end of the test."""
    with ExitStack() as stack:
        made = []

        def make(*args: object, **changes: object) -> Bench:
            made.append(Bench(tmp_path / str(len(made)), *args, **changes))
            stack.enter_context(made[-1].transcript)
            return made[-1]

        yield make
