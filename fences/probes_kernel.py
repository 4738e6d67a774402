"""Probes of the filter of system calls: what of the kernel a program in the workspace can still talk to."""

from __future__ import annotations

import platform
from typing import Any

from fences.bodies import IN_CHILD, LIBC
from fences.programs import ProgramProbe
from fences.user_namespace import OutsideProbe
from fences.weakenings import ANY_CALL, NotMeasuredError, with_capability
from fences.witnesses import vouch
from harness.views import Fence, Finding, Site

__all__ = [
    "ClockProbe",
    "FilterProbe",
    "ForeignEntryProbe",
    "KernelCallsProbe",
    "KeyringProbe",
    "PtraceProbe",
]

_NUMBERS = """
import platform
NUMBERS = {
    "x86_64": {
        "bpf": 321, "delete_module": 176, "fanotify_init": 300, "finit_module": 313, "fsopen": 430,
        "io_uring_register": 427, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kcmp": 312, "kexec_load": 246,
        "keyctl": 250, "add_key": 248, "request_key": 249, "mount_setattr": 442, "move_mount": 429, "move_pages": 279,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
        "pidfd_getfd": 438, "pivot_root": 155, "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101,
        "quotactl": 179, "reboot": 169, "setns": 308, "swapon": 167, "syslog": 103, "userfaultfd": 323,
    },
    "aarch64": {
        "bpf": 280, "delete_module": 106, "fanotify_init": 262, "finit_module": 273, "fsopen": 430,
        "io_uring_register": 427, "io_uring_setup": 425, "kcmp": 272, "kexec_load": 104,
        "keyctl": 219, "add_key": 217, "request_key": 218, "mount_setattr": 442, "move_mount": 429, "move_pages": 239,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "open_tree": 428, "perf_event_open": 241,
        "pidfd_getfd": 438, "pivot_root": 41, "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117,
        "quotactl": 60, "reboot": 142, "setns": 268, "swapon": 224, "syslog": 116, "userfaultfd": 282,
    },
}[platform.machine()]
"""

_DEBUGGING = ("kcmp", "pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace")
"""What a debugger needs, and a policy may leave open."""


class KernelCallsProbe(ProgramProbe):
    """
    System calls that a seat has no need of and that breaches have been made with. Each is made with arguments that do
    nothing; any answer but the filter's means that the kernel looked at them.
    """

    name = "kernel-calls"
    threat = "a hole in a little used part of the kernel takes the seat out of its workspace"
    holds = frozenset({Finding.DENIED})
    body = (
        _NUMBERS
        + """
libc = ctypes.CDLL(None, use_errno=True)
def reach(number):
    # Commands that no call knows, null pointers, and process -1: nothing is done even where it is allowed.
    if libc.syscall(number, ctypes.c_long(9999), ctypes.c_long(-1), None, ctypes.c_long(0), ctypes.c_long(0)) >= 0:
        return {"fact": "the kernel answered"}
    code = errno.errorcode[ctypes.get_errno()]
    return {"signature": code} if code in ("EPERM", "EACCES", "ENOSYS") else {"fact": "the kernel answered " + code}
for name, number in NUMBERS.items():
    if name not in args["open"]:
        attempt(name, lambda: reach(number))
"""
    )
    down = ANY_CALL

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The calls that the policy leaves open."""
        del site
        return {"open": list(_DEBUGGING) if fence.walls.system_calls == "traced" else []}


class FilterProbe(ProgramProbe):
    """Whether the kernel holds this very program by a filter of system calls."""

    name = "system-call-filter"
    threat = "a program runs without the filter that the first process was given"
    holds = frozenset({Finding.DENIED})
    body = """
def look():
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("Seccomp:"):
                mode = line.split()[1]
                return {"signature": "EPERM"} if mode == "2" else {"fact": "Seccomp is " + mode}
    return {"signature": "no Seccomp line"}
attempt("Seccomp", look)
"""
    down = ANY_CALL


class ForeignEntryProbe(ProgramProbe):
    """
    The kernel's 32-bit entry, whose calls have other numbers: a filter that knows one architecture only and does not
    refuse the others can be walked around. A child makes the one harmless call, since the filter may kill it.
    """

    name = "foreign-entry"
    threat = "the seat makes the calls that its filter forbids, by the entry that the filter does not look at"
    body = (
        IN_CHILD
        + """
