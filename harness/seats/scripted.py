"""The seat that does what it was told beforehand: for tests, controls and benchmarks, and to show that limits hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio.lowlevel

from harness.errors import PluginError, unknown_name
from harness.messages import Message, Request
from harness.seats import options
from harness.seats.desk import Desk
from harness.seats.tool_specs import TOOLS
from harness.seats.tools import SeatTools
from harness.values import Declared

__all__ = ["ScriptedSeat"]

_KINDS = ("tool", "ask", "write")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """Call a tool. The arguments are sent as they are, right or wrong."""

    tool: str
    arguments: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ask:
    """Ask the model once; what it answers is not looked at."""

    text: str


_Step: TypeAlias = _Use | _Ask


class ScriptedSeat:
    """
    Performs `steps` through the tools that every seat has, then declares itself done.

    A step is `{tool = NAME, arguments = {...}}`, `{ask = TEXT}`, or `{write = {PATH = TEXT, ...}}`. Without a step the
    seat is null: it declares at once and never calls the model. With `loop_forever` it then asks the model for ever
    and swallows every `Exception`, as an agent may; with `catch_everything` every `BaseException` too, cancellation
    among them, and only closing its coroutine or killing its process ends it. Raises `PluginError` for a bad option.
    """

    name = "scripted"

    def __init__(
        self,
        *,
        steps: Sequence[Mapping[str, Any]] = (),
        loop_forever: bool = False,
        catch_everything: bool = False,
    ) -> None:
        if not isinstance(steps, (list, tuple)):
            raise PluginError(f"seat {self.name!r}: steps is {steps!r}: expected a list of steps")
        self._given = tuple(steps)
        self._steps = tuple(made for number, step in enumerate(steps, start=1) for made in _steps(number, step))
        self.loop_forever = options.flag(self.name, "loop_forever", loop_forever)
        self.catch_everything = options.flag(self.name, "catch_everything", catch_everything)
        if self.catch_everything and not self.loop_forever:
            raise PluginError(f"seat {self.name!r}: catch_everything is for a seat with loop_forever")

    @property
    def needs_model(self) -> bool:
        """Whether it calls the model at all: a seat that doesn't has not failed to boot when there was no call."""
        return self.loop_forever or any(isinstance(step, _Ask) for step in self._steps)

    def options(self) -> Mapping[str, Any]:
        """The options as a registration pins them."""
        return {
            "steps": [dict(step) for step in self._given],
            "loop_forever": self.loop_forever,
            "catch_everything": self.catch_everything,
        }

    async def sit(self, desk: Desk) -> Declared:
        """Do the steps at `desk`."""
        tools = SeatTools(desk.workspace, desk.rules, helper=desk.helper, transcript=desk.transcript)
        calls = 0
        for step in self._steps:
            match step:
                case _Use():
                    await tools.call(step.tool, step.arguments)
                case _Ask():
                    calls += 1
                    await _ask(desk, step.text, calls)
        while self.loop_forever:
            calls += 1
            await self._stubbornly(desk, calls)
        return Declared(note=f"{len(self._steps)} steps done" if self._steps else "null")

    async def _stubbornly(self, desk: Desk, call: int) -> None:
        """Ask once more, whatever comes of it."""
        try:
            await _ask(desk, "Go on.", call)
            await anyio.lowlevel.checkpoint()
        except GeneratorExit:
            raise  # Python itself lets no coroutine go on after it is closed
        except Exception:  # noqa: BLE001 - the agent that this stands for catches everything
            await anyio.lowlevel.checkpoint()
        except BaseException:
            if not self.catch_everything:
                raise
            # Without this the loop would never let anything else run, the one who ends it included.
            await anyio.lowlevel.cancel_shielded_checkpoint()


async def _ask(desk: Desk, text: str, call: int) -> None:
    messages = (Message(role="user", content=text),)
    await desk.model.complete(Request(messages=messages, decoding=desk.decoding, seed=desk.seeds.seed(call)))


def _steps(number: int, step: object) -> list[_Step]:
    """The steps that one entry of the list stands for, or `PluginError`."""
    where = f"seat 'scripted': step {number}"
    if not isinstance(step, Mapping):
        raise PluginError(f"{where} is {step!r}: expected a table with one of {', '.join(_KINDS)}")
    kinds = [kind for kind in _KINDS if kind in step]
    stray = [str(key) for key in step if key not in {*_KINDS, *(("arguments",) if kinds == ["tool"] else ())}]
    if stray:
        raise PluginError(f"{where}: {unknown_name('key', stray[0], [*_KINDS, 'arguments'])}")
    if len(kinds) != 1:
        raise PluginError(f"{where} has {' and '.join(kinds) or 'no kind'}: expected one of {', '.join(_KINDS)}")
    value = step[kinds[0]]
    if kinds == ["write"]:
        return _writes(where, value)
    if not isinstance(value, str):
        raise PluginError(f"{where}: {kinds[0]} is {value!r}: expected text")
    if kinds == ["ask"]:
        return [_Ask(text=value)]
    if value not in TOOLS:
        raise PluginError(f"{where}: {unknown_name('tool', value, TOOLS)}")
    return [_Use(tool=value, arguments=step.get("arguments", {}))]


def _writes(where: str, files: object) -> list[_Step]:
    if not isinstance(files, Mapping) or not files:
        raise PluginError(f"{where}: write is {files!r}: expected a table of paths and texts")
    made: list[_Step] = []
    for path, text in files.items():
        if not isinstance(path, str) or not isinstance(text, str):
            raise PluginError(f"{where}: write has {path!r} = {text!r}: expected texts")
        made.append(_Use(tool="write", arguments={"path": path, "content": text}))
    return made
