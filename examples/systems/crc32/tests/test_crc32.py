import pytest
from solution import Crc32, combine, crc32

CHECK = b"123456789"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x00000000),
        (b"a", 0xE8B7BE43),
        (b"\x00", 0xD202EF8D),
        (CHECK, 0xCBF43926),
        (b"\x00" * 32, 0x190A55AD),
        (b"\xff" * 32, 0xFF6CAB0B),
        (bytes(range(256)), 0x29058C73),
    ],
    ids=["nothing", "letter", "zero-byte", "check", "zeros", "ones", "every-byte"],
)
def test_known_value(data, expected):
    assert crc32(data) == expected


def test_bytearray_is_data_too():
    assert crc32(bytearray(CHECK)) == 0xCBF43926


def test_long_input():
    assert crc32(bytes(i * 7 % 251 for i in range(40_000))) == 0x986F6697


def test_start_continues():
    for cut in range(len(CHECK) + 1):
        assert crc32(CHECK[cut:], crc32(CHECK[:cut])) == 0xCBF43926


def test_nothing_keeps_start():
    for start in (0, 1, 0x80000000, 0xFFFFFFFF):
        assert crc32(b"", start) == start


def test_other_data_is_a_type_error():
    for data in ("text", [1, 2], None, 7):
        with pytest.raises(TypeError):
            crc32(data)


def test_start_out_of_range_is_a_value_error():
    for start in (-1, 1 << 32, 1 << 64):
        with pytest.raises(ValueError):
            crc32(b"a", start)


def test_start_of_another_type_is_a_type_error():
    for start in (True, "0", 1.0, None):
        with pytest.raises(TypeError):
            crc32(b"a", start)


def test_combine_is_the_checksum_of_the_whole():
    whole = bytes(range(200))
    for cut in (0, 1, 2, 3, 8, 64, 199, 200):
        assert combine(crc32(whole[:cut]), crc32(whole[cut:]), 200 - cut) == crc32(whole)


def test_combine_with_nothing():
    assert combine(0xCBF43926, 0, 0) == 0xCBF43926
    assert combine(0, 0xCBF43926, 9) == 0xCBF43926


def test_combine_of_a_huge_second_part():
    assert combine(0xCBF43926, 0, 10**15) == 0x16F27265


def test_combine_refuses_a_negative_length():
    with pytest.raises(ValueError):
        combine(1, 2, -1)


def test_combine_refuses_what_is_no_checksum():
    with pytest.raises(ValueError):
        combine(1 << 32, 0, 1)
    with pytest.raises(ValueError):
        combine(0, -1, 1)
    with pytest.raises(TypeError):
        combine("1", 0, 1)


def test_object_in_parts():
    checksum = Crc32(b"123")
    checksum.update(b"")
    checksum.update(b"456")
    checksum.update(bytearray(b"789"))
    assert checksum.value == 0xCBF43926
    assert checksum.length == 9


def test_new_object_is_empty():
    assert Crc32().value == 0
    assert Crc32().length == 0
    assert Crc32().hexdigest() == "00000000"


def test_hexdigest_has_eight_lower_case_digits():
    assert Crc32(CHECK).hexdigest() == "cbf43926"
    assert Crc32(bytes([0, 171])).hexdigest() == "00dd689f"


def test_failed_update_changes_nothing():
    checksum = Crc32(b"12")
    with pytest.raises(TypeError):
        checksum.update("3")
    assert checksum.length == 2
    checksum.update(b"3456789")
    assert checksum.value == 0xCBF43926


def test_copy_is_independent():
    checksum = Crc32(b"1234")
    other = checksum.copy()
    assert (other.value, other.length) == (checksum.value, 4)
    other.update(b"x")
    checksum.update(b"56789")
    assert checksum.value == 0xCBF43926
    assert other.value == crc32(b"1234x")
    assert other.length == 5


def test_append_is_concatenation():
    left, right = Crc32(b"1234"), Crc32(b"56789")
    left.append(right)
    assert (left.value, left.length) == (0xCBF43926, 9)
    assert (right.value, right.length) == (crc32(b"56789"), 5)
    right.append(Crc32())
    assert (right.value, right.length) == (crc32(b"56789"), 5)


def test_append_twice():
    left = Crc32(b"ab")
    right = Crc32(b"cd")
    left.append(right)
    left.append(right)
    assert (left.value, left.length) == (crc32(b"abcdcd"), 6)
