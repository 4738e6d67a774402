"""
The first process in a room of the `command` referee: it starts the referee's own program, waits for it, and says how it
ended. No program under test can reach it. So if it says so, the program alone was lost; if nobody says anything, all of
the room was. It runs inside workspaces, so it uses the standard library and its neighbours only.
"""

from __future__ import annotations

import os
import signal

from referees.pytest_confine import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl
from referees.pytest_wire import last_word, write_all

__all__ = ["go_on_below"]


def go_on_below(writer: int) -> None:
    """Go on in a child, while this process waits for its end and says it by the channel `writer`."""
    # Nobody is to open what is theirs: their descriptors, their memory.
    prctl(PR_SET_DUMPABLE, 0)
    if os.fork() == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    try:
        write_all(writer, last_word(os.waitstatus_to_exitcode(os.wait()[1])))
    finally:
        os._exit(0)
