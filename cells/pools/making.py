"""Making a pool: candidates of every task and model, each with a seed of its own, and what the public tests say."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from cells.freeze import Frozen, settle_for_pools
from cells.house import House, open_models
from cells.pools.candidates import (
    SCHEMA,
    Pool,
    candidate_line,
    header_line,
    parse_pool,
    read_pool,
    reading_json,
    wanted,
)
from harness import plugins
from harness.canonical import digest_bytes, plain
from harness.clock import Clock
from harness.code import proctor_version
from harness.errors import ContextTruncated, IntegrityError, RequestRefused, UsageError
from harness.messages import Message, Request
from harness.ports import Arm, PublicCheck
from harness.seats.extraction import extract_code, valid_text
from harness.seats.robust_extraction import robust_code
from harness.seeds import PoolSeeds
from harness.tasks.task import OpenHalf
from harness.values import Unit
from harness.views import RoundView

__all__ = ["make_pool"]

Say = Callable[[str], None]


async def make_pool(path: Path, *, n: int, out: Path, arm: str, clock: Clock, say: Say) -> Pool:
    """
    Make `n` candidates for every task and model of the experiment file `path` (absolute), by the packet of `arm`, and
    write them to `out`; what is there of the same pool already is kept, and gone on with.

    Candidates are judged one by one in the referee's sealed room. Raises `UsageError` when `out` holds another pool or
    the referee has no public tier, `Blamed` when a server or room fails: what was made until then is kept.
    """
    frozen = await settle_for_pools(path, clock=clock, say=say)
    packet = _packet(arm)
    header = _header(frozen, n=n, arm=packet)
    done = _begun(out, header)
    house = House.of(frozen, clock=clock)
    todo = wanted(header)[done:]
    if done:
        say(f"{done} of {done + len(todo)} candidates are in {out} already")
    async with open_models(house):
        for unit, group in groupby(todo, key=lambda item: item[0]):
            async with _bench(house, unit, packet) as bench:
                for _unit, index in group:
                    _append(out, candidate_line(header, unit, index, await bench(index)))
                    done += 1
            say(f"{done} of {n * len(header['tasks']) * len(header['models'])}: {unit}")
    return read_pool(out)


def _packet(name: str) -> Arm:
    if name not in plugins.table("arms"):
        raise UsageError(f"arm {name!r} is not registered: `proctor arm list` names those that are")
    arm: Arm = plugins.load("arms", name)()
    return arm


def _header(frozen: Frozen, *, n: int, arm: Arm) -> dict[str, Any]:
    """What the candidates depend on, by digest."""
    parts, pins = frozen.parts, frozen.registration.pins
    experiment = parts.experiment
    header = {
        "schema": SCHEMA,
        "n": n,
        "seed_namespace": experiment.seat.seed_namespace,
        "arm": {"name": arm.name, "sha256": digest_bytes(arm.content)},
        "decoding": asdict(parts.decoding),
        "models": {name: {"served": item.served, "digest": item.digest} for name, item in frozen.identities.items()},
        "tasks": [
            {
                "benchmark": task.open.benchmark,
                "task": task.open.name,
                "open": task.open.digest,
                "suite": pins[f"suite {key}"]["digest"],
            }
            for key, task in parts.tasks.items()
        ],
        "image": pins["image"]["digest"],
        "referee": {"name": experiment.referee.name, "options": experiment.referee.options},
        "proctor": proctor_version(),
    }
    return dict(plain(header))


def _begun(out: Path, header: Mapping[str, Any]) -> int:
    """How many candidates `out` holds of the pool; a cut last line is taken off, a file that is not there begun."""
    data = out.read_bytes() if out.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and not header_line(header).startswith(data):
        raise UsageError(f"{out} holds something else, and would be written over: choose another --out")
    if not whole:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(header_line(header))
        return 0
    if whole.partition(b"\n")[0] + b"\n" != header_line(header):
        raise UsageError(f"{out} holds another pool (its header is not this experiment's): choose another --out")
    try:
        pool = parse_pool(whole, str(out))
    except IntegrityError as error:
        raise UsageError(f"{error}. Take the file away, or choose another --out") from None
    if whole != data:
        out.write_bytes(whole)
    return sum(map(len, pool.lines.values()))


def _append(out: Path, line: bytes) -> None:
    """One candidate more, on the disk before the next is asked for."""
    with out.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


@asynccontextmanager
async def _bench(house: House, unit: Unit, arm: Arm) -> AsyncIterator[Callable[[int], Any]]:
    """What makes candidates of one unit, in one kept room of its referee's."""
    task = house.parts.tasks[f"{unit.benchmark}/{unit.task}"]
    text = arm.render(RoundView(instruction=task.open.instruction, details=task.open.details))
    seeds = PoolSeeds(house.parts.experiment.seat.seed_namespace, str(unit))
    async with house.parts.referee.public_check(task.open, task.sealed, house.rooms(task)) as check:
        if check is None:
            raise UsageError(f"referee {house.parts.referee.name!r} has no public tests: no unit of a pool can be dead")

        async def one(index: int) -> dict[str, Any]:
            content = {
                "seed": seeds.seed(index),
                "seed_payload": seeds.payload(index),
                "prompt_sha256": digest_bytes(text.encode()),
                "prompt_chars": len(text),
            }
            request = Request(
                messages=(Message(role="user", content=text),), decoding=house.parts.decoding, seed=seeds.seed(index)
            )
            try:
                answer = await house.models[unit.model].complete(request)
            except (ContextTruncated, RequestRefused) as error:
                return {**content, "void": {"cause": error.cause, "detail": plain(str(error))}}
            told = {"reply": valid_text(answer.text), "stop": answer.stop, "usage": plain(asdict(answer.usage))}
            return {**content, **told, **await _judged(answer.text, task.open, check)}

        yield one


async def _judged(reply: str, task: OpenHalf, check: PublicCheck) -> dict[str, Any]:
    """Both extractions and what the public tests say of each; where they are the same text it is run once."""
    entry_point = task.details.get("entry_point")
    standard = extract_code(reply, entry_point)
    code, rule = robust_code(reply, entry_point)
    first = plain(reading_json(await check(standard.code)))
    second = first if code == standard.code else plain(reading_json(await check(code)))
    return {
        "standard": {"rule": standard.rule, "code": standard.code, "reading": first},
        "robust": {"rule": rule, "code": code, "reading": second},
    }
