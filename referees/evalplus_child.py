# ruff: noqa: BLE001, S102, S302 - running hostile code is what this is for: it execs, and catches whatever comes of it
"""
The child that the zygote forks for one candidate and tier: it fetches the candidate, confines itself, runs it, and
sends what its calls return. Its source is sent into the room; it imports the standard library and `evalplus_confine`.

A frame is kind, length (4 bytes, little endian), payload. Kinds: F all was fetched; then B built, n does not build, i
no entry point, m out of memory while building, P the prelude failed; then for each call one of V value, Q gist of a
large value, D digest of one, O no plain data, X exception, M out of memory; E at the end. A reference sends all that is
needed to compare with either: after a Q the V or D as well, and after each call T, its CPU time (in seconds, as a
double).
"""

from __future__ import annotations

import hashlib
import marshal
import os
import resource
import signal
import struct
import sys
import types

from referees.evalplus_confine import PR_SET_PDEATHSIG, Filter, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import
    from collections.abc import Iterator
    from typing import Any

HEAD = struct.Struct("<cI").pack
TEXT_INLINE = 64 << 10
GIST_BYTES = 64 << 10
PART = 10_000
GIST_PART = 1_000
"""So few that their bytes stay in the processor's cache and in memory that is there already."""
REASON_BYTES = 200


def limit(*limits: tuple[int, int]) -> None:
    """Bound this process, and all that come from it, for good."""
    for which, amount in limits:
        most = resource.getrlimit(which)[1]  # the room may already allow less
        least = amount if most == resource.RLIM_INFINITY else min(amount, most)
        resource.setrlimit(which, (least, least))


def limit_all() -> None:
    """What neither the zygote nor any child of its needs; set once."""
    limit(
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    )


def confine(job: dict[str, Any], seal: Filter) -> None:
    """Take everything from the child that a candidate does not need. The channel stays, as descriptor 3."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    limit((resource.RLIMIT_AS, job["memory"]), (resource.RLIMIT_CPU, int(job["budget"]) + 10))
    seal.install()


def send(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame on the child's channel; its kind."""
    data = HEAD(kind, len(payload)) + payload
    sent = os.write(3, data)
    while sent < len(data):
        sent += os.write(3, data[sent : sent + (1 << 20)])
    return kind


def why(error: BaseException) -> bytes:
    """A short text on an exception. It may be the candidate's own, so that even its name may fail."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = "an exception whose text fails"
    return text.encode("utf-8", "replace")[:REASON_BYTES]


def plain(value: Any) -> Any:
    """`value` with the standard library's dicts and numpy's scalars as builtins; anything else of note: ValueError."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind([plain(item) for item in value])
    if kind is dict or (
        kind.__module__ == "collections" and kind.__name__ in ("Counter", "OrderedDict", "defaultdict")
    ):
        return {plain(key): plain(item) for key, item in dict.items(value)}
    if kind.__module__ == "numpy":
        return plain(value.item())
    if kind in (bool, int, float, complex, str, bytes, type(None)):
        return value
    raise ValueError(kind.__name__)


def encoded(value: Any) -> bytes:
    """The bytes of a value of exact builtin types. Raises `ValueError` for anything else, `MemoryError` for no room."""
    try:
        if "numpy" in sys.modules:
            value = plain(value)
        return marshal.dumps(value, 2)
    except ValueError:
        whole = plain(value)
    try:
        return marshal.dumps(whole, 2)
    except ValueError as error:
        # What is plain throughout is refused for its depth, or because there was no memory for its bytes.
        if "nested" in str(error):
            raise
        raise MemoryError from None


def at_once(value: Any) -> bytes | None:
    """The bytes of most values: of what is plain as it is, and not long. None for one that takes a closer look."""
    kind = type(value)
    if "numpy" in sys.modules or (kind in (list, tuple) and len(value) > PART):
        return None
    if kind in (str, bytes) and len(value) > TEXT_INLINE:
        return None
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return None


