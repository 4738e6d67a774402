"""The subject's monitor: out of the subject's reach by a filter of system calls, and strict about its frames."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from itertools import count

import pytest

from referees.pytest_confine import ALLOW, EPERM, ERRNO, KILL, MACHINES, watcher_filter
from referees.pytest_monitor import Frames
from referees.pytest_watch import Watch
from referees.pytest_wire import FRAME, WireError
from tests.referees.test_evalplus_zygote import run_filter

DENY = ERRNO | EPERM
WATCHER, PARENT, GROUP, OTHER = 4711, 4710, 4700, 99


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_nothing_reaches_the_watcher(name: str) -> None:
    """Signals, limits and priorities aimed at it, at its group or at everyone are refused; aimed at others they are not."""
    machine = MACHINES[name]
    program, arch = watcher_filter(name, (WATCHER, PARENT), GROUP), machine["arch"]
    for number in machine["aimed"]:
        for target in (WATCHER, PARENT, -1 & (1 << 64) - 1, -GROUP & (1 << 64) - 1):
            assert run_filter(program, arch, number, target) == DENY, (number, target)
        assert run_filter(program, arch, number, OTHER) == ALLOW
        assert run_filter(program, arch, number, 0) == ALLOW
    for number in machine["by_kind"]:
        assert run_filter(program, arch, number, 0, WATCHER) == DENY
        assert run_filter(program, arch, number, 0, PARENT) == DENY
        assert run_filter(program, arch, number, 0, OTHER) == ALLOW
    assert run_filter(program, arch, machine["pidfd_send_signal"], 3, 9) == DENY
    assert run_filter(program, arch, machine["fcntl"], 3, 8) == DENY
    assert run_filter(program, arch, machine["fcntl"], 3, 1) == ALLOW
    assert run_filter(program, arch, machine["ioctl"], 3, 0x8901) == DENY
    assert run_filter(program, arch ^ 1, 0) == KILL
    assert run_filter(program, arch, 0x40000000) == DENY


def test_frames_in_parts() -> None:
    """Whole frames come out in order however they are cut; a length that no frame has is refused."""
    data = b"".join(struct.pack(">Ic", len(body), b"R") + body for body in (b"ab", b"", b"c"))
    frames = Frames()
    taken = [frame for cut in range(len(data)) for frame in frames.taken(data[cut : cut + 1])]
    assert taken == [(b"R", b"ab"), (b"R", b""), (b"R", b"c")]
    with pytest.raises(WireError):
        list(Frames().taken(struct.pack(">Ic", FRAME + 5, b"R")))


def child(burns: bool) -> int:
    """A process that burns the processor, or sleeps, for ten seconds."""
    pid = os.fork()
    if pid == 0:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if not burns:
                time.sleep(1)
        os._exit(0)
    return pid


@pytest.mark.live
@pytest.mark.parametrize(
    ("burns", "turn", "over"), [(True, 1, "cpu"), (False, 1, "blocked"), (False, 0, "blocked"), (False, None, None)]
)
def test_what_a_watch_sees(burns: bool, turn: int | None, over: str | None) -> None:
    """Who burns is over its time of the processor, who sleeps while it is waited for blocks, who is idle does nothing."""
    watch = Watch(child(burns), 0.3, 0.3)
    try:
        assert looked_at(watch, lambda: turn, 8 if over else 1) == over
        assert (watch.cpu_used > 0.3) == burns
    finally:
        watch.end_all()
        os.waitpid(watch.child, 0)


@pytest.mark.live
def test_who_answers_between_two_looks_is_never_blocked() -> None:
    """Whoever is asked anew before each look, or answers during it, slept for want of a question: no limit is over."""
    watch = Watch(child(burns=False), 0.3, 0.3)
    turns, ends = count(), count()
    try:
        assert looked_at(watch, lambda: next(turns) // 2, 1) is None, "a turn that began after the last look"
        assert looked_at(watch, lambda: None if next(ends) % 2 else 7, 1) is None, "a turn that ended during the look"
        assert watch.blocked == 0.0
    finally:
        watch.end_all()
        os.waitpid(watch.child, 0)


def looked_at(watch: Watch, turn: Callable[[], int | None], seconds: float) -> str | None:
    """Which limit is found to be over within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if seen := watch.look(turn):
            return seen
        time.sleep(0.01)
    return None
