"""The arm check says yes to the built-in arms, and no to each kind of bad arm."""

import pytest

from arms.packets import PacketB, PacketP
from arms.text import TextArm, placebo, plain
from harness import plugins
from harness.arm_check import FORBIDDEN, check_arm


class Fake:
    """An arm that is whatever a test needs."""

    def __init__(self, *, name="fake", seats=frozenset({"oneshot"}), content=b"text", render=None):
        self.name = name
        self.seats = seats
        self._content = content
        self._render = render or (lambda view: view.instruction)

    @property
    def content(self):
        """What is pinned."""
        return self._content() if callable(self._content) else self._content

    def render(self, view):
        """A round's prompt."""
        return self._render(view)


def errors(arm):
    """The rules that `arm` breaks."""
    return {finding.rule for finding in check_arm(arm) if finding.level == "error"}


def raising(*_):
    """Fails as a plugin may."""
    raise RuntimeError("boom")


def counter():
    """A callable that answers with another text each time."""
    state = []

    def tick(*_):
        state.append(1)
        return str(len(state))

    return tick


TICK = counter()


@pytest.mark.parametrize("name", sorted(plugins.table("arms")))
def test_registered_arms_are_clean(name):
    """No arm that is installed has an error or a warning, but for those that lack a corpus, which say so."""
    found = [finding.rule for finding in check_arm(plugins.load("arms", name)()) if finding.level != "note"]
    assert found == (["lacks"] if name.startswith(("INVERT", "LINUCB")) else [])


@pytest.mark.parametrize(
    ("arm", "rule"),
    [
        (Fake(name=""), "name"),
        (Fake(seats=frozenset()), "seats"),
        (Fake(seats="oneshot"), "seats"),
        (Fake(seats=frozenset({"oneshoot"})), "seats"),
        (Fake(content="text"), "content"),
        (Fake(content=raising), "content"),
        (Fake(content=lambda: TICK().encode()), "content"),
        (Fake(content=b"x" * 65_537), "size"),
        (Fake(content=b"\xef\xbb\xbfhi"), "bom"),
        (Fake(content=b"\xff"), "utf-8"),
        (Fake(content=b"a\0b"), "characters"),
        (Fake(content=b"See the hidden tests."), "words"),
        (Fake(render=raising), "render"),
        (Fake(render=lambda view: None), "render"),
        (Fake(render=lambda view: view.instruction + TICK()), "render"),
        (Fake(render=lambda view: view.instruction + "".join(view.extras)), "render"),
        (Fake(render=lambda view: view.instruction + "\ud800"), "render"),
        (Fake(render=lambda view: view.instruction * 10_000), "render"),
        (Fake(render=lambda view: "do something"), "sees"),
    ],
)
def test_bad_arms_are_found(arm, rule):
    """Each rule of the check can say no."""
    assert rule in errors(arm)


def test_a_good_fake_has_no_error():
    """The fakes above fail for the rule under test and for nothing else."""
    assert errors(Fake()) == set()


@pytest.mark.parametrize("word", FORBIDDEN)
def test_forbidden_words_are_found_in_any_case(word):
    """The whole list is looked for, as words and not as parts of words."""
    assert errors(TextArm("mine", f"one\n{word.upper()}.".encode())) == {"words"}
    assert errors(TextArm("mine", f"x{word}x".encode())) == set()


def test_suspect_words_and_hidden_characters_warn():
    """What may be innocent is a warning, and the place is named."""
    found = check_arm(TextArm("mine", "Treat it as an experiment\u202e.\r\n".encode()))
    warnings = {finding.rule: finding.detail for finding in found if finding.level == "warning"}
    assert "line 1 says 'experiment'" in warnings["words"]
    assert "U+202E" in warnings["characters"]
    assert "U+000D" in warnings["characters"]


def test_the_graver_finding_comes_first():
    """A reader who stops early has seen the errors."""
    order = ["error", "warning", "note"]
    levels = [finding.level for finding in check_arm(TextArm("mine", b"An experiment with hidden tests."))]
    assert levels == sorted(levels, key=order.index)
    assert set(levels) == set(order)


def seen(arm):
    """What the check says that each round shows."""
    return [finding.detail for finding in check_arm(arm) if finding.rule == "sees"]


def test_what_an_arm_shows_is_told_by_round():
    """The check sees what reaches a prompt: P shows the previous code from round 2 on, and never a fact."""
    base = "the instruction, the extras"
    assert seen(PacketP()) == [
        f"round 1 shows {base}",
        f"round 2 shows {base}, the previous code",
        f"round 3 shows {base}, the previous code",
    ]
    for arm in (PacketB(), plain(), placebo()):
        assert seen(arm) == [f"round {number} shows {base}" for number in (1, 2, 3)]


def test_shown_facts_are_told():
    """An arm that does show facts, counts, details or the reading's class is seen to do so."""

    def render(view):
        parts = [view.instruction, *sorted(view.details.values())]
        if view.previous is not None:
            reading = view.previous.reading
            parts += [reading.reading, f"{reading.passed}/{reading.total}"]
            parts += [f"{fact.call} == {fact.expected}" for fact in reading.facts]
        return "\n".join(parts)

    last = seen(Fake(render=render))[-1]
    for what in ("the task's details", "class", "passed", "facts: the calls", "facts: the expected values"):
        assert what in last
    assert "the previous code" not in last
