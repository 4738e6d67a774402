"""
What the exhibit's process may not do: anything to the process that watches it. It may start programs, and signal them.

This file runs inside workspaces, so it uses the standard library only.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38

EPERM = 1
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
MACHINES: dict[str, dict[str, Any]] = {
    "x86_64": {
        "arch": 0xC000003E,
        # kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_open; prlimit64, sched_set*: the first argument
        # says whom
        "aimed": (62, 200, 234, 129, 297, 434, 302, 203, 142, 144, 314),
        # setpriority, ioprio_set: the second does, the first says of what kind it is
        "by_kind": (141, 251),
        "fcntl": 72,
        "ioctl": 16,
        "pidfd_send_signal": 424,
    },
    "aarch64": {
        "arch": 0xC00000B7,
        "aimed": (129, 130, 131, 138, 240, 434, 261, 122, 118, 119, 274),
        "by_kind": (140, 30),
        "fcntl": 25,
        "ioctl": 29,
        "pidfd_send_signal": 424,
    },
}
# Each would send a signal to whom a descriptor is made to belong.
OWNER_CONTROLS = (8, 10, 15)
OWNER_IOCTLS = (0x8901, 0x8902)

_WORD = (1 << 32) - 1


def prctl(option: int, value: Any, last: Any = 0) -> None:
    """The system call, with an `OSError` when it refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_void_p(item) if type(item) is int else item for item in (value, last, 0, 0)]
    if library.prctl(option, *arguments) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


_DENY, _LEAVE = _op(RETURN, ERRNO | EPERM), _op(RETURN, ALLOW)


def _refused(number: int, index: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse the call `number` where its argument `index` is one of `values`; let it through otherwise."""
    checks = [part for value in values for part in (_op(EQUAL, value & _WORD, 0, 1), _DENY)]
    return [_op(EQUAL, number, 0, len(checks) + 2), _op(LOAD, 16 + 8 * index), *checks, _LEAVE]


def watcher_filter(machine: str, watchers: Sequence[int], group: int) -> bytes:
    """
    The program under which nothing can signal, slow or limit the processes `watchers`, of the process group `group`.

    Raises `KeyError` for a machine whose calls it does not know.
    """
    known = MACHINES[machine]
    rules = [_op(LOAD, 4), _op(EQUAL, known["arch"], 1, 0), _op(RETURN, KILL), _op(LOAD, 0)]
    rules += [_op(AT_LEAST, 0x40000000, 0, 1), _DENY]  # the x32 numbers of the same calls
    # A folder of /proc serves as a descriptor of its process, and no filter sees whose it is.
    rules += [_op(EQUAL, known["pidfd_send_signal"], 0, 1), _DENY]
    for number in known["aimed"]:
        rules += _refused(number, 0, (*watchers, -1, -group))
    for number in known["by_kind"]:
        rules += _refused(number, 1, (*watchers, group))
    rules += _refused(known["fcntl"], 1, OWNER_CONTROLS)
    rules += _refused(known["ioctl"], 1, OWNER_IOCTLS)
    return b"".join([*rules, _LEAVE])


def install(program: bytes) -> None:
    """Put this process and all that it starts, for good, under `program`. Raises `OSError` where that can't be done."""
    body = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(body))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(header, len(header)))
