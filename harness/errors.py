"""
Every error Proctor raises on purpose, sorted by who has to act.

    ProctorError
    ├── UsageError            the person at the terminal: something asked for is not right
    │   ├── ExperimentError       the experiment file
    │   ├── DeclarationError      a declaration of cells, or a file of them
    │   ├── RateCardError         a rate card
    │   ├── TaskError             a task folder or data set
    │   ├── PluginError           an arm, referee, probe, seat, model or workspace plugin
    │   ├── ImageError            an image that is missing or can't be built
    │   ├── DriftError            a pin of the registration no longer holds
    │   └── BusyError             another process holds the run
    ├── GateRefused           the experimenter: a gate refused to start a scored run
    ├── IntegrityError        the auditor: a record or blob is not what it says it is
    ├── StorageError          the machine's owner: the disk does not take what must be kept
    └── Blamed                nobody's number: something of ours failed, the cell is VOID
        ├── ModelServerError      the model server failed or answered nonsense
        ├── RequestRefused        the model server refused the request
        │   └── ContentRefused        what it asks for, not who asks or whom
        ├── ContextTruncated      the prompt was cut to fit the window
        │   └── WindowExceeded        or refused, since it does not fit
        ├── WorkspaceError        the engine or the sandbox failed
        ├── FenceError            the fence is not what the policy says
        ├── RefereeError          the referee could not work
        ├── SeatError             the seat's own program failed
        ├── MirrorLost            the cell that this one mirrors ended without an outcome
        ├── MirrorBroken          a packet is not what it mirrors: the run stops
        └── TokensShown           a generic bullet has a word of the task: the run stops

`Blamed` carries `cause`, a short token that ends up in the record as `VOID(cause)`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "Blamed",
    "BusyError",
    "ContentRefused",
    "ContextTruncated",
    "DeclarationError",
    "DriftError",
    "ExperimentError",
    "FenceError",
    "GateRefused",
    "ImageError",
    "IntegrityError",
    "MirrorBroken",
    "MirrorLost",
    "ModelServerError",
    "PluginError",
    "ProctorError",
    "RateCardError",
    "RefereeError",
    "RequestRefused",
    "SeatError",
    "StorageError",
    "TaskError",
    "TokensShown",
    "UsageError",
    "WindowExceeded",
    "WorkspaceError",
    "unknown_name",
    "unwrapped",
]


class ProctorError(Exception):
    """The root: catch this to catch everything that Proctor raises on purpose."""


class UsageError(ProctorError):
    """Something that was asked for is not right; the message says what was expected."""


class ExperimentError(UsageError):
    """The experiment file can't be used."""


class DeclarationError(UsageError):
    """A declaration of cells, or a file of cells, can't be used."""


class RateCardError(UsageError):
    """A rate card can't be used."""


class TaskError(UsageError):
    """A task folder or data set can't be used."""


class PluginError(UsageError):
    """A plugin is unknown, its name is taken, or it does not load."""


class ImageError(UsageError):
    """An image is missing or can't be built."""


class DriftError(UsageError):
    """Something that the registration pinned is no longer what it was."""


class BusyError(UsageError):
    """Another process holds the run."""


class GateRefused(ProctorError):
    """A gate refused to start a scored run; `gate` names it."""

    def __init__(self, gate: str, detail: str) -> None:
        super().__init__(f"{gate}: {detail}")
        self.gate = gate
        self.detail = detail


class IntegrityError(ProctorError):
    """A record, blob or transcript is not what it says it is."""


class StorageError(ProctorError):
    """The disk does not take what must be kept; nothing half-written stays."""


class Blamed(ProctorError):
    """Something that is not the subject failed, so no number may come of it."""

    cause: ClassVar[str] = "unknown"


class ModelServerError(Blamed):
    """The model server failed, timed out, or answered something that is no answer."""

    cause = "model-server"


class RequestRefused(Blamed):
    """The model server refused the request as it stands (unknown model, bad option, no such tool)."""

    cause = "request-refused"


class ContentRefused(RequestRefused):
    """
    The model server refused what a request says, and answered none of it: a tool's schema, a conversation's form.

    A seat of ours that asks so is broken; a foreign agent is told, and may ask for something else.
    """


class ContextTruncated(Blamed):
    """The prompt did not fit the context window, or was silently cut to fit it."""

    cause = "context-truncated"


class WindowExceeded(ContextTruncated):
    """
    The model server refused a prompt that does not fit its window: nothing was cut, and nothing answered.

    A seat of ours that asks so is broken; a foreign agent is told, and may ask with less.
    """


class WorkspaceError(Blamed):
    """The container engine or the sandbox failed, or an exit status could not be known."""

    cause = "workspace"


class FenceError(Blamed):
    """What is running is not what the fence's policy says."""

    cause = "fence"


class RefereeError(Blamed):
    """The referee could not do its work; nothing is said about the candidate."""

    cause = "referee"


class SeatError(Blamed):
    """The seat's own program failed, which says nothing about the subject."""

    cause = "seat"


class MirrorLost(Blamed):
    """The cell whose rounds this one copies ended VOID: there is nothing to mirror."""

    cause = "mirror"


class MirrorBroken(Blamed):
    """A packet does not show what it mirrors, byte for byte; no packet of this run can be trusted then."""

    cause = "mirror-audit"


class TokensShown(Blamed):
    """A generic bullet has a word of the task: it would be a fact, and no placebo of one."""

    cause = "tokens-audit"


def unwrapped(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that task groups wrapped: the first of ours in there, else the first of all."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            leaves.append(error)
    return next((error for error in leaves if isinstance(error, ProctorError)), leaves[0])


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence that names the unknown `name`, its nearest known one, and all the known ones."""
    names = sorted(known)
    close = [one for one in names if one.casefold() == name.casefold()] or difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}.{hint} Known: {', '.join(names) or 'none'}."
