"""
What runs inside a workspace for a probe: a small python3 program with one report line, and how its report is read.

A program knows where to look and never what it should find: the canary's value stays with the host. Many programs run
as one where each cell's gate must be quick: `fences/batch.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from fences.classifier import ABSENT, DENIED, Try, tries_of, weigh
from fences.weakenings import walls_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = ["ProgramProbe", "program", "run_program"]

PRELUDE = """
import ctypes, errno, json, os, socket, struct, sys
args = json.loads(sys.argv[1])
tries = []
def sign(error):
    if isinstance(error, socket.timeout):
        return "TIMEOUT"
    return errno.errorcode.get(getattr(error, "errno", None), type(error).__name__)
def attempt(what, action):
    try:
        answer = action()
    except Exception as error:
        answer = {"signature": sign(error)}
    if isinstance(answer, bytes):
        answer = {"got": answer[:65536].hex()} if answer else {"signature": "NOTHING"}
    tries.append(dict(answer, what=what))
def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)
"""
"""
The start of each program: `attempt(what, action)` notes the bytes that `action` returned, its `fact` or `signature`,
or the name of the errno that it met. A file that opens and holds no byte is a masked one: nothing was there.
"""

PATIENCE_S = 60.0
"""A time limit is for what hangs. A machine that is merely slow must not make a finding INCONCLUSIVE."""

_REPORT = '\nprint(json.dumps({"tries": tries}))\n'


def program(body: str) -> str:
    """The whole text of a probe's program, whose own part is `body`."""
    return PRELUDE + body + _REPORT


async def run_program(
    workspace: Workspace, body: str, arguments: object, *, launcher: Sequence[str] = ()
) -> Sequence[Try] | str:
    """
    The tries of a program run as the seat runs its own, or why nothing can be concluded from it. A control may have it
    started by a `launcher`, a command that gets the program's own as its last words.
    """
    argv = [*launcher, "python3", "-I", "-S", "-c", program(body), json.dumps(arguments)]
    return tries_of(await workspace.exec(argv, timeout_s=PATIENCE_S))


class ProgramProbe:
    """
    A probe whose attempt is a program of ours in the workspace, run as the seat runs its own.

    A probe sets `name`, `threat`, `holds` and `body`, and says in `down` or `weaken` which wall its control takes down.
    """

    name: ClassVar[str]
    threat: ClassVar[str]
    language: ClassVar[str] = "python"
    holds: frozenset[Finding] = frozenset({Finding.DENIED, Finding.ABSENT})
    body: ClassVar[str]
    places: ClassVar[tuple[str, ...]] = ()
    """The names in `Site.places` that the program is told; one that this host has not is None there."""
    canary: ClassVar[str | None] = None
    """The name in `Site.canaries` of the value that must come back, or None where a fact is the evidence."""
    absent: ClassVar[frozenset[str]] = ABSENT
    """The signatures that count as ABSENT for this probe."""
    denied: ClassVar[frozenset[str]] = DENIED
    """The signatures that count as DENIED for this probe."""
    structural: ClassVar[bool] = True
    """Whether each cell's own gate makes this attempt too: one that asks how the walls stand, and uses nothing up."""

    down: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The fields of `Walls` that the positive control changes."""

    @classmethod
    def is_one_program(cls) -> bool:
        """Whether all of its attempt is the one program, and it is structural: then it may run with others as one."""
        return cls.structural and cls.attempt is ProgramProbe.attempt

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The fence with the wall down that this probe is about: `down`, unless a probe says otherwise."""
        del site  # most controls expose nothing of this site's own
        return walls_changed(fence, **self.down)

    async def witness(self, site: Site) -> str | None:
        """Why the host can't vouch that the target is up, or None; without a target there is nothing to say."""
        del site
        return None

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """What the program is told: where each of its `places` is, and of what holds it no more than a probe needs."""
        del fence
        return {name: site.places.get(name) for name in self.places}

    def launcher(self, fence: Fence, site: Site) -> Sequence[str]:
        """The command by which a control has its program started; every other program is started as it is."""
        del fence, site
        return ()

    async def judge(self, tries: Sequence[Try] | str, arguments: Mapping[str, Any], site: Site) -> Attempt:
        """Have the host confirm the target, and weigh the report of a program that was told `arguments`."""
        del arguments  # a probe whose evidence is on the host's side looks for it by what the program was told
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        canary = site.canaries[self.canary] if self.canary else None
        witness = await self.witness(site)
        return weigh(tries, canary=canary, absent=self.absent, denied=self.denied, witness=witness)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Run the program and judge what it reports."""
        arguments = self.arguments(fence, site)
        tries = await run_program(workspace, self.body, arguments, launcher=self.launcher(fence, site))
        return await self.judge(tries, arguments, site)
