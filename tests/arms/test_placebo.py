"""The measures of a placebo: each says yes and no, and the controls are refused whatever the texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.placebo import Limits, accept, longest_common_run, measure, overlap
from harness.text_shape import imperatives, sections, words
from tests.arms.folders import DIET, LOOKALIKE

LIMITS = Limits()
LETTERS = st.lists(st.sampled_from("abc"), max_size=24)
TEXTS = st.lists(
    st.sampled_from(
        ["# Head", "## Part", "Read the page.", "- item one", "1. Keep it.", "Grey roofs stand.", "", "```"]
    ),
    max_size=14,
).map("\n".join)


def failing(treatment, placebo, limits=LIMITS):
    """The measures that a placebo misses."""
    return [one.name for one in measure(treatment, placebo, limits) if not one.held]


def test_a_text_of_the_same_shape_and_other_words_is_accepted():
    """All six measures hold, and both controls are refused."""
    assert accept(DIET, LOOKALIKE, LIMITS).accepted


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        (LOOKALIKE.replace("grey", "grey" * 20), ["characters"]),
        (LOOKALIKE.replace("Wait while it rains", "W i t w l e t s n a p"), ["words"]),
        (LOOKALIKE.replace("Name", "Tall").replace("Draw", "Dark"), ["imperatives"]),
        (LOOKALIKE.replace("## ", "# "), ["sections"]),
        (LOOKALIKE.replace("- ", ""), ["sections"]),
        (LOOKALIKE.replace("- Draw", "\nMany\n\n- Draw"), ["sections"]),
        (DIET, ["overlap", "run"]),
        (
            LOOKALIKE.replace("Mark any roof there", "one check first then the code that"),
            ["overlap", "run"],
        ),
        ("", ["characters", "words", "imperatives", "sections"]),
        (LOOKALIKE[:60], ["characters", "words", "imperatives", "sections"]),
    ],
)
def test_each_measure_can_say_no(changed, missed):
    """A text that misses one measure is refused by that one."""
    assert set(missed) <= set(failing(DIET, changed))
    assert not accept(DIET, changed, LIMITS).accepted


def test_limits_can_be_registered_apart():
    """What one limit refuses another lets be."""
    longer = LOOKALIKE.replace("grey", "grey" * 20)
    assert failing(DIET, longer, Limits(length=0.5)) == []
    assert failing(DIET, LOOKALIKE.replace("## ", "# "), Limits(sections=False)) == []
    for bad in ({"length": 1.1}, {"overlap": float("nan")}, {"shingle": 0}, {"run": -1}, {"lenght": 0.1}):
        with pytest.raises(ValidationError):
            Limits(**bad)


def test_limits_that_let_a_control_through_accept_nothing():
    """The same check that takes the treatment itself, or nothing at all, for a placebo has no force."""
    assert accept(DIET, LOOKALIKE, Limits(overlap=1.0, run=1000)).let_through == ("the treatment itself",)
    wide = Limits(length=1.0, imperatives=1.0, sections=False)
    assert accept(DIET, LOOKALIKE, wide).let_through == ("an empty text",)
    assert not accept(DIET, LOOKALIKE, wide).accepted


@given(TEXTS)
def test_a_text_with_words_is_never_its_own_placebo(text):
    """The control that must fail does, under the limits that hold when none are written down."""
    if words(text):
        assert accept(text, text, LIMITS).let_through == ()
        assert not accept(text, text, LIMITS).accepted
    assert sections(text) == sections(text + "\n\n")
    assert imperatives(text) >= 0


@given(LETTERS, LETTERS)
def test_the_longest_run_is_the_one_that_is_found_by_trying_all(left, right):
    """Against the definition, tried out."""
    runs = {tuple(left[at:end]) for at in range(len(left)) for end in range(at, len(left) + 1)}
    held = [tuple(right[at:end]) for at in range(len(right)) for end in range(at, len(right) + 1)]
    found = longest_common_run(left, right)
    assert len(found) == max((len(run) for run in held if run in runs), default=0)
    assert found == () or (found in runs and found in held)


@given(LETTERS, LETTERS, st.integers(1, 5))
def test_overlap_is_a_share_and_the_same_both_ways(left, right, size):
    """Jaccard's index: 1 for a text with itself, 0 where nothing is shared."""
    assert 0 <= overlap(left, right, size) <= 1
    assert overlap(left, right, size) == overlap(right, left, size)
    assert overlap(left, left, size) == (1.0 if left else 0.0)
    assert overlap(left, [word.upper() for word in right], size) == 0


def test_sections_are_blocks_in_order():
    """Headings with levels, lists once each, code as one block whatever is in it."""
    text = "# A\ntext\nmore\n\nnext\n- a\n  goes on\n\n- b\n1. c\n```\n# no\n\n- no\n```\n### B\n~~~\nopen"
    assert sections(text) == [
        "heading 1", "paragraph", "paragraph", "bullets", "numbers", "code", "heading 3", "code",
    ]  # fmt: skip


def test_imperatives_are_told_by_their_first_verb():
    """After words that may lead; a statement, a question and code have none."""
    assert imperatives("Read it. Please always write a test; then do not stop. Do it.") == 4
    assert imperatives("The code reads a file. Is it read? Tests run.\n\n```\nreturn 1\n```") == 0
    assert imperatives("- Keep it\n  short. Run it\n- never guess\n- don't wait\n- don\u2019t wait\n- it works\n") == 4
