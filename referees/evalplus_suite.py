"""A sealed EvalPlus record as a suite: two tiers of calls, their rule, the prelude, and the digest that names them."""

from __future__ import annotations

import ast
import json
import marshal
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from harness.canonical import digest_bytes, digest_json
from harness.errors import RefereeError
from harness.tasks import evalplus_inputs
from harness.tasks.evalplus import SUITE_FILE
from harness.tasks.task import SealedHalf
from referees.evalplus_cell import packed
from referees.evalplus_compare import DEFAULT_ATOL, RTOL, Rule, rule_for
from referees.evalplus_decoded import TIERS, Decoded, Tier, keep, recall
from referees.evalplus_options import EvalPlusOptions
from referees.evalplus_render import FACT_CHARS, RENDERER

__all__ = ["TIERS", "Suite", "Suites", "Tier", "load_suite", "prelude_of", "referee_source"]

_KEPT_SUITES = 600


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One task's suite. `inputs` holds the calls of each tier as the cell gets them, `counts` says how many."""

    task_id: str
    entry_point: str
    reference: str
    prelude: str
    rule: Rule
    atol: float
    inputs: Mapping[Tier, bytes]
    counts: Mapping[Tier, int]
    options: EvalPlusOptions

    def args(self, tier: Tier, index: int) -> list[Any]:
        """The arguments of a call, a copy of their own."""
        if tier not in self._blobs:
            self._blobs[tier] = marshal.loads(self.inputs[tier])  # noqa: S302 - written by this referee
        args: list[Any] = marshal.loads(self._blobs[tier][index])  # noqa: S302 - the same
        return args

    def total(self, tier: Tier) -> int:
        """How many calls a tier has."""
        return self.counts[tier]

    @cached_property
    def _blobs(self) -> dict[Tier, list[bytes]]:
        """The marshalled arguments of each call of the tiers that were asked for: each use decodes its own copy."""
        return {}

    @cached_property
    def material(self) -> dict[str, Any]:
        """What the expected values depend on, as JSON data."""
        return {
            "task_id": self.task_id,
            "entry_point": self.entry_point,
            "reference": digest_bytes(self.reference.encode()),
            "inputs": {tier: digest_bytes(self.inputs[tier]) for tier in TIERS},
            "prelude": digest_bytes(self.prelude.encode()),
            "rule": self.rule,
            "python": self.options.python,
        }

    @cached_property
    def material_digest(self) -> str:
        """SHA-256 of the material."""
        return digest_json(self.material)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Everything that a verdict by this suite depends on, as JSON data; `digest` is the SHA-256 of the rest."""
        rest: dict[str, Any] = {
            **self.material,
            "counts": dict(self.counts),
            "rule": {"name": self.rule, "atol": self.atol, "default_atol": DEFAULT_ATOL, "rtol": RTOL},
            "renderer": {"version": RENDERER, "fact_chars": FACT_CHARS},
            "options": self.options.model_dump(mode="json"),
            "source": referee_source(),
        }
        return {**rest, "digest": digest_json(rest)}

    @cached_property
    def digest(self) -> str:
        """The suite's name: SHA-256 over its inputs, reference, rule, options, and the referee's own source."""
        digest: str = self.description["digest"]
        return digest


class Suites:
    """Suites by the record they are made from: the last few hundred, since candidates of one task come together."""

    def __init__(self, options: EvalPlusOptions) -> None:
        self._options = options
        self._kept: OrderedDict[bytes, Suite] = OrderedDict()

    def __call__(self, sealed: SealedHalf) -> Suite:
        """The suite that `sealed` holds. Raises `RefereeError` when it holds none."""
        try:
            key = sealed.tests[SUITE_FILE]
        except KeyError:
            return load_suite(sealed, self._options)
        suite = self._kept.pop(key, None) or load_suite(sealed, self._options)
        self._kept[key] = suite
        if len(self._kept) > _KEPT_SUITES:
            self._kept.popitem(last=False)
        return suite


def load_suite(sealed: SealedHalf, options: EvalPlusOptions) -> Suite:
    """The suite that `sealed` holds. Raises `RefereeError` when it holds none."""
    file = sealed.tests.files.get(SUITE_FILE)
    text = b"" if file is None else file.data
    name = digest_bytes(f"{_decoders()} {options.hidden_cap} {options.prelude}\n".encode() + text)
    decoded = recall(name)
    if decoded is None:
        decoded = _decoded(text, repr(sealed), options)
        keep(name, decoded)
    return Suite(
        task_id=decoded.task_id,
        entry_point=decoded.entry_point,
        reference=decoded.reference,
        prelude=decoded.prelude,
        rule=rule_for(decoded.task_id, decoded.entry_point),
        atol=decoded.atol,
        inputs=decoded.inputs,
        counts=decoded.counts,
        options=options,
    )


def _decoded(text: bytes, label: str, options: EvalPlusOptions) -> Decoded:
    """A record, read. Raises `RefereeError` when `text` is none."""
    try:
        record = json.loads(text)
        task_id, entry_point, prompt = record["task_id"], record["entry_point"], record["prompt"]
        hidden = record["plus_input"] if options.hidden_cap == "all" else record["plus_input"][: options.hidden_cap]
        public, plus = (evalplus_inputs.convert_inputs(task_id, calls) for calls in (record["base_input"], hidden))
        return Decoded(
            task_id=task_id,
            entry_point=entry_point,
            reference=prompt + record["canonical_solution"],
            prelude=prelude_of(prompt, entry_point) if options.prelude else "",
            atol=float(record["atol"]),
            inputs={"public": packed(_marshalled(public)), "hidden": packed(_marshalled(plus))},
            counts={"public": len(public), "hidden": len(plus)},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RefereeError(
            f"tests/{SUITE_FILE} of {label} is not a suite ({type(error).__name__}): expected a record that "
            "harness.tasks.evalplus.load_evalplus made"
        ) from None  # the cause's text may hold sealed material


def _marshalled(calls: list[list[Any]]) -> list[bytes]:
    return [marshal.dumps(args, 2) for args in calls]


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


@cache
def _decoders() -> str:
    """SHA-256 over what decides how a record is read."""
    return digest_json([referee_source(), digest_bytes(Path(evalplus_inputs.__file__).read_bytes())])


@cache
def referee_source() -> str:
    """SHA-256 over the source of this referee's modules, so that a registration pins all of them."""
    folder = Path(__file__).parent
    names = sorted(path.name for path in folder.glob("evalplus*.py"))
    return digest_json({name: digest_bytes((folder / name).read_bytes()) for name in names})
