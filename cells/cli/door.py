"""Where errors become messages and exit codes, and coroutines become commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from harness.errors import StorageError

__all__ = ["ExitCode", "end", "guarded", "print_json", "registrations_of", "run_async", "run_folder"]

T = TypeVar("T")


_CUT_OFF = 130
"""What typer makes of a Ctrl-C."""


class ExitCode(IntEnum):
    """What a script may rely on."""

    DONE = 0
    INCOMPLETE = 1
    USAGE = 2
    GATE_REFUSED = 3
    VERIFICATION_FAILED = 4
    STOPPED = 5


def end(code: ExitCode) -> NoReturn:
    """End the command with an exit code."""
    raise typer.Exit(int(code))


def guarded(command: Callable[[], Any]) -> None:
    """
    Run a command; an error of ours or of the disk is one message on standard error and an exit code, anything else a
    traceback.
    """
    from harness.errors import ProctorError, unwrapped

    try:
        command()
    except ProctorError as error:
        _fail(error)
    except BaseExceptionGroup as group:
        match unwrapped(group):
            case ProctorError() as inner:
                _fail(inner)
            case OSError() as inner if not isinstance(inner, BrokenPipeError):
                _fail(_disk(inner))
            case _:
                raise
    except BrokenPipeError:
        raise
    except OSError as error:
        _fail(_disk(error))
    except SystemExit as ended:
        if ended.code != _CUT_OFF:
            raise
        sys.stderr.write("proctor: interrupted\n")
        sys.exit(ExitCode.INCOMPLETE)


def _disk(error: OSError) -> StorageError:
    """What the disk said, by the name of the file."""
    from harness.errors import StorageError

    where = "" if error.filename is None else f"{error.filename}: "
    return StorageError(f"{where}{error.strerror or error}: expected files that can be read and written")


def _printable(line: str) -> str:
    """A line with whatever does not print written as its escape, and its indentation kept."""
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in line)


def _fail(error: Any) -> NoReturn:
    from harness.errors import Blamed, GateRefused, IntegrityError, StorageError

    match error:
        case GateRefused():
            label, code = "refused", ExitCode.GATE_REFUSED
        case IntegrityError():
            label, code = "does not verify", ExitCode.VERIFICATION_FAILED
        case Blamed():
            label, code = f"stopped ({error.cause})", ExitCode.INCOMPLETE
        case StorageError():
            label, code = "stopped", ExitCode.INCOMPLETE
        case _:
            label, code = "error", ExitCode.USAGE
    # Messages quote what others wrote: nothing in them may do anything to a terminal.
    text = "\n".join(_printable(line) for line in str(error).split("\n"))
    sys.stderr.write(f"proctor: {label}: {text}\n")
    sys.exit(code)


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """
    Run a coroutine function to its end.

    An output that nobody reads any more (`proctor rescore RUN | head`) comes out of task groups as itself, since typer
    ends a command for it without a word.
    """
    import anyio

    from harness.errors import unwrapped

    try:
        return anyio.run(work)
    except BaseExceptionGroup as group:
        if isinstance(inner := unwrapped(group), BrokenPipeError):
            raise inner from None
        raise


def print_json(data: Any) -> None:
    """One JSON document on standard output, for scripts; half a surrogate, which no UTF-8 can hold, as its escape."""
    import json
    import re

    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    typer.echo(re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text))


def run_folder(place: Path, runs: Path) -> Path:
    """
    The run folder that `place` names: a run folder itself, a registration's id below `runs`, or an experiment file with
    one registration there. Raises `UsageError` that lists what there is.
    """
    from harness.errors import UsageError

    for folder in (place, runs / place):
        if (folder / "registration.json").is_file():
            return folder.resolve()
    source = place / "experiment.toml" if place.is_dir() else place
    if source.is_file():
        found = registrations_of(source.resolve(), runs)
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(folder.name for folder in found)
            raise UsageError(f"{place} was frozen {len(found)} times: name one of {names}")
    known = sorted(path.parent.name for path in runs.glob("*/registration.json"))
    there = f"one of {', '.join(known)} in {runs}" if known else f"a registration's id, and {runs} holds no run yet"
    raise UsageError(f"{place} is no run: expected a run folder or {there}")


def registrations_of(source: Path, runs: Path) -> list[Path]:
    """The run folders below `runs` that were frozen from the experiment file `source`, oldest first."""
    from harness.registration import load_registration

    found = []
    for path in runs.glob("*/registration.json"):
        registration = load_registration(path.parent)
        if registration.source == str(source):
            found.append((registration.frozen_at, path.parent.resolve()))
    return [folder for _at, folder in sorted(found)]
