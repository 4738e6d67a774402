"""How a container's work is ended: between two programs, for good, and after its owner's death. On the real engine."""

from __future__ import annotations

import os
import signal
import sys

import anyio
import pytest

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.walls import Caps
from harness.workspaces import docker_exec, docker_witness
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_engine import Engine
from tests.live.docker_rooms import left_of, room
from tests.live.images import seat_image
from tests.live.rooms import MESS, SLEEPER, alive, python, wait_until

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]

BOMB = """
import os
if os.fork(): os._exit(0)
os.setsid()
while True:
    try: os.fork()
    except OSError: pass
"""
QUOTA = """
import os, sys
def fill(step):
    made = 0
    try:
        while made < 100_000:
            step(made); made += 1
    except OSError as error: return made, error.errno
    return made, 0
with open("big", "wb") as big: bytes_ = fill(lambda n: (big.write(bytes(1 << 16)), big.flush()))
os.unlink("big")
print(bytes_[0] << 16, bytes_[1], *fill(lambda n: os.close(os.open("f%d" % n, os.O_CREAT))))
"""


@pytest.fixture(scope="module")
def image() -> str:
    """The default image."""
    return seat_image()


@pytest.fixture
def backend() -> DockerBackend:
    """A backend as the plugin table makes it."""
    return DockerBackend()


@pytest.fixture
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of the engine's can be looked at, as with one on another machine."""
    monkeypatch.setattr(docker_witness.Witness, "of", classmethod(lambda _cls, _pid, _container: None))


async def test_the_workspace_ends_at_its_bytes_and_at_its_files(backend: DockerBackend, image: str) -> None:
    """Both quotas are the volume's own and say ENOSPC; programs in it may run, and setuid and devices mean nothing."""
    caps = Caps(workspace_bytes=8 << 20, workspace_inodes=200)
    async with room(backend, image, caps=caps) as workspace:
        ran = await workspace.exec(["python3", "-c", QUOTA])
        flags = await workspace.exec(["sh", "-c", "grep ' /workspace ' /proc/self/mounts"])
        await workspace.exec(["sh", "-c", "rm -f f*; cp /bin/echo mine; chmod 4755 mine"])
        mine = await workspace.exec(["./mine", "ran"])
    size, why, files, why_not = map(int, ran.stdout.split())
    assert (why, why_not) == (28, 28), "ENOSPC"
    assert (7 << 20) < size <= (8 << 20)
    assert 190 <= files < 200
    assert {"rw", "nosuid", "nodev"} <= set(flags.stdout.decode().split()[3].split(","))
    assert b"noexec" not in flags.stdout
    assert mine.stdout == b"ran\n"


async def test_what_is_left_can_be_seen_and_not_changed(backend: DockerBackend, image: str) -> None:
    """The remains are the seat's files, for the seat's own user, in another container whose walls are all up."""
    async with room(backend, image, network="bridge", environment={"GIVEN": "x"}) as workspace:
        user = (await workspace.facts())["exec_user"]
        await workspace.exec(["sh", "-c", "echo kept > kept; chmod 600 kept"])
        async with workspace.remains() as rest:
            assert rest.name != workspace.name
            seen = await rest.exec(
                ["sh", "-c", "cat kept; echo more >> kept; touch new; env; tail -n +3 /proc/net/dev"]
            )
            facts = await rest.facts()
            assert (facts["exec_user"], facts["network_mode"], facts["read_only_root"]) == (user, "none", True)
            assert facts["workspace"] == {"source": workspace.name, "target": "/workspace", "read_only": True}
            with pytest.raises(WorkspaceError, match=r"was ended by `remains\(\)`"):
                await workspace.exec(["true"])
            with pytest.raises(WorkspaceError, match="was ended"):
                await workspace.sweep()
            with pytest.raises(WorkspaceError, match="was ended"):
                workspace.stream(["cat"])
            with pytest.raises(WorkspaceError, match="was ended"):
                async with workspace.remains():
                    pass
            await workspace.kill()
            async with rest.remains() as same:
                assert same is rest
        assert await left_of(backend, rest.name) == []
    assert seen.stdout.startswith(b"kept\n")
    assert seen.stderr.count(b"Read-only file system") == 2
    assert b"GIVEN" not in seen.stdout
    assert b"eth0" not in seen.stdout
    assert await left_of(backend, workspace.name) == []


