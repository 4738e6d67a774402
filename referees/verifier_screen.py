"""
The screen of the `dafny` referee: what makes the verifier believe instead of prove.

Each rule has the name by which a card's `forbidden` and the instruction call it. Two looks are taken: at the words of
the text, and at what the verifier's own compiler says of the resolved program, which no spelling gets round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from types import MappingProxyType

from referees.verifier_text import Token

__all__ = ["ATTRIBUTES", "RULES", "audited", "screened"]

ATTRIBUTES = frozenset({"induction", "opaque", "trigger"})
"""
Attributes that can only help or hinder a proof. All others are refused: some switch proofs off (`verify`), some turn
statements into axioms (`axiom`, `extern`, `assumption`), some hide code from the second look (`compile`), and what the
verifier does not know it passes on to its back end.
"""

Rule = Callable[[Sequence[Token], frozenset[str], str], Iterator[Token]]

_MEMBERS = frozenset(
    (
        *("class", "codatatype", "colemma", "const", "constructor", "copredicate", "datatype", "export", "function"),
        *("import", "iterator", "lemma", "method", "module", "newtype", "predicate", "type"),
    )
)
"""Words that begin another member, and stand in no expression."""


def _word(name: str) -> Rule:
    def rule(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
        del allowed, spec
        return (token for token in found if token.kind in ("word", "mark") and token.text == name)

    return rule


def _attributes(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    """The names of attributes; between the brace and the colon the verifier takes blanks and comments."""
    del spec
    for place, (brace, colon) in enumerate(pairwise(found)):
        if (brace.text, colon.text) == ("{", ":"):
            name = found[place + 2] if place + 2 < len(found) else colon
            if name.text not in allowed:
                yield name


def _endless(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    del allowed, spec
    for word, star in pairwise(found):
        if (word.kind, word.text, star.text) == ("word", "decreases", "*"):
            yield word


def _included(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    del allowed
    for word, name in zip_longest(found, found[1:]):
        if (word.kind, word.text) == ("word", "include") and (name is None or name.text != f'"{spec}"'):
            yield word


def _arrows(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    """Types of functions: `->`, `~>`, and `-->`, which ends in the first."""
    del allowed, spec
    return (token for token in found if token.kind == "mark" and token.text in ("->", "~>"))


def _reading_lambdas(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    """
    Each `=>` that is no `case`'s and has a `reads` before it, in the same brackets and the same member. What is kept by
    depth: whether a `reads` was seen, and how many cases wait for their `=>` (one may stand in what a lambda reads).
    """
    del allowed, spec
    depths: list[tuple[Token | None, int]] = [(None, 0)]
    for token in found:
        reads, cases = depths[-1]
        if token.text in ("(", "[", "{"):
            depths.append((None, 0))
        elif token.text in (")", "]", "}"):
            depths = depths[:-1] or [(None, 0)]
        elif token.kind == "word" and token.text in _MEMBERS:
            depths[-1] = (None, 0)
        elif (token.kind, token.text) == ("word", "reads"):
            depths[-1] = (token, cases)
        elif (token.kind, token.text) == ("word", "case"):
            depths[-1] = (reads, cases + 1)
        elif token.text == "=>" and cases:
            depths[-1] = (reads, cases - 1)
        elif token.text == "=>" and reads is not None:
            yield reads


def _bodiless(found: Sequence[Token], allowed: frozenset[str], spec: str) -> Iterator[Token]:
    """What stands without a body is told by the second look alone."""
    del found, allowed, spec
    return iter(())


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "assume": _word("assume"),
        "abstract": _word("abstract"),
        # A ghost variable of a trait's type needs no object, and has the members of one: nobody has to implement them.
        "trait": _word("trait"),
        "include": _included,
        "decreases *": _endless,
        "...": _word("..."),
        "{:": _attributes,
        "without a body": _bodiless,
        # A function that is kept in an object, or taken out of one, can come to call itself: nothing looks for its end.
        "->": _arrows,
        "a lambda that reads": _reading_lambdas,
        # A datatype may hold infinite sets of itself, as many as it has values and more.
        "iset": _word("iset"),
        "imap": _word("imap"),
    }
)

_BELIEVED = re.compile(
    r"^[^\n()]{1,200}\((\d+),\d+\): Error: "
    r"((?:Function|Method|Iterator) \S+ has no body"
    r"|an assume statement cannot be compiled"
    r"|an? [a-z]+ statement without a body cannot be compiled)$"
)


def screened(found: Sequence[Token], forbidden: Sequence[str], attributes: Sequence[str], spec: str) -> str | None:
    """Where the first forbidden thing stands, as a sentence; None where the words show none."""
    allowed = ATTRIBUTES | frozenset(attributes)
    for name in forbidden:
        rule = RULES.get(name) or _word(name)
        for token in rule(found, allowed, spec):
            return f"line {token.line}: {token.text[:80]!r} breaks the rule {name!r} of the instruction"
    return None


def audited(line: str) -> str | None:
    """What the verifier's compiler found believed and not proved, by a line of its output, as a sentence; else None."""
    match = _BELIEVED.match(line)
    return None if match is None else f"line {match.group(1)}: {match.group(2)}, as the verifier's own compiler says"
