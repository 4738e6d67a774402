"""One sample of an Inspect log: what it says, as the cells of its tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cells.declared.rows import ForeignCell, ForeignKey, ForeignReading, ForeignSpend
from cells.imports.conditions_of import condition_of, places_below
from cells.imports.fields import Fields
from cells.imports.inspect_ends import end_of_error, end_of_sample, exception_of
from cells.imports.options import InspectOptions
from cells.imports.skim import EACH, Wanted
from cells.imports.verdicts_of import UNDECIDED, score_reading
from harness.errors import DeclarationError
from harness.values import Declared, ExactPrice, Halt, LowerBoundPrice, Price, Void, VoidPrice

__all__ = ["Log", "cells_of_sample", "name_of", "wanted_of_sample"]

_SCORE: Final[Wanted] = {"value": None, "reason": None, "history": {"provenance": {"author": None}}}
_USAGE: Final = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write")


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """What the header of a log says of all its samples: `document` is what places of a condition are looked up in."""

    run: str
    document: Mapping[str, Any]
    usual: Mapping[str, str | None]


def wanted_of_sample(options: InspectOptions) -> Wanted:
    """What is read of a sample; its messages, events and attachments are stepped over."""
    return {
        **dict.fromkeys(("id", "epoch", "model_usage", "total_time", "working_time", "uuid", "turn_count", "limit")),
        "error": {"message": None},
        "error_retries": {"message": None},
        "invalidation": {"author": None, "reason": None},
        "scores": {EACH: _SCORE},
        "score": _SCORE,
        "metadata": _below(places_below(options, "sample", "metadata")),
    }


def _below(ways: list[tuple[str, ...]]) -> Wanted:
    """The first name of each way is enough: what is below it is kept whole."""
    return {way[0]: None for way in ways}


def name_of(sample: Fields) -> str:
    """A sample's name within its log: `ID_epoch_N`, as Inspect calls the member that holds it."""
    identity = sample.raw("id")
    if isinstance(identity, bool) or not isinstance(identity, (str, int)) or identity == "":
        raise sample.fault("id", "a text or a whole number")
    return f"{identity}_epoch_{sample.whole('epoch', at_least=1)}"


def cells_of_sample(data: Any, log: Log, where: str, options: InspectOptions) -> Iterator[ForeignCell]:
    """
    A VOID for each try that failed and was made again, then the sample itself.

    Raises `DeclarationError` for a sample without a required field, or whose limit or score no rule reads.
    """
    sample = Fields(data, where)
    key = _key(sample, log, options, where)
    retries = sample.parts("error_retries")
    for attempt, failed in enumerate(retries, start=1):
        message = failed.maybe_text("message") or ""
        end = end_of_error(message, options.ends)
        if not isinstance(end, Void):
            end = end_of_error(message, {})  # only a try that has no number is made again
        lost = VoidPrice(reason="Inspect keeps no usage of a try that it made again")
        yield ForeignCell(
            cell=key, attempt=attempt, end=end, spend=ForeignSpend(price=lost), labels=_exception(message)
        )
    end = end_of_sample(sample, options.ends)
    reading, labels = _reading(sample, options, where) if isinstance(end, (Declared, Halt)) else (None, {})
    yield ForeignCell(
        cell=key,
        attempt=len(retries) + 1,
        end=end,
        spend=_spend(sample, cut_off=not isinstance(end, Declared)),
        verdict=(reading or UNDECIDED) if isinstance(end, Declared) else None,
        would_be=reading if isinstance(end, Halt) else None,
        labels={**labels, **_labels(sample, key.model)},
    )


def _key(sample: Fields, log: Log, options: InspectOptions, where: str) -> ForeignKey:
    name = name_of(sample)
    told = {"id": sample.raw("id"), "epoch": sample.raw("epoch"), "metadata": sample.raw("metadata") or {}}
    usual = {**log.usual, "task": str(sample.raw("id"))}
    condition = condition_of({**log.document, "sample": told}, options, usual.get, where)
    try:
        return ForeignKey(run=log.run, id=name, replicate=sample.whole("epoch", at_least=1), **condition)
    except ValueError as error:
        raise DeclarationError(f"{where}: {error}") from None


