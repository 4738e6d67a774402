"""
The seat's list of allowed system calls as a program for the kernel's filter, so that the embedded sandbox walls in what
a container walls in. It is put together here: no library for it needs to be on the machine.

The filter reads `struct seccomp_data`: the call's number at 0, the architecture at 4, six 64-bit arguments from 16 on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from harness.workspaces.syscall_numbers import numbers

__all__ = ["ARCHITECTURES", "Instruction", "assemble", "compile_filter"]

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""`AUDIT_ARCH_*` of the machines that a filter can be made for."""

Instruction: TypeAlias = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""

LOAD, AND = 0x20, 0x54
IF_EQUAL, IF_GREATER, IF_AT_LEAST = 0x15, 0x25, 0x35
RETURN = 0x06

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
EPERM = 1

_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOW = 0xFFFFFFFF


def assemble(program: Sequence[Instruction]) -> bytes:
    """The program as the kernel takes it: an array of `struct sock_filter`."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def compile_filter(profile: Mapping[str, Any], machine: str) -> list[Instruction]:
    """
    An OCI profile that allows a list of calls (`harness.workspaces.seccomp.profile`) as a filter for `machine`.

    A call of another architecture ends the process; what the profile does not allow fails with EPERM. Raises
    `ValueError` for a machine or a call that isn't known and for a profile of another kind.
    """
    if machine not in ARCHITECTURES:
        raise ValueError(f"no filter for machine {machine!r}: known are {', '.join(sorted(ARCHITECTURES))}")
    if profile["defaultAction"] != "SCMP_ACT_ERRNO":
        raise ValueError(f"a profile whose default is {profile['defaultAction']!r}: expected 'SCMP_ACT_ERRNO'")
    plain, ruled = _sorted_out(profile["syscalls"], machine)
    return [
        (LOAD, 0, 0, _ARCHITECTURE),
        (IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, _NUMBER),
        *(step for number, rules in sorted(ruled.items()) for step in _call(number, rules)),
        *_ranges(sorted(plain)),
        (RETURN, 0, 0, ERRNO | EPERM),
    ]


def _sorted_out(
    rules: Iterable[Mapping[str, Any]], machine: str
) -> tuple[set[int], dict[int, list[Mapping[str, Any]]]]:
    """The numbers that are allowed as they are, and the rules of those that depend on their arguments."""
    known = numbers(machine)
    plain: set[int] = set()
    ruled: dict[int, list[Mapping[str, Any]]] = {}
    for rule in rules:
        for name in rule["names"]:
            if name not in known:
                raise ValueError(f"the number of system call {name!r} is not in syscall_numbers.py: add it there")
            number = known[name]
            if number is None:
                continue
            if rule["action"] == "SCMP_ACT_ALLOW" and not rule["args"]:
                plain.add(number)
            else:
                ruled.setdefault(number, []).append(rule)
    return plain - ruled.keys(), ruled


def _call(number: int, rules: Sequence[Mapping[str, Any]]) -> list[Instruction]:
    """One call that depends on its arguments: the first rule that fits decides, else EPERM."""
    body = [step for rule in rules for step in _alternative(rule)]
    body.append((RETURN, 0, 0, ERRNO | EPERM))
    if len(body) > 255:
        raise ValueError(f"the rules of system call {number} take {len(body)} steps: 255 at most can be jumped over")
    return [(IF_EQUAL, 0, len(body), number), *body]


def _alternative(rule: Mapping[str, Any]) -> list[Instruction]:
    """A rule's tests, each of which skips the rest when it does not hold, and its answer."""
    tests = [test for argument in rule["args"] for test in _tests(argument)]
    answer = (RETURN, 0, 0, _answer(rule))
    sizes = [len(test) for test in tests]
    steps: list[Instruction] = []
    for index, test in enumerate(tests):
        skip = sum(sizes[index + 1 :]) + 1
        *loads, (code, _, _, constant) = test
        steps += [*loads, (code, 0, skip, constant)]
    return [*steps, answer]


def _answer(rule: Mapping[str, Any]) -> int:
    if rule["action"] == "SCMP_ACT_ALLOW":
        return ALLOW
    if rule["action"] == "SCMP_ACT_ERRNO":
        return ERRNO | int(rule.get("errnoRet", EPERM))
    raise ValueError(f"unknown action {rule['action']!r}: expected SCMP_ACT_ALLOW or SCMP_ACT_ERRNO")


def _tests(argument: Mapping[str, Any]) -> list[list[Instruction]]:
    """The tests of one argument, half by half, since the filter's words have 32 bits; both are little-endian."""
    place = _ARGUMENTS + 8 * int(argument["index"])
    if argument["op"] == "SCMP_CMP_EQ":
        mask, value = (1 << 64) - 1, int(argument["value"])
    elif argument["op"] == "SCMP_CMP_MASKED_EQ":
        mask, value = int(argument["value"]), int(argument["valueTwo"])
    else:
        raise ValueError(f"unknown comparison {argument['op']!r}: expected SCMP_CMP_EQ or SCMP_CMP_MASKED_EQ")
    tests: list[list[Instruction]] = []
    for offset, shift in ((0, 0), (4, 32)):
        half = (mask >> shift) & _LOW
        if half == 0:
            continue
        masked: list[Instruction] = [] if half == _LOW else [(AND, 0, 0, half)]
        tests.append([(LOAD, 0, 0, place + offset), *masked, (IF_EQUAL, 0, 0, (value >> shift) & _LOW)])
    return tests


def _ranges(allowed: Sequence[int]) -> list[Instruction]:
    """Runs of neighbouring numbers, in order, so that a call below the next run is refused at once."""
    runs: list[tuple[int, int]] = []
    for number in allowed:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    steps: list[Instruction] = []
    for first, last in runs:
        steps += [
            (IF_AT_LEAST, 1, 0, first),
            (RETURN, 0, 0, ERRNO | EPERM),
            (IF_GREATER, 1, 0, last),
            (RETURN, 0, 0, ALLOW),
        ]
    return steps
