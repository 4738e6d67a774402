"""Makers of cells and outcomes for the tests of scoring: short, and only as real as the readings need."""

from harness.outcome import CellOutcome, Spend
from harness.values import (
    CellKey,
    Declared,
    Evidence,
    ExactPrice,
    FailedBoot,
    Halt,
    LowerBoundPrice,
    Refused,
    Usage,
    Verdict,
    Void,
    VoidPrice,
)

REJECTED = {"FAIL", "NO_BUILD", "INTERFACE_MISS", "TIMEOUT", "MEMORY", "CRASH"}


def key(task, arm, replicate=1, *, model="m", extras="none", benchmark="made"):
    """A cell's key; the task may be a number."""
    return CellKey(benchmark=benchmark, task=f"{task}", arm=arm, extras=extras, model=model, replicate=replicate)


def end_of(word):
    """`HALT(tokens)`, `VOID(fence)`, `FAILED_BOOT`, `REFUSED`, or a referee's reading of a declared end."""
    kind, _, what = word.rstrip(")").partition("(")
    match kind:
        case "HALT":
            return Halt(limit=what or "tokens", scope="cell", bound=100.0, spent=101.0)
        case "VOID":
            return Void(cause=what or "workspace", detail="the engine went away")
        case "FAILED_BOOT":
            return FailedBoot(detail="no call was made")
        case "REFUSED":
            return Refused(gate="disjoint", detail="the workspace intersects the denied set")
        case _:
            return Declared()


def verdict_of(word):
    """The verdict beside a declared end."""
    if not isinstance(end_of(word), Declared):
        return None
    standing = "unscorable" if word == "UNSCORABLE" else "rejected" if word in REJECTED else "accepted"
    return Verdict(reading=word, standing=standing, evidence=Evidence(code="c" * 64, suite="s" * 64, execution="e1"))


def price_of(usd, *, lower_bound=False):
    """A price, or none at all for None."""
    if usd is None:
        return VoidPrice(reason="the meter said nothing")
    return LowerBoundPrice(usd=usd, reason="a call without usage") if lower_bound else ExactPrice(usd=usd)


def outcome(cell, word, *, attempt=1, tokens=100, calls=2, wall_s=3.0, usd=0.5, lower_bound=False):
    """One try of a cell that ended as `word`; unknown tokens are None."""
    usage = Usage.zero() if tokens is not None else Usage()
    if tokens is not None:
        usage = usage + Usage(input=tokens, output=0, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    return CellOutcome(
        cell=cell,
        attempt=attempt,
        end=end_of(word),
        spend=Spend(
            usage=usage,
            charged_tokens=tokens or 0,
            estimated=tokens is None,
            calls=calls,
            output_bytes=10,
            wall_s=wall_s,
            price=price_of(usd, lower_bound=lower_bound),
        ),
        verdict=verdict_of(word),
    )


def table(rows, arms=("A", "B")):
    """Declared cells and outcomes of a table of words, one row a task and one column an arm; None is no outcome."""
    declared, outcomes = [], []
    for task, words in enumerate(rows, start=1):
        for arm, word in zip(arms, words, strict=True):
            declared.append(key(task, arm))
            if word is not None:
                outcomes.append(outcome(declared[-1], word))
    return declared, outcomes
