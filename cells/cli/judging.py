"""The command that judges a file of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cells.cli.door import ExitCode, end, print_json

if TYPE_CHECKING:
    from cells.judging_samples import Judged, Judging

__all__ = ["add_to"]

Samples = Annotated[Path, typer.Argument(help="A .jsonl or .jsonl.gz file of samples, or a folder of them.")]
Benchmark = Annotated[str, typer.Option("--benchmark", help="humaneval, mbpp, or with --data a name of yours.")]
Data = Annotated[Path | None, typer.Option("--data", help="The benchmark's file; default: EvalPlus's own.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where results go; default: SAMPLES_proctor.jsonl.")]
Workers = Annotated[int, typer.Option("--workers", min=0, help="Programs judged at once; 0: as many as cores.")]
Backend = Annotated[str, typer.Option("--backend", help="docker, bubblewrap, a plugin's, or auto.")]
Image = Annotated[str, typer.Option("--image", help="The image of the rooms.")]
Ks = Annotated[str, typer.Option("--k", help="Which pass@k, with commas.")]
HiddenCap = Annotated[str, typer.Option("--hidden-cap", help="How many plus inputs are the hidden tests, or all.")]
StopEarly = Annotated[bool, typer.Option("--stop-early", help="End the public tests too at the first violation.")]
NoPrelude = Annotated[bool, typer.Option("--no-prelude", help="Run nothing of the prompt before a program.")]
MinTime = Annotated[float | None, typer.Option("--min-time-s", help="The least CPU time a call may take.")]
TimeFactor = Annotated[float | None, typer.Option("--time-factor", help="Times the reference's, if that is more.")]
Memory = Annotated[int | None, typer.Option("--memory-bytes", help="Address space of one program.")]
Extract = Annotated[bool, typer.Option("--extract", help="Samples are chat answers: take the code out of them.")]
AllTasks = Annotated[bool, typer.Option("--all-tasks", help="Refuse samples that leave a task out.")]
Again = Annotated[bool, typer.Option("--again", help="Judge everything, whatever results there are.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="A folder of verdicts to look in and to add to.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

_CAP_DIGITS = 9
"""The longest number of hidden tests; no task has so many."""
_MOST_MEMORY_BYTES = 1 << 47
"""All the address space that a program can have on the machines that there are."""


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(judge)


def judge(
    samples: Samples,
    *,
    benchmark: Benchmark,
    data: Data = None,
    out: Out = None,
    workers: Workers = 0,
    backend: Backend = "auto",
    image: Image = "proctor-seat",
    k: Ks = "1,10,100",
    hidden_cap: HiddenCap = "300",
    stop_early: StopEarly = False,
    no_prelude: NoPrelude = False,
    min_time_s: MinTime = None,
    time_factor: TimeFactor = None,
    memory_bytes: Memory = None,
    extract: Extract = False,
    all_tasks: AllTasks = False,
    again: Again = False,
    cache: Cache = None,
    as_json: AsJson = False,
) -> None:
    """Judge EvalPlus samples in sealed rooms, and print pass@k with intervals; what is judged already is not again."""
    from cells.judging_samples import Judging

    asked = Judging(
        samples=samples,
        benchmark=_known(benchmark, data),
        data=data,
        out=_place(out, samples),
        options=_tests(hidden_cap, early=stop_early, bare=no_prelude) | _limits(min_time_s, time_factor, memory_bytes),
        backend=backend,
        image=image,
        workers=workers or _cores(),
        extract=extract,
        all_tasks=all_tasks,
        again=again,
        cache=cache,
    )
    _work(asked, _whole_numbers(k), as_json=as_json)


def _work(asked: Judging, ks: list[int], *, as_json: bool) -> None:
    """Judge, and tell what came of it."""
    _tell(_judged(asked, quiet=as_json), ks, as_json=as_json)


def _limits(min_time_s: float | None, time_factor: float | None, memory_bytes: int | None) -> dict[str, Any]:
    """Limits as options of the referee; those that were not given are its own defaults."""
    from harness.errors import UsageError

    if memory_bytes is not None and memory_bytes > _MOST_MEMORY_BYTES:
        raise UsageError(f"--memory-bytes is {memory_bytes}: expected at most {_MOST_MEMORY_BYTES}, as in 2147483648")
    limits = {"min_time_s": min_time_s, "time_factor": time_factor, "memory_bytes": memory_bytes}
    return {name: value for name, value in limits.items() if value is not None}


def _judged(asked: Judging, *, quiet: bool) -> Judged:
    """Judge to the end; Ctrl-C or SIGTERM closes the rooms and keeps what is judged, a second one ends at once."""
    import signal
    import sys

    import anyio

    from cells.judging_samples import judge_samples
    from cells.judging_view import JudgingView
    from harness.clock import SystemClock

    clock = SystemClock()
    view = JudgingView(sys.stderr, clock, quiet=quiet)

    async def listen(stop: anyio.Event) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _number in signals:
                if stop.is_set():
                    raise KeyboardInterrupt
                view.note("stopping: what is judged is kept; once more to leave at once")
                stop.set()

    async def drive() -> Judged:
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, stop)
            judged = await judge_samples(asked, view=view, stop=stop, clock=clock)
            tasks.cancel_scope.cancel()
        return judged

    try:
        return anyio.run(drive)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None  # as Ctrl-C ends any command: without a traceback
    finally:
        view.end()


def _tell(judged: Judged, ks: list[int], *, as_json: bool) -> None:
    """The summary, how to go on, and the code to end with."""
    from cells.judging_summary import summary_lines, summary_to_json

    if as_json:
        print_json(summary_to_json(judged, ks))
    elif not judged.interrupted:
        for line in summary_lines(judged, ks):
            typer.echo(line)
    if judged.complete:
        return
    done = sum(result is not None for result in judged.results)
    why = "interrupted" if judged.interrupted else "incomplete"
    if judged.stopped is not None:
        why = f"stopped, since nothing could be judged any more ({judged.stopped.cause}: {judged.stopped})"
    _err(f"{why}: {done} of {len(judged.results)} samples are judged and kept in {judged.asked.out}")
    _err("to go on, give the same command again: it judges what is left")
    end(ExitCode.INCOMPLETE)


def _err(text: str) -> None:
    from cells.figures import printable

    typer.echo(printable(text), err=True)


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0))


def _known(benchmark: str, data: Path | None) -> str:
    """The benchmark's name; without a file of its own it must be one that EvalPlus has."""
    from harness.errors import UsageError, unknown_name
    from harness.tasks.evalplus_file import BENCHMARKS

    if not benchmark.strip() or not benchmark.isprintable():
        raise UsageError(f"--benchmark is {benchmark!r}: expected a name that can be printed, such as humaneval")
    if data is None and benchmark not in BENCHMARKS:
        raise UsageError(f"{unknown_name('benchmark', benchmark, BENCHMARKS)} For tasks of your own add --data FILE.")
    return benchmark


