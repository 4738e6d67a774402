"""Our own minimal agent: a briefing, the arm's prompt, then tools until it submits or has nothing more to call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import SeatError
from harness.messages import Completion, Message, Request, ToolCall, ToolSpec
from harness.seats import options
from harness.seats.bounded import clipped
from harness.seats.desk import Desk
from harness.seats.extraction import valid_text
from harness.seats.history import History
from harness.seats.showing import prompt, round_view
from harness.seats.text_calls import calls_in
from harness.seats.tool_specs import TOOLS, check_arguments
from harness.seats.tools import OUTPUT_BYTES, TIMEOUT_S, SeatTools
from harness.values import Declared

__all__ = ["BRIEFING", "GRAMMAR", "LoopSeat", "briefing"]

BRIEFING = """\
You work alone in a Linux workspace, through tools. The next message is your task. Its files are in /workspace, and \
what /workspace holds when you stop is your result. Nobody can answer a question. There is no network.

Look before you change something, and test what you made where you can. When the work is done, call submit."""

GRAMMAR = """\
To call a tool, write a block like this one, with nothing else in it:

```json
{"tool": "NAME", "arguments": {"NAME OF ARGUMENT": "VALUE"}}
```

The results are in the next message. The tools:"""

RESULT = "What counts in the end is the file /workspace/{file}."
NUDGE = "No tool was called. Go on with a tool, or call submit if the work is done."
NUDGE_LENGTH = "The answer reached its greatest length before it called a tool. Answer shorter, and call a tool."
_NUDGES = 2
_CALLS = 8
_TEXT = 64 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wish:
    """A call that the model wants: natively, or written in its text; or what is wrong with how it was written."""

    name: str
    arguments: object
    id: str | None = None
    problem: str | None = None


class LoopSeat:
    """
    A tool-using agent of ours. It is over when it submits, when it has called no tool three times in a row, or after
    `max_turns` answers (1 to 1000).

    `tools` is the part of the rules' tools that it has, None for all; `tool_timeout_s` (up to 3600) and `output_bytes`
    (256 bytes to 1 MiB) bound each call of a tool. `file` is the file below `/workspace` that is judged, for tasks
    whose instruction doesn't name it. `native` offers the tools by the provider's own means; without it, for models
    that have no such means, the briefing tells how to write a call. Calls written in the text are understood either
    way. Raises `PluginError` for an option that can't be used.
    """

    name = "loop"

    def __init__(
        self,
        *,
        max_turns: int = 40,
        tools: Sequence[str] | None = None,
        tool_timeout_s: float = TIMEOUT_S,
        output_bytes: int = OUTPUT_BYTES,
        file: str | None = None,
        native: bool = True,
    ) -> None:
        self.max_turns = options.whole(self.name, "max_turns", max_turns, low=1, high=1000)
        self.tools = tuple(TOOLS) if tools is None else options.names(self.name, "tools", tools, known=TOOLS)
        self.tool_timeout_s = options.seconds(self.name, "tool_timeout_s", tool_timeout_s, high=3600)
        self.output_bytes = options.whole(self.name, "output_bytes", output_bytes, low=256, high=1 << 20)
        self.file = None if file is None else options.file_path(self.name, "file", file)
        self.native = options.flag(self.name, "native", native)

    def options(self) -> Mapping[str, Any]:
        """The options as a registration pins them."""
        return {
            "max_turns": self.max_turns,
            "tools": list(self.tools),
            "tool_timeout_s": self.tool_timeout_s,
            "output_bytes": self.output_bytes,
            "file": self.file,
            "native": self.native,
        }

    async def sit(self, desk: Desk) -> Declared:
        """Work at `desk` until done. Raises `SeatError` when the rules leave no tool."""
        rules = replace(desk.rules, tools=desk.rules.tools & set(self.tools))
        tools = SeatTools(
            desk.workspace,
            rules,
            helper=desk.helper,
            timeout_s=self.tool_timeout_s,
            output_bytes=self.output_bytes,
            transcript=desk.transcript,
        )
        if not tools.specs():
            raise SeatError(f"the rules leave the loop seat no tool: it has {self.tools}, they {sorted(rules.tools)}")
        return await _Session(self, desk, tools).through()


class _Session:
    """One cell's conversation."""

    def __init__(self, seat: LoopSeat, desk: Desk, tools: SeatTools) -> None:
        self._seat = seat
        self._desk = desk
        self._tools = tools
        self._offered = tools.specs() if seat.native else ()
        head = Message(role="system", content=briefing(tools.specs(), native=seat.native, file=seat.file))
        task = Message(role="user", content=prompt(desk, round_view(desk)))
        self._history = History(start=(head, task), decoding=desk.decoding, tools=self._offered)
        self._silent = 0

    async def through(self) -> Declared:
        """Turn by turn, until one of the ends."""
        for turn in range(1, self._seat.max_turns + 1):
            reply = await self._ask(turn)
            wishes = _wishes(reply, turn)
            results = _merged([await self._result(wish, number) for number, wish in enumerate(wishes)])
            if self._tools.submitted is not None:
                note = clipped(self._tools.submitted, 200)
                return Declared(note=f"submitted in turn {turn}" + (f": {note}" if note else ""))
            self._silent = 0 if wishes else self._silent + 1
            if self._silent > _NUDGES:
                return Declared(note=f"called no tool {self._silent} times in a row, up to turn {turn}")
            if not wishes:
                results = [Message(role="user", content=NUDGE_LENGTH if reply.stop == "length" else NUDGE)]
            self._history.add(_answer(reply, wishes), results)
        return Declared(note=f"used all of its {self._seat.max_turns} turns")

    async def _ask(self, turn: int) -> Completion:
        fitted = self._history.fitted()
        if fitted.shortened or fitted.dropped or fitted.cut:
            self._desk.transcript.add(
                "note", turn=turn, shortened=fitted.shortened, dropped=fitted.dropped, cut=fitted.cut
            )
        return await self._desk.model.complete(
            Request(
                messages=fitted.messages,
                decoding=self._desk.decoding,
                seed=self._desk.seeds.seed(turn),
                tools=self._offered,
            )
        )

    async def _result(self, wish: _Wish, number: int) -> Message:
        """What the model is answered to one call; after a submission and past the eighth, that it was not done."""
        if self._tools.submitted is not None:
            text = "not done: the work was submitted"
        elif number >= _CALLS:
            text = f"not done: one answer may call {_CALLS} tools at most"
        elif wish.problem is not None:
            text = f"failed: {wish.problem}"
        else:
            text = (await self._tools.call(wish.name, wish.arguments)).text
        if wish.id is None:
            return Message(role="user", content=f"Result of {_plain_name(wish.name)}:\n{text}")
        return Message(role="tool", content=text, tool_call_id=wish.id, tool_name=_plain_name(wish.name))


