"""How the host makes sure that a decoy is up: a wall in front of nothing would always seem to hold."""

from __future__ import annotations

import ctypes
import platform
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from harness.views import Site

__all__ = ["ask", "dns_query", "vouch"]

_TIMEOUT_S = 20.0
_SHM_RDONLY = 0o10000
_KEYCTL: Mapping[str, int] = {"x86_64": 250, "aarch64": 219}
_KEYCTL_READ = 11


def dns_query() -> bytes:
    """A query for the TXT record of `canary.invalid`, whose answer only the stage's own toy server knows."""
    return bytes.fromhex("50720100000100000000000006") + b"canary" + b"\x07invalid\x00" + b"\x00\x10\x00\x01"


def ask(place: str) -> bytes:
    """
    What the decoy at `place` answers. A place is `tcp HOST PORT`, `udp HOST PORT`, `unix PATH`, `abstract NAME`,
    `file PATH`, `process PID MARKER`, `segment KEY` (shared memory) or `key NUMBER` (of the kernel's key ring), and is
    spelled the same for the programs of probes.
    """
    kind, rest = place.split(" ", 1)
    if kind == "file":
        return Path(rest).read_bytes()
    if kind == "process":
        return Path("/proc", rest.split(" ")[0], "cmdline").read_bytes()
    if kind == "segment":
        return _segment(int(rest))
    if kind == "key":
        return _key(int(rest))
    if kind in {"unix", "abstract"}:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_TIMEOUT_S)
            client.connect("\0" + rest if kind == "abstract" else rest)
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return client.recv(4096)
    host, port = rest.split(" ")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as client:
        client.settimeout(_TIMEOUT_S)
        client.connect((host, int(port)))
        if kind == "udp":
            client.send(dns_query())
        return client.recv(4096)


def _segment(key: int) -> bytes:
    """The start of the segment of shared memory that has `key`."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_ssize_t
    found = libc.shmget(key, 0, 0)
    place: int = libc.shmat(found, None, _SHM_RDONLY) if found >= 0 else -1
    if place == -1:
        raise OSError(ctypes.get_errno(), "the segment can't be attached")
    try:
        return ctypes.string_at(place, 64)
    finally:
        libc.shmdt(ctypes.c_void_p(place))


def _key(number: int) -> bytes:
    """The payload of a key. Any kernel that made one has the call."""
    libc = ctypes.CDLL(None, use_errno=True)
    payload = ctypes.create_string_buffer(256)
    length = libc.syscall(_KEYCTL[platform.machine()], _KEYCTL_READ, number, payload, 256)
    if length < 0:
        raise OSError(ctypes.get_errno(), "the key can't be read")
    return payload.raw[:length]


async def vouch(site: Site, names: tuple[str, ...], canary: str, *, asking: Callable[[str], bytes] = ask) -> str | None:
    """
    None if every decoy of `names` that this host has answers the host with its canary, else which one doesn't.

    A site without any of them has nothing to vouch for, which is said too.
    """
    there = [name for name in names if name in site.places]
    if not there:
        return f"this host has no decoy of {', '.join(names)}"
    for name in there:
        try:
            answer = await anyio.to_thread.run_sync(asking, site.places[name], abandon_on_cancel=True)
        except OSError as error:
            return f"the decoy {name} is down outside too ({type(error).__name__})"
        if site.canaries[canary].encode() not in answer:
            return f"the decoy {name} does not answer with its canary"
    return None
