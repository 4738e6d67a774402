"""Makers of foreign cells for the tests: cells of another harness, as short as the recorded ones of scoring_cases."""

from cells.declared.rows import ForeignCell, ForeignKey, ForeignReading, ForeignSpend
from tests.cells.scoring_cases import end_of, price_of, verdict_of


def foreign_key(id_, arm, task="LRU", replicate=None, *, run="r", extras="none", model="m", benchmark="made"):
    """A foreign cell's name and condition."""
    return ForeignKey(
        run=run, id=id_, benchmark=benchmark, task=task, arm=arm, extras=extras, model=model, replicate=replicate
    )


def foreign(cell, word, *, attempt=1, tokens=100, calls=2, wall_s=3.0, usd=0.5, lower_bound=False):
    """One try of a foreign cell that ended as `word`, in the words of scoring_cases."""
    verdict = verdict_of(word)
    return ForeignCell(
        cell=cell,
        attempt=attempt,
        end=end_of(word),
        spend=ForeignSpend(price=price_of(usd, lower_bound=lower_bound), tokens=tokens, calls=calls, wall_s=wall_s),
        verdict=None if verdict is None else ForeignReading(reading=verdict.reading, standing=verdict.standing),
    )
