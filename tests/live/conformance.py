"""
What every workspace backend must do, as one class of tests.

A backend's test file derives from it and says which backend and which image:

    class TestMine(WorkspaceConformance):
        spec = "my_package.my_module:MyBackend"
        image = "proctor-seat"

The programs that run inside need `/bin/sh` and `python3`. The host must be the machine that the workspaces run on, so
that their processes can be looked for from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from harness.clock import fresh_token
from harness.environment import state_home
from harness.errors import WorkspaceError
from harness.walls import ExecResult
from tests.live.conformance_apart import ApartConformance
from tests.live.conformance_end import EndConformance
from tests.live.conformance_files import FileConformance
from tests.live.conformance_gateway import GatewayConformance
from tests.live.rooms import (
    CONNECT,
    FORKS,
    MESS,
    SLEEPER,
    SMALL,
    alive,
    folders_of,
    greet,
    line_of,
    mounts,
    owner_of,
    python,
    wait_until,
)

__all__ = ["WorkspaceConformance"]


@pytest.mark.live
@pytest.mark.anyio
@pytest.mark.timeout(120)
class WorkspaceConformance(FileConformance, EndConformance, ApartConformance, GatewayConformance):
    """The suite. `spec` is `module:Class` of the backend, `image` the name of an image that it has."""

    async def test_exec_tells_status_and_both_outputs(self) -> None:
        """Input arrives, both outputs come apart, and the status is the program's own."""
        async with self.room() as room:
            ran = await room.exec(["sh", "-c", "cat; echo oops >&2; exit 7"], stdin=b"in\x00put")
            assert (ran.status, ran.stdout, ran.stderr) == (7, b"in\x00put", b"oops\n")
            assert (ran.timed_out, ran.stdout_cut, ran.stderr_cut) == (False, False, False)
            assert 0 < ran.seconds < 30
            assert (await room.exec(["true"])).status == 0

    async def test_a_signal_shows_in_the_status(self) -> None:
        """A program ended by a signal has status 128 + its number, so that it is never taken for success."""
        async with self.room() as room:
            assert (await room.exec(["sh", "-c", "kill -SEGV $$"])).status == 128 + signal.SIGSEGV
            assert (await room.exec(["sh", "-c", "kill -KILL $$"])).status == 128 + signal.SIGKILL

    async def test_a_missing_program_is_its_callers_affair(self) -> None:
        """A program that isn't there ends with 126 or 127, says so on stderr only, and breaks nothing."""
        async with self.room() as room:
            ran = await room.exec(["no-such-program"])
            assert (ran.status in {126, 127}, ran.stdout, ran.stderr != b"") == (True, b"", True)
            assert (await room.exec(["true"])).status == 0

    async def test_a_missing_folder_is_its_callers_affair(self) -> None:
        """A working folder that isn't there is no failure of the workspace: a seat may have removed it."""
        async with self.room() as room:
            ran = await room.exec(["true"], cwd="/workspace/gone")
            assert (ran.status in {126, 127}, ran.timed_out) == (True, False)

    @pytest.mark.parametrize("word", ["a\0b", "\ud800", "x" * 300_000])
    async def test_a_command_that_no_kernel_takes_is_its_callers_affair(self, word: str) -> None:
        """A model may write any text: a NUL, a lone surrogate or a giant in a command can't void its cell."""
        async with self.room() as room:
            ran = await room.exec(["echo", word])
            assert (ran.status in {126, 127}, ran.timed_out) == (True, False)
            assert (await room.exec(["true"])).status == 0

    async def test_output_is_cut_at_the_cap(self) -> None:
        """More than the cap is cut and said to be, on each stream by itself, and the program still ends by itself."""
        async with self.room() as room:
            ran = await room.exec(["sh", "-c", "head -c 3000000 /dev/zero; echo fine >&2"], output_bytes=1000)
            assert (ran.status, len(ran.stdout), ran.stdout_cut) == (0, 1000, True)
            assert (ran.stderr, ran.stderr_cut) == (b"fine\n", False)
            exact = await room.exec(["sh", "-c", "head -c 1000 /dev/zero"], output_bytes=1000)
            assert (len(exact.stdout), exact.stdout_cut) == (1000, False)

    async def test_large_input_and_output_do_not_lock_up(self) -> None:
        """A program that answers while it is still being fed gets and gives everything."""
        async with self.room() as room:
            data = os.urandom(1 << 20) * 3
            ran = await room.exec(["cat"], stdin=data, output_bytes=4 << 20)
            assert ran.stdout == data
            assert (await room.exec(["true"], stdin=data)).status == 0

    async def test_the_time_limit_ends_everything(self) -> None:
        """Detached, double-forked, TERM-proof and stopped children are gone when a timed-out exec returns."""
        token = fresh_token()
        async with self.room() as room, self.observed(token, 3) as most:
            began = anyio.current_time()
            ran = await room.exec(python(MESS, token, "600"), timeout_s=3)
            assert ran.timed_out
            assert ran.status != 0
            assert anyio.current_time() - began < 30
            assert most() == 3, "the mess was not made, so nothing is shown"
            assert alive(token) == []
            assert (await room.exec(["true"])).status == 0

    async def test_kill_ends_what_an_exec_left(self) -> None:
        """What a program leaves behind it does not outlive `kill()`; files do."""
        token = fresh_token()
        async with self.room() as room:
            ran = await room.exec(python(MESS, token, "0"), timeout_s=30)
            assert ran.stdout == b"made\n"
            await room.exec(["sh", "-c", "echo kept > /workspace/kept"])
            await room.kill()
            assert alive(token) == []
            assert (await room.exec(["cat", "/workspace/kept"])).stdout == b"kept\n"

    async def test_kill_ends_what_another_task_waits_for(self) -> None:
        """`kill()` ends a running exec, which then returns and is not taken for a success."""
        token = fresh_token()
        async with self.room() as room:
            ran: list[ExecResult] = []

            async def wait() -> None:
                ran.append(await room.exec(python(MESS, token, "600"), timeout_s=600))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                assert await wait_until(lambda: len(alive(token)) == 3)
                await room.kill()
                assert alive(token) == []
            assert ran[0].status != 0
            assert (await room.exec(["true"])).status == 0

    async def test_cancellation_returns_at_once_and_leaves_nothing(self) -> None:
        """A cancelled exec ends its program before it returns."""
        token = fresh_token()
        async with self.room() as room, self.observed(token, 3) as most:
            with anyio.move_on_after(3) as scope:
                await room.exec(python(MESS, token, "600"), timeout_s=600)
            assert scope.cancelled_caught
            assert most() == 3
            assert alive(token) == []
            assert (await room.exec(["true"])).status == 0

    async def test_cancellation_of_the_whole_room_leaves_nothing(self) -> None:
        """A workspace whose holder is cancelled takes its programs with it."""
        token = fresh_token()
        with anyio.move_on_after(5):
            async with self.room() as room:
                await room.exec(python(MESS, token, "600"), timeout_s=600)
        assert await wait_until(lambda: not alive(token), 5)

    async def test_nothing_is_left_of_a_closed_room(self) -> None:
        """No process, no mount, no folder; the name is free; and the closed room says that it is closed."""
        token = fresh_token()
        async with self.room() as room:
            await room.exec(python(MESS, token, "0"), timeout_s=30)
        assert alive(token) == []
        assert room.name not in mounts()
        assert folders_of(room.name) == []
        assert room.name not in await self.backend().reap()
        with pytest.raises(WorkspaceError):
            await room.exec(["true"])

    async def test_no_network(self) -> None:
        """A listener on the host's loopback answers the host and not the workspace; only loopback is there."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as server,
            anyio.create_task_group() as tasks,
        ):
            port = server.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # this is no database
            tasks.start_soon(server.serve, greet)
            here = await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    [sys.executable, "-c", CONNECT, "127.0.0.1", str(port)], capture_output=True, check=True
                )
            )
            assert here.stdout == b"canary\n"
            async with self.room() as room:
                there = await room.exec(python(CONNECT, "127.0.0.1", str(port)))
                away = await room.exec(python(CONNECT, "192.0.2.1", "80"))
                names = await room.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"])
            async with self.room(network="host") as open_room:
                weak = await open_room.exec(python(CONNECT, "127.0.0.1", str(port)))
            tasks.cancel_scope.cancel()
        assert weak.stdout == b"canary\n", "the wall taken down lets it through, so the wall is what stopped it"
        assert there.stdout.startswith(b"ConnectionRefused")
        assert away.stdout == b"OSError 101\n"
        assert names.stdout.split() == [b"lo"]

    async def test_the_environment_holds_what_was_given(self) -> None:
        """The walls' and the call's variables, a path, a home and a locale: nothing of the harness' own."""
        os.environ["PROCTOR_TEST_CANARY"] = token = fresh_token()
        try:
            async with self.room(environment={"GIVEN": "by the walls"}) as room:
                ran = await room.exec(["env", "-0"], env={"CALLED": "by the call"})
                everywhere = await room.exec(["sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true"])
        finally:
            del os.environ["PROCTOR_TEST_CANARY"]
        found = dict(item.split(b"=", 1) for item in ran.stdout.split(b"\0") if item)
        assert (found.pop(b"GIVEN"), found.pop(b"CALLED")) == (b"by the walls", b"by the call")
        assert found.keys() <= {b"PATH", b"HOME", b"LANG", b"LC_ALL", b"PWD", b"HOSTNAME", b"TERM", b"SHLVL", b"_"}
        assert token.encode() not in everywhere.stdout

    async def test_the_hosts_files_are_not_there(self, tmp_path: Path) -> None:
        """Neither a file of ours nor the folder that holds the workspaces can be read."""
        (tmp_path / "canary").write_text("canary")
        async with self.room() as room:
            for place in (tmp_path / "canary", state_home(), Path(__file__)):
                assert (await room.exec(["ls", "-d", str(place)])).status != 0

    async def test_the_root_is_read_only_and_the_workspace_is_not(self) -> None:
        """The workspace and `/tmp` can be written, nothing else."""
        script = "for d in / /etc /usr /usr/bin /dev /proc /var /root /home; do echo x 2>/dev/null > $d/probe && echo $d; done"
        async with self.room() as room:
            ran = await room.exec(
                ["sh", "-c", f"{script}; echo x > /workspace/a && echo x > /tmp/a && cat /workspace/a /tmp/a"]
            )
            assert ran.stdout == b"x\nx\n"
            who = await room.exec(["id", "-u"])
            assert int(who.stdout) > 0

    async def test_the_number_of_processes_is_limited(self) -> None:
        """A program that forks without end is stopped below the cap, and the next one can fork again."""
        async with self.room() as room:
            ran = await room.exec(python(FORKS, "400"), timeout_s=30)
            assert 10 < int(ran.stdout) <= SMALL.pids
            await room.kill()
            assert (await room.exec(python(FORKS, "5"))).stdout == b"5\n"

    async def test_the_size_of_a_file_is_limited(self) -> None:
        """A file over the cap can't be made, one below it can."""
        program = "import sys\nwith open('/workspace/f', 'wb') as f: f.write(bytes(int(sys.argv[1])))\n"
        async with self.room() as room:
            assert (await room.exec(python(program, str(SMALL.file_bytes)))).status == 0
            assert (await room.exec(python(program, str(SMALL.file_bytes + 1)))).status != 0

    async def test_the_workspace_is_limited_where_it_is_said_to_be(self) -> None:
        """Bytes and inodes end where the caps say, if the backend guarantees it."""
        promised = await self.backend().guarantees()
        fill = "for n in $(seq 20); do head -c 1000000 /dev/zero > f$n || break; done 2>/dev/null; ls f* | wc -l"
        names = "for n in $(seq 400); do true > g$n || break; done 2>/dev/null; ls g* | wc -l"
        async with self.room() as room:
            filled = int((await room.exec(["sh", "-c", fill])).stdout)
            await room.exec(["sh", "-c", "rm -f f*"])
            named = int((await room.exec(["sh", "-c", names])).stdout)
        assert (promised["workspace_bytes"] is None) == (filled < 10)
        assert (promised["workspace_inodes"] is None) == (named < 200)

    async def test_memory_is_limited_in_sum_where_it_is_said_to_be(self) -> None:
        """Four processes can't together hold more than the cap for a while, if the backend guarantees it."""
        promised = await self.backend().guarantees()
        one = "import sys, time; data = b'x' * (100 << 20); time.sleep(8); print('held', flush=True)"
        async with self.room() as room:
            ran = await room.exec(
                ["sh", "-c", 'for n in 1 2 3 4; do python3 -I -S -c "$0" & done; wait', one], timeout_s=60
            )
            assert (await room.exec(["true"])).status == 0
        assert (promised["memory_total"] is None) == (ran.stdout.count(b"held") < 4)

    async def test_two_rooms_do_not_see_each_other(self) -> None:
        """Neither files nor `/tmp` nor processes are shared."""
        token = fresh_token()
        async with self.room() as one, self.room() as two:
            assert one.name != two.name
            await one.exec(["sh", "-c", "echo x > /workspace/x; echo x > /tmp/x"])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.exec, python(SLEEPER, token))
                assert await wait_until(lambda: len(alive(token)) == 1)
                seen = await two.exec(["sh", "-c", "ls /workspace /tmp; cat /proc/[0-9]*/cmdline"])
                tasks.cancel_scope.cancel()
        assert token.encode() not in seen.stdout.replace(b"\0", b" ").split(b"sh -c")[0]
        assert b"x\n" not in seen.stdout

    async def test_a_stream_talks_until_it_is_left(self) -> None:
        """A long-lived program answers line by line, sees the end of its input, and is gone when the block is left."""
        token = fresh_token()
        echo = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)\nprint('end', flush=True)"
        async with self.room() as room:
            async with room.stream(python(echo, token)) as stream:
                await stream.send(b"abc\n")
                assert await line_of(stream) == b"cba\n"
                assert len(alive(token)) == 1
                await stream.send_eof()
                assert await line_of(stream) == b"end\n"
            assert alive(token) == []
            async with room.stream(python(SLEEPER, token)):
                assert await wait_until(lambda: len(alive(token)) == 1)
            assert alive(token) == []

    async def test_facts_and_engine_are_told(self) -> None:
        """A room and an engine say what they are; guarantees name each promise with None or a reason."""
        backend = self.backend()
        async with self.room() as room:
            facts = await room.facts()
        promised = await backend.guarantees()
        assert facts["network_mode"] == "none"
        assert facts["no_new_privileges"] is True
        assert facts["read_only_root"] is True
        assert facts["pids_limit"] == SMALL.pids
        assert promised["network"] is None
        assert all(reason is None or len(reason) > 20 for reason in promised.values())
        assert all(isinstance(value, str) and value for value in (await backend.engine()).values())
        assert len((await backend.image_digest(self.image)).removeprefix("sha256:")) == 64
        assert (
            backend.options(self.walls())
            == backend.options(self.walls())
            != backend.options(self.walls(network="host"))
        )

    async def test_a_dead_owner_is_reaped_and_a_living_one_is_not(self) -> None:
        """After SIGKILL of the process that held a workspace, `reap` ends it and names it; living rooms stay."""
        token = fresh_token()
        owner = owner_of([self.spec, self.image, token, SLEEPER])
        try:
            assert owner.stdout is not None
            name = (await anyio.to_thread.run_sync(owner.stdout.readline)).decode().strip()
            assert name
            assert await wait_until(lambda: len(alive(token)) == 1)
            async with self.room() as mine:
                assert name not in await self.backend().reap(), "its owner is alive"
                owner.kill()
                await anyio.to_thread.run_sync(owner.wait)
                reaped = await self.backend().reap()
                assert name in reaped
                assert mine.name not in reaped
                assert (await mine.exec(["true"])).status == 0
        finally:
            owner.kill()
            await anyio.to_thread.run_sync(owner.wait)
            owner.stdout.close()
        assert await wait_until(lambda: not alive(token), 5)
        assert name not in mounts()
        assert name not in await self.backend().reap()
