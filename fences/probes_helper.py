"""The probe of the file tools' helper: a process of the seat's own user, to which the harness listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from fences.classifier import DENIED, Try, weigh
from fences.programs import run_program
from fences.tool_talk import call
from fences.weakenings import UNCONFINED, NotMeasuredError, walls_changed
from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.tree import Tree
from harness.views import Attempt, Fence, Finding, Site

if TYPE_CHECKING:
    from harness.workspaces.file_helper import Helper

__all__ = ["HelperProbe"]

_SIGNS = DENIED | {"BACK"}
"""`BACK`: it was killed, which is told, and the next call was answered by another."""

_FORGE = """
me = os.getpid()
def others():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != me:
            try:
                if "".join(args["mark"]).encode() in read_all("/proc/" + name + "/cmdline"):
                    yield name
            except OSError:
                pass
def read_all(path):
    with open(path, "rb") as file:
        return file.read()
found = sorted(others())
def forge():
    if not found:
        return {"signature": "NOTHING"}
    for name in found:
        out = os.open("/proc/" + name + "/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        os.write(out, args["frame"].encode())
        os.close(out)
    return {"signature": "WROTE"}
def memory():
    if not found:
        return {"signature": "NOTHING"}
    os.close(os.open("/proc/" + found[0] + "/mem", os.O_RDWR))
    return {"fact": "its memory can be written"}
def kill():
    if not found:
        return {"signature": "NOTHING"}
    for name in found:
        os.kill(int(name), 9)
    return {"signature": "KILLED"}
for what in args["asked"]:
    attempt(what, {"its output": forge, "its memory": memory, "its life": kill}[what])
"""


class HelperProbe:
    """
    A program of the seat's that writes into the output and the memory of the file tools' helper, and kills it. The
    first two must be denied; a killed one must be told of, and be followed by another.

    Where programs of two executions don't see each other there is nothing to go for, and no control that shows it.
    """

    name = "file-helper"
    language = "tool:read"
    threat = "the seat answers in the file tools' place, or takes them away for the rest of its cell"
    holds = frozenset({Finding.ABSENT, Finding.DENIED})
    structural: ClassVar[bool] = False
    FORGED: ClassVar[str] = "forged by the seat"

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Root with capabilities, that of a debugger among them: no process's own protection holds it."""
        del site
        return walls_changed(fence, **UNCONFINED, capabilities=("SYS_PTRACE",))

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Start the helper, go for it, and have the harness say what it heard."""
        del site
        from harness.workspaces.exhibits import put
        from harness.workspaces.file_helper import open_helper

        events: list[str] = []
        name, rules = f"proctor-own-{fresh_token(4)}", fence.rules
        await put(workspace, Tree.of({name: "own"}))
        async with open_helper(workspace, event=lambda cause, _: events.append(cause)) as helper:
            await helper.start()
            found = await self._tried(workspace, ["its output", "its memory"])
            if isinstance(found, str):
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=found)
            if fence.walls.run_as_root and all(item.signature == "NOTHING" for item in found):
                raise NotMeasuredError("programs of two executions don't see each other here, whatever is taken down")
            tries = await self._heard(found, helper, events)
            if tries[0].fact is None and "read" in rules.tools:
                tries.append(await self._killed(workspace, fence, helper, name, events))
        return weigh(tries, canary=None, denied=_SIGNS)

    async def _tried(self, workspace: Workspace, asked: Sequence[str]) -> Sequence[Try] | str:
        # In two parts, so that this program does not find itself.
        told = {"mark": ["cell_", "helper"], "frame": self.FORGED, "asked": list(asked)}
        return await run_program(workspace, _FORGE, told)

    async def _heard(self, found: Sequence[Try], helper: Helper, events: list[str]) -> list[Try]:
        """The tries, with what the harness heard of the forged answer in place of the program's word for it."""
        if found[0].signature != "WROTE":
            return list(found)
        await helper.start()
        heard = "forged" in events
        fact = "the harness heard the forged answer" if heard else None
        return [Try(what="its output", fact=fact, signature=None if heard else "it wrote, and nobody heard it")]

    async def _killed(self, workspace: Workspace, fence: Fence, helper: Helper, name: str, events: list[str]) -> Try:
        """What became of a helper that was killed."""
        found = await self._tried(workspace, ["its life"])
        if isinstance(found, str) or found[0].signature != "KILLED":
            return Try(what="its life", signature=found if isinstance(found, str) else found[0].signature)
        try:
            standing, text = await call(workspace, fence.rules, "read", {"path": name}, helper=helper)
        except WorkspaceError:
            return Try(what="its life", fact="no call is answered after it")
        if standing != "served" or text.strip() != "own":
            return Try(what="its life", fact="the next call is not answered as it should")
        return Try(what="its life", signature="BACK" if "killed" in events else "nobody told that it was killed")
