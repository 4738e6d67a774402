"""CRC-32 with the reflected polynomial 0xEDB88320, computed from a table of 256 entries."""

POLYNOMIAL = 0xEDB88320
MASK = 0xFFFFFFFF


def _entry(index):
    for _ in range(8):
        index = (index >> 1) ^ POLYNOMIAL if index & 1 else index >> 1
    return index


_TABLE = tuple(_entry(index) for index in range(256))


def _checked(data):
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"data is {type(data).__name__}: expected bytes or bytearray")
    return data


def _word(value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a checksum is {type(value).__name__}: expected int")
    if not 0 <= value <= MASK:
        raise ValueError(f"a checksum is {value}: expected 0 to 0xFFFFFFFF")
    return value


def crc32(data: bytes, start: int = 0) -> int:
    """
    The CRC-32 of `data` as an int from 0 to 0xFFFFFFFF, continuing from the checksum `start` of what came before it:
    `crc32(a + b) == crc32(b, crc32(a))`, and `crc32(b"", c) == c`.

    TypeError for data that is neither bytes nor bytearray, and for a start that is no int or is a bool;
    ValueError for a start outside 0 to 0xFFFFFFFF.
    """
    state = _word(start) ^ MASK
    for byte in _checked(data):
        state = (state >> 8) ^ _TABLE[(state ^ byte) & 0xFF]
    return state ^ MASK


def _times(a, b):
    """The product of two polynomials modulo the generator, in the reflected order of bits."""
    product = 0
    for bit in range(31, -1, -1):
        if b >> bit & 1:
            product ^= a
        a = (a >> 1) ^ POLYNOMIAL if a & 1 else a >> 1
    return product


def combine(first: int, second: int, length: int) -> int:
    """
    The checksum of a + b, from `first`, the checksum of a, `second`, that of b, and `length`, the number of bytes
    of b. Takes time in the logarithm of `length`: 10**15 bytes are answered at once.

    TypeError and ValueError for the checksums as in `crc32`; ValueError for a negative length.
    """
    _word(first)
    _word(second)
    if length < 0:
        raise ValueError(f"length is {length}: expected 0 or more")
    power, shift = 1 << 31, 1 << 23
    while length:
        if length & 1:
            power = _times(power, shift)
        shift = _times(shift, shift)
        length >>= 1
    return _times(first, power) ^ second


class Crc32:
    """A checksum of bytes that come in parts."""

    def __init__(self, data: bytes = b""):
        """Begin with `data`."""
        self._value = crc32(data)
        self._length = len(data)

    def update(self, data: bytes) -> None:
        """Take in `data`. TypeError as in `crc32`, and then nothing has changed."""
        self._value = crc32(data, self._value)
        self._length += len(data)

    @property
    def value(self) -> int:
        """The checksum of everything taken in so far."""
        return self._value

    @property
    def length(self) -> int:
        """The number of bytes taken in so far."""
        return self._length

    def hexdigest(self) -> str:
        """The checksum as exactly eight lower-case hexadecimal digits."""
        return f"{self._value:08x}"

    def copy(self) -> "Crc32":
        """A second checksum in the same state; from here on the two are independent."""
        other = Crc32()
        other._value = self._value
        other._length = self._length
        return other

    def append(self, other: "Crc32") -> None:
        """Become the checksum of one's own bytes followed by those of `other`, which stays as it is."""
        self._value = combine(self._value, other._value, other._length)
        self._length += other._length
