"""
Whether a text can stand as a treatment's placebo: the same shape, and none of its words.

Every measure has a limit that is registered with the placebo. Two controls are measured by the same limits and must be
refused: the treatment as its own placebo, and an empty text. Limits that let one of them through measure nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.text_shape import imperatives, sections, words

__all__ = ["Acceptance", "Limits", "Measure", "accept", "longest_common_run", "measure", "overlap"]

Share = Annotated[float, Field(ge=0, le=1)]


class Limits(BaseModel):
    """How far a placebo may be from its treatment in shape, and how near in words."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    length: Share = 0.1
    """The most by which its characters, and its words, may differ from the treatment's, as a share of those."""
    imperatives: Share = 0.1
    """The same for its imperative sentences; one more or less is always allowed."""
    sections: bool = True
    """Whether headings (with their levels), paragraphs, lists and code blocks must follow each other as there."""
    shingle: Annotated[int, Field(ge=1, le=20)] = 4
    """How many words in a row make a shingle."""
    overlap: Share = 0.05
    """The most that the shingles of both may share: those in common, as a share of all."""
    run: Annotated[int, Field(ge=0, le=1000)] = 6
    """The most words in a row that both may have in common."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One measure of a placebo beside its treatment: both values as a person reads them, and whether it is held."""

    name: str
    held: bool
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """The measures of a placebo; `let_through` names the controls that the limits did not refuse."""

    measures: tuple[Measure, ...]
    let_through: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether every measure is held and both controls were refused."""
        return not self.let_through and all(one.held for one in self.measures)


def accept(treatment: str, placebo: str, limits: Limits) -> Acceptance:
    """Measure `placebo` against `treatment`, and the two controls by the same limits."""
    controls = {"the treatment itself": treatment, "an empty text": ""}
    return Acceptance(
        measures=measure(treatment, placebo, limits),
        let_through=tuple(
            name for name, text in controls.items() if all(one.held for one in measure(treatment, text, limits))
        ),
    )


def measure(treatment: str, placebo: str, limits: Limits) -> tuple[Measure, ...]:
    """All measures, in the order of the limits."""
    theirs, ours = words(treatment), words(placebo)
    return (
        _near("characters", len(treatment), len(placebo), limits.length),
        _near("words", len(theirs), len(ours), limits.length),
        _near("imperatives", imperatives(treatment), imperatives(placebo), limits.imperatives, slack=1),
        _sections(sections(treatment), sections(placebo), wanted=limits.sections),
        _overlap(theirs, ours, limits),
        _run(theirs, ours, limits.run),
    )


def _near(name: str, wanted: int, got: int, share: float, *, slack: int = 0) -> Measure:
    """Whether `got` is within a share of `wanted`, or within `slack` of it."""
    room = max(slack, int(wanted * share + 1e-9))
    low, high = max(0, wanted - room), wanted + room
    detail = f"{got} {name}, the treatment has {wanted}: expected {low} to {high}"
    return Measure(name=name, held=low <= got <= high, detail=detail)


def _sections(theirs: Sequence[str], ours: Sequence[str], *, wanted: bool) -> Measure:
    """Whether the blocks follow each other alike, with the first place where they don't."""
    if not wanted:
        return Measure(name="sections", held=True, detail="the order of sections is not compared")
    for number in range(max(len(theirs), len(ours))):
        there, here = (blocks[number] if number < len(blocks) else "nothing more" for blocks in (theirs, ours))
        if there != here:
            detail = f"section {number + 1} is {here}, the treatment has {there} there: expected the same order"
            return Measure(name="sections", held=False, detail=detail)
    return Measure(name="sections", held=True, detail=f"the same order of {len(theirs)} sections")


def _overlap(theirs: Sequence[str], ours: Sequence[str], limits: Limits) -> Measure:
    share = overlap(theirs, ours, limits.shingle)
    detail = f"{share:.3f} of all {limits.shingle}-word shingles are in both: expected at most {limits.overlap:g}"
    return Measure(name="overlap", held=share <= limits.overlap, detail=detail)


def _run(theirs: Sequence[str], ours: Sequence[str], most: int) -> Measure:
    run = longest_common_run(theirs, ours)
    shown = " ".join(run[:12]) + (" ..." if len(run) > 12 else "")
    detail = f"{len(run)} words in a row are the treatment's ({shown!r}): expected at most {most}"
    return Measure(name="run", held=len(run) <= most, detail=detail)


def overlap(left: Sequence[str], right: Sequence[str], size: int) -> float:
    """Jaccard's index of both texts' shingles. A text shorter than a shingle is one; two empty texts share nothing."""
    one, other = _shingles(left, size), _shingles(right, size)
    return len(one & other) / len(one | other) if one or other else 0.0


def _shingles(text: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(text[at : at + size]) for at in range(max(1, len(text) - size + 1))} if text else set()


def longest_common_run(left: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
    """
    The longest run of words that stands in both; of several the one that ends first in `right`.

    Walks `right` through the suffix automaton of `left` (Blumer et al. 1985): linear in the number of words.
    """
    ways, links, lengths = _suffix_automaton(left)
    state = length = best = end = 0
    for at, word in enumerate(right, start=1):
        while state and word not in ways[state]:
            state = links[state]
            length = lengths[state]
        if word in ways[state]:
            state, length = ways[state][word], length + 1
        if length > best:
            best, end = length, at
    return tuple(right[end - best : end])


def _suffix_automaton(text: Sequence[str]) -> tuple[list[dict[str, int]], list[int], list[int]]:
    """The transitions, suffix links and longest lengths of the automaton's states; state 0 is the start."""
    ways: list[dict[str, int]] = [{}]
    links, lengths, last = [-1], [0], 0
    for word in text:
        new = len(ways)
        ways.append({})
        links.append(0)
        lengths.append(lengths[last] + 1)
        state = last
        while state != -1 and word not in ways[state]:
            ways[state][word] = new
            state = links[state]
        if state != -1:
            old = ways[state][word]
            if lengths[old] != lengths[state] + 1:
                clone = len(ways)
                ways.append(dict(ways[old]))
                links.append(links[old])
                lengths.append(lengths[state] + 1)
                while state != -1 and ways[state].get(word) == old:
                    ways[state][word] = clone
                    state = links[state]
                links[old] = clone
                old = clone
            links[new] = old
        last = new
    return ways, links, lengths
