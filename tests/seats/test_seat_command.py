"""The seat of foreign agents: what its program is given, how it ends, and what is written down of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.sitting import sit_to_the_end
from harness.boundary import MeteredModel, WatchedWorkspace
from harness.clock import SystemClock
from harness.errors import SeatError, WorkspaceError
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.seats.command import HOME, NO_KEY, CommandSeat
from harness.values import Declared, End, FailedBoot, Halt, Void
from harness.walls import ExecResult, GatewayRules
from tests.fake_workspace import Call, ran
from tests.seats.agents import Agent, ask, counted
from tests.seats.desks import Bench, FakeModel, task

pytestmark = pytest.mark.anyio

Act = Callable[[Path, Call], Awaitable[ExecResult]]


class Stand:
    """A bench with an agent program in it, and the sitting of a command seat at it."""

    def __init__(self, bench: Callable[..., Bench], tmp_path: Path, act: Act, *answers: Any, **changes: Any) -> None:
        self.folder = tmp_path / "gateway"
        self.folder.mkdir()
        self.agent = Agent(self.folder, act)
        self.model = FakeModel(*(answers or (counted("hello"),)))
        self.bench = bench(self.model, programs={"sh": self.agent}, **changes)
        self.bench.room.gateway = self.folder

    @property
    def call(self) -> Call:
        """The one call of the agent's program."""
        (call,) = self.agent.calls
        return call

    @property
    def program(self) -> dict[str, Any]:
        """The event of the program."""
        (event,) = self.bench.events("program")
        return event

    async def sit(self, **options: Any) -> Declared:
        """The seat at the bare desk."""
        return await CommandSeat(**{"argv": ["agent"], **options}).sit(self.bench.desk)

    async def play(self, bounds: Bounds | None = None, **options: Any) -> tuple[End, Meter]:
        """The seat at a metered desk, to its END."""
        scope = Scope(name="cell", bounds=bounds or Bounds(), ledger=Ledger())
        meter = Meter([scope], clock=SystemClock(), rates=None)
        model = MeteredModel(self.model, meter, self.bench.transcript, served="fake")
        desk = replace(self.bench.desk, model=model, workspace=WatchedWorkspace(self.bench.room, meter))
        seat = CommandSeat(**{"argv": ["agent"], **options})
        return await sit_to_the_end(seat, desk, meter, clock=SystemClock(), grace_s=1), meter


async def one_chat(folder: Path, _call: Call) -> ExecResult:
    """An agent that asks once and ends."""
    status, body = await ask(folder, "hi")
    return ran(stdout=f"{status} {body['choices'][0]['message']['content']}\n".encode(), stderr=b"log\n")


async def idle(_folder: Path, _call: Call) -> ExecResult:
    """An agent that does nothing."""
    return ran()


async def test_a_program_reaches_the_model_and_is_written_down(bench, tmp_path) -> None:
    """It is declared when it ends by itself; its output, its status and the gateway's counts are in the transcript."""
    stand = Stand(bench, tmp_path, one_chat)
    assert (await stand.sit()).note == "agent ended with exit status 0"
    program = stand.program
    assert (program["stdout"], program["stderr"], program["status"]) == ("200 hello\n", "log\n", 0)
    assert (program["stopped"], program["timed_out"], program["left_running"]) == (False, False, 0)
    assert program["gateway"] == {"served": 1, "refused": 0, "failed": 0}
    assert stand.bench.names() == ["laid", "gateway", "program"]
    assert not (stand.folder / "model.sock").exists()


async def test_what_the_program_is_given(bench, tmp_path) -> None:
    """Placeholders are filled in words, variables and files; the wire's address and a key that is none are set."""
    stand = Stand(bench, tmp_path, idle)
    await stand.sit(
        argv=[
            "agent",
            "--model",
            "openai/{seat.model}",
            "-t",
            "{seat.instruction}",
            "{seat.instruction_file}",
            "{x}",
            "$y",
        ],
        model_name="m-1",
        instruction_file="in/task.md",
        files={"c.yaml": "base: {seat.base_url}\nt: '{{task}} {seat.home}'\n"},
        environment={"URL": "{seat.address}", "HOME": "/workspace"},
        key_variables=["LLM_API_KEY"],
    )
    assert stand.call.argv == ("agent", "--model", "openai/m-1", "-t", "Add.", f"{HOME}/in/task.md", "{x}", "$y")
    assert (stand.call.stdin, stand.call.cwd) == (b"", "/workspace")
    assert dict(stand.call.env) == {
        "HOME": "/workspace", "PYTHONDONTWRITEBYTECODE": "1", "URL": "http://127.0.0.1:8081",
        "OPENAI_BASE_URL": "http://127.0.0.1:8081/v1", "OPENAI_API_BASE": "http://127.0.0.1:8081/v1",
        "OPENAI_API_KEY": NO_KEY, "LLM_API_KEY": NO_KEY,
    }  # fmt: skip
    assert stand.agent.laid == {
        f"{HOME}/c.yaml": "base: http://127.0.0.1:8081/v1\nt: '{{task}} /tmp/home'\n",
        f"{HOME}/in/task.md": "Add.",
    }
    (laid,) = stand.bench.events("laid")
    assert (laid["prompt"], laid["instruction_file"], list(laid["files"])) == (
        "Add.",
        f"{HOME}/in/task.md",
        [f"{HOME}/c.yaml"],
    )
    assert stand.program["argv"][4] == "{seat.instruction}"


