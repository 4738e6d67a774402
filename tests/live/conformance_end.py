"""What every workspace backend must do, the part about ends: sweeping between programs, and what is left for good."""

from __future__ import annotations

import anyio
import pytest

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.walls import Caps
from tests.live.rooms import MESS, Rooms, alive, folders_of, line_of, mounts, python, wait_until

__all__ = ["EndConformance"]


class EndConformance(Rooms):
    """How a workspace ends, and what may be seen of it then."""

    async def test_what_is_left_can_be_read_and_not_changed(self) -> None:
        """A fresh room has what the seat left, nothing in it can be written, and the seat's own room is over."""
        async with self.room() as room:
            await room.exec(["sh", "-c", "mkdir d; echo left > d/left; ln -s /etc/passwd link"])
            async with room.remains() as rest:
                read = await rest.exec(["sh", "-c", "pwd; cat d/left; readlink link; ls -A"])
                assert read.stdout == b"/workspace\nleft\n/etc/passwd\nd\nlink\n"
                for change in (
                    "echo x > new",
                    "echo x > d/left",
                    "rm link",
                    "mv d e",
                    "chmod 777 d",
                    "mount -o remount,rw /workspace",
                ):
                    assert (await rest.exec(["sh", "-c", change])).status not in {0, None}, change
                assert (await rest.exec(["cat", "d/left"])).stdout == b"left\n"
                assert (await rest.exec(["sh", "-c", "echo x > /tmp/x && cat /tmp/x"])).stdout == b"x\n"
                with pytest.raises(WorkspaceError, match="remains"):
                    await room.exec(["true"])
                with pytest.raises(WorkspaceError, match="remains"):
                    async with room.stream(["cat"]):
                        pass
            with pytest.raises(WorkspaceError, match=room.name):
                await room.exec(["true"])
        assert room.name not in mounts()
        assert folders_of(room.name) == []

    async def test_the_end_is_proved(self) -> None:
        """What was alive is counted before the end and looked for after it: detached, TERM-proof and stopped as it is."""
        token = fresh_token()
        async with self.room() as room, anyio.create_task_group() as tasks:
            tasks.start_soon(_ended_meanwhile, room, token)
            assert await wait_until(lambda: len(alive(token)) == 3)
            async with room.remains() as rest:
                assert alive(token) == []
                assert rest.proof.alive == 0
                assert rest.proof.before is not None
                assert 4 <= rest.proof.before <= 6, "the program, and the three that it started"
                assert (0 < rest.proof.seconds < 60, rest.proof.witness != "") == (True, True)
                processes = await rest.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"])
                assert token.encode() not in processes.stdout

    async def test_an_idle_room_ends_with_nothing_to_count(self) -> None:
        """Nothing alive before is 0, not unknown; and what is left of an empty room is empty."""
        async with self.room() as room:
            await room.exec(["true"])
            async with room.remains() as rest:
                assert (rest.proof.before, rest.proof.alive) == (0, 0)
                assert (await rest.exec(["ls", "-A"])).stdout == b""
                async with rest.remains() as same:
                    assert same.proof == rest.proof

    async def test_a_seat_that_shuts_its_folder_stops_nobody(self) -> None:
        """Without any right to /workspace programs still start elsewhere, and the end is no failure; see `collect`."""
        async with self.room() as room:
            assert (await room.exec(["sh", "-c", "echo left > left; chmod 000 /workspace"])).status == 0
            assert (await room.exec(["pwd"], cwd="/")).stdout == b"/\n"
            shut = await room.exec(["true"])
            assert (shut.status in {126, 127}, shut.timed_out) == (True, False)
            async with room.stream(["cat"], cwd="/") as stream:
                await stream.send(b"x\n")
                assert await line_of(stream) == b"x\n"
            async with room.remains() as rest:
                read = await rest.exec(["cat", "/workspace/left"], cwd="/")
                assert (read.status, read.stdout) in {(0, b"left\n"), (1, b"")}
                assert rest.proof.alive == 0

    async def test_files_that_fill_the_memory_stop_nobody_from_reading_them(self) -> None:
        """A workspace's files may take all memory that its programs may have: what shows them afterwards has its own."""
        caps = Caps(memory_bytes=64 << 20, workspace_bytes=60 << 20, file_bytes=60 << 20)
        read = "data = open('big', 'rb').read(30 << 20); print(len(data), end='')"
        async with self.room(caps=caps) as room:
            await room.exec(["sh", "-c", "head -c 100000000 /dev/zero > big"])
            async with room.remains() as rest:
                assert (await rest.exec(python(read))).stdout == str(30 << 20).encode()

    async def test_a_sweep_ends_and_counts_what_was_left(self) -> None:
        """After a program is over, what it left alive is ended by a sweep, or was with it; a second sweep finds nothing."""
        token = fresh_token()
        async with self.room() as room:
            assert await room.sweep() == 0
            ran = await room.exec(python(MESS, token, "0"), timeout_s=30)
            assert ran.stdout == b"made\n"
            left = len(alive(token))
            assert left in {0, 3}
            assert await room.sweep() == left
            assert alive(token) == []
            assert await room.sweep() == 0
            assert (await room.exec(["true"])).status == 0

    async def test_a_stream_outlives_a_sweep(self) -> None:
        """Where no other program ran, a sweep ends nothing: a stream that is still open talks on."""
        async with self.room() as room, room.stream(["cat"]) as stream:
            assert await room.sweep() == 0
            await stream.send(b"still here\n")
            assert await line_of(stream) == b"still here\n"


async def _ended_meanwhile(room: Workspace, token: str) -> None:
    """A program that makes a mess and stays. It does not end well: whether it tells so or is told to is the backend's."""
    try:
        ran = await room.exec(python(MESS, token, "600"), timeout_s=600)
    except WorkspaceError:
        return
    assert ran.status != 0