def briefing(tools: Sequence[ToolSpec], *, native: bool, file: str | None = None) -> str:
    """The system message: frozen text, and for models without tools of their own, how to call the ones there are."""
    text = BRIEFING if file is None else f"{BRIEFING} {RESULT.format(file=file)}"
    if native:
        return text
    lines = [
        f"- {tool.name}({', '.join(tool.parameters['properties'])}): {tool.description}"
        + "".join(f" {key}: {item['description']}" for key, item in tool.parameters["properties"].items())
        for tool in tools
    ]
    return "\n".join([text, "", GRAMMAR, "", *lines])


def _wishes(reply: Completion, turn: int) -> list[_Wish]:
    """The native calls, or if there are none, those in the text. Ids are ours: a server's may repeat or be missing."""
    if reply.tool_calls:
        return [
            _Wish(
                name=call.name,
                arguments=call.arguments,
                id=f"call-{turn}-{number}",
            )
            for number, call in enumerate(reply.tool_calls, start=1)
        ]
    return [_Wish(name=call.name, arguments=call.arguments, problem=call.problem) for call in calls_in(reply.text)]


def _merged(results: Sequence[Message]) -> list[Message]:
    """Results of calls in the text as one message: a chat's roles take turns. Native calls are answered one by one."""
    texts = [message.content for message in results if message.role == "user"]
    if not texts:
        return list(results)
    return [Message(role="user", content="\n\n".join(texts))]


def _answer(reply: Completion, wishes: Sequence[_Wish]) -> Message:
    """The model's answer as it is sent back: nothing in it that a server or a canonical file could choke on."""
    calls = tuple(_sent_back(wish, wish.id) for wish in wishes if wish.id is not None)
    text = valid_text(reply.text) if len(reply.text) <= _TEXT else clipped(reply.text, _TEXT)
    return Message(role="assistant", content=text or ("" if calls else "(no text)"), tool_calls=calls)


def _sent_back(wish: _Wish, call_id: str) -> ToolCall:
    """A call with its name and arguments if they were right, else under a plain name and without arguments."""
    try:
        checked = check_arguments(wish.name, wish.arguments) if wish.name in TOOLS else {}
    except ValueError:
        checked = {}
    given = wish.arguments if isinstance(wish.arguments, Mapping) else {}
    arguments = {key: value for key, value in checked.items() if key in given}
    return ToolCall(id=call_id, name=_plain_name(wish.name), arguments=arguments, raw=json.dumps(arguments))


def _plain_name(name: str) -> str:
    return name if name in TOOLS else "unknown_tool"