@pytest.mark.parametrize("changes", [{"caps": Caps(lifetime_s=3)}, {"keeper_apart": False}])
async def test_what_was_in_a_workspace_that_ended_by_itself_is_gone(
    backend: DockerBackend, image: str, changes: dict[str, object]
) -> None:
    """Its files went with its container: that is said, and no empty folder is shown in their place."""
    async with room(backend, image, **changes) as workspace:
        await workspace.exec(["sh", "-c", "echo mine > mine"])
        if "keeper_apart" in changes:
            await workspace.exec(["sh", "-c", "kill -9 -1"])
        with anyio.fail_after(20):
            while (await workspace.facts())["running"]:  # noqa: ASYNC110 - the engine is asked
                await anyio.sleep(0.1)
        with pytest.raises(WorkspaceError, match="what was in it is gone"):
            async with workspace.remains():
                pass
    assert await left_of(backend, workspace.name) == []


async def test_a_closed_workspace_does_not_close_the_remains(backend: DockerBackend, image: str) -> None:
    """A seat that takes every right from its own folder keeps no program of ours from running beside it."""
    async with room(backend, image) as workspace:
        await workspace.exec(["sh", "-c", "echo x > x; chmod 0 /workspace"])
        async with workspace.remains() as rest:
            ran = await rest.exec(["stat", "-c", "%a %u", "/workspace"], cwd="/")
            facts = await rest.facts()
    assert ran.stdout.decode().split() == ["0", facts["exec_user"].partition(":")[0]]


async def test_the_proof_counts_from_outside(backend: DockerBackend, image: str) -> None:
    """Detached, double-forked, TERM-proof and stopped processes are counted before the end, and none after it."""
    token = fresh_token()
    async with room(backend, image) as workspace:
        await workspace.exec(python(MESS, token, "0"), timeout_s=30)
        assert len(alive(token)) == 3
        async with workspace.remains() as rest:
            assert alive(token) == []
            proof = rest.proof
    assert (proof.before, proof.alive, proof.witness) == (3, 0, "pid namespace")
    assert 0 < proof.seconds < 30


async def test_a_live_fork_bomb_is_ended_with_proof(backend: DockerBackend, image: str) -> None:
    """At the limit of processes, all of them forking: the count says so, and nothing is left."""
    async with room(backend, image, caps=Caps(pids=48)) as workspace:
        await workspace.exec(python(BOMB), timeout_s=20)
        witness = workspace._container.witness
        assert witness is not None
        assert await wait_until(lambda: len(witness.present()) > 40)
        async with workspace.remains() as rest:
            assert rest.proof.before is not None
            assert rest.proof.before > 20
            assert rest.proof.alive == 0
            assert witness.members() == []
    assert await left_of(backend, workspace.name) == []


@pytest.mark.usefixtures("nobody_looks")
async def test_without_a_witness_the_engine_is_named(backend: DockerBackend, image: str) -> None:
    """Where nobody can look from outside the number before is unknown, and the end is the engine's word alone."""
    token = fresh_token()
    async with room(backend, image) as workspace:
        await workspace.exec(python(MESS, token, "0"), timeout_s=30)
        async with workspace.remains() as rest:
            assert alive(token) == []
    assert (rest.proof.before, rest.proof.alive, rest.proof.witness) == (None, 0, "engine")


