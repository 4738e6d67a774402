"""Agent programs for tests of the seat `command`: a client of the gateway's socket, and what a workspace's shell does."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from harness.messages import Completion
from harness.values import Usage
from harness.walls import ExecResult
from tests.fake_workspace import Call, ran

__all__ = ["Agent", "Shell", "ask", "counted"]


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


class Shell:
    """Stands for `sh` in a workspace: finds the programs it is told of, and keeps what is laid."""

    def __init__(self, *programs: str, lay_status: int = 0) -> None:
        self.programs = programs
        self.lay_status = lay_status
        self.laid: dict[str, str] = {}

    def __call__(self, call: Call) -> ExecResult:
        """What the shell does with the script that it is given."""
        script = call.argv[2]
        if script.startswith("command -v"):
            return ran(status=0 if call.argv[4] in self.programs else 127)
        assert script.endswith('cat > "$2"')
        assert call.argv[5].startswith(f"{call.argv[4]}/")
        self.laid[call.argv[5]] = call.stdin.decode()
        return ran(status=self.lay_status, stderr=b"no space left" if self.lay_status else b"")


class Agent:
    """An agent program: a coroutine that is given the gateway's folder and the call, and says how it ended."""

    def __init__(self, folder: Path, act: Callable[[Path, Call], Awaitable[ExecResult]]) -> None:
        self.folder = folder
        self.act = act
        self.ended = False

    async def __call__(self, call: Call) -> ExecResult:
        """Run it; `ended` says afterwards that nothing of it goes on."""
        try:
            return await self.act(self.folder, call)
        finally:
            self.ended = True
