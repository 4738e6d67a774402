"""
Probes of the end: what a seat started must not outlive the call, the time limit or the cell that it was started in.

Evidence is what the host sees, by `fences/lingering.py`, and never what the workspace says of itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import anyio
import anyio.to_thread

from fences.classifier import DENIED, Try, weigh
from fences.lingering import Mess, alive_on_host
from fences.tool_talk import call
from fences.weakenings import walls_changed
from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = [
    "BackgroundProbe",
    "DaemonProbe",
    "KillAllProbe",
    "StoppedProbe",
    "TimeLimitProbe",
]

_SIGNS = DENIED | {"GONE", "LIVES ON"}
"""`GONE`: it was seen alive, and then no more. `LIVES ON`: the workspace did, as it should."""

_WAIT = 'while [ ! -s "$2" ]; do sleep 0.01; done\n'
_SAY = "echo made\nread line\n"
_DAEMON = 'trap "" TERM HUP\n(setsid sh -c "$1" "$2" < /dev/null > /dev/null 2>&1 &)\n' + _WAIT + _SAY
_STOPPED = 'setsid sh -c "$1" "$2" < /dev/null > /dev/null 2>&1 &\npid=$!\n' + _WAIT + "kill -STOP $pid\n" + _SAY
_ENDLESS = (
    'trap "" TERM HUP\nsetsid sh -c "$1" "$2" < /dev/null > /dev/null 2>&1 &\n'
    + _WAIT
    + "echo made\nn=0\nwhile [ $n -lt 80 ]; do n=$((n + 1)); sleep 0.1; done\n"
)


class _LeavingProbe:
    """
    A program that leaves something alive and ends. Then everything that it left must be ended; its control ends the
    program alone, as a harness does that waits for what it started and looks no further.
    """

    name: ClassVar[str]
    threat: ClassVar[str]
    script: ClassVar[str]
    language: ClassVar[str] = "shell"
    holds: frozenset[Finding] = frozenset({Finding.DENIED})
    structural: ClassVar[bool] = False

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Nothing is swept up, and no process tree of its own ends what is left with its first process."""
        del site
        return replace(walls_changed(fence, host_namespaces=("pid",)), lifted=("process-sweep",))

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Leave it, have the host see that it lives, end what is to be ended, and look again."""
        del site
        mess = Mess(script=self.script)
        swept = "process-sweep" not in fence.lifted
        try:
            async with mess.made(workspace) as stream:
                if stream is None:
                    return Attempt(finding=Finding.INCONCLUSIVE, evidence="the program did not come to leave anything")
                if not await anyio.to_thread.run_sync(alive_on_host, mess.mark):
                    return Attempt(finding=Finding.INCONCLUSIVE, evidence="this host does not see it while it lives")
                await stream.send(b"\n")
                if not swept:
                    await anyio.sleep(0.2)
                    return weigh([await _left(mess)], canary=None, denied=_SIGNS)
            await workspace.sweep()
            return weigh([await _left(mess)], canary=None, denied=_SIGNS)
        finally:
            await workspace.kill()


async def _left(mess: Mess) -> Try:
    if await mess.seen():
        return Try(what="what was left", fact="it is alive on the host")
    return Try(what="what was left", signature="GONE")


class DaemonProbe(_LeavingProbe):
    """A daemon: forked twice, in a session of its own, deaf to every signal but the last."""

    name = "daemon-survives"
    threat = "the seat leaves a daemon that goes on after its call, its cell or its verdict"
    script = _DAEMON


class StoppedProbe(_LeavingProbe):
    """A stopped process in a session of its own: it takes no signal but the last, and shows no sign of life."""

    name = "stopped-process"
    threat = "the seat leaves a process asleep, to be woken when nobody looks any more"
    script = _STOPPED


class TimeLimitProbe:
    """
    A program that goes past its time limit, deaf to SIGTERM, with a child in a session of its own. Both must be gone
    when the call returns; in its control the harness just stops waiting.
    """

    name = "time-limit-evasion"
    language = "shell"
    threat = "a call that ran out of time goes on, and uses what the next one is measured by"
    holds = frozenset({Finding.DENIED})
    structural: ClassVar[bool] = False
    LIMITS_S: ClassVar[tuple[float, ...]] = (1.0, 3.0, 6.0)
    """Time limits, each tried if the program had not begun within the last: a slow machine needs more."""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Nothing is swept up when the time is over."""
        del site
        return replace(fence, lifted=("process-sweep",))

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Run out of time, and have the host look for what goes on."""
        del site
        mess = Mess(script=_ENDLESS)
        try:
            if "process-sweep" in fence.lifted:
                async with mess.made(workspace) as stream:
                    if stream is None:
                        return Attempt(finding=Finding.INCONCLUSIVE, evidence="the program did not come to its limit")
                    return weigh([await _left(mess)], canary=None, denied=_SIGNS)
            for limit in self.LIMITS_S:
                result = await workspace.exec(mess.argv, timeout_s=limit)
                if result.timed_out and b"made" in result.stdout:
                    return weigh([await _left(mess)], canary=None, denied=_SIGNS)
            return Attempt(finding=Finding.INCONCLUSIVE, evidence="the program did not come to its limit")
        finally:
            await workspace.kill()


class BackgroundProbe:
    """
    Something that a call of the run tool leaves in the background, which the next call must not find alive. Where the
    policy lets it live on, it must be gone when the workspace is ended.
    """

    name = "background-between-calls"
    language = "tool:run"
    threat = "what one call left running changes what the next one finds, or is judged by"
    holds = frozenset({Finding.DENIED})
    structural: ClassVar[bool] = False

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Nothing is swept up between calls, and no process tree of its own ends what is left."""
        del site
        return replace(walls_changed(fence, host_namespaces=("pid",)), lifted=("process-sweep",))

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Leave it with one call, and look with the next."""
        del site
        mess = Mess(script=_DAEMON.replace("read line\n", ""))
        try:
            if "process-sweep" in fence.lifted:
                async with mess.made(workspace) as stream:
                    if stream is None:
                        return Attempt(finding=Finding.INCONCLUSIVE, evidence="nothing was left in the background")
                    await anyio.sleep(0.2)
                    return await self._found(workspace, mess)
            if "run" not in fence.rules.tools:
                return weigh([Try(what="run", signature="REFUSED")], canary=None)
            standing, text = await call(workspace, fence.rules, "run", {"command": _quoted(mess.argv)})
            if standing != "served" or "made" not in text:
                why = f"the call that was to leave it {standing}"
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=why)
            if fence.rules.background:
                await workspace.kill()
            return await self._found(workspace, mess)
        finally:
            await workspace.kill()

    async def _found(self, workspace: Workspace, mess: Mess) -> Attempt:
        """What the next call finds by the heartbeat, and the host by its own list."""
        beats = await mess.beats(workspace)
        if beats is None:
            return Attempt(finding=Finding.INCONCLUSIVE, evidence="its heartbeat can't be looked at")
        tries = [Try(what="heartbeat", fact="it beats on") if beats else Try(what="heartbeat", signature="GONE")]
        return weigh([*tries, await _left(mess)], canary=None, denied=_SIGNS)


class KillAllProbe:
    """`kill -KILL -1`: everything that the seat may signal. The workspace and its first process must outlive it."""

    name = "kill-all"
    language = "shell"
    threat = "the seat ends its own cell, and is counted as a failure of the machine's in place of its own"
    holds = frozenset({Finding.DENIED})
    alone: ClassVar[bool] = True
    structural: ClassVar[bool] = False

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The first process run as the seat's own user."""
        del site
        return walls_changed(fence, keeper_apart=False)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Kill, and have another program run."""
        del fence, site
        try:
            await workspace.exec(["sh", "-c", "kill -KILL -1; kill -KILL 1; true"], timeout_s=20)
            again = await workspace.exec(["sh", "-c", "echo here"], timeout_s=20)
        except WorkspaceError:
            return Attempt(finding=Finding.SERVED, evidence="the workspace: it ended with its first process")
        if again.status != 0 or again.stdout != b"here\n":
            return Attempt(finding=Finding.INCONCLUSIVE, evidence="no program runs after it, and nothing says why")
        return weigh([Try(what="the workspace", signature="LIVES ON")], canary=None, denied=_SIGNS)


def _quoted(argv: list[str]) -> str:
    import shlex

    return shlex.join(argv)
