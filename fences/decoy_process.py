"""
A process of the host that has what no file can show: a marked command line, shared memory, a key in the kernel's key
ring. It lives as long as the stage does and takes all of it away, also when the harness is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from harness.clock import fresh_token
from harness.environment import terminal_env
from harness.errors import WorkspaceError

__all__ = ["decoy_process"]

_PATIENCE_S = 20.0

_PROGRAM = """
import ctypes, json, os, platform, shutil, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)  # it ends when its input does, whatever is sent to the harness's group
told = json.loads(sys.stdin.buffer.readline())
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
made = {}
segment = libc.shmget(told["segment"], 4096, 0o1000 | 0o2000 | 0o644)
if segment >= 0:
    place = libc.shmat(segment, None, 0)
    ctypes.memmove(place, told["shared"].encode(), len(told["shared"]))
    made["segment"] = segment
try:
    with open("/dev/shm/" + told["file"], "x") as out:
        out.write(told["shared"])
    made["file"] = told["file"]
except OSError:
    pass
numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine())
if numbers:
    payload = told["key"].encode()
    key = libc.syscall(numbers[0], b"user", told["file"].encode(), payload, len(payload), -2)
    # Everybody who knows its number may read it: what keeps it from a workspace must be a wall and no user id.
    if key > 0 and libc.syscall(numbers[1], 5, key, 0x3F3F3F3F) == 0:
        made["key"] = key
try:
    print(json.dumps(made), flush=True)
    sys.stdin.buffer.read()
except OSError:
    pass  # whoever asked is gone already: then all of it goes too
if "key" in made:
    libc.syscall(numbers[1], 3, made["key"])
if segment >= 0:
    libc.shmctl(segment, 0, None)
if "file" in made:
    os.unlink("/dev/shm/" + told["file"])
shutil.rmtree(told["home"], ignore_errors=True)
"""


@asynccontextmanager
async def decoy_process(
    home: Path, canaries: Mapping[str, str], environment: Mapping[str, str]
) -> AsyncIterator[dict[str, str]]:
    """
    Start it, with `environment` beside what it needs itself, and give the places of what it could make: where this host
    has no key ring or no shared memory, that place is missing. Raises `WorkspaceError` when it does not start.
    """
    marker = f"proctor-decoy-{fresh_token(8)}"
    told = {
        "segment": int(fresh_token(4), 16) & 0x7FFFFFFF | 1,
        "file": f"proctor-{fresh_token(8)}",
        "shared": canaries["shared-memory"],
        "key": canaries["key"],
        "home": str(home),
    }
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM, f"{marker}={canaries['process']}"]
    env = {**terminal_env(), **environment}
    async with await anyio.open_process(argv, env=env, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with anyio.fail_after(_PATIENCE_S):
                await process.stdin.send(json.dumps(told).encode() + b"\n")
                said = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, TimeoutError) as error:
            process.kill()
            raise WorkspaceError(f"the process of decoys did not start: {type(error).__name__}") from error
        try:
            yield {"marker": marker, "process": f"process {process.pid} {marker}", **_places(json.loads(said), told)}
        finally:
            with anyio.CancelScope(shield=True):
                await process.stdin.aclose()
                with anyio.move_on_after(_PATIENCE_S):
                    await process.wait()
                with suppress(ProcessLookupError):
                    process.kill()


def _places(made: Mapping[str, object], told: Mapping[str, object]) -> dict[str, str]:
    places = {}
    if "segment" in made:
        places["segment"] = f"segment {told['segment']}"
    if "file" in made:
        places["shared-file"] = f"file /dev/shm/{told['file']}"
    if "key" in made:
        places["key"] = f"key {made['key']}"
    return places
