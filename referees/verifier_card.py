"""What a card of the `dafny` referee says of a task, and what an experiment may set of the referee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness.canonical import digest_json
from harness.errors import ExperimentError, TaskError
from harness.tasks.card import Card, explain, read_card
from harness.tasks.task import SealedHalf
from harness.tree import clean_path
from referees.verifier_screen import RULES
from referees.verifier_text import Unreadable, modules, read_text, tokens

__all__ = ["GOALS", "Contract", "VerifierCard", "VerifierOptions", "contract", "read_options"]

GOALS = "goals.dfy"
"""The sealed file, in `tests/`, whose methods state the contract once more and call the candidate's."""

Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]{0,63}$")]


class VerifierCard(Card):
    """What the `dafny` referee needs to know of a task."""

    file: str = "solution.dfy"
    """The candidate's file, by its path in the exhibit."""
    spec: str = "spec.dfy"
    """The given file of functions and predicates that the contract speaks of; the exhibit's own copy is passed over."""
    goals: Annotated[list[Word], Field(min_length=1)]
    """Every member of `tests/goals.dfy` that has to be verified, by its name."""
    verified: Annotated[int, Field(ge=1)]
    """How many proofs a run reports at the least; measure it on the reference."""
    attributes: list[Word] = Field(default_factory=list)
    """Attributes that a candidate may use beside `induction`, `opaque` and `trigger`."""
    rlimit: Annotated[int, Field(ge=500_000)] | None = None
    """The solver's own units for one proof; left out, the experiment's."""

    @field_validator("file", "spec")
    @classmethod
    def _clean(cls, value: str) -> str:
        if "/" in clean_path(value) or not value.endswith(".dfy") or value == GOALS:
            raise ValueError(f"expected a NAME.dfy at the top of the exhibit, and not {GOALS!r}")
        return value

    @model_validator(mode="after")
    def _ruled(self) -> Self:
        unruled = [rule for rule in RULES if rule not in self.forbidden]
        if unruled:
            raise ValueError(
                f"forbidden leaves out {unruled}: every rule of the screen stands there, and in the instruction"
            )
        if self.file == self.spec:
            raise ValueError(f"file and spec are both {self.file!r}")
        if len(set(self.goals)) < len(self.goals):
            raise ValueError("goals names a member twice")
        return self


class VerifierOptions(BaseModel):
    """The referee's options."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    rlimit: Annotated[int, Field(ge=500_000)] = 5_000_000
    """What one proof may use, in the solver's own units, which no load of the machine changes."""
    cpu_s: Annotated[int, Field(ge=5)] = 120
    """Seconds of the processor for the verifier and for its solver, each; for work that the units do not count."""
    wall_s: Annotated[float, Field(ge=10)] = 600.0
    """Seconds for one whole run, a backstop."""
    memory_bytes: Annotated[int, Field(ge=1 << 30)] = 3 << 30
    """Bytes of address space of the verifier and of its solver, each; the room's own memory limit holds as well."""


def read_options(options: Mapping[str, Any]) -> VerifierOptions:
    """The options of an experiment file. Raises `ExperimentError` that names what is wrong and what is known."""
    try:
        return VerifierOptions.model_validate(dict(options))
    except ValidationError as error:
        faults = "\n  ".join(explain(error, VerifierOptions, "options"))
        raise ExperimentError(f"options of referee 'dafny':\n  {faults}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """The judge's own side of a task: the texts of specification and goals, and the modules that they declare."""

    card: VerifierCard
    spec: str
    goals: str
    goal_module: str
    spec_modules: frozenset[str]
    rlimit: int

    @property
    def digest(self) -> str:
        """SHA-256 of all that the verdict depends on here."""
        return digest_json(
            {
                "card": self.card.model_dump(mode="json"),
                "spec": self.spec,
                "goals": self.goals,
                "rlimit": self.rlimit,
            }
        )


def contract(sealed: SealedHalf, options: VerifierOptions) -> Contract:
    """
    The contract of a task: its specification as the reference has it, its goals as they stand in `tests/`.

    Raises `TaskError` for a task that is none for this referee.
    """
    card = read_card(VerifierCard, sealed.card, "dafny")
    for part, tree, name in (("environment/", sealed.solution, card.spec), ("tests/", sealed.tests, GOALS)):
        if name not in tree:
            raise TaskError(f"the sealed half has no {part}{name}: it has {', '.join(tree) or 'no file'}")
    try:
        spec, goals = read_text(sealed.solution[card.spec]), read_text(sealed.tests[GOALS])
        declared, own = modules(tokens(goals)), modules(tokens(spec))
    except Unreadable as error:
        raise TaskError(f"{card.spec} or {GOALS} is no text for the verifier: {error}") from None
    if len(declared) != 1:
        raise TaskError(f"tests/{GOALS} declares the modules {declared}: expected exactly one, with all the goals")
    return Contract(
        card=card,
        spec=spec,
        goals=goals,
        goal_module=declared[0],
        spec_modules=frozenset(own),
        rlimit=card.rlimit or options.rlimit,
    )