async def test_a_placeholder_in_the_prompt_is_text(bench, tmp_path) -> None:
    """What the task says is never filled in: a prompt that speaks of placeholders stays as it is."""
    stand = Stand(bench, tmp_path, idle, task=task(instruction="Say {seat.model} {seat.nothing}"))
    await stand.sit(argv=["agent", "{seat.instruction}"])
    assert stand.call.argv[1] == stand.agent.laid[f"{HOME}/instruction.md"] == "Say {seat.model} {seat.nothing}"


@pytest.mark.parametrize("text", ["x" * (128 << 10), "a\0b"])
async def test_a_prompt_that_is_no_word_is_refused(bench, tmp_path, text: str) -> None:
    """No kernel takes it as an argument: that is ours, and the file is the way."""
    stand = Stand(bench, tmp_path, idle, task=task(instruction=text))
    with pytest.raises(SeatError, match=r"seat\.instruction_file"):
        await stand.sit(argv=["agent", "{seat.instruction}"])
    assert (await stand.sit()).note == "agent ended with exit status 0"


@pytest.mark.parametrize(("wire", "path", "variable"), [
    ("anthropic", "", "ANTHROPIC_BASE_URL"), ("ollama", "", "OLLAMA_HOST"), ("openai", "/v1", "OPENAI_BASE_URL"),
])  # fmt: skip
async def test_one_wire_is_spoken(bench, tmp_path, wire: str, path: str, variable: str) -> None:
    """The gateway speaks the seat's wire and no other, whatever the policy would allow."""
    heard = {}

    async def both(folder: Path, call: Call) -> ExecResult:
        heard["openai"] = (await ask(folder, "hi"))[0]
        heard["ollama"] = (await ask(folder, "hi", path="/api/chat"))[0]
        return ran()

    stand = Stand(bench, tmp_path, both)
    await stand.sit(wire=wire)
    assert stand.call.env[variable] == f"http://127.0.0.1:8081{path}"
    assert (heard["openai"] == 403, heard["ollama"] == 403) == (wire != "openai", wire != "ollama")


async def test_a_wire_that_the_policy_leaves_out_is_not_spoken(bench, tmp_path) -> None:
    """The policy's wires stand above the seat's: then nothing is run."""
    stand = Stand(bench, tmp_path, idle, gateway=GatewayRules(wires=("ollama",)))
    with pytest.raises(SeatError, match="speaks ollama, and the seat 'openai'"):
        await stand.sit()
    assert stand.bench.room.calls == []


