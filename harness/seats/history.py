"""A conversation that is kept within the model's window, so that the window's end is never what decides a cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from harness.messages import Decoding, Message, ToolCall, ToolSpec

__all__ = ["Fitted", "History"]

_BYTES_PER_TOKEN = 2
"""A cautious guess: code and English have three bytes a token and more."""

_MESSAGE = 32
"""Bytes that a message's frame is counted as."""

_SHORT = 200
_LEFT_OUT = "[left out: an earlier result]"
_CUT = "\n[cut: the rest does not fit into the window]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """What is sent: of how many turns results are shortened, how many turns are left out, whether the last is cut."""

    messages: tuple[Message, ...]
    shortened: int = 0
    dropped: int = 0
    cut: bool = False


@dataclass(kw_only=True)
class History:
    """
    The fixed messages at the start, and the turns since: each a model's answer and what it was answered.

    What doesn't fit the window is left out by one rule: first the results of the oldest turns, then the oldest turns
    as a whole, at last the end of the newest texts. The start always stays.
    """

    start: tuple[Message, ...]
    decoding: Decoding
    tools: Sequence[ToolSpec] = ()
    turns: list[tuple[Message, ...]] = field(default_factory=list)

    def add(self, answer: Message, results: Iterable[Message]) -> None:
        """One turn more."""
        self.turns.append((answer, *results))

    def fitted(self) -> Fitted:
        """The conversation as it is sent."""
        room = self._room()
        turns = list(self.turns)
        sizes = [_turn_size(turn) for turn in turns]
        shortened, total = 0, sum(sizes)
        while total > room and shortened < len(turns) - 1:
            answer, *results = turns[shortened]
            turns[shortened] = (answer, *map(_shortened, results))
            total -= sizes[shortened]
            sizes[shortened] = _turn_size(turns[shortened])
            total += sizes[shortened]
            shortened += 1
        dropped = 0
        while total > room and dropped < len(turns) - 1:
            total -= sizes[dropped]
            dropped += 1
        left = turns[dropped:]
        if total > room and left:
            left = [_cut_to(left[-1], room)]
        messages = (*self.start, *(message for turn in left for message in turn))
        return Fitted(messages=messages, shortened=max(0, shortened - dropped), dropped=dropped, cut=total > room)

    def _room(self) -> int:
        """Bytes that the turns may take."""
        tokens = self.decoding.num_ctx - self.decoding.num_predict
        tools = sum(len(f"{tool.name}{tool.description}{dict(tool.parameters)}".encode()) for tool in self.tools)
        return tokens * _BYTES_PER_TOKEN - tools - sum(map(_size, self.start))


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(call.raw.encode()) + _MESSAGE for call in message.tool_calls)
    return len(message.content.encode()) + calls + _MESSAGE


def _turn_size(turn: tuple[Message, ...]) -> int:
    return sum(map(_size, turn))


def _shortened(message: Message) -> Message:
    return message if len(message.content) <= _SHORT else replace(message, content=_LEFT_OUT)


def _cut_to(turn: tuple[Message, ...], room: int) -> tuple[Message, ...]:
    """The newest turn with each of its texts cut to an equal share of the room, but never to less than `_SHORT`."""
    calls = sum(len(message.tool_calls) for message in turn)
    parts = len(turn) + sum(1 for message in turn if message.tool_calls)
    share = max(_SHORT, (room - calls * _MESSAGE) // parts - _MESSAGE - len(_CUT))
    return tuple(
        replace(
            message,
            content=_cut(message.content, share),
            tool_calls=tuple(_lighter(call, share // len(message.tool_calls)) for call in message.tool_calls),
        )
        for message in turn
    )


def _cut(text: str, most: int) -> str:
    data = text.encode()
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + _CUT


def _lighter(call: ToolCall, most: int) -> ToolCall:
    """A call whose texts are short, if it is long."""
    if len(call.raw.encode()) <= most or call.arguments is None:
        return call
    short = {key: item[:_SHORT] if isinstance(item, str) else item for key, item in call.arguments.items()}
    return replace(call, arguments=short, raw=json.dumps(short))