import mmap, platform
def enter():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return {"fact": "the 32-bit entry answers"} if call() == os.getpid() else {"signature": "EPERM"}
def entered():
    answer = in_child(enter)
    return {"signature": "NOTHING"} if answer.get("signature") == "SIGSEGV" else answer
attempt("int 0x80", entered if platform.machine() == "x86_64" else lambda: {"signature": "NOTHING"})
"""
    )
    down = ANY_CALL

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Everything that confines system calls, on a machine that has such an entry."""
        if platform.machine() != "x86_64":
            raise NotMeasuredError(f"a machine of kind {platform.machine()} has no 32-bit entry to show")
        return super().weaken(fence, site)


class PtraceProbe(ProgramProbe):
    """
    Tracing: a child that asks to be traced, and a hold on the workspace's first process. Where the policy lets
    debuggers work, the first process alone, if it is another user's.
    """

    name = "ptrace"
    threat = "the seat takes hold of another program's memory, or works the kernel's most used way out"
    body = (
        LIBC
        + IN_CHILD
        + """
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def trace_me():
    check(libc.ptrace(0, 0, None, None))
    return {"fact": "a program could be traced"}
def seize(pid):
    check(libc.ptrace(0x4206, pid, None, None))
    return {"fact": "the first process could be taken hold of"}
alike = os.stat("/proc/1").st_uid == os.getuid()
if args["allowed"] and alike:
    tries.append({"what": "the first process", "signature": "NOTHING"})
else:
    if not args["allowed"]:
        attempt("own child", lambda: in_child(trace_me))
    attempt("the first process", lambda: in_child(lambda: seize(1)))
"""
    )
    down = ANY_CALL

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The filter of system calls, where it is what forbids tracing."""
        if fence.walls.system_calls == "traced":
            raise NotMeasuredError("the policy lets debuggers work, so the filter is not what keeps them from others")
        return super().weaken(fence, site)

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """Whether the policy lets debuggers work."""
        del site
        return {"allowed": fence.walls.system_calls == "traced"}


class KeyringProbe(ProgramProbe):
    """A key in the host's key ring, which anybody may read who can ask the kernel: no namespace of files hides it."""

    name = "keyring"
    threat = "keys that the host or another cell has given to the kernel answer the seat"
    holds = frozenset({Finding.DENIED})
    places = ("key",)
    canary = "key"
    body = (
        LIBC
        + _NUMBERS
        + """
def payload(serial):
    room = ctypes.create_string_buffer(256)
    length = check(libc.syscall(NUMBERS["keyctl"], 11, ctypes.c_long(serial), room, ctypes.c_long(256)))
    return room.raw[:length]
def own_ring():
    check(libc.syscall(NUMBERS["keyctl"], 0, ctypes.c_long(-3), ctypes.c_long(0)))
    return {"fact": "the kernel names a key ring"}
if args["key"]:
    attempt("key", lambda: payload(int(args["key"].split(" ")[1])))
attempt("own key ring", own_ring)
"""
    )
    down = ANY_CALL

    async def witness(self, site: Site) -> str | None:
        """The key, where this host has a key ring."""
        return await vouch(site, ("key",), "key") if "key" in site.places else None


class ClockProbe(OutsideProbe):
    """The machine's clock: a setting that it has already is set again, so that nothing changes where it is allowed."""

    name = "clock"
    threat = "the seat turns the host's clock, and with it every limit and every line of the record"
    holds = frozenset({Finding.DENIED})
    core = (
        LIBC
        + """
def again():
    # struct timex: `modes` first, `tick` after ten longs. Setting the tick that is set already changes nothing.
    told = ctypes.create_string_buffer(256)
    check(libc.adjtimex(told))
    struct.pack_into("i", told, 0, 0x4000)
    check(libc.adjtimex(told))
    return {"fact": "the clock could be set"}
attempt("adjtimex", again)
"""
    )
    down = with_capability("SYS_TIME")
