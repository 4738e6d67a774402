"""
Attempts made as a person would make them: a script of plain `sh` and whatever programs the image has, without python3.

A script runs each try with `bring` (what it prints is the evidence) or `deed` (that it worked is). Both report how it
ended and what it said; what an error text means is decided on the host.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from fences.classifier import ABSENT, DENIED, Try, plain, tries_of, weigh
from fences.programs import PATIENCE_S
from fences.weakenings import walls_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site
from harness.walls import ExecResult

__all__ = ["NO_CLIENT", "ShellProbe", "script", "shell_tries"]

_PRELUDE = r"""
LC_ALL=C; export LC_ALL
newline='
'
try() {
    kind=$1; what=$2; shift 2
    said=$( { "$@"; code=$?; echo; echo "$code"; } 2>&1 </dev/null | tail -c 20000 )
    code=${said##*"$newline"}; said=${said%"$newline"*}
    printf '%s\t%s\t%s\t' "$kind" "$what" "$code"
    printf '%s' "$said" | od -An -v -tx1 | tr -d ' \n'
    echo
}
bring() { try bring "$@"; }
deed() { try deed "$@"; }
"""
_END = "\necho reported\n"

NO_CLIENT = "NO CLIENT"
"""The signature of a try whose program the image does not have: by that way there is nothing to reach."""

_TEXTS = (
    ("operation not permitted", "EPERM"),
    ("must be superuser", "EPERM"),
    ("authentication failure", "EPERM"),
    ("permission denied", "EACCES"),
    ("read-only file system", "EROFS"),
    ("network is unreachable", "ENETUNREACH"),
    ("no route to host", "EHOSTUNREACH"),
    ("connection refused", "ECONNREFUSED"),
    ("no space left on device", "ENOSPC"),
    ("resource temporarily unavailable", "EAGAIN"),
    ("ignores the signal", "IGNORED"),
    ("no such file", "ENOENT"),
    ("directory nonexistent", "ENOENT"),
    ("not a directory", "ENOTDIR"),
    ("no such process", "ESRCH"),
    ("invalid argument", "EINVAL"),
    ("no such device or address", "ENXIO"),
    ("no such device", "ENODEV"),
)
"""What programs say of the kernel's errors, the more telling first; searched without regard to case."""


def script(body: str, arguments: Mapping[str, str]) -> str:
    """The whole text of a probe's script, whose own part is `body`; `a-b` is told to it as `$a_b`."""
    told = "".join(f"{name.replace('-', '_')}={shlex.quote(value)}\n" for name, value in arguments.items())
    return _PRELUDE + told + body + _END


def shell_tries(result: ExecResult, canary: str | None) -> Sequence[Try] | str:
    """The tries of a script, or why nothing can be concluded from it. A report that is not whole is none."""
    if result.status == 0 and not result.timed_out and not result.stdout_cut:
        lines = result.stdout.decode("utf-8", "replace").splitlines()
        if lines[-1:] != ["reported"]:
            return "the script's report is not whole"
        try:
            return [_try_of(line, canary) for line in lines[:-1]] or "the script tried nothing"
        except ValueError as error:
            return f"the script's report can't be read: {error}"[:200]
    if result.status in range(1, 126) and not result.timed_out:
        return f"the script ended with exit {result.status}"
    why = tries_of(result)
    return why if isinstance(why, str) else "the script's report can't be read"


def _try_of(line: str, canary: str | None) -> Try:
    kind, what, code, said = line.split("\t")
    text = bytes.fromhex(said).strip()
    if canary and canary.encode() in text:
        return Try(what=what, got=text)
    if int(code) == 0:
        if kind == "deed":
            return Try(what=what, fact="it worked")
        return Try(what=what, got=text) if text else Try(what=what, signature="NOTHING")
    return Try(what=what, signature=_signature(int(code), text.decode("utf-8", "replace").lower()))


def _signature(code: int, text: str) -> str:
    """What a failed program met, by its exit code and its words."""
    if code == 124:
        return "TIMEOUT"
    if code == 127 and "not found" in text:
        return NO_CLIENT
    if code > 128:
        return f"killed (exit {code})"
    return next((name for words, name in _TEXTS if words in text), f"exit {code}: {plain(text[-80:])}")


class ShellProbe:
    """
    A probe whose attempt is a script in the workspace, run as the seat runs its own.

    A probe sets `name`, `threat`, `holds` and `body`, and says in `down` or `weaken` which wall its control takes down.
    """

    name: ClassVar[str]
    threat: ClassVar[str]
    language: ClassVar[str] = "shell"
    holds: frozenset[Finding] = frozenset({Finding.DENIED, Finding.ABSENT})
    body: ClassVar[str]
    places: ClassVar[tuple[str, ...]] = ()
    """The names in `Site.places` that the script is told; one that this host has not is empty there."""
    canary: ClassVar[str | None] = None
    absent: ClassVar[frozenset[str]] = ABSENT | {NO_CLIENT}
    denied: ClassVar[frozenset[str]] = DENIED
    down: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The fence with the wall down that this probe is about: `down`, unless a probe says otherwise."""
        del site
        return walls_changed(fence, **self.down)

    async def witness(self, site: Site) -> str | None:
        """Why the host can't vouch that the target is up, or None; without a target there is nothing to say."""
        del site
        return None

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Run the script, have the host confirm the target, and weigh the report."""
        del fence
        text = script(self.body, {name: site.places.get(name, "") for name in self.places})
        canary = site.canaries[self.canary] if self.canary else None
        tries = shell_tries(await workspace.exec(["sh", "-c", text], timeout_s=PATIENCE_S), canary)
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        witness = await self.witness(site)
        return weigh(tries, canary=canary, absent=self.absent, denied=self.denied, witness=witness)
