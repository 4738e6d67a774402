"""Between two programs of a seat: what those that are over have left alive is found from outside, counted and ended."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
from anyio import to_thread

from harness.workspaces.docker_kill import KILL_DEADLINE_S, kill_everything, run_script
from harness.workspaces.docker_program import Container, Running
from harness.workspaces.docker_witness import Witness

__all__ = ["end_beside", "sweep"]

_BEGIN_S = 5.0
_STEP_S = 0.005

_KILL_OTHERS = """
spared=" $1 $$ "
n=0
while :; do
    left=
    for p in /proc/[0-9]*; do
        p=${p#/proc/}
        [ "$p" != 1 ] && kill -0 "$p" 2>/dev/null || continue
        stat=; { read -r stat < "/proc/$p/stat"; } 2>/dev/null
        [ -n "$stat" ] || continue
        set -- ${stat##*) }
        case $spared in *" $3 "*) continue;; esac
        [ "$1" = Z ] && continue
        kill -KILL "$p" 2>/dev/null
        left=$p
    done
    [ -n "$left" ] || exit 0
    n=$((n + 1))
    [ $n -le 50 ] || exit 1
    [ $n -le 5 ] || sleep 0.02
done
"""
"""Kills everything of the calling user but its own process group and those named, until none of it is left."""


async def sweep(container: Container) -> int | None:
    """
    End what no program that still runs has to do with, and say how many processes that were.

    A running program keeps its process group: a stream's, or an exec's that another task waits for. Where nobody can
    look from outside everything of the seat's is ended, and the number is None. Raises `WorkspaceError` when it can't
    be ended.
    """
    witness = container.witness
    if witness is None:
        await kill_everything(container)
        return None
    if not (found := await to_thread.run_sync(witness.seats)):
        return 0
    spared = await _groups(container, container.programs.values())
    if not (left := [pid for pid in found if witness.group_inside(pid) not in {None, *spared}]):
        return 0
    await _end_others(container, spared)
    return len(left)


async def end_beside(container: Container, running: Running) -> None:
    """
    End everything of the seat's, `running` too, but for the other programs that still run: the end of one program's
    time is not theirs. Raises `WorkspaceError` when it can't be ended.
    """
    others = [other for other in container.programs.values() if other is not running]
    if spared := await _groups(container, others):
        await _end_others(container, spared)
    else:
        await kill_everything(container)


async def _end_others(container: Container, spared: set[int]) -> None:
    with anyio.move_on_after(KILL_DEADLINE_S, shield=True):
        status = await run_script(container, _KILL_OTHERS, " ".join(map(str, sorted(spared))))
        if status == 0:
            return
    # No place for a killer, or what is killed comes again faster: then nothing is spared.
    await kill_everything(container)


async def _groups(container: Container, programs: Iterable[Running]) -> set[int]:
    """
    The process groups of programs, by the container's own count: each is the leader of its own. A stream has said its
    number; an exec's is known where somebody can look.
    """
    groups = set()
    for running in list(programs):
        if running.number is None and container.witness is not None:
            running.number = await _number(container, container.witness, running)
        if running.number is not None:
            groups.add(running.number)
    return groups


async def _number(container: Container, witness: Witness, running: Running) -> int | None:
    """The number of a program that is just being started or runs; None when it is over."""
    with anyio.move_on_after(_BEGIN_S):
        while True:
            state = await container.engine.call(lambda api: api.exec_inspect(running.id))
            if state["Pid"] or state["ExitCode"] is not None:
                return witness.number_inside(state["Pid"]) if state["Running"] else None
            await anyio.sleep(_STEP_S)
    return None
