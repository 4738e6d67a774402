import pytest
from solution import Proposer, ProtocolError


def promise(ballot, accepted=None, value=None):
    return ("promise", ballot, accepted, value)


def test_no_acceptor_is_a_value_error():
    with pytest.raises(ValueError):
        Proposer(1, 0, "v")


def test_reply_before_start_is_an_error():
    with pytest.raises(ProtocolError):
        Proposer(1, 3, "v").receive(0, promise((1, 1)))


def test_round_is_above_its_own_and_every_nack():
    proposer = Proposer(1, 3, "v")
    assert proposer.start() == ("prepare", (1, 1))
    assert proposer.start() == ("prepare", (2, 1))
    assert proposer.receive(0, ("nack", (1, 1), (7, 2))) is None
    assert proposer.receive(1, ("nack", (1, 1), (3, 2))) is None
    assert proposer.start() == ("prepare", (8, 1))


def test_quorum_is_more_than_half():
    for acceptors, quorum in ((1, 1), (2, 2), (3, 2), (4, 3), (5, 3)):
        proposer = Proposer(1, acceptors, "v")
        proposer.start()
        answers = [proposer.receive(n, promise((1, 1))) for n in range(acceptors)]
        assert [n for n, answer in enumerate(answers, 1) if answer is not None] == [quorum]
        assert answers[quorum - 1] == ("accept", (1, 1), "v")


def test_same_promise_again_does_not_count():
    proposer = Proposer(1, 3, "v")
    proposer.start()
    assert proposer.receive(0, promise((1, 1))) is None
    assert proposer.receive(0, promise((1, 1))) is None
    assert proposer.receive(1, promise((1, 1))) == ("accept", (1, 1), "v")


def test_promise_of_an_earlier_ballot_does_not_count():
    proposer = Proposer(1, 3, "v")
    proposer.start()
    proposer.receive(0, promise((1, 1)))
    proposer.start()
    assert proposer.receive(1, promise((1, 1))) is None
    assert proposer.receive(2, promise((2, 1))) is None
    assert proposer.receive(1, promise((2, 1))) == ("accept", (2, 1), "v")


def test_value_of_the_highest_accepted_ballot():
    proposer = Proposer(3, 5, "own")
    for _ in range(4):
        proposer.start()
    assert proposer.receive(0, promise((4, 3), (3, 1), "high")) is None
    assert proposer.receive(4, promise((4, 3), (2, 9), "low")) is None
    assert proposer.receive(2, promise((4, 3))) == ("accept", (4, 3), "high")


def test_accepted_none_is_taken_over():
    proposer = Proposer(2, 3, "own")
    proposer.start()
    proposer.receive(0, promise((1, 2), (1, 1), None))
    assert proposer.receive(1, promise((1, 2))) == ("accept", (1, 2), None)


def test_chosen_once():
    proposer = Proposer(1, 3, "v")
    proposer.start()
    proposer.receive(0, promise((1, 1)))
    proposer.receive(1, promise((1, 1)))
    accepted = ("accepted", (1, 1), "v")
    assert proposer.receive(2, accepted) is None
    assert proposer.receive(2, accepted) is None
    assert proposer.chosen is None
    assert proposer.receive(0, accepted) == ("chosen", "v")
    assert proposer.chosen == ("v",)
    assert proposer.receive(1, accepted) is None


def test_accepted_of_an_earlier_ballot_does_not_count():
    proposer = Proposer(1, 1, "v")
    proposer.start()
    proposer.receive(0, promise((1, 1)))
    proposer.start()
    assert proposer.receive(0, promise((2, 1))) == ("accept", (2, 1), "v")
    assert proposer.receive(0, ("accepted", (1, 1), "v")) is None
    assert proposer.chosen is None
    assert proposer.receive(0, ("accepted", (2, 1), "v")) == ("chosen", "v")
