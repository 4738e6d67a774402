"""Addresses of model servers: checked, free of credentials, and known to be on this machine or not."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from harness.errors import ExperimentError
from harness.messages import ModelSpec

__all__ = ["is_loopback", "server_address"]


def server_address(spec: ModelSpec, address: str, *, default_port: int | None = None) -> str:
    """
    `address` as `scheme://host:port/path`; one without a scheme is HTTP, at `default_port` if it names none.

    Raises `ExperimentError` for anything that is no HTTP address, and for one that carries a credential: it would end
    up in the record.
    """
    text = address if "://" in address else f"http://{address}"
    shown = text.rpartition("@")[2]
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ExperimentError(f"model {spec.name!r}: the address {shown!r} can't be read: {error}") from None
    if "@" in parts.netloc:
        raise ExperimentError(
            f"model {spec.name!r}: the address of {shown!r} carries a credential: name the environment variable that "
            "holds it in `key_env` instead"
        )
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise ExperimentError(f"model {spec.name!r}: {shown!r} is no address of a server: expected http://host:port")
    if port is None and "://" not in address and default_port is not None:
        parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{default_port}")
    return parts.geturl().rstrip("/")


def is_loopback(address: str) -> bool:
    """Whether `address` is on this machine by its own name: then no proxy has any business with it."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
