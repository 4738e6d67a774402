"""The conversation that fits the window: what is left out, in which order, and what always stays."""

from hypothesis import given
from hypothesis import strategies as st

from harness.messages import Decoding, Message, ToolCall
from harness.seats.history import History

SYSTEM, USER = Message(role="system", content="brief"), Message(role="user", content="task")


def history(*turns, num_ctx=1000, num_predict=100):
    """A history whose turns are (answer, result, ...) texts."""
    made = History(start=(SYSTEM, USER), decoding=Decoding(num_ctx=num_ctx, num_predict=num_predict))
    for answer, *results in turns:
        made.add(Message(role="assistant", content=answer), [Message(role="user", content=text) for text in results])
    return made


def texts(made):
    """The contents of what is sent."""
    return [message.content for message in made.fitted().messages]


def test_what_fits_is_sent_whole():
    """Nothing is touched as long as there is room."""
    made = history(("a", "one"), ("b", "two"))
    assert texts(made) == ["brief", "task", "a", "one", "b", "two"]
    assert (made.fitted().shortened, made.fitted().dropped, made.fitted().cut) == (0, 0, False)


def test_the_oldest_results_go_first():
    """Old long results become a word; the model's own answers and the newest result stay."""
    made = history(("a", "x" * 900), ("b", "y" * 900), ("c", "z" * 300))
    assert texts(made) == ["brief", "task", "a", "[left out: an earlier result]", "b", "y" * 900, "c", "z" * 300]
    assert made.fitted().shortened == 1


def test_then_the_oldest_turns_go():
    """Where shortening isn't enough, whole turns go, so that no result is without its call."""
    made = history(*[(f"{n}" * 150, "r" * 300) for n in range(10)])
    fitted = made.fitted()
    assert fitted.dropped > 0
    assert fitted.messages[:2] == (SYSTEM, USER)
    assert [message.role for message in fitted.messages[2:]] == ["assistant", "user"] * (10 - fitted.dropped)
    assert fitted.messages[-1].content == "r" * 300


def test_at_last_the_newest_is_cut():
    """One turn that is too large for the window is cut, call arguments included, and says so."""
    made = history(("a", "one"))
    call = ToolCall(id="1", name="write", arguments={"path": "p", "content": "c" * 9000}, raw="c" * 9000)
    made.add(
        Message(role="assistant", content="t" * 9000, tool_calls=(call,)), [Message(role="tool", content="r" * 9000)]
    )
    fitted = made.fitted()
    assert fitted.cut
    assert fitted.dropped == 1
    assert len(fitted.messages) == 4
    assert all(message.content.endswith("does not fit into the window]") for message in fitted.messages[2:])
    assert fitted.messages[2].tool_calls[0].arguments["path"] == "p"
    assert sum(len(message.content) + sum(len(c.raw) for c in message.tool_calls) for message in fitted.messages) < 1800


def test_the_history_itself_keeps_everything():
    """Fitting makes a copy: a result that was shortened once is whole in the next turn if it fits then."""
    made = history(("a", "x" * 5000), ("b", "two"))
    made.fitted()
    assert made.turns[0][1].content == "x" * 5000


TURN = st.tuples(st.text(max_size=300), st.text(max_size=600))


@given(st.lists(TURN, max_size=12), st.integers(min_value=300, max_value=3000))
def test_whatever_is_said_fits(turns, num_ctx):
    """At two bytes a token the turns fit beside the start, as long as the least share of the newest turn does."""
    fitted = history(*turns, num_ctx=num_ctx, num_predict=50).fitted()
    room = (num_ctx - 50) * 2 - 2 * 32 - len("brieftask")
    used = sum(len(message.content.encode()) + 32 for message in fitted.messages[2:])
    assert used <= max(room, 2 * (200 + 32 + 60))
    assert fitted.messages[:2] == (SYSTEM, USER)
    assert fitted == history(*turns, num_ctx=num_ctx, num_predict=50).fitted()
