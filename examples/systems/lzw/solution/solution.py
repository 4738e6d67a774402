"""LZW: byte strings to codes and back, and codes to bytes and back."""

CLEAR = 256
END = 257
FIRST = 258


class CorruptData(ValueError):
    """What was to be decoded or unpacked can't have come from `encode` or `pack`."""


def _width(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or not 9 <= value <= 16:
        raise ValueError(f"{name} is {value!r}: expected 9 to 16")
    return value


def encode(data: bytes, max_bits: int = 12) -> list:
    """
    The codes of `data`. The list begins with CLEAR (256) and ends with END (257). The table begins with the 256
    single bytes under their own values; further entries get 258, 259 and so on. Repeatedly, the longest entry that
    begins the rest of the data is emitted; then, if a byte follows it, the entry made longer by that byte gets the
    next code. If all 2**max_bits codes are taken, CLEAR is emitted in place of that, and the table begins anew.

    ValueError for a `max_bits` that is no int from 9 to 16.
    """
    limit = 1 << _width("max_bits", max_bits)
    codes, table, word = [CLEAR], {}, b""
    for byte in data:
        longer = word + bytes([byte])
        if len(longer) == 1 or longer in table:
            word = longer
            continue
        codes.append(table.get(word, word[0]))
        if FIRST + len(table) < limit:
            table[longer] = FIRST + len(table)
        else:
            codes.append(CLEAR)
            table = {}
        word = longer[-1:]
    if word:
        codes.append(table.get(word, word[0]))
    codes.append(END)
    return codes


def decode(codes: list, max_bits: int = 12) -> bytes:
    """
    The data whose codes these are. CLEAR may come at any place.

    CorruptData if the codes do not begin with CLEAR, do not end with END, go on after END, name a code that the
    table does not hold at that place, or have no single byte first after a CLEAR. ValueError for `max_bits` as in
    `encode`.
    """
    limit = 1 << _width("max_bits", max_bits)
    if not codes or codes[0] != CLEAR or codes[-1] != END:
        raise CorruptData("the codes do not begin with CLEAR and end with END")
    out, table, last = [], [], b""
    for code in codes[:-1]:
        if code == CLEAR:
            table, last = [], b""
            continue
        entry = _entry(code, table, last, limit)
        if last and FIRST + len(table) < limit:
            table.append(last + entry[:1])
        out.append(entry)
        last = entry
    return b"".join(out)


def _entry(code, table, last, limit):
    if 0 <= code < CLEAR:
        return bytes([code])
    if last and FIRST <= code < FIRST + len(table):
        return table[code - FIRST]
    if last and code == FIRST + len(table) and code < limit:
        return last + last[:1]
    raise CorruptData(f"code {code} is not in the table")


def pack(codes: list, width: int = 12) -> bytes:
    """
    The codes as bytes: each in `width` bits, the highest bit first, one after the other; the last byte is filled up
    with zero bits. ValueError for a code that does not fit, and for a width that is no int from 9 to 16.
    """
    _width("width", width)
    bits = 0
    for code in codes:
        if not 0 <= code < 1 << width:
            raise ValueError(f"code {code} does not fit into {width} bits")
        bits = bits << width | code
    count = len(codes) * width
    fill = -count % 8
    return (bits << fill).to_bytes((count + fill) // 8, "big")


def unpack(data: bytes, width: int = 12) -> list:
    """
    The codes that `pack` made into `data`: up to and including the first END. CorruptData if there is no END, if a
    whole byte or more follows the code END, or if a bit after it is not zero. ValueError for a width as in `pack`.
    """
    _width("width", width)
    bits, total = int.from_bytes(data, "big"), len(data) * 8
    codes = []
    for start in range(0, total - width + 1, width):
        codes.append(bits >> total - start - width & (1 << width) - 1)
        if codes[-1] == END:
            rest = total - start - width
            if rest >= 8 or bits & (1 << rest) - 1:
                raise CorruptData("something follows END")
            return codes
    raise CorruptData("there is no END")


def compress(data: bytes, max_bits: int = 12) -> bytes:
    """`encode`, then `pack` with `max_bits` as the width."""
    return pack(encode(data, max_bits), max_bits)


def decompress(data: bytes, max_bits: int = 12) -> bytes:
    """`unpack`, then `decode`, with the same `max_bits`. What `compress` made comes back as it was."""
    return decode(unpack(data, max_bits), max_bits)
