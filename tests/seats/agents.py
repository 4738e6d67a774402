"""An agent program for tests of the seat `command`: a client of the gateway's socket, and the shell that starts it."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from harness.messages import Completion
from harness.values import Usage
from harness.walls import ExecResult
from tests.fake_workspace import Call, ran

__all__ = ["Agent", "ask", "counted"]


def counted(text: str, *, prompt: int = 10, answer: int = 5) -> Completion:
    """A model's answer with its counts."""
    usage = Usage(input=prompt, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=answer)
    return Completion(text=text, stop="stop", usage=usage, served_model="fake", latency_s=0.0)


async def ask(
    folder: Path, text: str, *, model: str = "proctor-model", path: str = "/v1/chat/completions"
) -> tuple[int, Any]:
    """What the gateway in `folder` answers to one chat: status and body."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 16}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    got = b""
    async with await anyio.connect_unix(str(folder / "model.sock")) as stream:
        await stream.send(head.encode() + body)
        while True:
            try:
                got += await stream.receive()
            except anyio.EndOfStream:
                break
    status, _, rest = got.partition(b"\r\n\r\n")
    return int(status.split()[1]), json.loads(
        re.sub(rb"^[0-9a-f]+\r\n|\r\n.*$", b"", rest) if rest[:1] != b"{" else rest
    )


class Agent:
    """
    An agent program and the shell that starts it: finds the program `agent`, keeps what is laid in its home, and runs
    `act`, which is given the gateway's folder and the call, and says how the program ended.
    """

    def __init__(self, folder: Path, act: Callable[[Path, Call], Awaitable[ExecResult]]) -> None:
        self.folder = folder
        self.act = act
        self.lay_status = 0
        self.laid: dict[str, str] = {}
        self.calls: list[Call] = []
        self.ended = False

    async def __call__(self, call: Call) -> ExecResult:
        """What `sh` does with the script that it is given; `ended` says then that nothing of the program goes on."""
        script, home, *words = call.argv[2:]
        if script.startswith("command -v") and words != ["agent"]:
            return ran(status=127)
        assert 'tar -xf - -C "$0"' in script
        if self.lay_status:
            return ran(status=self.lay_status, stderr=b"no space left\n")
        with tarfile.open(fileobj=io.BytesIO(call.stdin)) as tar:
            self.laid = {
                f"{home}/{member.name}": tar.extractfile(member).read().decode() for member in tar if member.isfile()
            }
        if script.startswith("command -v"):
            return ran()
        assert script.endswith('&& exec "$@" </dev/null')
        self.calls.append(replace(call, argv=tuple(words), stdin=b""))
        try:
            return await self.act(self.folder, self.calls[-1])
        finally:
            self.ended = True
