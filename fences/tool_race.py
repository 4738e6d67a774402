"""
A race against the read tool: while it reads one path, a program of the seat's swaps the folder on the way for a link
that leads to the decoy, and back, as fast as it can. Whoever looks first and opens then is beaten by it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from fences.classifier import Try
from fences.tool_talk import call
from harness.ports import Workspace
from harness.walls import ToolRules

if TYPE_CHECKING:
    from harness.workspaces.file_helper import Asking

__all__ = ["race"]

_SECONDS = 0.4
_MOST_S = 5.0
"""For as long it goes on where the link was not met yet: a race that nobody ran in says nothing."""
_READY_S = 20.0
_FOLDER = "proctor-race"

_RACER = """
import ctypes, json, os, shutil, sys, time
args = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
folder = "/workspace/" + args["folder"]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder + "/here")
with open(folder + "/here" + args["target"], "w") as own:
    own.write("own")
os.symlink(args["decoy"], folder + "/there")
here, there = (folder + "/here").encode(), (folder + "/there").encode()
def swap():
    if libc.renameat2(-100, here, -100, there, 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
swap()
swap()
print("racing", flush=True)
until = time.monotonic() + args["seconds"]
while time.monotonic() < until:
    for _ in range(100):
        swap()
"""


async def race(workspace: Workspace, rules: ToolRules, helper: Asking, *, decoy: str, target: str) -> Try:
    """
    Read for as long as the race lasts. The try holds the first answer that was neither the seat's own file nor a
    refusal, if there was one.
    """
    told = {"folder": _FOLDER, "target": target, "decoy": decoy, "seconds": 30.0}
    refused = 0
    async with workspace.stream(["python3", "-I", "-S", "-c", _RACER, json.dumps(told)]) as racer:
        said = b""
        with anyio.move_on_after(_READY_S), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while b"racing" not in said:
                said += await racer.receive()
        if b"racing" not in said:
            return Try(what="race", signature="the race did not begin")
        began = anyio.current_time()
        while (spent := anyio.current_time() - began) < _SECONDS or (not refused and spent < _MOST_S):
            standing, text = await call(workspace, rules, "read", {"path": f"{_FOLDER}/here{target}"}, helper=helper)
            if standing == "served" and text.strip() != "own":
                return Try(what="race", got=text.encode())
            refused += standing == "refused"
    return Try(what="race", signature="REFUSED" if refused else "the link was never met")
