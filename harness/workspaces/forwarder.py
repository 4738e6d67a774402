"""
The one program of ours that serves a seat without a network: it listens on a port of the workspace's loopback, and
joins each connection to the gateway's socket.

It is sent into the workspace as text and needs the standard library alone:

    python3 -I -S -c TEXT SOCKET PORT SECONDS

It says `listening` once it does, and ends by itself after SECONDS. One thread, no child: it needs no place among the
workspace's processes beside its own. Each connection holds at most a chunk for either direction; beyond `CONNECTIONS`
at once the next ones wait. The socket is opened anew for each of them, so that a gateway may come back.
"""

import ctypes
import selectors
import socket
import sys
import time

CONNECTIONS = 64
CHUNK_BYTES = 65536
PATIENCE_S = 2.0
STEP_S = 0.05
PR_SET_DUMPABLE = 4


class Way:
    """One direction of a connection: what `source` says is handed to `sink`, a chunk at a time."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.held = b""
        self.ended = False

    def step(self) -> None:
        """Move what can be moved without waiting. Raises `OSError` when an end is broken."""
        try:
            if not self.held and not self.ended:
                self.held = self.source.recv(CHUNK_BYTES)
                self.ended = not self.held
                if self.ended:
                    self.sink.shutdown(socket.SHUT_WR)
            while self.held:
                self.held = self.held[self.sink.send(self.held) :]
        except BlockingIOError:
            """The other side is asked again when the kernel says that it is ready."""

    @property
    def over(self) -> bool:
        """Whether everything was said and handed on."""
        return self.ended and not self.held


class Joined:
    """A connection from inside, and its other half at the gateway. It is over when the gateway has ended it."""

    def __init__(self, seat: socket.socket, gateway: socket.socket) -> None:
        self.ends = (seat, gateway)
        self.out, self.back = Way(seat, gateway), Way(gateway, seat)

    def step(self) -> bool:
        """Move what can be moved; whether there may be more."""
        try:
            self.out.step()
            self.back.step()
        except OSError:
            return False
        return not self.back.over

    def wanted(self, end: socket.socket) -> int:
        """What to wait for at one of the ends: the selector's events."""
        mine, other = (self.out, self.back) if end is self.ends[0] else (self.back, self.out)
        reads = selectors.EVENT_READ if not (mine.held or mine.ended) else 0
        return reads | (selectors.EVENT_WRITE if other.held else 0)


class Forwarder:
    """All the connections of one listening socket."""

    def __init__(self, listener: socket.socket, path: str) -> None:
        self.listener, self.path = listener, path
        self.selector = selectors.DefaultSelector()
        self.joined: set[Joined] = set()
        self.waiting: list[tuple[socket.socket, float]] = []

    def serve(self, until: float) -> None:
        """Serve until the monotonic clock says `until`."""
        while (left := until - time.monotonic()) > 0:
            free = len(self.joined) + len(self.waiting) < CONNECTIONS
            self.watch(self.listener, selectors.EVENT_READ if free else 0, None)
            ready = self.selector.select(min(left, STEP_S if self.waiting else 60.0))
            stepped = {key.data for key, _ in ready}
            if None in stepped:
                self.accept()
            self.connect()
            for joined in stepped - {None}:
                self.move(joined)

    def accept(self) -> None:
        """Take one connection in, to be joined to the gateway."""
        try:
            seat, _ = self.listener.accept()
        except OSError:
            time.sleep(STEP_S)  # out of descriptors or of memory: that may pass
            return
        seat.settimeout(0)
        self.waiting.append((seat, time.monotonic() + PATIENCE_S))

    def connect(self) -> None:
        """Join who waits to the gateway; one that has waited too long while none was there is hung up on."""
        waiting, self.waiting = self.waiting, []
        for seat, until in waiting:
            gateway = self.reach()
            if gateway is not None:
                joined = Joined(seat, gateway)
                self.joined.add(joined)
                self.move(joined)
            elif time.monotonic() < until:
                self.waiting.append((seat, until))
            else:
                seat.close()

    def reach(self) -> "socket.socket | None":
        """A connection to the gateway, or None when there is none now."""
        try:
            gateway = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:
            return None
        try:
            gateway.settimeout(0)
            gateway.connect(self.path)
        except OSError:
            gateway.close()
            return None
        return gateway

    def move(self, joined: Joined) -> None:
        """Serve one connection, and end it when it is over."""
        goes_on = joined.step()
        for end in joined.ends:
            self.watch(end, joined.wanted(end) if goes_on else 0, joined)
            if not goes_on:
                end.close()
        if not goes_on:
            self.joined.discard(joined)

    def watch(self, end: socket.socket, events: int, joined: "Joined | None") -> None:
        """Wait for these events at a socket from now on."""
        known = self.selector.get_map().get(end)
        if known is None and events:
            self.selector.register(end, events, joined)
        elif known is not None and not events:
            self.selector.unregister(end)
        elif known is not None and known.events != events:
            self.selector.modify(end, events, joined)


def main(path: str, port: str, seconds: str) -> None:
    """Listen and serve. Nobody of the same user may read this process's memory or its connections."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise SystemExit("the forwarder could not be made undumpable")
    with socket.create_server(("127.0.0.1", int(port)), backlog=CONNECTIONS) as listener:
        listener.settimeout(0)
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        Forwarder(listener, path).serve(time.monotonic() + float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
