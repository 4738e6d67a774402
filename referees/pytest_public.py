"""The public tier of the `pytest` referee: the tests that a card makes public, and the facts that they show."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from harness.clock import fresh_token
from harness.tasks.card import SuiteCard
from harness.tree import Exhibit, Tree
from harness.values import Standing
from harness.views import Fact, PublicReading
from referees.pytest_report import Outcome, Report, sayable

__all__ = ["FACTS", "Found", "PublicTier", "fact", "told"]

FACTS = 6
"""The most facts that a reading carries."""

_ANSWER = "; the subject's last answer: "
"""What stands in a detail before the value that the subject gave last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What one run of a suite came to; `cpu_s` is what the subject used of the processor, in seconds."""

    reading: str
    detail: str = ""
    report: Report | None = None
    cpu_s: float | None = None


def fact(line: str) -> Fact | None:
    """The fact in a violated line of the form `assert CALL == LITERAL`; None for any other line."""
    try:
        (node,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return None
    match node:
        case ast.Assert(test=ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[expected])):
            try:
                ast.literal_eval(expected)
            except ValueError:
                return None
            return Fact(call=ast.unparse(call), expected=ast.unparse(expected))
        case _:
            return None


def told(outcome: Outcome, names: frozenset[str]) -> Fact | None:
    """
    The fact in a violated test's line, and what the subject did instead as far as its detail says so: what ended it,
    the exception that was its last answer, or that answer where the line calls one of its `names` and nothing else.
    """
    known = fact(outcome.line)
    if known is None:
        return None
    if outcome.fault is not None:
        return replace(known, ended=outcome.fault)
    said, _mark, answer = outcome.detail.rpartition(_ANSWER)
    if said and answer.startswith(f"{said.partition(':')[0]}("):
        return replace(known, raised=sayable(said))
    return replace(known, observed=_value(known.call, answer, names) if said.startswith("AssertionError") else None)


def _value(call: str, answer: str, names: frozenset[str]) -> str | None:
    """The subject's last answer as the literal that it is; None where it is none, or may be another call's."""
    try:
        calls = [node.func for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call)]
        own = len(calls) == 1 and isinstance(calls[0], ast.Name) and calls[0].id in names
        return repr(ast.literal_eval(answer)) if own else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicTier:
    """
    A `PublicCheck`: the candidate is the text of the first module of the interface, laid over the environment. `suite`
    is the digest of the whole suite, as a verdict names it.
    """

    card: SuiteCard
    environment: Tree
    standing: Callable[[str], Standing]
    suite: str
    run: Callable[[Exhibit, list[str]], Awaitable[Found]]

    async def __call__(self, code: str) -> PublicReading:
        """Run the public tests, and no other, against `code`."""
        path = f"{self.card.interface[0].module.replace('.', '/')}.py"
        tree = self.environment.merged(Tree.of({path: code}))
        found = await self.run(Exhibit(tree=tree), list(self.card.public))
        report = found.report
        names = frozenset(name for module in self.card.interface for name in module.names)
        facts = [told(outcome, names) for outcome in report.outcomes if outcome.word != "passed"] if report else []
        return PublicReading(
            reading=found.reading,
            accepted=self.standing(found.reading) == "accepted",
            passed=report.passed if report else 0,
            total=len(self.card.public),
            facts=tuple(known for known in facts if known is not None)[:FACTS],
            suite=self.suite,
            execution=fresh_token(),
        )