def pieces(value: Any) -> Iterator[bytes]:
    """The bytes of `value`, a long list or tuple in parts, so that they need not all be there at once."""
    if type(value) in (list, tuple) and len(value) > PART:
        yield (b"[" if type(value) is list else b"(") + struct.pack("<i", len(value))
        for start in range(0, len(value), PART):
            yield encoded(value[start : start + PART])[5:]
    else:
        yield encoded(value)


def gist(value: Any, whole: bytes | None) -> bytes | None:
    """
    The digest of a large value as marshal's fourth version writes it, which takes a fifth of the time where one text
    stands in many places: it is written once. Values with the same gist are the same. The same value may have several,
    by what its parts share, so that different ones say nothing. `whole` are the bytes of a value that is not long.
    None for what is no plain data.
    """
    digest = hashlib.sha256()
    if whole is not None:
        digest.update(whole)
        return digest.digest()
    if "numpy" in sys.modules:
        return None
    try:
        if type(value) in (list, tuple):
            digest.update((b"[" if type(value) is list else b"(") + struct.pack("<Q", len(value)))
            for start in range(0, len(value), GIST_PART):
                digest.update(marshal.dumps(value[start : start + GIST_PART], 4))
        else:
            digest.update(marshal.dumps(value, 4))
    except ValueError:
        return None
    return digest.digest()


def answer(value: Any, inline: int, *, quick: bool) -> bytes:
    """
    Send what a call returned: its bytes, or, beyond a size, their digest and length; a `quick` one goes by its gist
    long before. What kind was sent.
    """
    # Texts are equal when their bytes are, whatever the task's rule, so that their digest does.
    most = TEXT_INLINE if type(value) in (str, bytes) else inline
    whole = at_once(value)
    if whole is not None and len(whole) <= (min(most, GIST_BYTES) if quick else most):
        return send(b"V", whole)
    if quick and (named := gist(value, whole)) is not None:
        return send(b"Q", named)
    kept: list[bytes] = []
    length: int = 0
    digest: Any = None
    try:
        for piece in pieces(value) if whole is None else [whole]:
            length += len(piece)
            kept.append(piece)
            if length > most:
                digest = digest or hashlib.sha256()
                for part in kept:
                    digest.update(part)
                kept.clear()
    except MemoryError:
        raise
    except BaseException:
        return send(b"O", type(value).__name__.encode("utf-8", "replace")[:REASON_BYTES])
    if digest is None:
        return send(b"V", kept[0] if len(kept) == 1 else b"".join(kept))
    return send(b"D", digest.digest() + struct.pack("<Q", length))


def build(job: dict[str, Any]) -> Any:
    """The candidate's entry point, or None once the reason that there is none has been sent."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    space = module.__dict__
    try:
        if job["prelude"]:
            exec(compile(job["prelude"], "prelude.py", "exec", dont_inherit=True), space)
    except BaseException as error:
        send(b"P", why(error))
        return None
    try:
        code = compile(job["code"], "solution.py", "exec", dont_inherit=True)
    except BaseException as error:  # nesting too deep for the parser is a MemoryError as well
        send(b"n", why(error))
        return None
    try:
        exec(code, space)
    except MemoryError:
        send(b"m")
        return None
    except BaseException as error:
        send(b"n", why(error))
        return None
    entry = space.get(job["entry"])
    if not callable(entry):
        send(b"i")
        return None
    send(b"B")
    return entry


def used() -> float:
    """Seconds of CPU that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def call(entry: Any, blob: bytes, job: dict[str, Any]) -> None:
    """Make one call, and send what came of it."""
    try:
        value = entry(*marshal.loads(blob))
        if answer(value, job["inline"], quick=job["quick"]) == b"Q" and job["timed"]:
            answer(value, job["inline"], quick=False)
    except MemoryError:
        send(b"M")
    except BaseException as error:
        send(b"X", why(error))


def run_child(job: dict[str, Any], seal: Filter) -> None:
    """Build the candidate, make the calls, send what they return."""
    confine(job, seal)
    entry = build(job)
    if entry is None:
        return
    for blob in job["inputs"]:
        begun = used() if job["timed"] else 0.0
        call(entry, blob, job)
        if job["timed"]:
            send(b"T", struct.pack("<d", used() - begun))
    send(b"E")
