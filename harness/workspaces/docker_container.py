"""Containers come and go: started behind their walls, ended with a proof, removed with everything that was theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
from anyio import to_thread

from harness.clock import Clock
from harness.errors import WorkspaceError
from harness.walls import KillProof
from harness.workspaces.docker_engine import Engine, NotFoundError
from harness.workspaces.docker_program import Container, is_running
from harness.workspaces.docker_witness import Witness
from harness.workspaces.forwarding import LISTENING

__all__ = [
    "end_container",
    "nothing_left",
    "remove_container",
    "remove_volume",
    "seats_alive",
    "start_container",
    "wait_for_forwarder",
]

_END_DEADLINE_S = 60.0
_WITNESS_S = 10.0
_FORWARDER_S = 30.0
_STEP_S = 0.01
_NOTE_CHARS = 400


async def start_container(engine: Engine, container: str) -> Mapping[str, Any]:
    """Start a container that was made, and say what the engine says of it. Raises `WorkspaceError`."""

    def start(api: Any) -> Mapping[str, Any]:
        api.start(container)
        found: Mapping[str, Any] = api.inspect_container(container)
        return found

    facts = await engine.call(start)
    if not facts["State"]["Running"]:
        raise WorkspaceError(f"the container ended at once: {facts['State']['Error'] or facts['State']}")
    return facts


async def wait_for_forwarder(container: Container) -> None:
    """Wait until the forwarder listens: it is the only one that says anything. Raises `WorkspaceError` if it fails."""
    said = b""
    with anyio.move_on_after(_FORWARDER_S):
        runs = True
        while runs and not said:
            runs = await is_running(container)
            said = await container.engine.call(lambda api: api.logs(container.id, stdout=True, stderr=True))
            await anyio.sleep(_STEP_S if runs and not said else 0)
    if LISTENING not in said:
        note = said.decode(errors="replace").strip()[-_NOTE_CHARS:]
        raise WorkspaceError(f"the forwarder to the gateway does not listen (the image needs python3): {note}")


async def seats_alive(container: Container) -> int | None:
    """How many processes of the seat's live in a container, or None where nobody can look."""
    return None if container.witness is None else len(await to_thread.run_sync(container.witness.seats))


async def end_container(container: Container, *, before: int | None, clock: Clock) -> KillProof:
    """
    Kill a container in which `before` processes of the seat's lived, and look from outside until no process of it lives
    or ten seconds are over.

    Where nobody can look, the engine's word is taken, and named as the witness. Raises `WorkspaceError` when the engine
    can't do it.
    """
    begun = clock.monotonic()
    witness = container.witness
    await _kill(container)
    if witness is not None:
        alive: int | None = len(await _left(witness.members))
    else:
        alive = None if await is_running(container) else 0
    name = "engine" if witness is None else witness.name
    return KillProof(before=before, alive=alive, witness=name, seconds=clock.monotonic() - begun)


async def _kill(container: Container) -> None:
    try:
        await container.engine.call(lambda api: api.kill(container.id))
    except WorkspaceError:
        # Its time may have been over: an ended container can't be killed.
        if await is_running(container):
            raise


async def remove_container(engine: Engine, name: str) -> None:
    """Remove a container, whatever it does. One that is gone is no failure. Raises `WorkspaceError` in time."""
    await _in_time(engine, f"container {name}", lambda api: api.remove_container(name, force=True, v=True))


async def remove_volume(engine: Engine, name: str) -> None:
    """Remove a volume that no container has any more; likewise."""
    await _in_time(engine, f"volume {name}", lambda api: api.remove_volume(name))


async def _in_time(engine: Engine, what: str, remove: Callable[[Any], None]) -> None:
    with anyio.move_on_after(_END_DEADLINE_S):
        while True:
            try:
                return await engine.call(remove)
            except NotFoundError:
                return None
            except WorkspaceError as error:
                # Somebody else is at it: wait until it is done.
                if "already in progress" not in str(error):
                    raise
            await anyio.sleep(_STEP_S)
    raise WorkspaceError(f"{what} could not be removed within {_END_DEADLINE_S:.0f} s: remove it by hand")


async def nothing_left(name: str, witness: Witness | None) -> None:
    """Look from outside whether anything of a removed container lives on: the engine's word is not enough."""
    if witness is not None and (left := await _left(witness.members)):
        raise WorkspaceError(f"{len(left)} processes of container {name} live on after its removal: {left[:10]}")


async def _left(members: Callable[[], list[int]]) -> list[int]:
    """Who is alive once nobody is, or the deadline has passed."""
    left: list[int] = []
    with anyio.move_on_after(_WITNESS_S):
        while left := await to_thread.run_sync(members):  # noqa: ASYNC110 - the kernel sends no event
            await anyio.sleep(_STEP_S)
    return left