def _reading(sample: Fields, options: InspectOptions, where: str) -> tuple[ForeignReading | None, Mapping[str, str]]:
    """What the score that decides comes to, None if the sample has it not, and words on the score."""
    scores = dict(sample.named_parts("scores"))
    if (single := sample.maybe_part("score")) is not None:
        scores = {options.scorer or "score": single}  # as logs of early 2024 have it
    if options.scorer is None and len(scores) > 1:
        raise DeclarationError(
            f"{where}: scores by {', '.join(scores)}: expected the option scorer that names the one that decides"
        )
    score = scores.get(options.scorer) if options.scorer is not None else next(iter(scores.values()), None)
    if score is None:
        return None, {"score": f"none by {options.scorer}" if options.scorer else "none"}
    value, place = score.raw("value"), f"{where}: {score.path}.value"
    if options.part is not None:
        if not isinstance(value, Mapping) or options.part not in value:
            raise score.fault("value", f"a dictionary with the key {options.part!r}")
        value, place = value[options.part], f"{place}.{options.part}"
    edits = [edit for edit in score.parts("history") if edit.raw("provenance") is not None]
    labels = {
        "score": str(value)[:100],
        "score_reason": str(score.raw("reason") or "")[:100],
        "score_edited_by": ", ".join(edit.part("provenance").maybe_text("author") or "?" for edit in edits)[:100],
    }
    return score_reading(value, options, place), {name: text for name, text in labels.items() if text}


def _spend(sample: Fields, *, cut_off: bool) -> ForeignSpend:
    used = dict(sample.named_parts("model_usage"))
    tokens = [_tokens(usage) for usage in used.values()]
    known = [count for count in tokens if count is not None]
    return ForeignSpend(
        price=_price(used, cut_off=cut_off),
        # No usage at all is what a provider without counts leaves too: it is unknown, and not 0.
        tokens=sum(known) if known and len(known) == len(tokens) else None,
        calls=sample.maybe_whole("turn_count"),
        wall_s=sample.maybe_amount("total_time"),
    )


def _tokens(usage: Fields) -> int | None:
    """Tokens of all directions: Inspect's own total, else the sum of the directions if it left the total out."""
    total = usage.maybe_whole("total_tokens")
    directions = [usage.maybe_whole(name) for name in _USAGE]
    return total or sum(count for count in directions if count is not None) or None


def _price(used: Mapping[str, Fields], *, cut_off: bool) -> Price:
    costs = [usage.maybe_amount("total_cost") for usage in used.values()]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return VoidPrice(reason="the log has no cost: Inspect knows no price of the model")
    if len(known) < len(costs):
        return LowerBoundPrice(usd=sum(known), reason="a model that was called has no price in the log")
    if cut_off:
        return LowerBoundPrice(
            usd=sum(known), reason="the sample did not end by itself: a call under way is not counted"
        )
    return ExactPrice(usd=sum(known))


def _exception(message: str) -> dict[str, str]:
    return {"exception": exception_of(message)[:100] or "unnamed"}


def _labels(sample: Fields, model: str) -> dict[str, str]:
    """Words that are kept and not counted: `models` where others than the condition's were called."""
    used = dict(sample.named_parts("model_usage"))
    error, limit = sample.maybe_part("error"), sample.maybe_part("limit")
    working = sample.maybe_amount("working_time")
    labels = {
        "exception": _exception(error.maybe_text("message") or "")["exception"] if error is not None else "",
        "limit": f"{limit.text('type')} {limit.raw('limit')}"[:100] if limit is not None else "",
        "working_s": "" if working is None else f"{working:g}",
        "models": ", ".join(used) if set(used) - {model} else "",
        "uuid": sample.maybe_text("uuid") or "",
        "calls": "none" if sample.raw("turn_count") == 0 and not used else "",
    }
    for name, usage in used.items():
        counts = [f"{key}={usage.maybe_whole(key)}" for key in _USAGE if usage.maybe_whole(key) is not None]
        labels[f"usage {name}"] = " ".join(counts)
    return {name: text for name, text in labels.items() if text}
