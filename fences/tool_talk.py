"""Speaking with the seat's own tools, as a model would: the layer above the walls has holes of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fences.classifier import Try, weigh
from fences.programs import program
from harness.clock import fresh_token
from harness.permissions import WORKSPACE
from harness.ports import Workspace
from harness.views import Attempt, Finding
from harness.walls import ToolRules

if TYPE_CHECKING:
    from harness.workspaces.file_helper import Asking

__all__ = ["CALL_S", "call", "command", "reports_in", "work_with_tools"]


CALL_S = 15.0
"""Seconds that one call may take: one that hangs on what a seat has laid out must not hold the table up."""


async def call(
    workspace: Workspace,
    rules: ToolRules,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    helper: Asking | None = None,
) -> tuple[str, str]:
    """
    One call of a seat's tool: its standing (served, refused, absent or failed) and its text. Many calls share a
    `helper`, as a seat's do; without one, this call has its own.
    """
    from harness.seats.tools import SeatTools

    outcome = await SeatTools(workspace, rules, helper=helper, timeout_s=CALL_S).call(tool, dict(arguments))
    return outcome.standing, outcome.text


def command(body: str, arguments: object) -> str:
    """The shell command that runs a probe's program through the `run` tool."""
    import shlex

    return shlex.join(["python3", "-I", "-S", "-c", program(body), json.dumps(arguments)])


def reports_in(text: str) -> list[bytes]:
    """The report lines of a probe's program in a tool's text, which may say other things around them."""
    return [line.encode() for line in text.splitlines() if line.startswith('{"tries"')]


async def work_with_tools(workspace: Workspace, rules: ToolRules) -> Attempt:
    """Whether each tool that the rules list does its honest work in the workspace; SERVED when all of them do."""
    from harness.workspaces.file_helper import open_helper

    token = fresh_token(8)
    folder = f"{min(rules.writable, default=WORKSPACE)}/proctor-ability-{token}"
    path = f"{folder}/note.txt"
    talks: Mapping[str, tuple[Mapping[str, Any], str]] = {
        "write": ({"path": path, "content": f"first {token}\n"}, ""),
        "read": ({"path": path}, token),
        "edit": ({"path": path, "old": "first", "new": "second"}, ""),
        "list": ({"path": folder}, "note.txt"),
        "search": ({"pattern": "second", "path": folder}, "note.txt"),
        "run": ({"command": f"cat {path}"}, token),
    }
    # A root that no task has made yet is made here: the rules allow it, and a seat's own programs could.
    await workspace.exec(["mkdir", "-p", folder])
    if "write" not in rules.tools:
        await workspace.exec(["sh", "-c", 'printf "second first %s\\n" "$1" > "$2"', "sh", token, path])
    tries = []
    async with open_helper(workspace) as helper:
        for tool, (arguments, expected) in talks.items():
            if tool not in rules.tools:
                continue
            standing, text = await call(workspace, rules, tool, arguments, helper=helper)
            works = standing == "served" and expected in text
            said = f"{standing}: {text[:100]}"
            tries.append(Try(what=tool, fact="works") if works else Try(what=tool, signature=said))
    failed = [item for item in tries if item.fact is None]
    if not tries:
        return Attempt(finding=Finding.SERVED, evidence="the policy lists no tool")
    return weigh(failed or tries, canary=token)
