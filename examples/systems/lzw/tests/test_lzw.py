import pytest
from solution import CorruptData, compress, decode, decompress, encode, pack, unpack

TEXT = b"TOBEORNOTTOBEORTOBEORNOT"
TEXT_CODES = [256, 84, 79, 66, 69, 79, 82, 78, 79, 84, 258, 260, 262, 267, 261, 263, 265, 257]


def noise(count, spread=256):
    state, out = 12345, bytearray()
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        out.append((state >> 16) % spread)
    return bytes(out)


def test_nothing():
    assert encode(b"") == [256, 257]
    assert decode([256, 257]) == b""
    assert decompress(compress(b"")) == b""


def test_one_byte():
    assert encode(b"\x00") == [256, 0, 257]
    assert encode(b"\xff") == [256, 255, 257]
    assert decode([256, 255, 257]) == b"\xff"


def test_known_text():
    assert encode(TEXT) == TEXT_CODES


def test_known_codes():
    assert decode(TEXT_CODES) == TEXT


def test_code_that_is_just_being_made():
    assert encode(b"aaaaaaa") == [256, 97, 258, 259, 97, 257]
    assert decode([256, 97, 258, 259, 97, 257]) == b"aaaaaaa"
    assert decode([256, 97, 98, 258, 260, 257]) == b"abababa"


def test_longest_entry_is_taken():
    assert encode(b"abababab") == [256, 97, 98, 258, 260, 98, 257]


def test_full_table_begins_anew():
    codes = encode(noise(600), 9)
    assert codes.count(256) == 3
    assert codes.index(256, 1) == 256
    assert max(codes) < 512


def test_full_table_is_cleared_only_when_an_entry_is_due():
    assert encode(bytes(range(255)), 9) == [256, *range(255), 257]
    assert encode(bytes(range(256)), 9) == [256, *range(255), 256, 255, 257]


def test_last_code_of_the_table_is_used():
    data = bytes(range(254)) + b"\xfd\xfdq"
    codes = [256, *range(254), 511, 256, 113, 257]
    assert encode(data, 9) == codes
    assert decode(codes, 9) == data


@pytest.mark.parametrize("max_bits", [9, 10, 12, 16])
def test_round_trip_of_noise(max_bits):
    for data in (noise(3000), noise(3000, 4), noise(3000, 1)):
        assert decode(encode(data, max_bits), max_bits) == data
        assert decompress(compress(data, max_bits), max_bits) == data


def test_repetition_gets_shorter():
    assert len(compress(b"ab" * 2000)) < 300


def test_clear_at_any_place():
    assert decode([256, 97, 98, 256, 97, 258, 257]) == b"abaaa"
    assert decode([256, 256, 97, 256, 257]) == b"a"


def test_decode_wants_clear_and_end():
    for codes in ([], [257], [97, 257], [256], [256, 97], [97]):
        with pytest.raises(CorruptData):
            decode(codes)


def test_decode_refuses_more_after_end():
    with pytest.raises(CorruptData):
        decode([256, 97, 257, 98, 257])


def test_decode_refuses_an_unknown_code():
    for codes in ([256, 97, 259, 257], [256, 97, 98, 260, 257], [256, 97, -1, 257], [256, 97, 98, 256, 97, 260, 257]):
        with pytest.raises(CorruptData):
            decode(codes)


def test_decode_wants_a_byte_after_clear():
    for codes in ([256, 258, 257], [256, 97, 98, 256, 258, 257]):
        with pytest.raises(CorruptData):
            decode(codes)


def test_decode_refuses_a_code_beyond_a_full_table():
    codes = [256, *noise(255), 257]
    assert len(decode(codes, 9)) == 255
    with pytest.raises(CorruptData):
        decode([*codes[:-1], 512, 257], 9)


def test_corrupt_data_is_a_value_error():
    with pytest.raises(ValueError):
        decode([])


def test_pack_is_highest_bit_first():
    assert pack([256, 97, 257], 9) == bytes([0b10000000, 0b00011000, 0b01100000, 0b00100000])
    assert pack([0xABC, 0x123], 12) == b"\xab\xc1\x23"
    assert pack([], 12) == b""
    assert pack([1], 16) == b"\x00\x01"


def test_pack_refuses_what_does_not_fit():
    for codes, width in (([512], 9), ([4096], 12), ([-1], 12)):
        with pytest.raises(ValueError):
            pack(codes, width)


def test_unpack_is_the_way_back():
    for width in range(9, 17):
        for count in range(6):
            codes = [256, *[97 + i for i in range(count)], 257]
            assert unpack(pack(codes, width), width) == codes


def test_unpack_wants_end():
    for data in (b"", b"\x00", pack([256, 97], 12), pack([256, 97, 257], 12)[:-1]):
        with pytest.raises(CorruptData):
            unpack(data, 12)


def test_unpack_refuses_what_follows_end():
    good = pack([256, 97, 257], 12)
    for data in (good + b"\x00", good[:-1] + bytes([good[-1] | 1]), pack([256, 257, 97], 12)):
        with pytest.raises(CorruptData):
            unpack(data, 12)


def test_width_out_of_range_is_a_value_error():
    for width in (8, 17, 0, "12"):
        for call, argument in ((encode, b"a"), (decode, [256, 257]), (pack, [256]), (unpack, b"\x10\x01\x01")):
            with pytest.raises(ValueError):
                call(argument, width)


def test_compressed_bytes():
    assert compress(b"aaaaaaa") == bytes.fromhex("100061102103061101")
