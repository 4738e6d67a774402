"""
A seat's tools. Each does its work inside the workspace, as the seat's user, and only if the rules allow it; each call
is told by its standing: served, refused, absent or failed.

Nothing here opens a path of the host. A tool never raises for what the model sent or for what the seat did to its own
files; what it raises is a failure of the workspace, which is nobody's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.errors import unknown_name
from harness.messages import ToolSpec
from harness.permissions import WORKSPACE, check
from harness.ports import Workspace
from harness.seats.bounded import bounded_arguments, clipped, shown_bytes
from harness.seats.tool_specs import TOOLS, check_arguments, spec
from harness.transcript import Transcript
from harness.walls import ToolRules
from harness.workspaces.file_helper import Asking, at_hand
from harness.workspaces.files import FileAbsent, FileRefused, Files
from harness.workspaces.frames import FileToolError

__all__ = ["OUTPUT_BYTES", "TIMEOUT_S", "SeatTools", "ToolOutcome", "ToolStanding"]

ToolStanding: TypeAlias = Literal["served", "refused", "absent", "failed"]
"""
- `served`: it was done;
- `refused`: the rules or the workspace itself forbid it, or the path is another kind of thing than the tool takes;
- `absent`: there is nothing at the path;
- `failed`: the call was wrong or could not be done, which says nothing of any wall.
"""

TIMEOUT_S = 60.0
"""Seconds that one call may take, unless the seat's options say otherwise."""

OUTPUT_BYTES = 16 << 10
"""Bytes of output that one call may show, unless the seat's options say otherwise."""

_ENTRIES = 500
_MATCHES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutcome:
    """
    What became of a call, and the text that the model is shown. `left` is how many processes a `run` left alive that
    were then ended: None where nobody could tell, and for every other tool.
    """

    standing: ToolStanding
    text: str
    left: int | None = None


