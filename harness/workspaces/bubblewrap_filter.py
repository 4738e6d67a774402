"""The filter of system calls that walls ask for, assembled for this machine."""

from __future__ import annotations

import platform
from functools import cache

from harness.walls import SystemCalls
from harness.workspaces.bpf import ARCHITECTURES, assemble, compile_filter
from harness.workspaces.seccomp import profile

__all__ = ["seccomp_filter"]


@cache
def seccomp_filter(calls: SystemCalls) -> bytes | None:
    """The filter, or None where none is asked for (bwrap has none of its own) and where none can be made."""
    machine = platform.machine()
    if calls not in ("listed", "traced") or machine not in ARCHITECTURES:
        return None
    return assemble(compile_filter(profile(machine, traced=calls == "traced"), machine))
