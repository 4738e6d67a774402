"""
How a trial of Harbor ended. An exception is never a failure of the subject: it is a limit that stopped the agent, or
something that broke.

Harbor tells exceptions by the names of their types. A name that is not in this table is blamed on the phase it came in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from cells.declared.words import end_of
from harness.values import Declared, End, FailedBoot, Halt, Void

__all__ = ["EXCEPTIONS", "Raised", "end_of_trial"]

_WORKSPACE: Final = (
    "EnvironmentStartTimeoutError SandboxBuildFailedError HealthcheckError SandboxLikelyOutOfMemoryError "
    "MemoryLimitExceededError SSHAccessError GKEExecStreamClosedError GKEPodNotFoundError RuntimeRequestError "
    "VercelScopeError ServiceOperationsUnsupportedError"
)
_REFEREE: Final = (
    "AddTestsDirError DownloadVerifierDirError VerifierTimeoutError RewardFileNotFoundError RewardFileEmptyError "
    "VerifierOutputParseError RegradeError"
)
_MODEL_SERVER: Final = (
    "ApiError ApiRateLimitError ApiInternalServerError ApiOverloadedError ApiConnectionClosedError "
    "ApiResponseStalledError UnknownApiError NetworkConnectionError ApiConnectionError ApiUsageLimitError "
    "RateLimitError InternalServerError ServiceUnavailableError APIConnectionError APIError Timeout "
    "APIResponseValidationError"
)
_REQUEST: Final = (
    "UnsupportedModelParametersError BadRequestError UnprocessableEntityError UnsupportedParamsError "
    "AgentAuthenticationError ModelNotFoundError ApiProviderResourceNotFoundError AuthenticationError "
    "PermissionDeniedError NotFoundError AgentSafetyRefusalError ContentPolicyViolationError"
)
_WINDOW: Final = (
    "ContextWindowExceededError ContextLengthExceededError OutputTokenExceededError OutputLengthExceededError"
)

EXCEPTIONS: Final[Mapping[str, str]] = {
    "AgentTimeoutError": "HALT(wall)",
    "BudgetExceededError": "HALT(usd)",
    **dict.fromkeys(_WINDOW.split(), "HALT(tokens)"),
    **dict.fromkeys(_WORKSPACE.split(), "VOID(workspace)"),
    **dict.fromkeys(_REFEREE.split(), "VOID(referee)"),
    **dict.fromkeys(_MODEL_SERVER.split(), "VOID(model-server)"),
    **dict.fromkeys(_REQUEST.split(), "VOID(request-refused)"),
    "AgentSetupTimeoutError": "VOID(seat)",
    "NonZeroAgentExitCodeError": "VOID(seat)",
    "DspyImportError": "VOID(harness)",
    "MissingExtraError": "VOID(harness)",
    "CancelledError": "VOID(interrupted)",
}
"""What each type of Harbor's exceptions means, unless the option `ends` says otherwise."""

_AFTER: Final = re.compile(r"timed out after ([0-9]+(?:\.[0-9]+)?) seconds")
_SLACK: Final = 1.0
"""Seconds by which two readings of a clock may differ."""
_RANK: Final[tuple[type[End], ...]] = (Void, FailedBoot, Halt, Declared)


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """
    An exception that Harbor recorded, and the phase in which it came, as the cause that the phase is blamed as.

    `seconds` is how long the agent had run, None where that is not known.
    """

    type: str
    message: str
    phase: str
    seconds: float | None


def end_of_trial(raised: Iterable[Raised], ends: Mapping[str, str]) -> End:
    """
    The end that the exceptions of a trial come to; DECLARED without any.

    If several came (a task may have steps), one that makes the trial VOID goes before one that halted it: there is no
    number of a trial in which something broke.
    """
    found = [_end_of(each, ends) for each in raised] or [Declared()]
    return min(found, key=lambda end: next(rank for rank, kind in enumerate(_RANK) if isinstance(end, kind)))


def _end_of(raised: Raised, ends: Mapping[str, str]) -> End:
    meaning = ends.get(raised.type) or EXCEPTIONS.get(raised.type) or f"VOID({raised.phase})"
    said = f"{raised.type}: {raised.message[:500]}"
    if raised.type == "AgentTimeoutError" and meaning == "HALT(wall)":
        return _timed_out(raised, said)
    match end_of(meaning, ""):
        case Declared():
            return Declared(note=said)
        case Halt() as end:
            return end
        case end:
            return replace(end, detail=said)


def _timed_out(raised: Raised, said: str) -> End:
    """Harbor takes any timeout that comes out of an agent for that of its limit, and names the limit all the same."""
    found = _AFTER.search(raised.message)
    bound = None if found is None else float(found.group(1))
    if bound is not None and raised.seconds is not None and raised.seconds + _SLACK < bound:
        return Void(cause="unknown", detail=f"{said}: but it came after {raised.seconds:g} s, and was not the limit's")
    return Halt(limit="wall", scope="cell", bound=bound, spent=raised.seconds)
