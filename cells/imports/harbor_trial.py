"""One trial of a Harbor job: what its `result.json` says, as a cell that has no number yet among its like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cells.declared.rows import ForeignReading, ForeignSpend
from cells.imports.conditions_of import condition_of
from cells.imports.fields import Fields
from cells.imports.harbor_ends import Raised, end_of_trial
from cells.imports.options import HarborOptions
from cells.imports.skim import Wanted
from cells.imports.verdicts_of import reward_reading
from harness.values import Declared, End, ExactPrice, FailedBoot, Halt, LowerBoundPrice, Price, Void, VoidPrice

__all__ = ["TRIAL", "Trial", "read_trial", "unfinished"]

_AGENT: Final[Wanted] = {"n_input_tokens": None, "n_cache_tokens": None, "n_output_tokens": None, "cost_usd": None}
_RAISED: Final[Wanted] = {"exception_type": None, "exception_message": None, "occurred_at": None}
_TIMES: Final[Wanted] = {"started_at": None, "finished_at": None}
_STEP: Final[Wanted] = {
    "step_name": None,
    "agent_result": _AGENT,
    "verifier_result": None,
    "exception_info": _RAISED,
    "agent_execution": _TIMES,
    "verifier": _TIMES,
}
TRIAL: Final[Wanted] = {
    **_STEP,
    **dict.fromkeys(("schema_version", "id", "task_name", "trial_name", "source", "task_checksum", "config")),
    **dict.fromkeys(("agent_info", "verifier_environment_mode", "started_at", "finished_at")),
    "environment_setup": _TIMES,
    "agent_setup": _TIMES,
    "step_results": _STEP,
}
"""What is read of a `result.json`; what agents add of their own (token by token, at times) is stepped over."""

_VERSIONS: Final = {None, 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A trial; `started` orders it among its like."""

    id: str
    started: str
    condition: Mapping[str, str]
    end: End
    spend: ForeignSpend
    reading: ForeignReading | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def read_trial(data: Any, where: str, options: HarborOptions, *, retried: str | None) -> Trial:
    """
    The trial that a `result.json` tells of. `retried` says why the spend of other tries of it may be lost, if so.

    Raises `DeclarationError` for one without a required field, or whose reward no rule reads.
    """
    trial = Fields(data, where)
    if trial.raw("schema_version") not in _VERSIONS:
        raise trial.fault("schema_version", "1, or none: another version may mean other things by the same names")
    steps = trial.parts("step_results")
    raised = list(_raised(trial, steps))
    end = _end(trial, raised, options)
    reading = _reading(trial, options, where) if isinstance(end, (Declared, Halt)) else None
    return Trial(
        id=trial.text("trial_name"),
        started=trial.maybe_text("started_at") or "",
        condition=_condition(trial, options, where),
        end=end,
        spend=_spend(trial, steps, end, retried),
        reading=reading,
        labels=_labels(trial, raised),
    )


def unfinished(config: Any, where: str, options: HarborOptions) -> Trial:
    """The trial that a `config.json` tells of, without a result: something ended Harbor as it was on."""
    trial = Fields(config, where)
    task, agent = trial.part("task"), trial.part("agent")
    told = {
        "trial_name": trial.text("trial_name"),
        "task_name": task.maybe_text("name") or (task.maybe_text("path") or "").rstrip("/").rpartition("/")[2],
        "source": task.maybe_text("source"),
        "config": config,
        "agent_info": {"name": agent.maybe_text("name") or agent.maybe_text("import_path")},
    }
    lost = Void(cause="interrupted", detail="the trial left no result: Harbor ended, or was ended, as it was on")
    return Trial(
        id=trial.text("trial_name"),
        started="",
        condition=_condition(Fields(told, where), options, where),
        end=lost,
        spend=ForeignSpend(price=VoidPrice(reason="the trial left no result")),
        labels={"exception": "no result"},
    )


def _end(trial: Fields, raised: Sequence[Raised], options: HarborOptions) -> End:
    end = end_of_trial(raised, options.ends)
    config = trial.part("config")
    if isinstance(end, Declared) and config.raw("install_only") is True:
        return FailedBoot(detail="the job was to install its agents and no more (install_only)")
    return end


def _raised(trial: Fields, steps: Sequence[Fields]) -> Iterable[Raised]:
    for part in (trial, *steps):
        if (found := part.maybe_part("exception_info")) is not None:
            yield Raised(
                type=found.text("exception_type"),
                message=found.maybe_text("exception_message") or "",
                phase=_phase(part, found, steps),
                seconds=_seconds([ran] if (ran := part.maybe_part("agent_execution")) is not None else []),
            )


def _phase(part: Fields, raised: Fields, steps: Sequence[Fields]) -> str:
    """
    The cause that the phase in which it was raised is blamed as: the last that had begun. Harbor goes on to verify
    after an agent that raised, so that the mere presence of a phase tells nothing.
    """
    when = raised.maybe_time("occurred_at")
    for name, cause in (("verifier", "referee"), ("agent_execution", "unknown"), ("agent_setup", "seat")):
        phase = part.maybe_part(name)
        begun = phase.maybe_time("started_at") if phase is not None else None
        if begun is None:
            continue
        if when is None or (when.tzinfo is None) != (begun.tzinfo is None):
            return "unknown"
        if begun <= when:
            return cause
    # The phases of a task with steps stand at the steps: there is no telling which of them broke the whole.
    return "unknown" if steps else "workspace"


