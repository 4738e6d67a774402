"""
A real agent program, mini-swe-agent, in its sealed workspace: it reaches one model and nothing else, what it spent is
what the engine counted, and it ends when it is to end. The experiment is that of examples/agents.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from arms.text import plain
from cells.sitting import sit_to_the_end
from harness.boundary import MeteredModel, WatchedWorkspace
from harness.clock import SystemClock
from harness.experiment import load_experiment
from harness.messages import Completion, Decoding, ModelSpec
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.models.local import LocalProvider
from harness.models.local_engine import Engine
from harness.plugins import load
from harness.seats.command import CommandSeat
from harness.seats.desk import Desk
from harness.seeds import SeedBook
from harness.transcript import Transcript, read_transcript
from harness.values import Declared, End, Halt, Usage
from harness.walls import Walls
from tests.live.rooms import alive, wait_until
from tests.seats.desks import RULES, FakeModel, task

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(400)]

EXAMPLE = load_experiment(Path(__file__).parents[2] / "examples" / "agents")
LOCAL = ModelSpec(name="m", provider="local", model="smollm2-135m-instruct")


@pytest.fixture
def anyio_backend() -> str:
    """The seat is tested on both loops with fakes; one is enough for the program."""
    return "asyncio"


@pytest.fixture(params=["docker", "bubblewrap"])
def backend(request) -> Any:
    """Each backend that workspaces come from."""
    return load("workspaces", request.param)()


class Sitting:
    """One sitting of the example's agent: its room, its meter, its END and its transcript."""

    def __init__(self, room: Any, path: Path, bounds: Bounds) -> None:
        self.room = room
        self.path = path
        self.scope = Scope(name="cell", bounds=bounds, ledger=Ledger())
        self.meter = Meter([self.scope], clock=SystemClock(), rates=None)

    async def play(self, model: Any, instruction: str, **options: Any) -> End:
        """Sit to the end."""
        with Transcript(self.path) as transcript:
            desk = Desk(
                cell="agents|slug|plain|none|m|1",
                task=task(instruction=instruction),
                extras="none",
                arm=plain(),
                model=MeteredModel(model, self.meter, transcript, served="fake"),
                decoding=Decoding(num_predict=64, num_ctx=4096),
                workspace=WatchedWorkspace(self.room, self.meter),
                rules=RULES,
                seeds=SeedBook("tests", "cell"),
                transcript=transcript,
            )
            seat = CommandSeat(**{**EXAMPLE.seat.options, **options})
            return await sit_to_the_end(seat, desk, self.meter, clock=SystemClock())

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The transcript's events of a kind."""
        return [event for event in read_transcript(self.path) if event["event"] == kind]

    async def read(self, path: str) -> str:
        """A file of the room."""
        found = await self.room.exec(["cat", path])
        return found.stdout.decode()


@asynccontextmanager
async def sitting(backend: Any, tmp_path: Path, bounds: Bounds | None = None) -> AsyncIterator[Sitting]:
    """A room behind the walls of the example, network `gateway`, and the sitting in it."""
    walls = Walls(image=EXAMPLE.workspace.image, network="gateway")
    async with backend.open(walls, run="test-command") as room:
        yield Sitting(room, tmp_path / "transcript.jsonl", bounds or Bounds(wall=300))


def says(command: str) -> Completion:
    """A model that wants a command run."""
    usage = Usage(input=100, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=20)
    return Completion(
        text=f"So:\n```bash\n{command}\n```\n", stop="stop", usage=usage, served_model="fake", latency_s=0.0
    )


PEEK = """
import os, socket
for name, path in (("address", "1.1.1.1:53"), ("gateway", "127.0.0.1:8081")):
    host, port = path.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        print(name, "reached")
    except OSError as error:
        print(name, type(error).__name__, error.errno)
print("keys", sorted(value for name, value in os.environ.items() if "KEY" in name))
"""


