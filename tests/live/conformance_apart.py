"""What every workspace backend must do, the part about what keeps workspaces apart, and about limits of small things."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread

from harness.clock import fresh_token
from harness.walls import Caps
from harness.workspaces.images import SEATS
from tests.live.rooms import SLEEPER, Rooms, alive, python, wait_until

__all__ = ["ApartConformance"]

SHARED = """
import ctypes, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
token, make = sys.argv[1], sys.argv[2] == "make"
key = int(token[:7], 16)
peer = socket.socket(socket.AF_UNIX)
address = "\\0" + token
if make:
    peer.bind(address)
    peer.listen()
found = []
try:
    socket.socket(socket.AF_UNIX).connect(address)
    found.append("socket")
except ConnectionRefusedError:
    pass
for name, arguments in (("shmget", (4096,)), ("semget", (1,)), ("msgget", ())):
    if getattr(libc, name)(key, *arguments, 0o1666 if make else 0) >= 0:
        found.append(name)
print(",".join(found), flush=True)
if make:
    time.sleep(600)
"""
CORE = """
import resource
print(resource.getrlimit(resource.RLIMIT_CORE))
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("raised")
except ValueError:
    print("kept")
"""
FILL = """
import os, sys
made = 0
for number in range(8):
    try:
        with open("/dev/shm/%d" % number, "wb") as file:
            file.write(bytes(1 << 19))
        made += 1
    except OSError as error:
        print(error.errno, end=" ")
        break
print(made)
"""


class ApartConformance(Rooms):
    """Two workspaces at once, and what each may use of small things."""

    async def test_each_workspace_has_a_user_of_its_own(self) -> None:
        """Seen from the host two seats' programs belong to two users, neither of them root, where that is promised."""
        promised = await self.backend().guarantees()
        tokens = fresh_token(), fresh_token()
        async with self.room() as one, self.room() as two, anyio.create_task_group() as tasks:
            for room, token in zip((one, two), tokens, strict=True):
                tasks.start_soon(room.exec, python(SLEEPER, token))
                assert await wait_until(lambda token=token: len(alive(token)) == 1)
            users = [await anyio.to_thread.run_sync(_user_of, alive(token)[0]) for token in tokens]
            tasks.cancel_scope.cancel()
        assert 0 not in users
        if promised.get("user_apart") is None:
            assert users[0] != users[1]
            assert all(user in SEATS or user > SEATS[-1] for user in users), "a mapped user is a higher one"

    async def test_neither_sockets_nor_shared_memory_reach_across(self) -> None:
        """Abstract sockets and System V's memory, semaphores and queues of one workspace aren't there in another."""
        token = fresh_token()
        async with self.room() as one, self.room() as two, one.stream(python(SHARED, token, "make")) as made:
            said = b""
            while not said.endswith(b"\n"):
                said += await made.receive()
            assert said == b"socket,shmget,semget,msgget\n", "all of it works where it was made"
            assert (await two.exec(python(SHARED, token, "look"))).stdout == b"\n"

    async def test_core_files_are_off(self) -> None:
        """A program that crashes leaves no core file, and can't allow itself one."""
        async with self.room() as room:
            assert (await room.exec(python(CORE))).stdout == b"(0, 0)\nkept\n"
            await room.exec(["sh", "-c", "kill -SEGV $$"])
            assert (await room.exec(["ls", "-A", "/workspace"])).stdout == b""

    async def test_shared_memory_is_limited(self) -> None:
        """`/dev/shm` takes what the cap says and no more; half of it and a lock in it work."""
        caps = Caps(shm_bytes=2 << 20, file_bytes=1 << 20)
        async with self.room(caps=caps) as room:
            ran = await room.exec(python(FILL))
            assert ran.stdout in {b"28 3\n", b"28 4\n"}, "ENOSPC after 2 MiB, less what the file system needs itself"
            await room.kill()
            lock = "import multiprocessing as m; lock = m.Lock(); print(lock.acquire())"
            assert (
                await room.exec(
                    ["python3", "-c", f"import os; [os.unlink('/dev/shm/'+n) for n in os.listdir('/dev/shm')]; {lock}"]
                )
            ).stdout == b"True\n"

    async def test_localhost_has_an_address(self) -> None:
        """Programs that serve themselves over `localhost` find it, without a network and without a name server."""
        program = "import socket; print(socket.gethostbyname('localhost'), sorted({a[4][0] for a in socket.getaddrinfo('localhost', 80)})[0])"
        async with self.room() as room:
            assert (await room.exec(python(program))).stdout == b"127.0.0.1 127.0.0.1\n"


def _user_of(pid: int) -> int:
    """The user that a process of the host has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    raise AssertionError(pid)