async def test_only_the_named_model_is_served(bench, tmp_path) -> None:
    """Any other name is refused, and no call is made of it."""

    async def other(folder: Path, _call: Call) -> ExecResult:
        return ran(status=(await ask(folder, "hi", model="gpt-5"))[0] // 4)

    stand = Stand(bench, tmp_path, other)
    assert (await stand.sit()).note == "agent ended with exit status 100, expected 0"
    assert stand.model.requests == []
    assert stand.program["gateway"] == {"served": 0, "refused": 1, "failed": 0}


async def test_the_wall_ends_a_program_that_runs_for_ever(bench, tmp_path) -> None:
    """A limit cancels it: HALT, nothing of it goes on, the gateway is gone, and its event says that it was stopped."""

    async def forever(folder: Path, _call: Call) -> ExecResult:
        await ask(folder, "hi")
        await anyio.sleep_forever()
        raise AssertionError

    stand = Stand(bench, tmp_path, forever)
    end, _ = await stand.play(Bounds(wall=0.5))
    assert isinstance(end, Halt)
    assert (end.limit, stand.agent.ended) == ("wall", True)
    assert (stand.program["stopped"], stand.program["status"], stand.program["gateway"]["served"]) == (True, None, 1)
    assert not (stand.folder / "model.sock").exists()


async def test_tokens_end_it_within_one_call(bench, tmp_path) -> None:
    """A budget that lets two calls through: the third never reaches the model, however the program goes on."""
    statuses = []

    async def greedy(folder: Path, _call: Call) -> ExecResult:
        while True:
            statuses.append((await ask(folder, "hi"))[0])

    stand = Stand(bench, tmp_path, greedy)
    end, meter = await stand.play(Bounds(tokens=30))
    assert isinstance(end, Halt)
    assert (end.limit, end.spent, len(stand.model.requests)) == ("tokens", 30.0, 2)
    assert meter.spend().usage.total == 30
    assert statuses[:1] == [200]


async def test_a_program_that_never_asked_failed_to_boot(bench, tmp_path) -> None:
    """Whatever its status: there was no behaviour of the subject's."""
    stand = Stand(bench, tmp_path, idle)
    end, _ = await stand.play()
    assert isinstance(end, FailedBoot)


@pytest.mark.parametrize("status", [1, 127, 137])
async def test_a_status_is_the_programs_own_behaviour(bench, tmp_path, status: int) -> None:
    """One that asked and then crashed is judged by what it left; a status can't make a try void."""

    async def crash(folder: Path, _call: Call) -> ExecResult:
        await ask(folder, "hi")
        return ran(status=status)

    stand = Stand(bench, tmp_path, crash)
    end, _ = await stand.play(success_statuses=[0, 3])
    assert end == Declared(note=f"agent ended with exit status {status}, expected 0 or 3")


async def test_its_own_time_ends_it(bench, tmp_path) -> None:
    """`timeout_s` is the program's own limit: what it left is judged."""

    async def slow(folder: Path, _call: Call) -> ExecResult:
        await ask(folder, "hi")
        await anyio.sleep_forever()
        raise AssertionError

    stand = Stand(bench, tmp_path, slow)
    end, _ = await stand.play(timeout_s=0.5)
    assert end == Declared(note="agent was ended after 0.5 s, its timeout_s")
    assert (stand.program["timed_out"], stand.program["stopped"]) == (True, False)


async def test_a_missing_program_is_nobodys_behaviour(bench, tmp_path) -> None:
    """The image lacks it: VOID, with the next step; neither files are laid nor the gateway served."""
    stand = Stand(bench, tmp_path, idle)
    end, _ = await stand.play(argv=["other"])
    assert isinstance(end, Void)
    assert (end.cause, "no program 'other'" in end.detail, "--python-package" in end.detail) == ("seat", True, True)
    assert stand.agent.laid == {}


async def test_an_unknown_ending_is_void(bench, tmp_path) -> None:
    """Nothing may be concluded from a status that nobody knows."""

    async def unknown(folder: Path, _call: Call) -> ExecResult:
        await ask(folder, "hi")
        return ran(status=None)

    stand = Stand(bench, tmp_path, unknown)
    end, _ = await stand.play()
    assert isinstance(end, Void)
    assert (end.cause, "is not known" in end.detail) == ("workspace", True)


async def test_a_workspace_that_takes_no_files_is_void(bench, tmp_path) -> None:
    """Where the prompt can't be laid the program isn't run."""
    stand = Stand(bench, tmp_path, idle)
    stand.agent.lay_status = 1
    with pytest.raises(SeatError, match=r"the program's files can't be laid in /tmp/home: no space left"):
        await stand.sit()
    assert stand.agent.calls == []


async def test_a_fence_without_a_gateway_is_void(bench, tmp_path) -> None:
    """A freeze refuses it; a seat that sits there nevertheless says so."""
    stand = Stand(bench, tmp_path, idle)
    stand.bench.room.gateway = None
    with pytest.raises(SeatError, match='network = "gateway"'):
        await stand.sit()


async def test_a_socket_that_cant_be_made_is_void(bench, tmp_path) -> None:
    """A folder that is gone is the workspace's fault."""
    stand = Stand(bench, tmp_path, idle)
    stand.folder.rmdir()
    with pytest.raises(WorkspaceError, match="the gateway's socket can't be made"):
        await stand.sit()


async def test_output_is_capped(bench, tmp_path) -> None:
    """A flood is cut where the seat says, for either output, and the cut is told; stray bytes stay text."""

    async def flood(folder: Path, _call: Call) -> ExecResult:
        await ask(folder, "hi")
        return ran(stdout=b"x" * 5000, stderr=b"\xff\0" + b"y" * 5000)

    stand = Stand(bench, tmp_path, flood)
    _, meter = await stand.play(output_bytes=256)
    assert (stand.call.output_bytes, stand.program["stdout"]) == (256, "x" * 256)
    assert stand.program["stderr"].startswith("\ufffd\ufffdy")
    assert (stand.program["stdout_cut"], stand.program["stderr_cut"]) == (True, True)
    assert meter.spend().output_bytes == 512 + len(b"hello")


async def test_what_it_left_running_is_ended_and_counted(bench, tmp_path, monkeypatch) -> None:
    """Its children are swept before the seat declares, while nothing else happens."""
    stand = Stand(bench, tmp_path, one_chat)
    swept = []

    async def sweep() -> int:
        swept.append((stand.folder / "model.sock").exists())
        return 7

    monkeypatch.setattr(stand.bench.room, "sweep", sweep)
    await stand.sit()
    assert (swept, stand.program["left_running"]) == ([True], 7)
