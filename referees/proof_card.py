"""What the proof referees need to know of a task, and what an experiment may set."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.tasks.card import Card, Limits

__all__ = ["Axiom", "ProofCard", "ProofLimits", "ProofOptions"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
Axiom = Annotated[str, Field(pattern=r"^[^\s\"]{1,200}$")]


class ProofCard(Card):
    """
    The sealed card of a task for a proof referee. `module` and `statement` are the names of two modules: the seat
    writes the first, the second stands in `tests/` as the pristine file and may stand in `environment/` too.
    """

    module: Name = "Proof"
    """The module that the seat writes, in the file of that name at the top of its workspace: `Proof` is `Proof.v`."""
    statement: Name = "Statement"
    """The module that says what is to be proved; its file in `tests/` is the only one that counts."""
    theorems: Annotated[dict[Name, Name], Field(min_length=1)]
    """By name of a theorem in `module`: the definition in `statement` that it must prove."""
    axioms: list[Axiom] = Field(default_factory=list)
    """Every axiom that a proof may rest on, by its full name: `Coq.Logic.Classical_Prop.classic`."""
    limits: Limits = Limits()
    """What compiling or checking may use; what is left out is the referee's own."""

    @model_validator(mode="after")
    def _two_modules(self) -> Self:
        if self.module == self.statement:
            raise ValueError(f"module and statement are both {self.module!r}: expected two modules")
        if {"Coq", "Lean"} & {self.module, self.statement}:
            raise ValueError("module or statement has the name of the assistant's own library: choose another")
        return self


class ProofLimits(BaseModel):
    """What one program that compiles or checks may use."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    cpu_s: int
    wall_s: float
    memory_bytes: int


class ProofOptions(BaseModel):
    """The referee's options; a card's own limits take the place of the first three."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    cpu_s: Annotated[int, Field(ge=1)] = 60
    """Seconds of the processor that each program which compiles or checks may use."""
    wall_s: Annotated[float, Field(gt=0)] = 240.0
    """Seconds by the clock that each of them may take: a backstop, which a busy machine must not reach."""
    memory_bytes: Annotated[int, Field(ge=128 << 20)] = 768 << 20
    """Bytes of address space of each of them."""
    object_bytes: Annotated[int, Field(ge=1 << 16)] = 16 << 20
    """Bytes that the compiled file may have."""

    def limits(self, card: ProofCard) -> ProofLimits:
        """The card's own limits, and these where it has none."""
        own = {key: value for key, value in card.limits.model_dump().items() if value is not None}
        return ProofLimits(**{**self.model_dump(), **own})
