"""Probes of the filter of system calls: what of the kernel a program in the workspace can still talk to."""

from __future__ import annotations

import platform

from fences.programs import ProgramProbe
from fences.weakenings import UNCONFINED, NotMeasuredError
from harness.views import Fence, Finding, Site

__all__ = ["ForeignEntryProbe", "KernelCallsProbe"]


class KernelCallsProbe(ProgramProbe):
    """
    System calls that a seat has no need of and that breaches have been made with. Each is made with arguments that do
    nothing; any answer but the filter's means that the kernel looked at them.
    """

    name = "kernel-calls"
    threat = "a hole in a little used part of the kernel takes the seat out of its workspace"
    holds = frozenset({Finding.DENIED})
    body = """
import platform
numbers = {
    "x86_64": {"bpf": 321, "io_uring_setup": 425, "keyctl": 250, "perf_event_open": 298, "process_vm_readv": 310,
               "ptrace": 101, "userfaultfd": 323},
    "aarch64": {"bpf": 280, "io_uring_setup": 425, "keyctl": 219, "perf_event_open": 241, "process_vm_readv": 270,
                "ptrace": 117, "userfaultfd": 282},
}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
def reach(number):
    # Commands that no call knows, null pointers, and process -1: nothing is done even where it is allowed.
    if libc.syscall(number, ctypes.c_long(9999), ctypes.c_long(-1), None, ctypes.c_long(0), ctypes.c_long(0)) >= 0:
        return {"fact": "the kernel answered"}
    code = errno.errorcode[ctypes.get_errno()]
    return {"signature": code} if code in ("EPERM", "EACCES", "ENOSYS") else {"fact": "the kernel answered " + code}
for name, number in numbers.items():
    attempt(name, lambda: reach(number))
"""
    down = UNCONFINED


class ForeignEntryProbe(ProgramProbe):
    """
    The kernel's 32-bit entry, whose calls have other numbers: a filter that knows one architecture only and does not
    refuse the others can be walked around. A child makes the one harmless call, since the filter may kill it.
    """

    name = "foreign-entry"
    threat = "the seat makes the calls that its filter forbids, by the entry that the filter does not look at"
    body = """
import mmap, platform, signal
def enter():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    child = os.fork()
    if child == 0:
        os._exit(0 if call() == os.getpid() else 3)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"signature": "NOTHING" if name == "SIGSEGV" else name}
    return {"fact": "the 32-bit entry answers"} if os.WEXITSTATUS(status) == 0 else {"signature": "EPERM"}
attempt("int 0x80", enter if platform.machine() == "x86_64" else lambda: {"signature": "NOTHING"})
"""
    down = UNCONFINED

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Everything that confines system calls, on a machine that has such an entry."""
        if platform.machine() != "x86_64":
            raise NotMeasuredError(f"a machine of kind {platform.machine()} has no 32-bit entry to show")
        return super().weaken(fence, site)
