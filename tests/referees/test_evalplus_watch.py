"""What the zygote holds against a child: time spent waiting for nothing of ours."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from referees.evalplus_zygote import Watch

pytestmark = pytest.mark.live

JOB = {"first": 0, "longer": {}, "least": 5.0, "build": 0.2, "budget": 60.0, "wall": 60.0}


def sleeps(writing: int) -> None:
    """Wait for nothing."""
    time.sleep(30)


def floods(writing: int) -> None:
    """Write more than the channel holds, and wait for it to be read."""
    os.write(writing, bytes(8 << 20))


def burns_in_a_thread(writing: int) -> None:
    """Wait for a thread that works."""

    def burn() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            pass

    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()


@pytest.mark.parametrize(("does", "blocked"), [(sleeps, True), (floods, False), (burns_in_a_thread, False)])
def test_only_waiting_of_its_own_counts(does: Callable[[int], None], blocked: bool) -> None:
    """Sleep is held against a child; a full channel that we do not read, or a main thread that waits for another, is not."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            does(writing)
        finally:
            os._exit(0)
    watch = Watch(pid, JOB, reading)
    try:
        time.sleep(0.3)
        watch.over()
        before = watch.blocked
        for _ in range(8):
            time.sleep(0.1)
            watch.over()
        assert (watch.blocked - before > 0.3) == blocked
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)
