"""
Many probes' programs as one: a single process of the seat's user, a fresh namespace for each body, one report.

A cell can't pay for an `exec` a probe. What the bodies leave behind (processes, files in the seat's folders) is ended
and taken away by the same process before it reports, and what could not be is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fences.classifier import Try, parse_tries, tries_of
from fences.programs import PATIENCE_S, PRELUDE
from harness.ports import Workspace

__all__ = ["Batch", "Body", "run_batch"]

_REPORT_BYTES = 4 << 20

_LOADER = """
import ctypes, json, os, shutil, signal, sys, time
asked = json.load(sys.stdin)
me, found, spent, left = os.getpid(), {}, {}, []
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # whoever a body leaves behind becomes a child of this process
def look():
    seen = {}
    for folder in asked["folders"]:
        try:
            seen[folder] = (set(os.listdir(folder)), os.stat(folder))
        except OSError:
            pass
    return seen
def take_away():
    for folder, (names, state) in before.items():
        new = set(os.listdir(folder)) - names
        for name in new:
            path = os.path.join(folder, name)
            try:
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            except OSError as error:
                left.append(path + ": " + str(error.strerror))
        try:
            os.utime(folder, ns=(state.st_atime_ns, state.st_mtime_ns))
        except OSError:
            pass
def children():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == me:
                        yield int(name)
            except (OSError, IndexError):
                pass
def end_children():
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for child in children():
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.001)
        except ChildProcessError:
            return
    left.extend("process %d" % child for child in children())
before = look()
prelude = compile(asked["prelude"], "prelude", "exec")
for name, body, arguments in asked["bodies"]:
    began = time.monotonic()
    space = {"__name__": "probe"}
    sys.argv = ["-c", json.dumps(arguments)]
    try:
        exec(prelude, space)
        exec(compile(body, name, "exec"), space)
        found[name] = {"tries": space["tries"]}
    except BaseException as error:
        found[name] = {"error": type(error).__name__ + ": " + str(error)[:200]}
    if os.getpid() != me:
        os._exit(99)  # a child that a body made and did not end
    spent[name] = round((time.monotonic() - began) * 1000, 3)
end_children()
take_away()
whole = {"what": "batch", "signature": "REPORTED"}
print("\\n" + json.dumps({"tries": [whole], "found": found, "ms": spent, "left": left}))
"""

FOLDERS = ("/workspace", "/tmp", "/dev/shm", "/var/tmp")  # noqa: S108 - inside a workspace
"""The folders that a seat can write to: whatever is new there when the bodies have run is theirs, and goes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """One program of a batch: what runs, and what it is told."""

    name: str
    body: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """
    What a batch reported: the tries of each body (or why nothing can be concluded from it), the traces that could not
    be taken away, and the milliseconds that each body took.
    """

    tries: Mapping[str, Sequence[Try] | str]
    left: tuple[str, ...]
    ms: Mapping[str, float]


async def run_batch(workspace: Workspace, bodies: Sequence[Body], *, folders: Sequence[str] = FOLDERS) -> Batch | str:
    """
    Run `bodies` one after another in one process as the seat, or say why nothing can be concluded from them. What they
    put into `folders` is taken away.
    """
    asked = {
        "prelude": PRELUDE,
        "folders": list(folders),
        "bodies": [[item.name, item.body, dict(item.arguments)] for item in bodies],
    }
    result = await workspace.exec(
        ["python3", "-I", "-S", "-c", _LOADER],
        stdin=json.dumps(asked).encode(),
        timeout_s=PATIENCE_S,
        output_bytes=_REPORT_BYTES,
        cwd="/",  # a seat can close its own folder, and must not blind whoever looks
    )
    # What makes one program's report unclear makes that of the batch unclear: it is written as a report of one try.
    whole = tries_of(result)
    if isinstance(whole, str):
        return whole
    try:
        return _batch_of(json.loads(result.stdout.strip().splitlines()[-1]), bodies)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"the batch's report can't be read: {type(error).__name__}"


def _batch_of(report: Mapping[str, Any], bodies: Sequence[Body]) -> Batch:
    tries: dict[str, Sequence[Try] | str] = {}
    for item in bodies:
        told = report["found"].get(item.name, {"error": "it is not in the report"})
        said = told.get("error")
        tries[item.name] = f"the program failed: {said}" if said else parse_tries(json.dumps(told).encode())
    return Batch(
        tries=tries,
        left=tuple(map(str, report["left"])),
        ms={str(name): float(ms) for name, ms in report["ms"].items()},
    )
