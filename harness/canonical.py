"""
Canonical bytes and digests.

Everything that is pinned or chained is first written as canonical JSON (RFC 8785, the JSON
Canonicalization Scheme), so that another program in another language gets the same SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import rfc8785

__all__ = ["Json", "canonical_bytes", "canonical_object", "digest_bytes", "digest_json", "digest_names", "plain"]

Json: TypeAlias = Any
"""Something that JSON can say: str, int, float, bool, None, and lists and string-keyed dicts of them."""


def canonical_bytes(value: Json) -> bytes:
    """
    The RFC 8785 bytes of `value`.

    Raises `ValueError` for NaN, infinities, integers beyond 2**53, lone surrogates and types that JSON
    doesn't have: such a value is refused at the door and never rounded or quoted.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"not representable as canonical JSON: {error}") from error


def canonical_object(members: Mapping[str, bytes]) -> bytes:
    """
    The RFC 8785 bytes of an object, from the canonical bytes of each of its members: a large one is written once, and
    may stand in several objects. Raises `ValueError` for a name with a lone surrogate.
    """
    written = ((name.encode("utf-16be", "surrogatepass"), canonical_bytes(name), members[name]) for name in members)
    return b"{" + b",".join(b"%b:%b" % (name, member) for _order, name, member in sorted(written)) + b"}"


def digest_bytes(data: bytes) -> str:
    """The SHA-256 of `data`, as 64 lowercase hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: Json) -> str:
    """The SHA-256 of the canonical bytes of `value`."""
    return digest_bytes(canonical_bytes(value))


def digest_names(names: Iterable[str]) -> str:
    """
    The digest of a set of names: of the canonical list of them, sorted, so that order is nothing.

    Of a list of texts the standard encoder makes the very bytes of RFC 8785, and in a tenth of the time. Raises
    `ValueError` for a name with a lone surrogate.
    """
    text = json.dumps(sorted(names), ensure_ascii=False, separators=(",", ":"))
    return digest_bytes(text.encode("utf-8"))


def plain(value: Json) -> Json:
    """
    `value` with tuples as lists, mappings as dicts, and lone surrogates written out as escapes: what a hostile text may
    hold and JSON may not. Numbers are left alone, so NaN and infinities are still refused.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
