"""Ends everything that a seat runs in a container, whatever it has done to hold on."""

from __future__ import annotations

import anyio
from anyio import to_thread

from harness.errors import WorkspaceError
from harness.workspaces.docker_program import Container, Frames, Program, create, ended, is_running

__all__ = ["KILL_DEADLINE_S", "kill_everything", "kill_group", "run_script"]

KILL_DEADLINE_S = 60.0
_PAUSE_S = 0.01
_ROOM_FIRST = 32
_ROOM_MOST = 4096

_KILL_ALL = """
n=0
while :; do
    kill -KILL -1 2>/dev/null
    left=
    for p in /proc/[0-9]*; do
        p=${p#/proc/}
        [ "$p" = 1 ] || [ "$p" = $$ ] || ! kill -0 "$p" 2>/dev/null || left=$p
    done
    [ -n "$left" ] || exit 0
    n=$((n + 1))
    [ $n -le 200 ] || exit 1
    [ $n -le 5 ] || sleep 0.02
done
"""
"""Kills everything of the calling user but the caller, until none of it is left, not even a zombie."""


async def kill_everything(container: Container) -> None:
    """
    Kill every process of the container's user; of the keeper's none. A container that has ended has none left.

    Raises `WorkspaceError` when that can't be done.
    """
    with anyio.move_on_after(KILL_DEADLINE_S, shield=True):
        # Seen from outside that nobody but the keeper is there, no killer has to be sent in.
        if container.witness is not None and not await to_thread.run_sync(container.witness.seats):
            return
        try:
            # In a process tree shared with the host, "everything of this user" would be far more than the container's.
            script = _KILL_ALL if not container.host_pids else await _listed(container)
            await _kill_for_sure(container, script)
        except WorkspaceError:
            if await is_running(container):
                raise
        return
    raise WorkspaceError(f"the seat's processes could not be killed within {KILL_DEADLINE_S:.0f} s")


async def kill_group(container: Container, number: int) -> None:
    """Kill the process group of that number, though the seat may have taken every place among the processes."""
    await _kill_for_sure(container, f"kill -s KILL -- -{number} 2>/dev/null; true")


async def _kill_for_sure(container: Container, script: str) -> None:
    """
    Run the killer until it says that it has done its work.

    It may be killed itself, by another one at the same time, and it needs a place among the processes that the seat has
    perhaps all taken: then the limit is raised for as long as it takes.
    """
    room = 0
    try:
        while True:
            status = await run_script(container, script)
            if status == 0:
                return
            if status is None:
                room = min(2 * room or _ROOM_FIRST, _ROOM_MOST)
                await _limit_processes(container, container.pids + room)
            await anyio.sleep(_PAUSE_S)
    finally:
        if room:
            with anyio.CancelScope(shield=True):
                await _limit_processes(container, container.pids)


async def _limit_processes(container: Container, number: int) -> None:
    await container.engine.call(
        lambda api: api.post(
            f"{api.base_url}/v{api.api_version}/containers/{container.id}/update", json={"PidsLimit": number}
        ).raise_for_status()
    )


async def run_script(container: Container, script: str, *words: str) -> int | None:
    """The status of a shell script run as the seat, or None when the engine could not start it."""
    running = await create(container, Program(argv=["/bin/sh", "-c", script, "sh", *words]), stdin=False)
    async with container.engine.attach(running.id) as stream:
        framed = Frames(stream)
        while await framed.next() is not None:
            """It has nothing to say."""
    state = await ended(container.engine, running)
    return int(state["ExitCode"]) if state["Pid"] else None


async def _listed(container: Container) -> str:
    """A command that kills what the engine lists as the container's own processes, but the keeper's two."""
    facts = await container.engine.call(lambda api: api.inspect_container(container.id))
    keeper = str(facts["State"]["Pid"])
    listed = await container.engine.call(lambda api: api.top(container.id, "-eo pid,ppid"))
    doomed = [pid for pid, parent in listed["Processes"] or [] if keeper not in (pid, parent)]
    return f"kill -KILL {' '.join(doomed)} 2>/dev/null; true"