def _condition(trial: Fields, options: HarborOptions, where: str) -> dict[str, str]:
    agent = trial.part("agent_info")
    usual: Mapping[str, Callable[[], str | None]] = {
        "benchmark": lambda: trial.maybe_text("source") or "adhoc",
        "task": lambda: trial.text("task_name"),
        "arm": lambda: agent.text("name"),
        "extras": lambda: "none",
        "model": lambda: _model(trial, agent),
    }
    document = {name: trial.raw(name) for name in TRIAL}
    return condition_of(document, options, lambda part: usual[part](), where)


def _model(trial: Fields, agent: Fields) -> str | None:
    """`provider/name` as the agent tells it, else as the trial was told to run it; an oracle has none."""
    if (told := agent.maybe_part("model_info")) is not None:
        provider = told.maybe_text("provider")
        return f"{provider}/{told.text('name')}" if provider else told.text("name")
    asked = trial.part("config").maybe_part("agent")
    return None if asked is None else asked.maybe_text("model_name")


def _reading(trial: Fields, options: HarborOptions, where: str) -> ForeignReading | None:
    """What the reward that decides comes to; None if the verifier left none."""
    judged = trial.maybe_part("verifier_result")
    rewards = judged.maybe_part("rewards") if judged is not None else None
    known = sorted(_rewards(trial))
    if rewards is None or not known:
        return None
    key = options.reward if options.reward in known else known[0] if len(known) == 1 else None
    if key is None:
        raise rewards.fault(options.reward, f"the option `reward` to name the one that decides, of {', '.join(known)}")
    value = rewards.raw(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise rewards.fault(key, "a number")
    if value is not None and not math.isfinite(value):
        raise rewards.fault(key, "a finite number")
    return reward_reading(value, options, f"{where}: verifier_result.rewards.{key}")


def _rewards(trial: Fields) -> Mapping[str, Any]:
    judged = trial.maybe_part("verifier_result")
    found = judged.raw("rewards") if judged is not None else None
    return found if isinstance(found, Mapping) else {}


def _spend(trial: Fields, steps: Sequence[Fields], end: End, retried: str | None) -> ForeignSpend:
    told = [context for part in (trial, *steps) if (context := part.maybe_part("agent_result")) is not None]
    ran = [times for part in (trial, *steps) if (times := part.maybe_part("agent_execution")) is not None]
    return ForeignSpend(
        price=_price(told, len(ran), end, retried),
        tokens=_tokens(told) if len(told) >= len(ran) else None,
        wall_s=_seconds(ran),
    )


def _tokens(told: Sequence[Fields]) -> int | None:
    """All tokens; Harbor's `n_input_tokens` has those of the cache in it. One unknown count makes the sum unknown."""
    counts = [part.maybe_whole(name) for part in told for name in ("n_input_tokens", "n_output_tokens")]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _price(told: Sequence[Fields], ran: int, end: End, retried: str | None) -> Price:
    costs = [part.maybe_amount("cost_usd") for part in told]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return VoidPrice(reason="the agent did not tell what it cost")
    if len(known) < max(len(costs), ran):
        return LowerBoundPrice(usd=sum(known), reason="a step did not tell what it cost")
    if not isinstance(end, Declared) and not (isinstance(end, Void) and end.cause == "referee"):
        return LowerBoundPrice(
            usd=sum(known), reason="the agent did not end by itself: a call under way is not counted"
        )
    if retried is not None:
        return LowerBoundPrice(usd=sum(known), reason=retried)
    return ExactPrice(usd=sum(known))


def _seconds(ran: Sequence[Fields]) -> float | None:
    total = 0.0
    for times in ran:
        begun, done = times.maybe_time("started_at"), times.maybe_time("finished_at")
        if begun is None or done is None or (begun.tzinfo is None) != (done.tzinfo is None):
            return None
        if done < begun:
            raise times.fault("finished_at", "a moment that is not before started_at")
        total += (done - begun).total_seconds()
    return total if ran else None


def _labels(trial: Fields, raised: Sequence[Raised]) -> dict[str, str]:
    """Words that are kept and not counted; `verifier` says whether the tests ran where the agent had been."""
    agent = trial.part("agent_info")
    labels = {
        "agent_version": agent.maybe_text("version"),
        "task_checksum": trial.maybe_text("task_checksum"),
        "verifier": trial.maybe_text("verifier_environment_mode"),
        "exception": ", ".join(each.type for each in raised)[:300],
        "rewards": ", ".join(f"{key}={value}" for key, value in sorted(_rewards(trial).items()))[:300],
        "regraded": "yes" if trial.part("config").raw("source_trial") else None,
    }
    return {name: text for name, text in labels.items() if text}
