"""Degenerate candidates that a verifier must reject before it judges anything: none of them proves anything."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.tree import Tree
from referees.verifier_card import Contract
from referees.verifier_text import bodies, tokens

__all__ = ["battery"]


def battery(contract: Contract) -> Mapping[str, Tree]:
    """
    By name: no text, no program, no member; and the contract itself in the place of a solution, whose members have no
    body, a body that assumes everything, a body that does nothing, or no proof asked of them.
    """
    module = _imported(contract)
    texts = {
        "empty": "",
        "no_program": "this is no program\n",
        "no_member": f"module {module} {{ }}\n",
        "bodiless": _claims(contract, module, ""),
        "assumed": _claims(contract, module, "{ assume false; }"),
        "nothing_done": _claims(contract, module, "{ }"),
        "unverified": _claims(contract, module, "{ }").replace("module ", "module {:verify false} ", 1),
    }
    return {name: Tree.of({contract.card.file: text}) for name, text in texts.items()}


def _imported(contract: Contract) -> str:
    """The module that the goals take the candidate's members from: the imported one that the judge does not hold."""
    imported = re.findall(r"\bimport\s+(?:opened\s+)?(?:\w+\s*=\s*)?(\w+)", contract.goals)
    return next((name for name in imported if name not in contract.spec_modules), "Solution")


def _claims(contract: Contract, module: str, body: str) -> str:
    """The goals as if they were a solution: renamed, without the import of the real one, each body replaced."""
    text = contract.goals
    for start, end in reversed(bodies(tokens(text))):
        text = text[:start] + body + text[end:]
    text = re.sub(rf"\bimport\s+(?:opened\s+)?(?:\w+\s*=\s*)?{module}\b", "", text)
    return re.sub(rf"\bmodule(\s+){contract.goal_module}\b", rf"module\g<1>{module}", text)
