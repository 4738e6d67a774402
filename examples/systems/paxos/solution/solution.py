"""Single-decree Paxos as state machines over messages, and a network whose order of delivery the caller decides."""


class ProtocolError(Exception):
    """A call that the protocol does not allow at this point. Nothing has changed."""


class Acceptor:
    """One acceptor. A ballot is a tuple (round, proposer); ballots are ordered as tuples are."""

    def __init__(self):
        """Nothing promised, nothing accepted."""
        self._promised = None
        self._ballot = None
        self._value = None

    def prepare(self, ballot: tuple) -> tuple:
        """
        Phase 1. If `ballot` is higher than any promised so far, promise it: ("promise", ballot, accepted ballot,
        accepted value), the last two None if nothing is accepted. Else ("nack", ballot, promised ballot).
        """
        if self._promised is not None and ballot <= self._promised:
            return ("nack", ballot, self._promised)
        self._promised = ballot
        return ("promise", ballot, self._ballot, self._value)

    def accept(self, ballot: tuple, value) -> tuple:
        """
        Phase 2. Unless a higher ballot is promised, accept `value`, which promises `ballot` too: ("accepted", ballot,
        value). Else ("nack", ballot, promised ballot).
        """
        if self._promised is not None and ballot < self._promised:
            return ("nack", ballot, self._promised)
        self._promised = self._ballot = ballot
        self._value = value
        return ("accepted", ballot, value)

    def state(self) -> dict:
        """What must survive a crash: {"promised": ballot or None, "accepted": (ballot, value) or None}."""
        accepted = None if self._ballot is None else (self._ballot, self._value)
        return {"promised": self._promised, "accepted": accepted}


class Proposer:
    """One proposer, with a number of its own and a value that it would like to see chosen."""

    def __init__(self, number: int, acceptors: int, value):
        """It knows how many acceptors there are. ValueError for fewer than one."""
        if acceptors < 1:
            raise ValueError(f"acceptors is {acceptors}: expected 1 or more")
        self._number = number
        self._quorum = acceptors // 2 + 1
        self._value = value
        self._seen = 0
        self._ballot = None
        self._promises = {}
        self._accepts = set()
        self._proposal = None
        self.chosen = None

    def start(self) -> tuple:
        """
        Begin a new ballot: its round is one above every round that this proposer has used, or met in a nack. The
        message for all acceptors: ("prepare", ballot). What came for an earlier ballot no longer counts.
        """
        self._seen += 1
        self._ballot = (self._seen, self._number)
        self._promises, self._accepts, self._proposal = {}, set(), None
        return ("prepare", self._ballot)

    def receive(self, acceptor: int, reply: tuple):
        """
        Take in an acceptor's reply. When the promises of more than half of the acceptors are there for the first
        time: ("accept", ballot, value) for all acceptors, where the value is that of the highest accepted ballot
        among these promises, or one's own if none of them has any. When more than half have accepted for the first
        time: ("chosen", value), and `chosen` is the tuple (value,). Otherwise None: for a nack, a reply to another
        ballot, the same reply again, and promises that come after the accept message. ProtocolError before the
        first `start`.
        """
        if self._ballot is None:
            raise ProtocolError("no ballot was started")
        kind, ballot = reply[0], reply[1]
        if kind == "nack":
            self._seen = max(self._seen, reply[2][0])
            return None
        if ballot != self._ballot:
            return None
        if kind == "promise":
            return self._promise(acceptor, reply)
        return self._accepted(acceptor)

    def _promise(self, acceptor, reply):
        if self._proposal is not None:
            return None
        self._promises[acceptor] = (reply[2], reply[3])
        if len(self._promises) < self._quorum:
            return None
        taken = [promise for promise in self._promises.values() if promise[0] is not None]
        value = max(taken, key=lambda promise: promise[0])[1] if taken else self._value
        self._proposal = (value,)
        return ("accept", self._ballot, value)

    def _accepted(self, acceptor):
        if self._proposal is None or len(self._accepts) >= self._quorum:
            return None
        self._accepts.add(acceptor)
        if len(self._accepts) < self._quorum:
            return None
        self.chosen = self._proposal
        return ("chosen", self._proposal[0])


class Network:
    """
    Acceptors 0, 1, ... and proposers 1, 2, ... with the messages between them. A message in flight is a tuple
    (sender, receiver, message), with "A0" for acceptor 0 and "P1" for proposer 1. The first message in flight has
    index 0.
    """

    def __init__(self, acceptors: int, values: list):
        """`acceptors` acceptors, and a proposer for each of `values`; nothing is in flight."""
        self._acceptors = [Acceptor() for _ in range(acceptors)]
        self._proposers = {n: Proposer(n, acceptors, value) for n, value in enumerate(values, 1)}
        self._down = set()
        self._flight = []

    def start(self, proposer: int) -> None:
        """Proposer `proposer` begins a ballot: its message to each acceptor is put in flight, acceptor 0 first."""
        self._broadcast(proposer, self._proposers[proposer].start())

    def _broadcast(self, proposer, message):
        self._flight.extend((f"P{proposer}", f"A{n}", message) for n in range(len(self._acceptors)))

    def pending(self) -> list:
        """The messages in flight, the oldest first."""
        return list(self._flight)

    def _index(self, index):
        if not 0 <= index < len(self._flight):
            raise ProtocolError(f"index is {index}: {len(self._flight)} messages are in flight")
        return index

    def deliver(self, index: int = 0) -> None:
        """
        Take message `index` out of flight and give it to its receiver; what that sends is put in flight behind the
        others. A message to an acceptor that is down is lost. ProtocolError if there is no such message.
        """
        sender, receiver, message = self._flight.pop(self._index(index))
        number = int(receiver[1:])
        if receiver[0] == "P":
            answer = self._proposers[number].receive(int(sender[1:]), message)
            if answer is not None and answer[0] == "accept":
                self._broadcast(number, answer)
        elif number not in self._down:
            acceptor = self._acceptors[number]
            reply = acceptor.prepare(message[1]) if message[0] == "prepare" else acceptor.accept(message[1], message[2])
            self._flight.append((receiver, sender, reply))

    def drop(self, index: int) -> None:
        """Lose message `index`. ProtocolError if there is no such message."""
        del self._flight[self._index(index)]

    def duplicate(self, index: int) -> None:
        """
        Put a second copy of message `index` in flight behind the others. ProtocolError if there is no such message.
        """
        self._flight.append(self._flight[self._index(index)])

    def crash(self, acceptor: int) -> None:
        """Acceptor `acceptor` is down: what is delivered to it is lost. What it promised and accepted survives."""
        self._down.add(acceptor)

    def recover(self, acceptor: int) -> None:
        """Acceptor `acceptor` is up again, with the state that it had."""
        self._down.discard(acceptor)

    def run(self) -> None:
        """Deliver the oldest message until nothing is in flight."""
        while self._flight:
            self.deliver(0)

    def chosen(self) -> dict:
        """By the numbers of the proposers that know of one: the value that was chosen."""
        return {n: proposer.chosen[0] for n, proposer in self._proposers.items() if proposer.chosen is not None}

    def states(self) -> list:
        """The state of each acceptor, as `Acceptor.state` gives it, acceptor 0 first."""
        return [acceptor.state() for acceptor in self._acceptors]
