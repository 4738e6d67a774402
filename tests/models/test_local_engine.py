"""The embedded engine's child process, with a stand-in for the engine inside it: what it survives, and what ends it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from harness.errors import ExperimentError, ModelServerError, RequestRefused, UsageError
from harness.models import local, local_engine
from harness.models.local import LocalProvider
from harness.models.local_engine import Engine
from tests.models.asking import ask, request, spec

pytestmark = pytest.mark.anyio

STAND_IN = '''
"""Answers as the last message says; it is no language model."""
import os, sys, time


class _Any:
    def __getattr__(self, name):
        value = _Any()
        setattr(self, name, value)
        return value


CommonParams = _Any


def _listen(path):
    """Counts a prompt as its last message's characters, and refuses an empty one, as the engine's own address does."""
    import http.server, json, socketserver, threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            size = len(asked["messages"][-1]["content"])
            known = self.path == "/v1/chat/completions/input_tokens"
            said = {"input_tokens": size} if size and known else {"error": {"code": 400, "message": "nothing to count"}}
            self.send_response(200 if size else 400)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_):
            pass

    server = socketserver.ThreadingUnixStreamServer(path, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Server:
    def __init__(self, params):
        print("noise on standard output", flush=True)
        if "broken" in params.model.path:
            raise RuntimeError("failed to load model")
        self.params = params
        if "listening" in params.model.path:
            _listen(params.hostnames[0])

    def handle_chat_completions(self, body):
        said = body["messages"][-1]["content"]
        if said == "die":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(9)
        if said == "hang":
            time.sleep(60)
        if said == "raise":
            raise RuntimeError("inner trouble")
        if said == "refuse":
            return {"error": {"code": 400, "type": "invalid_request_error", "message": "bad field"}}
        text = {"pid": str(os.getpid()), "policy": os.environ.get("OMP_WAIT_POLICY", ""),
                "window": str(self.params.n_ctx), "leak": os.environ.get("A_SECRET", "none")}.get(said, said)
        return {
            "model": "x",
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        }
'''


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the stand-in, where the child finds it before the real engine."""
    (tmp_path / "xllamacpp.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    assert not _children(), "a child was left behind"


def _children() -> list[str]:
    """Processes of ours that hold an engine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"harness.models.local_child" in words and parent == str(os.getpid()):
            found.append(folder.name)
    return found


def engine(path: str = "/m.gguf") -> Engine:
    """An engine on a file that the stand-in does not open."""
    return Engine(path=Path(path), threads=1, gpu_layers=0)


async def say(opened: Engine, text: str, *, num_ctx: int = 64) -> local_engine.Answer:
    """One exchange."""
    return await opened.ask({"messages": [{"role": "user", "content": text}]}, num_ctx=num_ctx)


async def said(opened: Engine, text: str, *, num_ctx: int = 64) -> str:
    """The text of the answer to `text`."""
    from harness.models.chat_wire import read_reply

    return read_reply((await say(opened, text, num_ctx=num_ctx)).reply).text


async def test_it_answers_whatever_the_engine_prints() -> None:
    """Noise on the child's standard output is no part of an answer; threads wait without spinning."""
    opened = engine()
    try:
        assert await said(opened, "hello") == "hello"
        assert await said(opened, "policy") == "passive"
    finally:
        await opened.stop()


async def test_one_child_serves_until_the_window_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is loaded once for each window, and the child is told nothing of our environment."""
    monkeypatch.setenv("A_SECRET", "hunter2")
    opened = engine()
    try:
        first = await said(opened, "pid")
        assert await said(opened, "pid") == first
        assert (await say(opened, "x")).load_s < 0.05
        assert await said(opened, "window", num_ctx=128) == "128"
        assert await said(opened, "pid", num_ctx=128) != first
        assert await said(opened, "leak", num_ctx=128) == "none"
    finally:
        await opened.stop()


async def test_a_child_that_dies_is_the_server_s_failure() -> None:
    """The death comes up with the child's last words, and the next call has a new child."""
    opened = engine()
    try:
        with pytest.raises(ModelServerError, match=r"the embedded engine died: .*the last words"):
            await say(opened, "die")
        assert await said(opened, "back") == "back"
    finally:
        await opened.stop()


async def test_a_child_that_was_killed_is_replaced_or_blamed() -> None:
    """Killed from outside between two calls, it costs one failed call at most."""
    opened = engine()
    try:
        os.kill(int(await said(opened, "pid")), signal.SIGKILL)
        try:
            assert await said(opened, "x") == "x"
        except ModelServerError:
            assert await said(opened, "x") == "x"
    finally:
        await opened.stop()


async def test_a_model_that_does_not_load_is_blamed() -> None:
    """The engine's own reason is in the message."""
    opened = engine("/broken.gguf")
    with pytest.raises(ModelServerError, match=r"did not start on broken\.gguf.*failed to load model"):
        await say(opened, "x")


async def test_errors_of_the_engine_come_back_as_errors() -> None:
    """An exception and a refusal inside the engine leave the child alive."""
    opened = engine()
    try:
        pid = await said(opened, "pid")
        assert "inner trouble" in str((await say(opened, "raise")).error)
        refused = (await say(opened, "refuse")).error
        assert refused is not None
        assert refused["message"] == "bad field"
        assert isinstance(local._blame(refused), RequestRefused)
        assert isinstance(local._blame({"message": "RuntimeError: inner"}), ModelServerError)
        assert await said(opened, "pid") == pid
    finally:
        await opened.stop()


async def count(opened: Engine, text: str) -> object:
    """What the engine says of a prompt's length."""
    return await opened.count({"messages": [{"role": "user", "content": text}]}, num_ctx=64)


async def test_a_prompt_is_counted_through_a_door_without_a_name() -> None:
    """The child alone can ask the engine's own address, and one that it refuses is an error, not a count."""
    opened = engine("/listening.gguf")
    try:
        assert await count(opened, "x" * 100_000) == 100_000
        assert await said(opened, "still here") == "still here"
        assert await count(opened, "") == {"code": 400, "message": "nothing to count"}
        assert await count(opened, "four") == 4
    finally:
        await opened.stop()


async def test_an_engine_that_can_t_be_asked_counts_nothing() -> None:
    """It is an error that blames the server, and the child goes on."""
    opened = engine()
    try:
        error = await count(opened, "x")
        assert error == {"message": "the engine's tokeniser can't be reached on this system"}
        assert isinstance(local._blame(error), ModelServerError)
        assert await said(opened, "still here") == "still here"
    finally:
        await opened.stop()


async def test_a_cancelled_call_kills_the_child() -> None:
    """A limit ends the call at once, and nothing goes on generating."""
    opened = engine()
    await said(opened, "warm")
    started = time.monotonic()
    with anyio.move_on_after(0.1) as scope:
        await say(opened, "hang")
    assert scope.cancelled_caught
    assert time.monotonic() - started < 10
    assert not _children()
    try:
        assert await said(opened, "again") == "again"
    finally:
        await opened.stop()


async def test_the_child_ends_with_its_parent() -> None:
    """When its input ends, as it does when we are killed, the child ends in the middle of an answer."""
    opened = engine()
    await said(opened, "warm")
    child = opened._child
    assert child is not None
    assert child.process.stdin is not None
    await child.process.stdin.send(b'{"messages": [{"role": "user", "content": "hang"}]}\n')
    await child.process.stdin.aclose()
    with anyio.fail_after(5):
        assert await child.process.wait() == 0
    await opened.stop()


def files(folder: Path) -> dict[str, str]:
    """Model files that can't be used, by what is wrong with them."""
    (folder / "none.gguf").write_bytes(b"not a model")
    (folder / "cut.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(8) + b"\x05" + bytes(7) + b"\x10\0")
    (folder / "huge.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(8) + b"\xff" * 8)
    (folder / "old.gguf").write_bytes(b"GGUF\x01\0\0\0" + bytes(16))
    (folder / "bare.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(16))
    return {
        "none": "begins with",
        "cut": "ends inside",
        "huge": "claims",
        "old": "version 1",
        "bare": "no chat template",
    }


@pytest.mark.parametrize("name", ["none", "cut", "huge", "old", "bare"])
async def test_a_file_that_is_no_model_is_refused(stand_in: Path, name: str) -> None:
    """It stops at the door with what is wrong, both when identified and when opened."""
    message = files(stand_in)[name]
    model = spec("local", f"file:{stand_in}/{name}.gguf")
    with pytest.raises(ExperimentError, match=message):
        await LocalProvider().identify(model)
    with pytest.raises(ExperimentError, match=message):
        await ask(LocalProvider(), model, request())


async def test_without_the_engine_the_command_to_get_it_is_named(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lacks the extra is told how to install it."""
    files(stand_in)
    monkeypatch.setattr(local, "ENGINE", "no_such_engine")
    with pytest.raises(UsageError, match=r'pip install "proctor\[local-model\]"'):
        await LocalProvider().identify(spec("local", f"file:{stand_in}/bare.gguf"))
