"""A desk to test seats at: a model that answers from a list, a fake workspace, and a transcript that is read back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from arms.text import plain
from harness.messages import Completion, Decoding, Request, ToolCall
from harness.seats.desk import Desk
from harness.seeds import SeedBook
from harness.tasks.task import OpenHalf
from harness.transcript import Transcript, read_transcript
from harness.tree import Tree
from harness.values import Usage
from harness.views import Fact, PublicReading
from harness.walls import ToolRules
from tests.fake_workspace import FakeWorkspace

TOOLS = frozenset({"run", "read", "write", "edit", "list", "search", "submit"})
RULES = ToolRules(tools=TOOLS, readable=("/workspace",), writable=("/workspace",))


def said(text: str = "", *calls: tuple[str, Any]) -> Completion:
    """A model's answer: its text, and tool calls as (name, arguments)."""
    made = tuple(ToolCall(id=f"c{n}", name=name, arguments=args) for n, (name, args) in enumerate(calls))
    stop = "tool_calls" if made else "stop"
    return Completion(text=text, stop=stop, usage=Usage.zero(), served_model="fake", latency_s=0.0, tool_calls=made)


class FakeModel:
    """Answers in order, the last one again and again. An answer may be text, a Completion, an error, or a callable."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        """The next answer."""
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if callable(answer):
            answer = answer(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        return said(answer) if isinstance(answer, str) else answer

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1].content for request in self.requests]


class FakeCheck:
    """A public tier of `total` tests: how many a candidate passes is asked of `passed`. Keeps what it was given."""

    def __init__(self, passed: Callable[[str], int], total: int = 3) -> None:
        self.passed = passed
        self.total = total
        self.codes: list[str] = []

    async def __call__(self, code: str) -> PublicReading:
        """What the tier says."""
        self.codes.append(code)
        passed = self.passed(code)
        accepted = passed == self.total
        facts = () if accepted else (Fact(call="add(1, 2)", expected="3"),)
        reading = "PASS" if accepted else "FAIL"
        return PublicReading(reading=reading, accepted=accepted, passed=passed, total=self.total, facts=facts)


def task(**changes: Any) -> OpenHalf:
    """A small task."""
    fields = {"benchmark": "toy", "name": "add", "instruction": "Add.", "details": {"entry_point": "add"}}
    return OpenHalf(**{**fields, **changes})


class Bench:
    """A desk and what a test looks at: `desk`, `model`, `room`, and `events()` of the transcript."""

    def __init__(self, tmp_path: Any, model: Any, *, files: dict[str, str] | None = None, **changes: Any) -> None:
        self.model = model
        self.room = FakeWorkspace(files or {}, programs=changes.pop("programs", None))
        self.transcript = Transcript(tmp_path / "transcript.jsonl")
        half = changes.pop("task", None) or task(environment=Tree.of(files or {}))
        base = Desk(
            cell="toy|add|plain|none|fake|1",
            task=half,
            extras="none",
            arm=plain(),
            model=model,
            decoding=Decoding(num_predict=64, num_ctx=4096),
            workspace=self.room,
            rules=RULES,
            seeds=SeedBook("tests", "cell"),
            transcript=self.transcript,
        )
        self.desk = replace(base, **changes)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The transcript's events, of one kind or all."""
        return [event for event in read_transcript(self.transcript.path) if kind in {None, event["event"]}]

    def names(self) -> list[str]:
        """The kinds of the transcript's events, in order."""
        return [event["event"] for event in self.events()]


def fenced(code: str) -> str:
    """A reply with one code block."""
    return f"Here:\n```python\n{code}\n```"


def bare(codes: Iterable[str]) -> list[str]:
    """Replies with one code block each."""
    return [fenced(code) for code in codes]
