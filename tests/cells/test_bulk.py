"""The collector of cycles is held while a set is read, and never left otherwise than it was found."""

import gc

import pytest

from cells.bulk import in_bulk


@pytest.fixture(autouse=True)
def _collector():
    """Whatever a test does, the next one has a collector."""
    yield
    gc.enable()


def test_it_is_held_inside_and_back_afterwards():
    """Also where one bulk is part of another."""
    with in_bulk():
        assert not gc.isenabled()
        with in_bulk():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_back_after_an_error():
    """A file that can't be read must not leave a process without a collector."""
    with pytest.raises(ValueError, match="bad"), in_bulk():
        raise ValueError("bad")
    assert gc.isenabled()


def test_one_that_was_off_stays_off():
    """Who switched it off has a reason."""
    gc.disable()
    with in_bulk():
        pass
    assert not gc.isenabled()


def test_a_cycle_that_was_made_meanwhile_is_found_later():
    """Nothing is frozen for good."""

    class Loop:
        freed = 0

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            Loop.freed += 1

    with in_bulk():
        Loop()
    gc.collect()
    assert Loop.freed == 1
    assert gc.get_freeze_count() == 0
