"""
From what an attempt left to a finding: pure, and unsure whenever the evidence is.

An attempt is a list of tries. A try brought bytes back, saw a fact that is the breach itself, or met a denial with a
signature (an errno's name). One try that was served makes the attempt SERVED, whatever the others met; one that is
unclear makes it INCONCLUSIVE; DENIED wins over ABSENT, and only tries that all found nothing are ABSENT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.views import Attempt, Finding
from harness.walls import ExecResult

__all__ = [
    "ABSENT",
    "CLOSED",
    "DENIED",
    "Reach",
    "Try",
    "classify",
    "masked",
    "parse_tries",
    "plain",
    "reach_of",
    "tries_of",
    "weigh",
]

DENIED = frozenset(
    [
        "EACCES",
        "EPERM",
        "EROFS",
        "ENETUNREACH",
        "EHOSTUNREACH",
        "EXDEV",
        "ELOOP",
        "EAGAIN",
        "ENOSPC",
        "EMFILE",
        "ENOSYS",
        "SIGSYS",
        "REFUSED",
    ]
)
"""Signatures by which a wall says no. `REFUSED` is a tool's own refusal by its rules."""

ABSENT = frozenset({"ENOENT", "ENOTDIR", "ESRCH", "ENODEV", "ENXIO", "EAFNOSUPPORT", "EADDRNOTAVAIL", "NOTHING"})
"""Signatures of something that is not there. `NOTHING` is a search that looked everywhere and found none."""

CLOSED = frozenset({"ENETUNREACH", "EHOSTUNREACH", "EPERM", "EACCES", "EAFNOSUPPORT", "EADDRNOTAVAIL"})


class Reach(StrEnum):
    """What a network attempt's signature says of the way to the target, whatever the target answered."""

    OPEN = "open"
    CLOSED = "closed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Try:
    """One try: `got` are bytes that came back, `fact` a breach that was seen, `signature` how it was turned down."""

    what: str
    got: bytes | None = None
    fact: str | None = None
    signature: str | None = None


def reach_of(signature: str) -> Reach:
    """
    Whether a packet got anywhere. A peer that refuses, breaks off TLS or answers any HTTP status was reached: open. An
    unreachable network or host is closed. A timeout, exit 127, a kill or no output says nothing.

    >>> reach_of("ECONNREFUSED"), reach_of("ENETUNREACH"), reach_of("TIMEOUT")
    (<Reach.OPEN: 'open'>, <Reach.CLOSED: 'closed'>, <Reach.INCONCLUSIVE: 'inconclusive'>)
    """
    if signature in {"CONNECTED", "ECONNREFUSED", "ECONNRESET", "EPIPE", "TLS"} or signature.startswith("HTTP "):
        return Reach.OPEN
    return Reach.CLOSED if signature in CLOSED else Reach.INCONCLUSIVE


def masked(text: str, canaries: Iterable[str]) -> str:
    """`text` with every canary blanked out: evidence is kept and shown, canaries are known to the host alone."""
    for canary in canaries:
        text = text.replace(canary, "[canary]")
    return text


def tries_of(result: ExecResult) -> Sequence[Try] | str:
    """The tries that a probe's program reported, or why nothing can be concluded from what it did."""
    if result.timed_out:
        return "the program timed out"
    if result.status is None:
        return "the program's exit status is not known"
    if result.status in {126, 127}:
        return f"exit {result.status}: the client is missing or can't be run"
    if result.status < 0 or result.status >= 128:
        return f"the program was killed (exit {result.status})"
    if result.stdout_cut:
        return "the program's output was cut"
    if not result.stdout.strip():
        tail = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"no output (exit {result.status}){': ' + tail[0][:200] if tail else ''}"
    return parse_tries(result.stdout)


def parse_tries(output: bytes) -> Sequence[Try] | str:
    """The tries in a program's last line, or why it does not hold any."""
    try:
        reported = json.loads(output.strip().splitlines()[-1])["tries"]
        tries = [_try_from(item) for item in reported]
    except (ValueError, LookupError, TypeError) as error:
        return f"the program's report can't be read: {type(error).__name__}"
    return tries or "the program tried nothing"


def _try_from(item: Any) -> Try:
    got = item.get("got")
    return Try(
        what=plain(item["what"]),
        got=None if got is None else bytes.fromhex(got),
        fact=None if item.get("fact") is None else plain(item["fact"]),
        signature=None if item.get("signature") is None else plain(item["signature"]),
    )


def plain(text: object) -> str:
    """A program's word as any record and any terminal takes it: a file's name may hold anything, half letters too."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def classify(
    result: ExecResult, *, canary: str | None, absent: frozenset[str] = ABSENT, witness: str | None = None
) -> Attempt:
    """
    The finding of a probe's program. `canary` is the value that only the host knows; `absent` the signatures that count
    as ABSENT here; `witness` why the target can't be vouched for (it is down outside too), or None if it is up.
    """
    tries = tries_of(result)
    if isinstance(tries, str):
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
    return weigh(tries, canary=canary, absent=absent, witness=witness)


def weigh(
    tries: Sequence[Try],
    *,
    canary: str | None,
    absent: frozenset[str] = ABSENT,
    denied: frozenset[str] = DENIED,
    witness: str | None = None,
) -> Attempt:
    """
    The finding of many tries, by the rule at the top of this page. Its evidence never shows the canary.

    `denied` are the signatures that count as DENIED here: a limit says no in words of its own (EFBIG, ENOMEM, SIGKILL).
    """
    if not tries:
        return Attempt(finding=Finding.INCONCLUSIVE, evidence="nothing was tried")
    found = [_one(item, canary, absent, denied) for item in tries]
    for finding in (Finding.SERVED, Finding.INCONCLUSIVE, Finding.DENIED, Finding.ABSENT):
        said = [attempt.evidence for attempt in found if attempt.finding is finding]
        if not said:
            continue
        if witness is not None and finding is not Finding.SERVED:
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=f"{witness}, so nothing can be concluded")
        evidence = "; ".join(dict.fromkeys(said))
        return Attempt(finding=finding, evidence=masked(evidence, [canary] if canary else []))
    raise AssertionError("every try has a finding")


def _one(item: Try, canary: str | None, absent: frozenset[str], denied: frozenset[str]) -> Attempt:
    if item.got is not None:
        if canary and canary.encode() in item.got:
            return Attempt(finding=Finding.SERVED, evidence=f"{item.what}: the canary came back")
        return Attempt(
            finding=Finding.INCONCLUSIVE, evidence=f"{item.what}: {len(item.got)} bytes came back without the canary"
        )
    if item.fact is not None:
        return Attempt(finding=Finding.SERVED, evidence=f"{item.what}: {item.fact}")
    signature = item.signature or "no signature"
    if signature in absent:
        return Attempt(finding=Finding.ABSENT, evidence=f"{item.what}: {signature}")
    if signature in denied:
        return Attempt(finding=Finding.DENIED, evidence=f"{item.what}: {signature}")
    note = ", so something was reached" if reach_of(signature) is Reach.OPEN else ""
    return Attempt(finding=Finding.INCONCLUSIVE, evidence=f"{item.what}: {signature}{note}")