class SeatTools:
    """
    The tools that `rules` allow in `workspace`. Files are reached through `helper`; without one, each call opens one
    for itself. A call takes at most `timeout_s` seconds (once more if the helper was lost meanwhile) and shows at most
    `output_bytes` bytes beside a line of ours; with a `transcript` each is written down as a `tool` event.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: ToolRules,
        *,
        helper: Asking | None = None,
        timeout_s: float = TIMEOUT_S,
        output_bytes: int = OUTPUT_BYTES,
        transcript: Transcript | None = None,
    ) -> None:
        self._workspace = workspace
        self._rules = rules
        self._helper = helper
        self._timeout_s = timeout_s
        self._output_bytes = output_bytes
        self._transcript = transcript
        self.submitted: str | None = None
        """The note of the `submit` call, once there was one."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools there are, as a model is offered them."""
        return tuple(spec(name) for name in TOOLS if name in self._rules.tools)

    async def call(self, name: str, arguments: object) -> ToolOutcome:
        """Do one call. `arguments` is whatever the model sent. Raises `WorkspaceError` when the workspace failed."""
        try:
            async with at_hand(self._workspace, self._helper) as helper:
                outcome = await self._do(helper, name, arguments)
        except FileRefused as fault:
            outcome = ToolOutcome(standing="refused", text=f"refused: {clipped(str(fault))}")
        except FileAbsent as fault:
            outcome = ToolOutcome(standing="absent", text=f"not there: {clipped(str(fault))}")
        except FileToolError as fault:
            outcome = ToolOutcome(standing="failed", text=f"failed: {clipped(str(fault))}")
        if self._transcript is not None:
            self._transcript.add(
                "tool",
                tool=clipped(name, 100),
                arguments=bounded_arguments(arguments),
                standing=outcome.standing,
                text=outcome.text,
                left=outcome.left,
            )
        return outcome

    async def _do(self, helper: Asking, name: str, arguments: object) -> ToolOutcome:
        if name not in TOOLS:
            return _failed(unknown_name("tool", clipped(name, 100), self._rules.tools))
        try:
            given = check_arguments(name, arguments)
        except ValueError as error:
            return _failed(clipped(str(error)))
        if name == "submit" and name in self._rules.tools:
            self.submitted = given["note"]
            return _served("submitted")
        permission = check(self._rules, name, given.get("path", WORKSPACE))
        if not permission.allowed or permission.path is None:
            return ToolOutcome(standing="refused", text=f"refused: {clipped(permission.why)}")
        files = Files.ruled(helper, self._rules, timeout_s=self._timeout_s)
        match name:
            case "run":
                return await self._run(helper, given["command"])
            case "read":
                return await self._read(files, permission.path, given["start"], given["lines"])
            case "write":
                data = given["content"].encode()
                await files.write(permission.path, data)
                return _served(f"wrote {len(data)} bytes to {permission.path}")
            case "edit":
                line = await files.edit(permission.path, given["old"], given["new"])
                return _served(f"edited {permission.path} at line {line}")
            case "list":
                return await self._list(files, permission.path)
            case _:
                return await self._search(files, permission.path, given["pattern"])

    async def _run(self, helper: Asking, command: str) -> ToolOutcome:
        most = self._output_bytes
        result = await self._workspace.exec(
            ["bash", "-c", command], timeout_s=self._timeout_s, output_bytes=most, cwd=WORKSPACE
        )
        errors, errors_cut = shown_bytes(result.stderr, most // 4)
        output, output_cut = shown_bytes(result.stdout, most - len(errors.encode()))
        cut = errors_cut or output_cut or result.stdout_cut or result.stderr_cut
        if result.timed_out:
            ending = f"stopped after {self._timeout_s:g} s"
        else:
            ending = "how it ended is not known" if result.status is None else f"exit status {result.status}"
        left = None if self._rules.background else await helper.sweep()
        parts = [
            output,
            f"[stderr]\n{errors}" if errors else "",
            self._cut_note() if cut else "",
            f"[{ending}]",
            f"[processes left running, which are ended now: {left}]" if left else "",
        ]
        known = result.status is not None and not result.timed_out
        text = "\n".join(part.rstrip("\n") for part in parts if part)
        return ToolOutcome(standing="served" if known else "failed", text=text, left=left)

    async def _read(self, files: Files, path: str, start: int, lines: int) -> ToolOutcome:
        most = self._output_bytes
        found = await files.lines(path, start=start, count=lines, max_bytes=most)
        whole = found.looked == found.size
        if start > found.total:
            where = path if whole else f"the first {found.looked} bytes of {path}"
            return _failed(f"there is no line {start} in {where}, which has {found.total}")
        if not found.looked:
            return _served(f"[{path} is empty]")
        text, cut = shown_bytes(found.data, most)
        if cut or found.cut:
            shown = text.count("\n")
            hint = f"go on with start={start + shown}" if shown else f"line {start} alone is longer"
            return _served(f"{text}\n{self._cut_note()} {hint}")
        if not whole and start - 1 + lines >= found.total:
            return _served(f"{text}\n[cut: of {path} only the first {found.looked} bytes can be shown]")
        return _served(text)

    async def _list(self, files: Files, path: str) -> ToolOutcome:
        listing = await files.list(path, max_entries=_ENTRIES, max_bytes=self._output_bytes)
        rows = [
            f"{entry.path}/" if entry.kind == "folder" else f"{entry.path} ({entry.kind}, {entry.size} bytes)"
            for entry in listing.entries
        ]
        more = f"[cut: more than {len(listing.entries)} entries]" if listing.truncated else ""
        return self._rows(rows, more, nothing=f"{path} is empty")

    async def _search(self, files: Files, path: str, pattern: str) -> ToolOutcome:
        found = await files.search(pattern, path, max_matches=_MATCHES, max_bytes=self._output_bytes)
        rows = [f"{path}/{match.path}:{match.line}: {match.text}" for match in found.matches]
        more = f"[cut: more than {len(found.matches)} matches]" if found.truncated else ""
        return self._rows(rows, more, nothing=f"no line below {path} matches")

    def _rows(self, rows: Sequence[str], more: str, *, nothing: str) -> ToolOutcome:
        text, cut = shown_bytes("\n".join(rows or [nothing]).encode(), self._output_bytes)
        return _served("\n".join(part for part in (text, self._cut_note() if cut else "", more) if part))

    def _cut_note(self) -> str:
        return f"[cut: a call shows at most {self._output_bytes} bytes]"


def _served(text: str) -> ToolOutcome:
    return ToolOutcome(standing="served", text=text)


def _failed(text: str) -> ToolOutcome:
    return ToolOutcome(standing="failed", text=f"failed: {text}")