async def test_a_user_who_may_not_look_into_the_namespace_counts_the_control_group(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is not root here counts all the same, sweeps all the same, and the proof says by what."""
    token, left = fresh_token(), fresh_token()
    monkeypatch.setattr(docker_witness, "_held", lambda _namespace: None)
    async with room(backend, image) as workspace:
        await workspace.exec(python(MESS, left, "0"), timeout_s=30)
        async with workspace.stream(python(SLEEPER, token)):
            assert await workspace.sweep() == 3
            assert alive(left) == []
            assert await wait_until(lambda: len(alive(token)) == 1)
        await workspace.exec(python(MESS, token, "0"), timeout_s=30)
        async with workspace.remains() as rest:
            assert alive(token) == []
    assert (rest.proof.before, rest.proof.alive, rest.proof.witness) == (3, 0, "control group")
    assert await left_of(backend, workspace.name) == []


async def test_an_end_that_is_cancelled_leaves_nothing(backend: DockerBackend, image: str) -> None:
    """Cancelled at any moment of the end, both containers, the volume and the folder are gone."""
    for step in range(5):
        name = ""
        with anyio.move_on_after(20) as scope:
            async with room(backend, image) as workspace:
                name = workspace.name
                scope.deadline = anyio.current_time() + 0.06 * step
                async with workspace.remains():
                    await anyio.sleep(20)
        assert scope.cancelled_caught
        assert await left_of(backend, name) == []


async def test_a_sweep_with_nothing_to_do_asks_the_engine_nothing(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a look from outside; with an open stream too, once that one's number is known."""
    asked = []
    call = Engine.call

    async def counted(self: Engine, ask: object) -> object:
        asked.append(ask)
        return await call(self, ask)

    async with room(backend, image) as workspace:
        await workspace.exec(["true"])
        async with workspace.stream(["cat"]) as stream:
            monkeypatch.setattr(Engine, "call", counted)
            assert await workspace.sweep() == 0
            assert asked == []
            await stream.send(b"still here")
            assert await stream.receive() == b"still here"
        asked.clear()
        assert await workspace.sweep() == 0
        assert asked == []


async def test_a_sweep_ends_what_is_over_and_spares_what_runs(backend: DockerBackend, image: str) -> None:
    """What three programs left is counted and gone; a stream and an exec that another task waits for go on."""
    token, left = fresh_token(), fresh_token()
    results = []

    async def wait() -> None:
        results.append(await workspace.exec(["sh", "-c", "sleep 2; echo waited"]))

    async with room(backend, image) as workspace:
        async with workspace.stream(python("for line in open(0): print(line, end='', flush=True)", token)) as stream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await workspace.exec(python(MESS, left, "0"), timeout_s=30)
                assert len(alive(left)) == 3
                assert await workspace.sweep() == 3
                assert alive(left) == []
            await stream.send(b"on\n")
            assert await stream.receive() == b"on\n"
            assert await workspace.sweep() == 0
        assert alive(token) == []
    assert (results[0].status, results[0].stdout) == (0, b"waited\n")


async def test_the_end_of_one_programs_time_is_not_anothers(backend: DockerBackend, image: str) -> None:
    """A program that is out of time loses all that it began; a stream, and an exec of another task, go on."""
    token, cut = fresh_token(), fresh_token()
    results = []

    async def wait() -> None:
        results.append(await workspace.exec(["sh", "-c", "sleep 4; echo waited"]))

    async with room(backend, image) as workspace:
        async with workspace.stream(python("for line in open(0): print(line, end='', flush=True)", token)) as stream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                ran = await workspace.exec(python(MESS, cut, "600"), timeout_s=2)
                assert alive(cut) == []
                assert await workspace.sweep() == 0
            await stream.send(b"on\n")
            assert await stream.receive() == b"on\n"
        assert (ran.timed_out, ran.status) == (True, None)
    assert (results[0].status, results[0].stdout) == (0, b"waited\n")


async def test_a_child_of_a_stream_in_a_group_of_its_own_is_swept(backend: DockerBackend, image: str) -> None:
    """What a helper started for a seat, and left, is not the helper's own."""
    helper = (
        "import subprocess, sys\nfor line in sys.stdin:\n"
        " subprocess.Popen(['sleep', '500'], start_new_session=True)\n print('started', flush=True)"
    )
    async with room(backend, image) as workspace, workspace.stream(python(helper)) as stream:
        for _ in range(2):
            await stream.send(b"go\n")
            assert await stream.receive() == b"started\n"
            assert await workspace.sweep() == 1


CROWD = """
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(600); os._exit(0)
except OSError:
    print("crowded", flush=True)
time.sleep(600)
"""


async def test_a_stream_that_took_every_process_is_ended(backend: DockerBackend, image: str) -> None:
    """The one who kills its group needs a place among the processes too, and has one."""
    async with room(backend, image) as here:
        with anyio.fail_after(40):
            async with here.stream(python(CROWD)) as crowd:
                assert await crowd.receive(8) == b"crowded\n"
        assert (await here.exec(["true"])).status == 0


async def test_an_engine_that_does_not_tell_of_an_end_is_not_waited_for(
    backend: DockerBackend, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once nobody is left in its group a program is over, whatever the engine makes of it."""

    async def silent(*_: object) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(docker_exec, "ended", silent)
    monkeypatch.setattr(docker_exec, "_WORD_S", 0.2)
    async with room(backend, image) as here:
        with anyio.fail_after(20):
            async with here.stream(["cat"]) as cat:
                await cat.send(b"on")
                assert await cat.receive(2) == b"on"
        witness = here._container.witness
        assert witness is not None
        assert await wait_until(lambda: not witness.seats())


async def test_a_fork_bomb_is_swept_whatever_it_takes(backend: DockerBackend, image: str) -> None:
    """What comes again faster than it is killed one by one is killed all at once, and the workspace goes on."""
    async with room(backend, image, caps=Caps(pids=48)) as workspace:
        await workspace.exec(python(BOMB), timeout_s=20)
        witness = workspace._container.witness
        assert witness is not None
        assert await wait_until(lambda: len(witness.present()) > 40)
        swept = await workspace.sweep()
        assert swept is not None
        assert swept > 20
        assert (await workspace.facts())["processes"] == 2
        assert (await workspace.exec(["echo", "on"])).stdout == b"on\n"


@pytest.mark.usefixtures("nobody_looks")
async def test_a_sweep_that_nobody_can_count_ends_everything(backend: DockerBackend, image: str) -> None:
    """Without a witness the number is unknown, and what lives is ended, streams too."""
    token = fresh_token()
    async with room(backend, image) as workspace:
        await workspace.exec(python(MESS, token, "0"), timeout_s=30)
        async with workspace.stream(python(SLEEPER, token)):
            assert await wait_until(lambda: len(alive(token)) == 4)
            assert await workspace.sweep() is None
            assert alive(token) == []


async def test_what_a_killed_owner_left_is_reaped(backend: DockerBackend, image: str) -> None:
    """Killed in the middle of the remains, an owner leaves two containers, a volume and a folder: all are taken."""
    program = (
        "import anyio, sys\nfrom harness.walls import Walls\nfrom harness.workspaces.docker import DockerBackend\n"
        "async def main():\n async with DockerBackend().open(Walls(image=sys.argv[1], network='gateway'), run='o') as w:\n"
        "  async with w.remains():\n   print(w.name, flush=True)\n   await anyio.sleep(100)\nanyio.run(main)"
    )
    async with await anyio.open_process([sys.executable, "-c", program, image], stderr=None) as owner:
        assert owner.stdout is not None
        name = (await owner.stdout.receive()).decode().strip()
        before = await left_of(backend, name)
        assert name not in await backend.reap()
        assert await left_of(backend, name) == before
        os.kill(owner.pid, signal.SIGKILL)
    assert len(before) == 5, "two containers, a volume, a folder and the note of whose it is"
    assert {name, f"{name}-remains"} <= set(await backend.reap())
    assert await left_of(backend, name) == []


async def test_a_volume_without_a_container_is_reaped(backend: DockerBackend, image: str) -> None:
    """Somebody who removes an orphan's containers by hand leaves the volume and the folder: those are taken too."""
    program = (
        "import anyio, sys\nfrom harness.walls import Walls\nfrom harness.workspaces.docker import DockerBackend\n"
        "async def main():\n async with DockerBackend().open(Walls(image=sys.argv[1]), run='orphan') as w:\n"
        "  print(w.name, flush=True)\n  await anyio.sleep(100)\nanyio.run(main)"
    )
    async with await anyio.open_process([sys.executable, "-c", program, image], stderr=None) as owner:
        assert owner.stdout is not None
        name = (await owner.stdout.receive()).decode().strip()
        os.kill(owner.pid, signal.SIGKILL)
    await backend._engine.call(lambda api: api.remove_container(name, force=True))
    assert len(await left_of(backend, name)) == 3
    assert name in await backend.reap()
    assert await left_of(backend, name) == []
