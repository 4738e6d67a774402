"""
The positive list: what a seat must be able to do behind the fence, tried as the seat would. A seat that can't work is
another experiment, and one that pays for it in tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from fences.classifier import weigh
from fences.policy import MODEL_REACHED
from fences.programs import run_program
from fences.tool_talk import work_with_tools
from harness.errors import ProctorError
from harness.ports import Workspace
from harness.tree import Tree
from harness.views import Attempt, Finding
from harness.walls import ToolRules

__all__ = ["PROGRAMS", "try_ability"]

_TASK = "proctor-ability/task.md"
_TEXT = "Read this line."

_WRITE = """
path = "/workspace/.proctor-ability"
def write():
    with open(path, "w") as out:
        out.write("written")
    with open(path) as written:
        text = written.read()
    os.unlink(path)
    return {"fact": "written and read back"} if text == "written" else {"signature": "EMPTY"}
attempt("/workspace", write)
"""

_RUN = """
def run():
    import hashlib, subprocess
    done = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, timeout=5)
    return {"fact": "a program started a program"} if done.stdout == b"42\\n" else {"signature": "EMPTY"}
attempt("python3", run)
"""


PROGRAMS: Mapping[str, str] = {"write-workspace": _WRITE, "run-python3": _RUN}
"""The abilities that are seen by one program alone, which each cell's gate runs with its probes."""


async def try_ability(name: str, workspace: Workspace, rules: ToolRules) -> Attempt:
    """What came of one ability of `must_work`: SERVED is as it must be."""
    try:
        return await _ABILITIES[name](workspace, rules)
    except ProctorError as error:
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=f"{type(error).__name__}: {error}"[:300])


async def _by_program(workspace: Workspace, body: str) -> Attempt:
    tries = await run_program(workspace, body, {})
    if isinstance(tries, str):
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
    return weigh(tries, canary=None)


async def _write(workspace: Workspace, rules: ToolRules) -> Attempt:
    del rules
    return await _by_program(workspace, _WRITE)


async def _run(workspace: Workspace, rules: ToolRules) -> Attempt:
    del rules
    return await _by_program(workspace, _RUN)


async def _read_task(workspace: Workspace, rules: ToolRules) -> Attempt:
    """A task is laid in as every task is, then read by a program of the seat's."""
    del rules
    from harness.workspaces.exhibits import put

    await put(workspace, Tree.of({_TASK: _TEXT}))
    read = f'attempt("task", lambda: read("/workspace/{_TASK}"))\n'
    tries = await run_program(workspace, read, {})
    if isinstance(tries, str):
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
    return weigh(tries, canary=_TEXT)


async def _reach_model(workspace: Workspace, rules: ToolRules) -> Attempt:
    """A program asks through the workspace's own forwarder, and a scripted model behind the gateway answers."""
    del rules
    from fences.gateway_talk import ask_model

    return await ask_model(workspace)


_ABILITIES: Mapping[str, Callable[[Workspace, ToolRules], Awaitable[Attempt]]] = {
    "write-workspace": _write,
    "read-task": _read_task,
    "run-python3": _run,
    "tools": work_with_tools,
    MODEL_REACHED: _reach_model,
}
