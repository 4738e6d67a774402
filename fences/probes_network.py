"""Probes of the network wall: every way to an address that a program in the workspace could take."""

from __future__ import annotations

from typing import ClassVar

from fences.bodies import ASK, ROUTE
from fences.classifier import ABSENT
from fences.programs import ProgramProbe
from fences.weakenings import ANY_CALL, NotMeasuredError, walls_changed, with_capability
from fences.witnesses import vouch
from harness.views import Fence, Finding, Site

__all__ = [
    "AbstractSocketProbe",
    "AddressProbe",
    "DnsProbe",
    "InterfacesProbe",
    "Ipv6Probe",
    "LoopbackProbe",
    "MetadataProbe",
    "RawSocketProbe",
    "Route6Probe",
    "RouteProbe",
    "SocketFamiliesProbe",
    "VsockProbe",
]


class _ListenerProbe(ProgramProbe):
    """A probe of real listeners of the host, which the host confirms while the attempt is made."""

    body: ClassVar[str] = ASK

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
        ROUTE
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
    """TCP to a listener on the host's IPv6 loopback: a wall for IPv4 alone is none."""

    name = "ipv6"
    threat = "the network wall holds for IPv4 and not for IPv6"
    places = ("loopback6",)
    canary = "loopback6"
    absent = ABSENT | {"ECONNREFUSED"}

    async def witness(self, site: Site) -> str | None:
        """A host without IPv6 has nothing to vouch for, and nothing that could answer."""
        return await super().witness(site) if "loopback6" in site.places else None

    body = (
        ASK
        + """
if not args["loopback6"]:
    tries.append({"what": "loopback6", "signature": "NOTHING"})
"""
    )


class Route6Probe(ProgramProbe):
    """Routes to IPv6 addresses: one reserved for documentation, a private one, and every neighbour on the link."""

    name = "route6"
    threat = "the workspace has a way out of its own network namespace by IPv6"
    body = (
        ROUTE
        + """
for address in ("2001:db8::1", "fd00:dead:beef::1", "2620:fe::fe"):
    attempt(address, lambda: route(address, socket.AF_INET6))
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network; a host that has no route itself can't show one."""
        if "route6" not in site.places:
            raise NotMeasuredError("this host has no route to an IPv6 address, so it has none to show")
        return walls_changed(fence, network="host")


class InterfacesProbe(ProgramProbe):
    """Network interfaces that are up: a sealed workspace has its own loopback, and nothing else."""

    name = "interfaces"
    threat = "the workspace has an interface that leads somewhere, whatever its routes say"
    holds = frozenset({Finding.ABSENT})
    body = """
import fcntl
def up(client, name):
    answer = fcntl.ioctl(client, 0x8913, struct.pack("16s24x", name.encode()))  # SIOCGIFFLAGS
    return struct.unpack("16xH", answer[:18])[0] & 1
def look():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        others = [name for _, name in socket.if_nameindex() if name != "lo" and up(client, name)]
    return {"fact": "more than the loopback is up"} if others else {"signature": "NOTHING"}
attempt("interfaces", look)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network; a host that has no address has no interface to show."""
        if "address" not in site.places:
            raise NotMeasuredError("this host has no address but loopback, so it has no interface to show")
        return walls_changed(fence, network="host")


class MetadataProbe(ProgramProbe):
    """A route to the address where clouds hand out credentials. It is asked of the kernel and never contacted."""

    name = "metadata"
    threat = "a cloud's metadata service hands its credentials to the seat"
    holds = frozenset({Finding.DENIED})
    body = (
        ROUTE
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
    A socket to the hypervisor's side. A network namespace does not hold it: only a filter of system calls does.
    """

    name = "vsock"
    threat = "in a virtual machine the seat opens a socket past every network wall, to the hypervisor's side"
    body = """
def vsock():
    socket.socket(40, socket.SOCK_STREAM).close()
    return {"fact": "a socket could be made"}
attempt("AF_VSOCK", vsock)
"""

    down = ANY_CALL


class SocketFamiliesProbe(ProgramProbe):
    """
    Families of sockets beside Unix and the internet's: each is code of the kernel's that no namespace closes, and that
    breaches have been made with. The first that can be made is enough, so that no module is loaded for the others.
    """

    name = "socket-families"
    threat = "a little used family of sockets talks to the kernel, or takes the seat out of its workspace"
    body = """
families = {
    "netlink generic": (16, 3, 16), "netlink audit": (16, 3, 9), "netlink uevent": (16, 3, 15),
    "netlink netfilter": (16, 3, 12), "AF_ALG": (38, 5, 0), "AF_KEY": (15, 3, 2), "AF_RDS": (21, 5, 0),
    "AF_CAN": (29, 3, 1), "AF_TIPC": (30, 5, 0), "AF_BLUETOOTH": (31, 5, 0), "AF_RXRPC": (33, 2, 2),
    "AF_NFC": (39, 5, 0), "AF_QIPCRTR": (42, 2, 0), "AF_SMC": (43, 1, 0), "AF_XDP": (44, 3, 0),
    "MPTCP": (2, 1, 262), "SCTP": (2, 1, 132), "ping": (2, 2, 1),
}
def make(name):
    socket.socket(*families[name]).close()
    return {"fact": "a socket could be made"}
for name in families:
    attempt(name, lambda: make(name))
    if "fact" in tries[-1]:
        break
"""

    down = ANY_CALL


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

    down = with_capability("NET_RAW")
