"""Probes of the network wall: every way to an address that a program in the workspace could take."""

from __future__ import annotations

from typing import ClassVar

from fences.classifier import ABSENT
from fences.programs import ProgramProbe
from fences.weakenings import UNCONFINED, NotMeasuredError, walls_changed
from fences.witnesses import dns_query, vouch
from harness.views import Fence, Finding, Site

__all__ = [
    "AbstractSocketProbe",
    "AddressProbe",
    "DnsProbe",
    "Ipv6Probe",
    "LoopbackProbe",
    "MetadataProbe",
    "RawSocketProbe",
    "RouteProbe",
    "VsockProbe",
]

_ASK = """
def ask(place):
    kind, host, port = place.split(" ")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as client:
        client.settimeout(20)
        client.connect((host, int(port)))
        if kind == "udp":
            client.send(bytes.fromhex("QUERY"))
        return client.recv(4096) or {"signature": "EMPTY"}
for name, place in args.items():
    if place:
        attempt(name, lambda: ask(place))
""".replace("QUERY", dns_query().hex())

_ROUTE = """
def route(address, family):
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((address, 53))
    return {"fact": "there is a route"}
"""
"""A datagram socket's `connect` asks the kernel for a route and sends nothing."""


class _ListenerProbe(ProgramProbe):
    """A probe of real listeners of the host, which the host confirms while the attempt is made."""

    body: ClassVar[str] = _ASK

    async def witness(self, site: Site) -> str | None:
        """Each listener must answer the host with its canary."""
        assert self.canary is not None  # each of these probes names one
        return await vouch(site, self.places, self.canary)

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network."""
        if not any(name in site.places for name in self.places):
            raise NotMeasuredError(f"this host has no decoy of {', '.join(self.places)}")
        return walls_changed(fence, network="host")


class LoopbackProbe(_ListenerProbe):
    """
    TCP to a listener on the host's loopback. Its own loopback is all that a sealed workspace has, so a refusal there
    means that nothing listens: ABSENT, while the host confirms that its own listener is up.
    """

    name = "loopback"
    threat = "a service on the host's loopback (a model server, a database) answers the seat"
    places = ("loopback",)
    canary = "loopback"
    absent = ABSENT | {"ECONNREFUSED"}


class AddressProbe(_ListenerProbe):
    """TCP to a listener on the host's primary address, where a refusal would mean that a packet got out."""

    name = "address"
    threat = "the seat reaches the host, or through it the network, by address"
    places = ("address",)
    canary = "address"
    holds = frozenset({Finding.DENIED})


class DnsProbe(_ListenerProbe):
    """A query to a name server of the host's, on its loopback and on its primary address: names carry data out."""

    name = "dns"
    threat = "a name server answers the seat, and every query is a message to the outside"
    places = ("dns", "dns-address")
    canary = "dns"
    absent = ABSENT | {"ECONNREFUSED"}


class RouteProbe(ProgramProbe):
    """Routes to addresses reserved for documentation, public and private."""

    name = "route"
    threat = "the workspace has a way out of its own network namespace"
    holds = frozenset({Finding.DENIED})
    body = (
        _ROUTE
        + """
for address in ("198.51.100.1", "203.0.113.1", "10.255.255.1", "172.31.255.1"):
    attempt(address, lambda: route(address, socket.AF_INET))
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network; a host that has no route itself can't show one."""
        if "address" not in site.places:
            raise NotMeasuredError("this host has no address but loopback, so it has no route to show")
        return walls_changed(fence, network="host")


class Ipv6Probe(_ListenerProbe):
    """The host's IPv6 loopback, and a route to a documentation address: a wall for IPv4 alone is none."""

    name = "ipv6"
    threat = "the network wall holds for IPv4 and not for IPv6"
    places = ("loopback6",)
    canary = "loopback6"
    absent = ABSENT | {"ECONNREFUSED"}
    body = (
        _ASK
        + _ROUTE
        + """
attempt("2001:db8::1", lambda: route("2001:db8::1", socket.AF_INET6))
"""
    )

    async def witness(self, site: Site) -> str | None:
        """A host without IPv6 has nothing to vouch for: then the route alone is asked."""
        return await super().witness(site) if "loopback6" in site.places else None


class MetadataProbe(ProgramProbe):
    """A route to the address where clouds hand out credentials. It is asked of the kernel and never contacted."""

    name = "metadata"
    threat = "a cloud's metadata service hands its credentials to the seat"
    holds = frozenset({Finding.DENIED})
    body = (
        _ROUTE
        + """
attempt("169.254.169.254", lambda: route("169.254.169.254", socket.AF_INET))
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network."""
        if "address" not in site.places:
            raise NotMeasuredError("this host has no address but loopback, so it has no route to show")
        return walls_changed(fence, network="host")


class AbstractSocketProbe(_ListenerProbe):
    """A Unix socket in the abstract namespace of the host, which no mount hides: only a network namespace does."""

    name = "abstract-socket"
    threat = "a desktop or engine service on an abstract Unix socket answers the seat"
    places = ("abstract",)
    canary = "abstract"
    absent = ABSENT | {"ECONNREFUSED"}
    body = """
def ask(name):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect("\\0" + name)
        client.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
        return client.recv(4096) or {"signature": "EMPTY"}
attempt("abstract", lambda: ask(args["abstract"].split(" ", 1)[1]))
"""


class VsockProbe(ProgramProbe):
    """
    A socket to the hypervisor's side. A network namespace does not hold it: only a filter of system calls does, so the
    control takes the filter down with the capabilities.
    """

    name = "vsock"
    threat = "in a virtual machine the seat opens a socket past every network wall, to the hypervisor's side"
    body = """
def vsock():
    socket.socket(40, socket.SOCK_STREAM).close()
    return {"fact": "a socket could be made"}
attempt("AF_VSOCK", vsock)
"""

    down = UNCONFINED


class RawSocketProbe(ProgramProbe):
    """Raw and packet sockets, with which a program forges or reads what others send."""

    name = "raw-socket"
    threat = "the seat forges packets or reads those of others"
    holds = frozenset({Finding.DENIED})
    body = """
def raw(family, kind, protocol):
    socket.socket(family, kind, protocol).close()
    return {"fact": "a socket could be made"}
attempt("ICMP", lambda: raw(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("ICMPv6", lambda: raw(socket.AF_INET6, socket.SOCK_RAW, 58))
attempt("packet", lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
"""

    down = UNCONFINED
