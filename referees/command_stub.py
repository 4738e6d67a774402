"""
The command `subject` as a suite finds it: it hands its arguments, input and declared variables to the judge's program,
and becomes what comes back. It runs inside workspaces, as a file of its own, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import sys

__all__ = ["main"]

_WIDTH = 8


def _is_report(fd: int, report: list[int]) -> bool:
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return [found.st_dev, found.st_ino] == report


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            raise SystemExit("subject: the judge is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _asked(address: str, head: dict[str, object], stdin: bytes) -> tuple[dict[str, int | None], bytes, bytes]:
    """The answer to one call: how the program ended, and its two outputs."""
    text = json.dumps({"head": head, "sizes": [len(stdin)]}).encode("ascii")
    body = len(text).to_bytes(_WIDTH, "big") + text + stdin
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as judge:
        judge.connect(address)
        judge.sendall(len(body).to_bytes(_WIDTH, "big") + body)
        _exactly(judge, _WIDTH)
        answer = json.loads(_exactly(judge, int.from_bytes(_exactly(judge, _WIDTH), "big")))
        out, err = (_exactly(judge, size) for size in answer["sizes"])
    return answer["head"], out, err


def _say(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass  # nobody listens, as with any program


def main(address: str, crossing: list[str], report: list[int]) -> None:
    """
    One call. `report` is the device and inode of the runner's own output, which the program's must not flow into: that
    is told to the judge. The exit status is the program's, or 128 and the signal that ended it.
    """
    stdin = sys.stdin.buffer.read() if sys.stdin is not None else b""
    env = {name: os.environ[name] for name in crossing if name in os.environ}
    uncaptured = _is_report(1, report) or _is_report(2, report)
    end, out, err = _asked(address, {"argv": sys.argv[1:], "env": env, "uncaptured": uncaptured}, stdin)
    _say(1, out)
    _say(2, err)
    killed = end.get("signal")
    os._exit(128 + killed if killed else end.get("status") or 0)