def _place(out: Path | None, samples: Path) -> Path:
    """Where results go: to the file that was named, or beside the samples."""
    from cells.judging_samples import results_beside
    from harness.errors import UsageError

    if out is not None and str(out) == "-":
        raise UsageError("--out is '-': results are read again, so they are no output; name a file, or leave it out")
    return out or results_beside(samples)


def _tests(hidden_cap: str, *, early: bool, bare: bool) -> dict[str, Any]:
    """Which tests are run and what before them, as options of the referee."""
    tier = "to-first-violation" if early else "full"
    return {"hidden_cap": _cap(hidden_cap), "public_tier": tier, "prelude": not bare}


def _cap(text: str) -> int | Literal["all"]:
    """How many hidden tests: a whole number, or all."""
    from harness.errors import UsageError

    if text == "all":
        return "all"
    if text.isascii() and text.isdecimal() and len(text) <= _CAP_DIGITS and int(text):
        return int(text)
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    raise UsageError(f"--hidden-cap is {shown!r}: expected a whole number of 1 or more, or all, as in --hidden-cap all")


def _whole_numbers(text: str) -> list[int]:
    from harness.errors import UsageError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() and 0 < len(part) < 7 and int(part) > 0 for part in parts):
        raise UsageError(f"--k is {text!r}: expected whole numbers of 1 or more with commas, such as 1,10,100")
    return sorted({int(part) for part in parts})
