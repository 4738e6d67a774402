import pytest
from solution import Network, ProtocolError


def test_start_sends_to_every_acceptor():
    network = Network(3, ["a"])
    network.start(1)
    assert network.pending() == [("P1", f"A{n}", ("prepare", (1, 1))) for n in range(3)]


def test_quiet_run_chooses_the_value():
    network = Network(3, ["a"])
    network.start(1)
    network.run()
    assert network.pending() == []
    assert network.chosen() == {1: "a"}
    assert network.states() == [{"promised": (1, 1), "accepted": ((1, 1), "a")}] * 3


def test_replies_go_to_the_end():
    network = Network(2, ["a"])
    network.start(1)
    network.deliver(1)
    assert network.pending() == [
        ("P1", "A0", ("prepare", (1, 1))),
        ("A1", "P1", ("promise", (1, 1), None, None)),
    ]


def test_second_proposer_takes_over_the_chosen_value():
    network = Network(3, ["a", "b"])
    network.start(1)
    network.run()
    network.start(2)
    network.run()
    network.start(2)
    network.run()
    assert network.chosen() == {1: "a", 2: "a"}


def test_duel_ends_with_one_value():
    network = Network(3, ["a", "b"])
    network.start(1)
    network.start(2)
    network.run()
    network.start(1)
    network.run()
    assert network.chosen() == {1: "b", 2: "b"}


def test_minority_down_does_not_matter():
    network = Network(3, ["a"])
    network.crash(0)
    network.start(1)
    network.run()
    assert network.chosen() == {1: "a"}
    assert network.states()[0] == {"promised": None, "accepted": None}


def test_majority_down_chooses_nothing():
    network = Network(3, ["a"])
    network.crash(0)
    network.crash(2)
    network.start(1)
    network.run()
    assert network.chosen() == {}
    network.recover(0)
    network.start(1)
    network.run()
    assert network.chosen() == {1: "a"}


def test_state_survives_a_crash():
    network = Network(3, ["a", "b"])
    network.start(1)
    network.run()
    network.crash(1)
    network.recover(1)
    assert network.states()[1] == {"promised": (1, 1), "accepted": ((1, 1), "a")}
    network.crash(0)
    network.start(2)
    network.run()
    assert network.chosen() == {1: "a", 2: "a"}


def test_duplicates_change_nothing():
    network = Network(3, ["a"])
    network.start(1)
    network.duplicate(0)
    assert network.pending()[3] == network.pending()[0]
    for index in (1, 1):
        network.drop(index)
    network.run()
    assert network.chosen() == {}


def test_lost_accepts_leave_the_value_open():
    network = Network(3, ["a", "b"])
    network.start(1)
    while network.pending()[0][2][0] != "accept":
        network.deliver()
    network.drop(0)
    network.drop(0)
    network.run()
    assert network.chosen() == {}
    assert network.states()[2]["accepted"] == ((1, 1), "a")
    network.crash(2)
    network.start(2)
    network.run()
    assert network.chosen() == {2: "b"}


def test_no_such_message():
    network = Network(1, ["a"])
    for call in (network.deliver, network.drop, network.duplicate):
        with pytest.raises(ProtocolError):
            call(0)
    network.start(1)
    with pytest.raises(ProtocolError):
        network.drop(-1)
    assert len(network.pending()) == 1


def test_agreement_over_many_orders():
    for seed in range(8):
        network, state = Network(3, ["a", "b", "c"]), seed
        for step in range(60):
            state = (state * 1103515245 + 12345) % (1 << 31)
            flight = network.pending()
            if step % 13 == 0:
                network.start(1 + state // 65536 % 3)
            elif flight:
                act = network.drop if state // 65536 % 19 == 0 else network.deliver
                act(state // 4096 % len(flight))
        assert len(set(network.chosen().values())) <= 1
