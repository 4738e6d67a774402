"""
The system calls that a seat may make: a list of what is allowed, for one architecture.

The engine's own default is not relied upon: depending on its version it leaves vsock, io_uring, ptrace and the 32-bit
entry open, none of which a namespace closes. What isn't here fails with EPERM.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from harness.canonical import canonical_bytes

__all__ = ["profile", "profile_text"]

_FILES = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr
    fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr inotify_add_watch
    inotify_init inotify_init1 inotify_rm_watch lchown lgetxattr link linkat listxattr llistxattr lremovexattr lseek
    lsetxattr lstat mkdir mkdirat mknod mknodat newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev
    pwritev2 read readahead readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile setxattr
    splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime
    utimensat utimes write writev
"""
_MEMORY = """
    brk get_mempolicy madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
    munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
"""
_PROCESSES = """
    alarm arch_prctl capget capset execve execveat exit exit_group fork get_robust_list get_thread_area getcpu getegid
    geteuid getgid getgroups getitimer getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit
    getrusage getsid gettid getuid kill pause pidfd_open pidfd_send_signal prctl prlimit64 rseq rt_sigaction
    rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield set_robust_list
    set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid
    setresuid setreuid setrlimit setsid setuid sigaltstack signalfd signalfd4 tgkill times tkill vfork wait4 waitid
"""
_WAITING = """
    clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait
    eventfd eventfd2 futex futex_waitv futex_wake futex_wait futex_requeue gettimeofday nanosleep pipe pipe2 poll ppoll
    pselect6 restart_syscall select time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
    timerfd_create timerfd_gettime timerfd_settime
"""
_TALKING = """
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg
    sendto setsockopt shutdown
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget
    semop semtimedop shmat shmctl shmdt shmget
"""
_SYSTEM = "getrandom ioctl ioprio_get ioprio_set landlock_add_rule landlock_create_ruleset landlock_restrict_self "
_SYSTEM += "seccomp sysinfo uname"

_TRACING = "kcmp process_vm_readv process_vm_writev ptrace"
"""What a debugger needs: to read, write and steer processes of its own user."""

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_ENOSYS = 38

# The flags of clone(2) that make a namespace: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME.
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00000080
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TYPE_BITS = 0xF
_STREAM, _DGRAM, _SEQPACKET = 1, 2, 5
_DEFAULT, _TCP, _UDP = 0, 6, 17
_ROUTE = 0


def profile(machine: str | None = None, *, traced: bool = False) -> Mapping[str, Any]:
    """
    The profile as an OCI engine reads it, for `machine` (`platform.machine()`'s name; None is this one). `traced` has
    what debuggers need, too.

    A machine of an unknown kind gets the x86_64 profile, whose engine then refuses to start anything: closed, not open.
    """
    chosen = _ARCHITECTURES.get(machine or platform.machine(), "SCMP_ARCH_X86_64")
    names = sorted(f"{_FILES} {_MEMORY} {_PROCESSES} {_WAITING} {_TALKING} {_SYSTEM}".split())
    names = sorted([*names, *_TRACING.split()]) if traced else names
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "architectures": [chosen],
        "syscalls": [
            _allow(names),
            _allow(["clone"], _argument(0, _NAMESPACES, 0)),
            # The C library falls back to clone when clone3, whose flags no filter can read, is not there.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS, "args": []},
            *_sockets(),
            *(_allow(["personality"], _equal(0, value)) for value in _personas(traced=traced)),
        ],
    }


def _personas(*, traced: bool) -> tuple[int, ...]:
    """The persona of uname, and what it takes to ask for the present one; a debugger turns random addresses off."""
    usual = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)
    return (*usual, 0x40000) if traced else usual


def profile_text(machine: str | None = None, *, traced: bool = False) -> str:
    """The profile as the JSON text that the engine is given; it takes no path."""
    return canonical_bytes(profile(machine, traced=traced)).decode()


def _sockets() -> list[Mapping[str, Any]]:
    # The protocol is pinned too: with it left open a stream could be MPTCP or SCTP, and a datagram a ping.
    local = [(_UNIX, kind, _DEFAULT) for kind in (_STREAM, _DGRAM, _SEQPACKET)]
    inet = [
        (family, kind, protocol)
        for family in (_INET, _INET6)
        for kind, protocols in ((_STREAM, (_DEFAULT, _TCP)), (_DGRAM, (_DEFAULT, _UDP)))
        for protocol in protocols
    ]
    allowed = [
        _allow(["socket"], _equal(0, family), _argument(1, _TYPE_BITS, kind), _equal(2, protocol))
        for family, kind, protocol in (*local, *inet)
    ]
    # The C library lists the machine's addresses over rtnetlink, for getaddrinfo among others.
    return [
        *allowed,
        _allow(["socketpair"], _equal(0, _UNIX)),
        _allow(["socket"], _equal(0, _NETLINK), _equal(2, _ROUTE)),
    ]


def _allow(names: list[str], *arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _equal(index: int, value: int) -> Mapping[str, Any]:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _argument(index: int, mask: int, value: int) -> Mapping[str, Any]:
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
