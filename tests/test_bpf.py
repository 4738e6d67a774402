"""The filter of system calls, run by an interpreter of its own: what it lets through, and what not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.workspaces.bpf import ALLOW, ARCHITECTURES, ERRNO, KILL_PROCESS, Instruction, assemble, compile_filter
from harness.workspaces.seccomp import profile
from harness.workspaces.syscall_numbers import numbers

EPERM, ENOSYS = ERRNO | 1, ERRNO | 38
MACHINES = sorted(ARCHITECTURES)


def answer(program: Sequence[Instruction], machine: str, number: int, *arguments: int) -> int:
    """What the kernel would make of a call: the machine of classic BPF, as far as a filter needs it."""
    words = [number, ARCHITECTURES[machine], 0, 0]
    for argument in [*arguments, 0, 0, 0, 0, 0, 0][:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    at = loaded = 0
    while True:
        code, yes, no, constant = program[at]
        at += 1
        if code == 0x20:
            loaded = words[constant // 4]
        elif code == 0x54:
            loaded &= constant
        elif code == 0x06:
            return constant
        else:
            held = {0x15: loaded == constant, 0x25: loaded > constant, 0x35: loaded >= constant}[code]
            at += yes if held else no


@pytest.fixture(scope="module", params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    """Each machine that a filter can be made for."""
    return str(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["listed", "traced"])
def traced(request: pytest.FixtureRequest) -> bool:
    """With a debugger's calls, and without."""
    return bool(request.param)


@pytest.fixture(scope="module")
def program(machine: str, traced: bool) -> list[Instruction]:
    """The filter for it."""
    return compile_filter(profile(machine, traced=traced), machine)


def test_every_listed_call_is_allowed_and_every_other_is_not(
    program: list[Instruction], machine: str, traced: bool
) -> None:
    """Over all numbers there are, exactly the plain calls of the list pass; ptrace only where it is asked for."""
    rules = profile(machine, traced=traced)["syscalls"]
    plain = {name for rule in rules if not rule["args"] for name in rule["names"]} - {"clone3"}
    assert ("ptrace" in plain) == traced
    allowed = {number for name, number in numbers(machine).items() if name in plain and number is not None}
    ruled = {numbers(machine)[name] for name in ("clone", "clone3", "socket", "socketpair", "personality")}
    for number in set(range(600)) - ruled:
        expected = ALLOW if number in allowed else EPERM
        assert answer(program, machine, number) == expected, number
    assert len(allowed) > 200


def test_a_policy_with_debuggers_has_a_filter_too(machine: str) -> None:
    """What a debugger needs passes where the policy allows it, and nothing else changes."""
    strict, traced = (compile_filter(profile(machine, traced=traced), machine) for traced in (False, True))
    calls = {numbers(machine)[name] for name in ("kcmp", "process_vm_readv", "process_vm_writev", "ptrace")}
    for number in range(600):
        before, after = (answer(made, machine, number) for made in (strict, traced))
        assert (before, after) == (EPERM, ALLOW) if number in calls else before == after, number


def test_another_architecture_ends_the_process(program: list[Instruction], machine: str) -> None:
    """The 32-bit entry and the x32 numbers are no way around the list."""
    other = next(name for name in MACHINES if name != machine)
    assert answer(program, other, 0) == KILL_PROCESS
    assert answer(program, machine, 0x40000000 | (numbers(machine)["read"] or 0)) == EPERM


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("socket", (1, 1, 0), ALLOW),
        ("socket", (2, 1 | 0o2000000, 6), ALLOW),
        ("socket", (10, 2, 0), ALLOW),
        ("socket", (2, 2, 17), ALLOW),
        ("socket", (2, 1, 262), EPERM),
        ("socket", (10, 1, 132), EPERM),
        ("socket", (2, 2, 1), EPERM),
        ("socket", (2, 5, 0), EPERM),
        ("socket", (1, 5, 0), ALLOW),
        ("socket", (2, 3, 0), EPERM),
        ("socket", (17, 3, 0), EPERM),
        ("socket", (38, 5, 0), EPERM),
        ("socket", (40, 1, 0), EPERM),
        ("socket", (16, 3, 0), ALLOW),
        ("socket", (16, 3, 9), EPERM),
        ("socket", (1 | 1 << 32, 1, 0), EPERM),
        ("socketpair", (1, 1, 0), ALLOW),
        ("socketpair", (40, 1, 0), EPERM),
        ("clone", (0x11,), ALLOW),
        ("clone", (0x003D0F00,), ALLOW),
        ("clone", (0x10000000,), EPERM),
        ("clone", (0x00020011,), EPERM),
        ("clone3", (0,), ENOSYS),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x0400000,), EPERM),
    ],
)
def test_calls_that_depend_on_their_arguments(
    program: list[Instruction], machine: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    """Families and kinds of sockets, namespaces and personas: what is let be, and what is not."""
    number = numbers(machine)[name]
    assert number is not None
    assert answer(program, machine, number, *arguments) == expected


def test_a_filter_fits_the_kernel(program: list[Instruction]) -> None:
    """At most 4,096 steps of 8 bytes, and no jump goes past the end."""
    assert len(program) <= 4096
    assert len(assemble(program)) == 8 * len(program)
    for at, (_, yes, no, _) in enumerate(program):
        assert max(yes, no) <= 255
        assert at + 1 + max(yes, no) < len(program) + (program[at][0] == 0x06)


def test_what_is_not_understood_is_refused() -> None:
    """An unknown machine, call, default or comparison never becomes a filter that lets more through."""
    rule = {"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": []}
    good = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [rule]}
    assert compile_filter(good, "x86_64")
    for machine, bad in (
        ("vax", good),
        ("x86_64", {**good, "defaultAction": "SCMP_ACT_ALLOW"}),
        ("x86_64", {**good, "syscalls": [{**rule, "names": ["no_such_call"]}]}),
        ("x86_64", {**good, "syscalls": [{**rule, "args": [{"index": 0, "op": "SCMP_CMP_GT", "value": 1}]}]}),
        (
            "x86_64",
            {
                **good,
                "syscalls": [
                    {**rule, "action": "SCMP_ACT_TRACE", "args": [{"index": 0, "op": "SCMP_CMP_EQ", "value": 1}]}
                ],
            },
        ),
    ):
        with pytest.raises(ValueError, match=r"vax|default|no_such_call|comparison|action"):
            compile_filter(bad, machine)
