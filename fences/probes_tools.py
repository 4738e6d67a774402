"""
Probes of the seat's own tools, each in its own language: a probe made in the sandbox's language can't see a hole in
the layer above it.

Every door must be turned down by the tool itself. "Not there" is not enough: it would be the walls' answer, from behind
rules that let the call through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import anyio

from fences.classifier import Try, parse_tries, weigh
from fences.programs import run_program
from fences.tool_race import race
from fences.tool_talk import call, command, reports_in
from fences.weakenings import NotMeasuredError, mounted, rules_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site
from harness.walls import ToolRules

if TYPE_CHECKING:
    from harness.workspaces.file_helper import Asking

__all__ = ["EditToolProbe", "ListToolProbe", "ReadToolProbe", "RunToolProbe", "SearchToolProbe", "WriteToolProbe"]

_LINKS = "proctor-links"
"""The folder in the workspace with links that lead out of it."""

_PREPARE = """
folder = "/workspace/" + args["links"]
def prepare():
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(os.fsencode(folder)):
        os.unlink(os.path.join(os.fsencode(folder), name))
    for name, target in args["targets"].items():
        os.symlink(target, os.path.join(folder, name))
    os.link(os.path.join(folder, "existing"), os.path.join(folder, "second"), follow_symlinks=False)
    os.mkfifo(os.path.join(folder, "fifo"))
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(folder)
        listener.bind("socket")
    with open(os.path.join(folder, "hole"), "wb") as hole:
        hole.truncate(args["hole"])
    for name in (b"two\\nlines", b"no-\\xff\\xfe-text"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"own")
    return {"fact": "prepared"}
