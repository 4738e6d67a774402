"""
Whether a patch may replace the state: it parses, and it runs to its end as a module.

Both are tried in the workspace, so that no code of a model is ever parsed or run by the harness. What the program says
guards against accidents and is no verdict: a candidate that lies about itself gains a place in its own workspace.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.seats.bounded import clipped
from harness.seats.oneshot import MAX_CANDIDATE_BYTES
from harness.walls import ExecResult

__all__ = ["Admission", "Refusal", "admit"]

Refusal: TypeAlias = Literal["too-large", "does-not-parse", "raises", "ends-early", "too-slow", "spoils"]
"""
Why a patch does not replace the state:

- `too-large`: over 1 MiB;
- `does-not-parse`: it is no Python that the workspace's own compiles;
- `raises`: it parses, and raises as it is loaded, `SystemExit` included;
- `ends-early`: it ended its process before it was loaded, or was killed;
- `too-slow`: it was not loaded within the seat's `timeout_s`;
- `spoils`: after its trial the state can't be laid into the workspace any more, as when a folder stands in its place.
"""

_OUTPUT_BYTES = 1 << 16
_PROGRAM = """
import json, os, sys, types
nonce = sys.argv[1]
told = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
def tell(said, detail=""):
    line = json.dumps({"nonce": nonce, "said": said, "detail": detail[:500]})
    os.write(told, line.encode("ascii") + b"\\n")
source = sys.stdin.buffer.read()
tell("ready")
try:
    code = compile(source, "candidate.py", "exec", dont_inherit=True)
except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
    tell("does-not-parse", f"{type(error).__name__}: {error}")
    os._exit(0)
module = sys.modules["candidate"] = types.ModuleType("candidate")
try:
    exec(code, module.__dict__)
except BaseException as error:
    tell("raises", f"{type(error).__name__}: {error}")
    os._exit(0)
tell("executes")
os._exit(0)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Whether a patch may replace the state: `refusal` is None if so; `detail` is for people."""

    refusal: Refusal | None = None
    detail: str = ""


async def admit(workspace: Workspace, code: str, *, timeout_s: float) -> Admission:
    """
    Try `code` in `workspace`, for at most `timeout_s` seconds. Raises `WorkspaceError` when there is no Python to try
    it with, or how that ended is not known: then nothing was learned of the code.
    """
    source = code.encode()
    if len(source) > MAX_CANDIDATE_BYTES:
        return Admission(refusal="too-large", detail=f"{len(source)} bytes: at most {MAX_CANDIDATE_BYTES}")
    nonce = fresh_token()
    result = await workspace.exec(
        ["python3", "-B", "-c", _PROGRAM, nonce], stdin=source, timeout_s=timeout_s, output_bytes=_OUTPUT_BYTES
    )
    said = _said(result.stdout, nonce)
    if result.timed_out:
        return Admission(refusal="too-slow", detail=f"it was not loaded within {timeout_s:g} s")
    if not said or said[0].get("said") != "ready":
        raise WorkspaceError(f"python3 of the workspace could not try a patch: {_ending(result)}")
    if result.status is None:
        raise WorkspaceError("how the trial of a patch ended is not known")
    return _admission(said[-1], result)


def _admission(last: dict[str, Any], result: ExecResult) -> Admission:
    detail = clipped(str(last.get("detail", "")), 500)
    match last.get("said"):
        case "executes":
            return Admission()
        case "does-not-parse":
            return Admission(refusal="does-not-parse", detail=detail)
        case "raises":
            return Admission(refusal="raises", detail=detail)
        case _:
            return Admission(refusal="ends-early", detail=_ending(result))


def _said(output: bytes, nonce: str) -> list[dict[str, Any]]:
    """The lines that our program wrote, whatever stands between them."""
    found = []
    for line in output.split(b"\n"):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict) and told.get("nonce") == nonce:
            found.append(told)
    return found


def _ending(result: ExecResult) -> str:
    errors = result.stderr[-300:].decode("utf-8", "replace").strip()
    return clipped(f"exit status {result.status}{': ' + errors if errors else ''}", 500)