async def test_an_agent_does_its_work(backend, tmp_path, monkeypatch) -> None:
    """It runs commands, leaves files and ends; the room has no network and no key, and its model is the one it gets."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-the-harness")
    token = f"left-{time.monotonic_ns()}"
    model = FakeModel(
        says("printf 'x = 1\\n' > solution.py && cat solution.py"),
        says(f"python3 -c '{PEEK}'"),
        says(f"(setsid python3 -c 'import time; time.sleep(300)' {token} >/dev/null 2>&1 &) ; echo left"),
        says("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    )
    async with sitting(backend, tmp_path) as sat:
        end = await sat.play(model, 'Write $(echo solution.py), please: "it\'s" {seat.model}')
        assert end == Declared(note="mini ended with exit status 0"), sat.events("program")
        assert await sat.read("solution.py") == "x = 1\n"
        assert await wait_until(lambda: not alive(token))
    seen = [request.messages[-1].content for request in model.requests]
    assert seen[0].strip() == 'Write $(echo solution.py), please: "it\'s" {seat.model}'
    assert "Exit status 0\nx = 1" in seen[1]
    assert "address reached" not in seen[2]
    assert "gateway reached" in seen[2]
    assert "keys ['the-gateway-needs-no-key']" in seen[2]
    assert "canary" not in sat.path.read_text("utf-8")
    (program,) = sat.events("program")
    assert program["gateway"] == {"served": 4, "refused": 0, "failed": 0}
    assert program["left_running"] != 0 or backend.name == "bubblewrap"
    assert sat.meter.spend().usage == Usage(input=400, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=80)


async def test_the_meter_is_the_engines_own_count(backend, tmp_path, monkeypatch) -> None:
    """
    A real local model, whose engine counts by itself beside what it reports: the meter has the same figures, and so
    has the agent. The token budget ends it within one call.
    """
    counted: list[tuple[int, int]] = []
    plain_ask = Engine.ask

    async def ask(engine: Engine, body: Any, *, num_ctx: int) -> Any:
        answer = await plain_ask(engine, body, num_ctx=num_ctx)
        timings = json.loads(answer.reply)["timings"]
        counted.append((timings["prompt_n"], timings["predicted_n"]))
        return answer

    monkeypatch.setattr(Engine, "ask", ask)
    bound = 300
    async with LocalProvider().open(LOCAL) as model, sitting(backend, tmp_path, Bounds(tokens=bound, wall=300)) as sat:
        end = await sat.play(model, "Print hello.", files=_patient(EXAMPLE.seat.options["files"]))
        assert isinstance(end, Halt), (end, sat.events("program"))
    spend = sat.meter.spend()
    assert (end.limit, end.spent, spend.estimated) == ("tokens", float(spend.charged_tokens), False)
    assert spend.usage == Usage(
        input=sum(prompt for prompt, _ in counted), cache_write_5m=0, cache_write_1h=0, cache_read=0,
        output=sum(answer for _, answer in counted),
    )  # fmt: skip
    assert spend.calls == len(counted) >= 2
    assert sum(map(sum, counted[:-1])) < bound <= sum(map(sum, counted)) == spend.charged_tokens
    assert [sum(event["usage"].values()) for event in sat.events("completion")] == list(map(sum, counted))
    assert sat.events("program")[0]["stopped"] is True


def _patient(files: dict[str, str]) -> dict[str, str]:
    """The example's agent, which goes on however often the model's answer has no command in it."""
    return {name: text.replace("format_errors: 3", "format_errors: 0") for name, text in files.items()}


async def test_a_program_that_never_ends_is_ended(backend, tmp_path) -> None:
    """It ignores signals, forks away and sleeps: the wall's budget ends it, and nothing of it lives on."""
    hostile = (
        "import os, signal, time\n"
        "for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(name, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        break\n"
        "while True: time.sleep(8765)\n"
    )
    token = f"hostile-{time.monotonic_ns()}"
    async with sitting(backend, tmp_path, Bounds(wall=3)) as sat:
        started = time.monotonic()
        end = await sat.play(FakeModel("x"), "Run.", argv=["python3", "-c", hostile, token])
        took = time.monotonic() - started
        assert isinstance(end, Halt)
        assert (end.limit, sat.events("program")[0]["stopped"]) == ("wall", True)
        assert took < 60
        assert await wait_until(lambda: not alive(token))
        assert (await sat.room.exec(["true"])).status == 0


async def test_an_image_without_the_program_is_void(backend, tmp_path) -> None:
    """The seat's plain image has no such program: the message says how to get one."""
    async with backend.open(Walls(image="proctor-seat", network="gateway"), run="test-command") as room:
        sat = Sitting(room, tmp_path / "transcript.jsonl", Bounds(wall=60))
        end = await sat.play(FakeModel("x"), "Run.")
    assert end.kind == "VOID"
    assert "the image has no program 'mini'" in end.detail