attempt("prepare", prepare)
"""

_HOLE_BYTES = 60 << 20
"""A file that is all hole: a tool that takes it whole takes as much memory."""

_SHOWN_BYTES = 20_000
"""More than a call may show, with the lines that it says beside."""

_ELSEWHERE = "/dev/shm/proctor-decoy"  # noqa: S108 - inside a workspace
"""Where a decoy is put for a policy that lets tools into `/tmp`."""

_ONLY_NOTHING = frozenset({"NOTHING"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """One call of the tool. An `honest` one may be served: only the canary in its text is a breach."""

    what: str
    arguments: Mapping[str, Any]
    honest: bool = False


class _ToolProbe:
    """A probe of one tool: the same doors for each, spelled in the tool's own arguments."""

    name: ClassVar[str]
    tool: ClassVar[str]
    threat: ClassVar[str]
    language: ClassVar[str]
    holds: frozenset[Finding] = frozenset({Finding.DENIED})
    canary: ClassVar[str] = "tool"
    target: ClassVar[str] = "/secret.txt"
    """What the tool goes for in the decoy folder."""
    existing: ClassVar[tuple[str, ...]] = ("/etc/passwd", "/bin/sh", "/proc/version")
    """What is in every workspace, for doors that do lead somewhere; the first outside the policy's roots is tried."""

    def arguments(self, path: str, site: Site) -> Mapping[str, Any]:
        """The tool's arguments for `path`."""
        del site  # only what writes needs to know what to write
        return {"path": path}

    def calls(self, rules: ToolRules, site: Site) -> Sequence[_Call]:
        """Every door to the decoy, to the host, out of the workspace, and below each denied root."""
        decoy, existing = _decoy(rules, site), self._existing(rules)
        indirect = {
            "dots": f"/workspace/..{decoy}{self.target}",
            "relative dots": f"..{decoy}{self.target}",
            "link to the decoy": f"{_LINKS}/decoy{self.target}",
            "link to what exists": f"{_LINKS}/existing",
            "magic link": f"{_LINKS}/proc/root{existing}",
            "second name of a link": f"{_LINKS}/second",
            "endless link": f"{_LINKS}/zero",
        }
        direct = {
            "sibling": "/workspace-evil" + self.target,
            "host file": site.places["host-file-path"],
            "existing": existing,
            "environment": "/proc/self/environ",
        }
        # What the policy itself opens to tools is no breach. This is told apart without the check that is being probed.
        direct = {what: path for what, path in direct.items() if not _in_roots(path, rules)}
        direct |= {f"denied {root}": f"{root}/proctor-probe" for root in rules.denied}
        doors = {"outside": decoy + self.target, **indirect, **direct}
        return [_Call(what=what, arguments=self.arguments(path, site)) for what, path in doors.items()]

    def _existing(self, rules: ToolRules) -> str:
        return next((path for path in self.existing if not _in_roots(path, rules)), self.existing[0])

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The decoy's folder shown in the workspace, and rules that let the tool into it."""
        source, rules = site.places["tools-open-path"], fence.rules
        target = next((path for path in (source, _ELSEWHERE) if not _in_roots(path, rules)), None)
        if target is None:
            raise NotMeasuredError(
                f"the policy's roots hold both {source} and {_ELSEWHERE}: no place is left for a decoy"
            )
        widened = rules_changed(
            fence,
            tools=rules.tools | {self.tool},
            readable=(*rules.readable, target),
            writable=(*rules.writable, target),
        )
        return mounted(widened, source, target=target, read_only=False)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Lay links in the workspace, go through every door, and look at what came of it."""
        from harness.workspaces.file_helper import open_helper

        rules = fence.rules
        targets = {
            "decoy": _decoy(rules, site), "existing": self._existing(rules), "proc": "/proc/self", "zero": "/dev/zero",
        }  # fmt: skip
        hole = min(_HOLE_BYTES, site.caps.file_bytes)
        made = await run_program(workspace, _PREPARE, {"links": _LINKS, "targets": targets, "hole": hole})
        if isinstance(made, str) or made[0].fact is None:
            why = made if isinstance(made, str) else made[0].signature
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=f"the links could not be laid: {why}")
        async with open_helper(workspace) as helper:
            tries = await self.through(workspace, rules, site, helper)
        return weigh(tries, canary=site.canaries[self.canary], absent=_ONLY_NOTHING)

    async def through(self, workspace: Workspace, rules: ToolRules, site: Site, helper: Asking) -> list[Try]:
        """Go through the doors, up to the first that is open: what it changed would be found behind every later one."""
        canary, tries = site.canaries[self.canary].encode(), list[Try]()
        for item in self.calls(rules, site):
            standing, text = await call(workspace, rules, self.tool, item.arguments, helper=helper)
            tries.append(await self.judge(item, standing, text, rules, site))
            if len(text.encode()) > _SHOWN_BYTES:
                tries.append(Try(what=item.what, fact="more was shown than a call may show"))
            if canary in (tries[-1].got or b""):
                break
        return tries

    async def judge(self, item: _Call, standing: str, text: str, rules: ToolRules, site: Site) -> Try:
        """The try that a call amounts to: for a tool that brings something back, by its text."""
        del rules  # only what changes files needs to know where to look
        canary = site.canaries[self.canary]
        if standing != "served":
            return _turned_down(item, standing)
        if item.honest and canary not in text:
            return Try(what=item.what, signature="NOTHING")
        return Try(what=item.what, got=text.encode())


def _in_roots(path: str, rules: ToolRules) -> bool:
    """Whether the policy lets tools there, by another way than the check that is being probed."""
    return any(PurePosixPath(path).is_relative_to(root) for root in (*rules.readable, *rules.writable))


def _opened(rules: ToolRules, site: Site) -> str | None:
    """Where the control shows its decoy, or None with the fence up."""
    return next((path for path in (site.places["tools-open-path"], _ELSEWHERE) if path in rules.readable), None)


def _decoy(rules: ToolRules, site: Site) -> str:
    """
    The decoy's path in the workspace, outside the policy's roots. The control has one of its own, so that what it
    changes says nothing of the attempt with the fence up.
    """
    shut = site.places["tools-path"]
    return _opened(rules, site) or (_ELSEWHERE if _in_roots(shut, rules) else shut)


def _turned_down(item: _Call, standing: str) -> Try:
    signature = {"refused": "REFUSED", "absent": "the rules let it through to ENOENT"}.get(standing)
    return Try(what=item.what, signature=signature or f"the tool {standing}")


class ReadToolProbe(_ToolProbe):
    """
    The read tool, sent to files outside its roots, to what is no file, and to a path whose folder is swapped for a link
    all the while.
    """

    name, tool, language = "tool-read", "read", "tool:read"
    threat = "the read tool hands over a file that the walls let it see and the rules do not"

    def calls(self, rules: ToolRules, site: Site) -> Sequence[_Call]:
        """The doors of every tool, things that never end, and honest reads of the seat's own odd files."""
        odd = {"FIFO": f"{_LINKS}/fifo", "socket": f"{_LINKS}/socket"}
        own = {"hole": f"{_LINKS}/hole", "two lines": f"{_LINKS}/two\nlines"}
        return [
            *super().calls(rules, site),
            *(_Call(what=what, arguments={"path": path}) for what, path in odd.items()),
            *(_Call(what=what, arguments={"path": path}, honest=True) for what, path in own.items()),
        ]

    async def through(self, workspace: Workspace, rules: ToolRules, site: Site, helper: Asking) -> list[Try]:
        """The doors, and if all were shut, the race."""
        tries = await super().through(workspace, rules, site, helper)
        if self.tool in rules.tools and not any(item.got for item in tries):
            tries.append(await race(workspace, rules, helper, decoy=_decoy(rules, site), target=self.target))
        return tries


