"""
What confines a candidate's process inside a sealed workspace: a filter of system calls that it can never take off.

Its source is sent there together with the zygote's; it imports nothing of ours and only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 4, 38, 22

EPERM, ENOSYS = 1, 38
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, JUMP, RETURN = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06
MOST_STEPS = 255
"""How far a conditional jump goes; a plain one goes anywhere."""
CLONE_THREAD = 0x00010000
MACHINES: dict[str, Any] = {
    "x86_64": {
        "arch": 0xC000003E,
        "denied": (
            # processes and signals: fork, vfork, execve(at), kill, tkill, tgkill, sigqueueinfo, pidfd_*, setsid, ...
            *(57, 58, 59, 322, 62, 200, 234, 129, 297, 434, 424, 438, 112, 109),
            # other processes' memory, limits and scheduling; prctl and seccomp themselves
            *(101, 310, 311, 440, 448, 312, 256, 279, 141, 203, 144, 142, 314, 251, 157, 317, 135),
            # sockets, shared memory and queues, name spaces and mounts, kernel interfaces
            *(41, 29, 68, 64, 240, 272, 308, 165, 166, 155, 161, 303, 304, 298, 321, 425, 426, 427, 323, 250, 248, 249),
            # names that would outlive it: mkdir, rmdir, creat, (un)link, symlink, rename, mknod, openat2, truncate
            *(83, 258, 84, 85, 86, 265, 87, 263, 88, 266, 82, 264, 316, 133, 259, 437, 76),
            # what a name says beside itself: modes, owners, times, attributes
            *(90, 91, 268, 452, 92, 93, 94, 260, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199),
        ),
        "opens": ((2, 1), (257, 2)),
        "clone": 56, "clone3": 435, "fcntl": 72, "ioctl": 16, "prlimit": 302,
    },
    "aarch64": {
        "arch": 0xC00000B7,
        "denied": (
            *(221, 281, 129, 130, 131, 138, 240, 434, 424, 438, 157, 154),
            *(117, 270, 271, 440, 448, 272, 238, 239, 140, 122, 119, 118, 274, 30, 167, 277, 92),
            *(198, 194, 186, 190, 180, 97, 268, 40, 39, 41, 51, 264, 265, 241, 280, 425, 426, 427, 282, 219, 217, 218),
            *(34, 35, 37, 36, 38, 276, 33, 437, 45),
            *(52, 53, 452, 54, 55, 88, 5, 6, 7, 14, 15, 16),
        ),
        "opens": ((56, 2),),
        "clone": 220, "clone3": 435, "fcntl": 25, "ioctl": 29, "prlimit": 261,
    },
}  # fmt: skip
# O_CREAT and O_TMPFILE. A room is warm: a name that one candidate left would be a message to a later one.
MAKES_A_FILE = 0x00000040 | 0x00400000
# Each would let a child send its parent a signal by way of a descriptor's owner.
OWNER_CONTROLS = (8, 10, 15)
OWNER_IOCTLS = (0x8901, 0x8902)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


_DENY, _ALLOW = _op(RETURN, ERRNO | EPERM), _op(RETURN, ALLOW)


def _argument(index: int) -> int:
    return 16 + 8 * index


def filter_program(machine: dict[str, Any]) -> bytes:
    """
    The BPF program that every child runs under, as bytes. Its heart is a search in a sorted table of call numbers: the
    kernel tries out every call there is when a filter is installed, which happens for each child.
    """
    actions = dict.fromkeys(machine["denied"], _DENY) | _looked_into(machine)
    # Every call from a key up to the next one has that action.
    table: dict[int, bytes] = {0: _ALLOW}
    for number in sorted(actions):
        table[number] = actions[number]
        table[number + 1] = _ALLOW
    table[0x40000000] = _DENY  # from here on the x32 numbers of the same calls
    head = [_op(LOAD, 4), _op(EQUAL, machine["arch"], 1, 0), _op(RETURN, KILL), _op(LOAD, 0)]
    rows: list[tuple[int, bytes]] = []
    for number, action in sorted(table.items()):
        if not rows or rows[-1][1] != action:
            rows.append((number, action))
    return b"".join([*head, _search(rows)])


def _looked_into(machine: dict[str, Any]) -> dict[int, bytes]:
    """What is done about the calls whose arguments matter."""
    # glibc falls back to clone() when clone3() does not exist, and clone()'s flags can be looked at.
    found = {machine["clone3"]: _op(RETURN, ERRNO | ENOSYS)}
    found[machine["clone"]] = _op(LOAD, _argument(0)) + _op(ANY_BIT, CLONE_THREAD, 1, 0) + _DENY + _ALLOW
    found[machine["prlimit"]] = _op(LOAD, _argument(0)) + _op(EQUAL, 0, 1, 0) + _DENY + _ALLOW
    for number, flags in machine["opens"]:
        found[number] = _op(LOAD, _argument(flags)) + _op(ANY_BIT, MAKES_A_FILE, 0, 1) + _DENY + _ALLOW
    for call, values in (("fcntl", OWNER_CONTROLS), ("ioctl", OWNER_IOCTLS)):
        refused = b"".join(_op(EQUAL, value, 0, 1) + _DENY for value in values)
        found[machine[call]] = _op(LOAD, _argument(1)) + refused + _ALLOW
    return found


def _search(table: list[tuple[int, bytes]]) -> bytes:
    """The program that finds the loaded number's action in a sorted table of where each begins."""
    if len(table) == 1:
        return table[0][1]
    middle = len(table) // 2
    below, above = _search(table[:middle]), _search(table[middle:])
    steps = len(above) // 8
    if steps > MOST_STEPS:
        return _op(AT_LEAST, table[middle][0], 1, 0) + _op(JUMP, steps) + above + below
    return _op(AT_LEAST, table[middle][0], 0, steps) + above + below


@cache
def _prctl() -> Any:
    # Made once, by the zygote: a child that did it would spend more on that than on everything else before its start.
    function = ctypes.CDLL(None, use_errno=True).prctl
    function.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return function


def prctl(option: int, first: int = 0, second: int = 0) -> None:
    """The system call, with an `OSError` when it refuses."""
    if _prctl()(option, first, second, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


class Filter:
    """The filter of this machine, ready to be installed. Raises `KeyError` on a machine that has none."""

    def __init__(self) -> None:
        """Made once, before any child."""
        program = filter_program(MACHINES[os.uname().machine])
        self.body = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(self.body))
        self.header = ctypes.create_string_buffer(header, len(header))
        self.address = ctypes.addressof(self.header)

    def install(self) -> None:
        """
        Put this process, for good, under the filter. Raises `OSError` where that can't be done, as in a process that
        has not given up new privileges before.
        """
        prctl(PR_SET_SECCOMP, 2, self.address)
