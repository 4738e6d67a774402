"""The ways in which a member of an archive is packed, each as a stream that never makes more than a piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final, cast

from harness.errors import DeclarationError

__all__ = ["PIECE", "UNPACKERS"]

PIECE: Final = 1 << 18
"""Bytes that are unpacked at a time, at the most."""

_MOST_WINDOW: Final = 128 << 20
"""Bytes that Zstandard may look back; what a file asks for beyond it is refused, since it would be taken as memory."""


def _stored(packed: Iterator[bytes]) -> Iterator[bytes]:
    return packed


def _inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    for piece in packed:
        yield unpacker.decompress(piece, PIECE)
        while unpacker.unconsumed_tail:
            yield unpacker.decompress(unpacker.unconsumed_tail, PIECE)
    while not unpacker.eof and (rest := unpacker.decompress(b"", PIECE)):
        yield rest


class _Source:
    """Packed pieces as the file that Zstandard's reader wants."""

    def __init__(self, packed: Iterator[bytes]) -> None:
        self._packed = packed

    def read(self, size: int = -1) -> bytes:
        """The next piece, of any length; empty at the end."""
        del size
        return next(self._packed, b"")


def _zstandard(packed: Iterator[bytes]) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise DeclarationError(
            "it is packed by Zstandard, which needs a package that is not installed: "
            "pip install 'proctor[inspect]', or write the log again as .json with Inspect's own `inspect log convert`"
        ) from None
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
    # One member may be several frames: Inspect begins a new one every 200 MiB.
    with unpacker.stream_reader(cast("IO[bytes]", _Source(packed)), read_across_frames=True) as reader:
        try:
            while piece := reader.read(PIECE):
                yield piece
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from None


UNPACKERS: Final[Mapping[int, Callable[[Iterator[bytes]], Iterator[bytes]]]] = {
    0: _stored,
    8: _inflated,
    93: _zstandard,
}
"""By the number that ZIP gives the method."""
