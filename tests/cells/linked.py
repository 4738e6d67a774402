"""A discovery and its confirmation in one folder of runs, for the tests of promotions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cells.audit.auditing import audit_run, keep_audit
from harness.clock import SystemClock
from tests.cells.promoted import confirmation_of, discovery_in, played, promoted, workshop

__all__ = ["Linked", "as_fisher", "both", "discovery", "house", "linked", "original"]


@dataclass(frozen=True, kw_only=True)
class Linked:
    """A discovery and a confirmation in one folder of runs, and the confirmation's experiment file."""

    runs: Path
    discovery: Path
    confirmation: Path
    target: Path


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in whose workshop everything of this file is played."""
    folder = tmp_path_factory.mktemp("promotions")
    with workshop(folder):
        yield folder


@pytest.fixture(scope="module")
def original(house: Path) -> Path:
    """A finished discovery; what changes it works on a copy."""
    return discovery_in(house)


@pytest.fixture(scope="module")
def both(original: Path, house: Path) -> Linked:
    """A discovery of which an effect was promoted, and the confirmation that was played then."""
    runs = house / "both"
    discovery = Path(shutil.copytree(original, runs / original.name))
    target = confirmation_of(original.name, house / "of-both")
    promoted(discovery, target)
    confirmation = played(target, runs)
    keep_audit(confirmation, audit_run(confirmation), clock=SystemClock())
    return Linked(runs=runs, discovery=discovery, confirmation=confirmation, target=target)


@pytest.fixture
def discovery(original: Path, tmp_path: Path) -> Path:
    """The finished discovery, in a folder of runs of the test's own."""
    return Path(shutil.copytree(original, tmp_path / "runs" / original.name))


@pytest.fixture
def linked(both: Linked, tmp_path: Path) -> Linked:
    """Both runs, in a folder of the test's own."""
    runs = Path(shutil.copytree(both.runs, tmp_path / "runs"))
    return Linked(
        runs=runs,
        discovery=runs / both.discovery.name,
        confirmation=runs / both.confirmation.name,
        target=both.target,
    )


def as_fisher(text: str) -> str:
    """The confirmation tests without pairs."""
    return text.replace('control = "B"\n', 'control = "B"\ntest = "fisher"\n', 1)
