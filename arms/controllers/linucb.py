"""
LinUCB with disjoint linear models (Li, Chu, Langford and Schapire 2010, "A contextual-bandit approach to personalized
news article recommendation", Algorithm 1), choosing among the other controllers.

There is no state: before each round the cell's own past is played through again, so that a run that is resumed, and an
audit, come to the same choice. The reward of a round is what the public tests said of its candidate, never the sealed
half. Equal bounds go to the action that is declared first; bounds closer than 1e-9 are equal, since the last digits of
a float are the machine's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

from arms.controllers.inversion import AssumptionInversion
from arms.controllers.kernel import ConstraintKernel
from arms.controllers.options import choice, finite
from arms.controllers.plain import PlainFacts
from arms.controllers.port import Controller, Seen, seen
from arms.controllers.reading import number, value_of
from arms.controllers.trace import OutcomeTrace
from harness.views import PastRound

__all__ = ["ACTIONS", "FEATURES", "LinUCB", "Linear", "features", "reward"]

ACTIONS = ("facts", "trace", "kernel", "inversion")
"""The sub-actions in their declared order."""

FEATURES = ("one", "passed", "raised", "ended", "numbers", "told")
"""
The context: 1; the share of public tests passed; and of the violated assertions the shares that raised, that were
ended, that expect a number, and that say what came instead. Each is from 0 to 1.
"""

_TIE = 1e-9


def features(given: Seen) -> tuple[float, ...]:
    """The context of an incumbent, as `FEATURES` names it."""
    of = max(1, len(given.facts))
    told = [fact.raised is not None or fact.ended is not None or fact.observed is not None for fact in given.facts]
    return (
        1.0,
        given.passed / given.total if given.total else 0.0,
        sum(fact.raised is not None for fact in given.facts) / of,
        sum(fact.ended is not None for fact in given.facts) / of,
        sum(number(value_of(fact.expected)) is not None for fact in given.facts) / of,
        sum(told) / of,
    )


def reward(past: PastRound) -> float:
    """
    What a round brought: 1 for a candidate that the public tests accept, else by how large a share of them it passed
    more than the incumbent, and 0 where it did not, or had no code.
    """
    if past.before is None or past.after is None:
        return 0.0
    if past.after.reading.accepted:
        return 1.0
    gained = past.after.reading.passed - past.before.reading.passed
    return max(0.0, gained / past.after.reading.total) if past.after.reading.total else 0.0


class Linear:
    """One action's model: the inverse of A (at first the identity) and b (at first 0), of Algorithm 1."""

    def __init__(self, size: int) -> None:
        self._inverse = [[float(row == column) for column in range(size)] for row in range(size)]
        self._b = [0.0] * size

    def bound(self, x: Sequence[float], alpha: float) -> float:
        """The upper confidence bound, theta.x + alpha sqrt(x.A^-1 x) with theta = A^-1 b (lines 8 and 9)."""
        spread = self._times(x)
        return math.fsum(map(float.__mul__, self._b, spread)) + alpha * math.sqrt(max(0.0, _dot(x, spread)))

    def learn(self, x: Sequence[float], gained: float) -> None:
        """A + x x' and b + r x (lines 12 and 13); the inverse by the formula of Sherman and Morrison."""
        spread = self._times(x)
        scale = 1.0 + _dot(x, spread)
        for row, left in enumerate(spread):
            for column, right in enumerate(spread):
                self._inverse[row][column] -= left * right / scale
        self._b = [old + gained * each for old, each in zip(self._b, x, strict=True)]

    def _times(self, x: Sequence[float]) -> list[float]:
        return [_dot(row, x) for row in self._inverse]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(one * other for one, other in zip(left, right, strict=True))


class LinUCB:
    """
    Of the sub-actions that fire on an incumbent, the one with the highest bound. It fires where one of them does.

    `alpha` (0 to 100) weighs what is not yet known; `actions` are at least two of `ACTIONS`, in the order that breaks
    ties; `corpus` and `weights` are those of the assumption inversion and the outcome trace. Raises `PluginError` for
    an option that can't be used, a number that is not finite among them.
    """

    name = "linucb"

    def __init__(
        self, alpha: object = 1.0, actions: object = ACTIONS, corpus: bytes | None = None, weights: object = None
    ) -> None:
        self._alpha = finite(self.name, "alpha", alpha, high=100)
        chosen = choice(self.name, "actions", actions, known=ACTIONS, least=2)
        made: dict[str, Controller] = {
            "facts": PlainFacts(),
            "trace": OutcomeTrace(weights),
            "kernel": ConstraintKernel(),
            "inversion": AssumptionInversion(corpus),
        }
        self._actions = {name: made[name] for name in chosen}
        self.lacks = next((lacks for one in self._actions.values() if (lacks := one.lacks) is not None), None)
        self.claims = frozenset[str]().union(*(one.claims for one in self._actions.values()))
        self.settings: Mapping[str, Any] = MappingProxyType(
            {
                "alpha": self._alpha,
                "actions": list(chosen),
                "features": list(FEATURES),
                "of": {name: dict(one.settings) for name, one in self._actions.items()},
            }
        )
        self.templates: Mapping[str, str] = {
            f"{of} {key}": text for of, one in self._actions.items() for key, text in one.templates.items()
        }

    @property
    def actions(self) -> tuple[Controller, ...]:
        """The controllers that it chooses among."""
        return tuple(self._actions.values())

    def lines(self, given: Seen) -> Sequence[str] | None:
        """The lines of the action that is chosen; None where none fires."""
        return self._chosen(given)[1]

    def choose(self, given: Seen) -> str | None:
        """The name of the action that is chosen, None where none fires."""
        return self._chosen(given)[0]

    def _chosen(self, given: Seen) -> tuple[str | None, Sequence[str] | None]:
        models = {name: Linear(len(FEATURES)) for name in self._actions}
        action: str | None = None
        lines: Sequence[str] | None = None
        earlier = ((seen(one.before), one) for one in given.past)
        for then, past in chain(earlier, [(given, None)]):
            if then is None:
                continue
            fired = {name: told for name, one in self._actions.items() if (told := one.lines(then)) is not None}
            context = features(then)
            action = _first_highest({name: models[name].bound(context, self._alpha) for name in fired})
            lines = None if action is None else fired[action]
            if past is not None and action is not None:
                models[action].learn(context, reward(past))
        return action, lines


def _first_highest(bounds: Mapping[str, float]) -> str | None:
    """The first name whose bound is the highest, or closer to it than a machine's last digits."""
    highest = max(bounds.values(), default=0.0)
    return next((name for name, bound in bounds.items() if highest - bound <= _TIE), None)
