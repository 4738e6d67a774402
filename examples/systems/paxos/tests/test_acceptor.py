from solution import Acceptor


def test_first_prepare_is_promised():
    acceptor = Acceptor()
    assert acceptor.state() == {"promised": None, "accepted": None}
    assert acceptor.prepare((1, 2)) == ("promise", (1, 2), None, None)
    assert acceptor.state() == {"promised": (1, 2), "accepted": None}


def test_lower_or_equal_prepare_is_refused():
    acceptor = Acceptor()
    acceptor.prepare((2, 1))
    assert acceptor.prepare((2, 1)) == ("nack", (2, 1), (2, 1))
    assert acceptor.prepare((1, 9)) == ("nack", (1, 9), (2, 1))
    assert acceptor.state()["promised"] == (2, 1)


def test_proposer_breaks_the_tie_of_a_round():
    acceptor = Acceptor()
    acceptor.prepare((2, 1))
    assert acceptor.prepare((2, 2)) == ("promise", (2, 2), None, None)
    assert acceptor.prepare((10, 1))[0] == "promise"
    assert acceptor.prepare((9, 5))[0] == "nack"


def test_accept_of_the_promised_ballot():
    acceptor = Acceptor()
    acceptor.prepare((1, 1))
    assert acceptor.accept((1, 1), "v") == ("accepted", (1, 1), "v")
    assert acceptor.state() == {"promised": (1, 1), "accepted": ((1, 1), "v")}


def test_accept_below_the_promise_is_refused():
    acceptor = Acceptor()
    acceptor.prepare((2, 1))
    assert acceptor.accept((1, 3), "v") == ("nack", (1, 3), (2, 1))
    assert acceptor.state() == {"promised": (2, 1), "accepted": None}


def test_accept_without_prepare_promises_too():
    acceptor = Acceptor()
    assert acceptor.accept((3, 1), "v") == ("accepted", (3, 1), "v")
    assert acceptor.prepare((2, 1)) == ("nack", (2, 1), (3, 1))


def test_promise_tells_what_is_accepted():
    acceptor = Acceptor()
    acceptor.accept((1, 1), "old")
    assert acceptor.prepare((4, 2)) == ("promise", (4, 2), (1, 1), "old")
    assert acceptor.state() == {"promised": (4, 2), "accepted": ((1, 1), "old")}
    assert acceptor.accept((4, 2), "new") == ("accepted", (4, 2), "new")
    assert acceptor.state() == {"promised": (4, 2), "accepted": ((4, 2), "new")}


def test_value_none_can_be_accepted():
    acceptor = Acceptor()
    acceptor.accept((1, 1), None)
    assert acceptor.state()["accepted"] == ((1, 1), None)
    assert acceptor.prepare((2, 1)) == ("promise", (2, 1), (1, 1), None)
