"""What a referee says of itself before it judges anything: its name, options, classes and suite."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from harness.clock import fresh_token
from harness.conformance.rows import Row, row
from harness.conformance.trial import Trial
from harness.errors import ProctorError, UsageError
from harness.ports import Referee
from harness.tasks.task import SealedHalf
from harness.tree import File, Tree
from harness.values import Standing

__all__ = ["class_table", "own_name", "same_digest", "signature", "tells_changes", "unknown_option"]

_METHODS = {
    "suite": ("sealed",),
    "reference": ("sealed",),
    "battery": ("task", "sealed"),
    "judge": ("exhibit", "task", "sealed", "rooms"),
    "public_check": ("task", "sealed", "rooms"),
}
_ARM_WORDS = re.compile(r"(^|_)(arm|arms|condition|cell|extras|model|replicate|seat)(_|$)")
_FLIPS = 8


def own_name(trial: Trial) -> Row:
    """The name in its entry point is its own."""
    own = trial.referee.name
    faults = [] if own == trial.name else [f"it calls itself {own!r}"]
    return row("name", faults, expected=f"its registered name, {trial.name!r}", seen=repr(own))


def unknown_option(trial: Trial) -> Row:
    """An option that no referee has must be refused when the referee is made, as the user's mistake."""
    option = f"no_such_option_{fresh_token(3)}"
    expected = "an unknown option is refused by a UsageError that names it"
    try:
        trial.make({**trial.options, option: 1})
    except UsageError as error:
        faults = [] if option in str(error) else [f"refused without naming it: {error}"]
        return row("unknown option", faults, expected=expected, seen=f"{type(error).__name__}: {str(error)[:80]}")
    except Exception as error:  # noqa: BLE001 - which error it is, is the question
        return row("unknown option", [f"it raised {type(error).__name__}: {error}"], expected=expected, seen="")
    return row("unknown option", ["it was taken"], expected=expected, seen="")


def signature(trial: Trial) -> Row:
    """The contract's parameters and no more: what a referee is not told, it can't go by."""
    faults = []
    for name, wanted in _METHODS.items():
        parameters = inspect.signature(getattr(trial.referee, name)).parameters.values()
        needed = [item.name for item in parameters if item.default is item.empty and item.kind not in {2, 4}]
        if len(needed) != len(wanted):
            faults.append(f"{name} needs {', '.join(needed)}: expected {', '.join(wanted)}")
        faults += [f"{name} takes {item.name!r}" for item in parameters if _ARM_WORDS.search(item.name)]
    return row("signature", faults, expected="the contract's parameters, and none that tells the arm", seen="as it is")


def class_table(trial: Trial) -> Row:
    """Every reading has a standing, and there is a way to say yes and one to say no."""
    classes = trial.referee.classes
    known = get_args(Standing)
    faults = [f"{name!r} is no reading" for name in classes if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,39}", name)]
    faults += [f"{name} is {standing!r}" for name, standing in classes.items() if standing not in known]
    faults += [f"no reading is {word}" for word in ("accepted", "rejected") if word not in classes.values()]
    counts = {word: sum(item == word for item in classes.values()) for word in known}
    counted = ", ".join(f"{count} {word}" for word, count in counts.items())
    return row(
        "class table", faults, expected="readings in capitals, one accepted and one rejected at least", seen=counted
    )


def _suite(referee: Referee, sealed: SealedHalf) -> str:
    """The suite's digest; empty where `suite` gives none, `refused` where it takes the material for no suite."""
    try:
        found: Any = referee.suite(sealed)["digest"]
    except ProctorError:
        return "refused"
    except (KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def same_digest(trial: Trial) -> Row:
    """The suite has a digest, and it is no matter of the instance that is asked."""
    sealed = trial.task.sealed
    first, second = _suite(trial.referee, sealed), _suite(trial.make(trial.options), sealed)
    faults = [] if first not in {"", "refused"} else ["suite() gives no `digest`, or refuses the task's own suite"]
    faults += [f"another instance gives {second[:12]!r}, the first {first[:12]!r}"] * (first != second)
    return row("suite digest", faults, expected="a text, the same for every instance", seen=first[:16])


def tells_changes(trial: Trial) -> Row:
    """
    One character changed, in several places of each sealed test: of the changes that are taken for a suite at all, the
    digest must tell one at least. A change that is refused says nothing of the digest.
    """
    sealed, seen, faults = trial.task.sealed, [], []
    before = _suite(trial.referee, sealed)
    for path in sealed.tests:
        changed = [replace(sealed, tests=tree) for tree in _flips(sealed.tests, path)]
        digests = [_suite(trial.referee, other) for other in changed]
        taken = [digest for digest in digests if digest != "refused"]
        told, refused = sum(digest != before for digest in taken), len(digests) - len(taken)
        if taken and not told:
            faults.append(f"{path} was changed in {len(taken)} places, and the digest is the same")
        seen.append(f"{path}: {told} of {len(changed)} changes told" + (f", {refused} refused" if refused else ""))
    if not len(sealed.tests):
        faults.append("not measured: the task has no sealed tests")
    return row(
        "suite digest tells changes", faults, expected="another digest for other sealed tests", seen="; ".join(seen)
    )


def _flips(tests: Tree, path: str) -> Iterator[Tree]:
    """The tests with one letter or digit of `path` changed, at places spread over the file."""
    data = tests[path]
    places = [at for at, byte in enumerate(data) if bytes([byte]).isalnum()]
    for at in places[:: max(1, len(places) // _FLIPS)][:_FLIPS]:
        old = data[at : at + 1]
        new = str((int(old) + 1) % 10).encode() if old.isdigit() else old.swapcase()
        file = File(data=data[:at] + new + data[at + 1 :], executable=tests.files[path].executable)
        yield Tree({**tests.files, path: file})
