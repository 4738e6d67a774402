"""The command that judges a file of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from cells.judging_samples import Judging, results_beside

    ks = _whole_numbers(k)
    asked = Judging(
        samples=samples,
        benchmark=_known(benchmark, data),
        data=data,
        out=out or results_beside(samples),
        options={
            "hidden_cap": _cap(hidden_cap),
            "public_tier": "to-first-violation" if stop_early else "full",
            "prelude": not no_prelude,
            **_limits(min_time_s, time_factor, memory_bytes),
        },
        backend=backend,
        image=image,
        workers=workers or _cores(),
        extract=extract,
        all_tasks=all_tasks,
        again=again,
        cache=cache,
    )
    _tell(_judged(asked, quiet=as_json), ks, as_json=as_json)


def _limits(min_time_s: float | None, time_factor: float | None, memory_bytes: int | None) -> dict[str, Any]:
    """Limits as options of the referee; those that were not given are its own defaults."""
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

    if data is None and benchmark not in BENCHMARKS:
        raise UsageError(f"{unknown_name('benchmark', benchmark, BENCHMARKS)} For tasks of your own add --data FILE.")
    return benchmark


def _cap(text: str) -> Any:
    """A whole number where it is one; what the referee does not know, it refuses."""
    return int(text) if text.isdecimal() and len(text) <= 18 else text


def _whole_numbers(text: str) -> list[int]:
    from harness.errors import UsageError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() and 0 < len(part) < 7 and int(part) > 0 for part in parts):
        raise UsageError(f"--k is {text!r}: expected whole numbers of 1 or more with commas, such as 1,10,100")
    return sorted({int(part) for part in parts})
