"""A sealed EvalPlus record as a suite: two tiers of calls, their rule, the prelude, and the digest that names them."""

from __future__ import annotations

import ast
import json
import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.canonical import digest_bytes, digest_json
from harness.errors import RefereeError
from harness.tasks.evalplus import SUITE_FILE
from harness.tasks.evalplus_inputs import convert_inputs
from harness.tasks.task import SealedHalf
from referees.evalplus_compare import DEFAULT_ATOL, RTOL, Rule, rule_for
from referees.evalplus_options import EvalPlusOptions
from referees.evalplus_render import FACT_CHARS, RENDERER

__all__ = ["TIERS", "Suite", "Tier", "load_suite", "prelude_of", "referee_source"]

Tier: TypeAlias = Literal["public", "hidden"]
TIERS: tuple[Tier, Tier] = ("public", "hidden")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One task's suite. `calls` holds the arguments of each call, by tier."""

    task_id: str
    entry_point: str
    reference: str
    prelude: str
    rule: Rule
    atol: float
    calls: Mapping[Tier, tuple[list[Any], ...]]
    options: EvalPlusOptions

    def blobs(self, tier: Tier) -> list[bytes]:
        """The arguments of each call as the bytes that the cell gets: each call decodes its own copy."""
        return [marshal.dumps(args, 2) for args in self.calls[tier]]

    @cached_property
    def description(self) -> dict[str, Any]:
        """Everything that a verdict by this suite depends on, as JSON data; `digest` is the SHA-256 of the rest."""
        rest: dict[str, Any] = {
            "task_id": self.task_id,
            "entry_point": self.entry_point,
            "reference": digest_bytes(self.reference.encode()),
            "inputs": {tier: digest_bytes(b"".join(self.blobs(tier))) for tier in TIERS},
            "counts": {tier: len(self.calls[tier]) for tier in TIERS},
            "rule": {"name": self.rule, "atol": self.atol, "default_atol": DEFAULT_ATOL, "rtol": RTOL},
            "prelude": digest_bytes(self.prelude.encode()),
            "renderer": {"version": RENDERER, "fact_chars": FACT_CHARS},
            "options": self.options.model_dump(mode="json"),
        }
        return {**rest, "digest": digest_json(rest)}

    @property
    def digest(self) -> str:
        """The suite's name: SHA-256 over its inputs, reference, rule and options."""
        digest: str = self.description["digest"]
        return digest


def load_suite(sealed: SealedHalf, options: EvalPlusOptions) -> Suite:
    """The suite that `sealed` holds. Raises `RefereeError` when it holds none."""
    try:
        record = json.loads(sealed.tests[SUITE_FILE])
        public, plus = (convert_inputs(record["task_id"], record[key]) for key in ("base_input", "plus_input"))
        prompt, entry_point = record["prompt"], record["entry_point"]
        reference, atol = prompt + record["canonical_solution"], float(record["atol"])
        rule = rule_for(record["task_id"], entry_point)
    except (KeyError, TypeError, ValueError) as error:
        raise RefereeError(
            f"tests/{SUITE_FILE} of {sealed!r} is not a suite ({type(error).__name__}): expected a record that "
            "harness.tasks.evalplus.load_evalplus made"
        ) from None  # the cause's text may hold sealed material
    hidden = plus if options.hidden_cap == "all" else plus[: options.hidden_cap]
    return Suite(
        task_id=record["task_id"],
        entry_point=entry_point,
        reference=reference,
        prelude=prelude_of(prompt, entry_point) if options.prelude else "",
        rule=rule,
        atol=atol,
        calls={"public": tuple(public), "hidden": tuple(hidden)},
        options=options,
    )


def prelude_of(prompt: str, entry_point: str) -> str:
    """
    The imports, helpers and constants of a prompt: all of its statements but the entry point's own and bare texts.

    A model that was asked for the function alone may rely on what the prompt had already written above it.
    """
    try:
        tree = ast.parse(prompt)
    except SyntaxError:  # a prompt that stops at the signature
        tree = ast.parse("")
        for tail in ("\n    pass\n", "\n        pass\n"):
            try:
                tree = ast.parse(prompt + tail)
                break
            except SyntaxError:
                continue
    kept = [
        node
        for node in tree.body
        if not isinstance(node, ast.Expr)
        and not (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == entry_point)
    ]
    return "\n".join(filter(None, (ast.get_source_segment(prompt, node) for node in kept)))


def referee_source() -> str:
    """SHA-256 over the source of this referee's modules, so that a registration pins all of them."""
    folder = Path(__file__).parent
    names = sorted(path.name for path in folder.glob("evalplus*.py"))
    return digest_json({name: digest_bytes((folder / name).read_bytes()) for name in names})