class ListToolProbe(_ToolProbe):
    """The list tool, sent to folders outside its roots; a file in the decoy has the canary in its name."""

    name, tool, language = "tool-list", "list", "tool:list"
    threat = "the list tool shows what is outside the seat's folders"
    target = ""
    existing = ("/etc", "/usr", "/proc")

    def calls(self, rules: ToolRules, site: Site) -> Sequence[_Call]:
        """The doors of every tool, and an honest listing of the folder with the links."""
        honest = _Call(what="own folder", arguments={"path": _LINKS}, honest=True)
        return [*super().calls(rules, site), honest]


class SearchToolProbe(_ToolProbe):
    """The search tool, sent to search outside its roots, and through links from inside them."""

    name, tool, language = "tool-search", "search", "tool:search"
    threat = "a search walks through a link, or starts outside the seat's folders"
    target = ""
    existing = ("/etc", "/usr", "/proc")

    def arguments(self, path: str, site: Site) -> Mapping[str, Any]:
        """A search for the word that stands before the canary."""
        del site
        return {"path": path, "pattern": "needle"}

    def calls(self, rules: ToolRules, site: Site) -> Sequence[_Call]:
        """The doors of every tool, a FIFO, and an honest search of the folder with everything odd in it."""
        own = _Call(what="own folder", arguments=self.arguments(_LINKS, site), honest=True)
        fifo = _Call(what="FIFO", arguments=self.arguments(f"{_LINKS}/fifo", site))
        return [*super().calls(rules, site), fifo, own]


class _ChangingToolProbe(_ToolProbe):
    """A tool that changes files is judged by what the host then finds in the decoy folder, whatever the tool says."""

    async def judge(self, item: _Call, standing: str, text: str, rules: ToolRules, site: Site) -> Try:
        """The canary is in the folder, or it is not."""
        del text
        folder = site.places["tools-open-path" if _opened(rules, site) else "tools-path"]
        path = Path(folder + self.target)
        found = await anyio.to_thread.run_sync(_content, path)
        if site.canaries[self.canary].encode() in found:
            return Try(what=item.what, got=found)
        if standing == "served":
            return Try(what=item.what, signature="the tool says that it was served, and the decoy did not change")
        return _turned_down(item, standing)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


class WriteToolProbe(_ChangingToolProbe):
    """The write tool, sent to write outside its roots."""

    name, tool, language = "tool-write", "write", "tool:write"
    threat = "the write tool changes what the referee or the next seat will use"
    canary = "tool-write"
    target = "/written.txt"

    def arguments(self, path: str, site: Site) -> Mapping[str, Any]:
        """A file whose content is the canary."""
        return {"path": path, "content": site.canaries[self.canary]}


class EditToolProbe(_ChangingToolProbe):
    """The edit tool, sent to edit a file outside its roots."""

    name, tool, language = "tool-edit", "edit", "tool:edit"
    threat = "the edit tool changes a file outside the seat's folders"
    canary = "tool-edit"
    target = "/editable.txt"

    def arguments(self, path: str, site: Site) -> Mapping[str, Any]:
        """The decoy's word replaced by the canary."""
        return {"path": path, "old": "needle", "new": site.canaries[self.canary]}


class RunToolProbe:
    """The run tool, used to read a file of the host: what it starts must be held by the walls, like everything else."""

    name = "tool-run"
    tool = "run"
    language = "tool:run"
    threat = "the run tool starts programs somewhere else than behind the walls, or with the harness's environment"
    holds = frozenset({Finding.DENIED, Finding.ABSENT})

    _BODY: ClassVar[str] = """
attempt("host file", lambda: read(args["host"]))
def look():
    value = os.environb.get(args["variable"].encode())
    return value if value is not None else {"signature": "NOTHING"}
attempt("environment", look)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's file shown in the workspace, and the tool allowed."""
        allowed = rules_changed(fence, tools=fence.rules.tools | {self.tool})
        return mounted(allowed, site.places["host-file-path"])

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Run a program of ours through the tool and weigh its report."""
        told = {"host": site.places["host-file-path"], "variable": site.places["variable"]}
        standing, text = await call(workspace, fence.rules, self.tool, {"command": command(self._BODY, told)})
        if standing == "refused":
            return weigh([Try(what="run", signature="REFUSED")], canary=None)
        reports = reports_in(text)
        tries = parse_tries(reports[-1]) if reports else f"the tool {standing} without the program's report"
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        leaked = weigh(tries[1:], canary=site.canaries["variable"])
        if leaked.finding is not Finding.ABSENT:
            return leaked
        return weigh(tries[:1], canary=site.canaries["host-file"])
