"""The command that sets a program's limits from within the sandbox, where they count for this workspace alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.walls import Walls
from harness.workspaces.forwarding import LISTENING, forwarder_argv

__all__ = ["launcher", "marker"]

_BLOCK = 512  # bytes; the shell's unit for the sizes of files


def marker(token: str) -> bytes:
    """
    What the launcher writes to its error stream when every limit is set, just before the program starts. Without it
    nothing was started.
    """
    return f"<started {token}>\n".encode()


def launcher(walls: Walls, token: str, cwd: str, argv: Sequence[str], *, address_space: bool) -> list[str]:
    """
    The command that sets the limits, starts the forwarder where the walls have the network `gateway`, and becomes the
    program. Memory is limited for each process by its `address_space` where no control group limits the sum.
    """
    said = marker(token).decode().rstrip("\n")
    forwarder = f"{_forwarder(walls)} || exit 125; " if walls.network == "gateway" else ""
    script = (
        f"{_limits(walls, address_space=address_space)} || exit 125; {forwarder}"
        f'echo \'{said}\' >&2; cd -- "$1" || exit 126; unset OLDPWD; shift; exec "$@"'
    )
    return ["/bin/sh", "-c", script, "sh", cwd, *argv]


def _limits(walls: Walls, *, address_space: bool) -> str:
    """
    A process limit set outside would count every process of the user on the host. More processes than `caps.pids` are
    let be: the reaper that bwrap puts in as process 1, and the forwarder.
    """
    caps = walls.caps
    processes = caps.pids + 1 + (walls.network == "gateway")
    return " && ".join(
        (
            f"{{ ulimit -u {processes} 2>/dev/null || ulimit -p {processes}; }}",
            f"ulimit -c {caps.core_bytes // _BLOCK}",
            "ulimit -l 64",
            f"ulimit -f {caps.file_bytes // _BLOCK}",
            f"ulimit -n {caps.open_files}",
            *([f"ulimit -v {caps.memory_bytes // 1024}"] if address_space else []),
        )
    )


def _forwarder(walls: Walls) -> str:
    """
    Start the forwarder and wait until it listens. The shell that starts it is gone before the program begins, so that
    it is a child of process 1, which ends it with all the rest, and none of the program's own.
    """
    started = f"{{ {shlex.join(forwarder_argv(walls.caps.lifetime_s))} </dev/null 2>/dev/null & }}"
    listens = f'{{ IFS= read -r said && [ "$said" = {LISTENING.decode().strip()} ]; }}'
    failed = "{ echo 'the forwarder of the network gateway does not listen: is python3 in the image?' >&2; false; }"
    return f"{{ {started} | {listens} || {failed}; }}"
