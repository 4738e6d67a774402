from itertools import pairwise

import pytest
from solution import Arena, ArenaError, BadFree, OutOfMemory


def live(arena):
    return [(offset, size) for offset, size, used in arena.blocks() if used]


def holes(arena):
    return [(offset, size) for offset, size, used in arena.blocks() if not used]


@pytest.fixture
def comb():
    """Sixteen bytes each at 0, 16, 32, 48; the first and third given back; 64 to 128 free."""
    arena = Arena(128)
    offsets = [arena.alloc(16) for _ in range(4)]
    arena.free(offsets[0])
    arena.free(offsets[2])
    return arena


def test_new_arena_is_one_free_block():
    arena = Arena(64)
    assert arena.blocks() == [(0, 64, False)]
    assert (arena.free_bytes, arena.largest_free) == (64, 64)


def test_bad_size_is_a_value_error():
    for size in (0, -8, 12, 63):
        with pytest.raises(ValueError):
            Arena(size)


def test_size_of_another_type_is_a_type_error():
    for size in ("64", 64.0, None, True):
        with pytest.raises(TypeError):
            Arena(size)


def test_blocks_follow_each_other():
    arena = Arena(64)
    assert [arena.alloc(8), arena.alloc(16), arena.alloc(8)] == [0, 8, 24]
    assert arena.blocks() == [(0, 8, True), (8, 16, True), (24, 8, True), (32, 32, False)]


def test_requests_are_rounded_up():
    for count, size in ((1, 8), (7, 8), (8, 8), (9, 16), (17, 24)):
        arena = Arena(64)
        arena.alloc(count)
        assert live(arena) == [(0, size)]


def test_no_bytes_is_a_value_error():
    for count in (0, -1):
        with pytest.raises(ValueError):
            Arena(64).alloc(count)


def test_count_of_another_type_is_a_type_error():
    for count in (True, 8.0, "8"):
        with pytest.raises(TypeError):
            Arena(64).alloc(count)


def test_whole_arena_in_one_block():
    arena = Arena(64)
    assert arena.alloc(64) == 0
    assert arena.blocks() == [(0, 64, True)]
    assert (arena.free_bytes, arena.largest_free) == (0, 0)


def test_out_of_memory_changes_nothing():
    arena = Arena(64)
    arena.alloc(40)
    before = arena.blocks()
    with pytest.raises(OutOfMemory):
        arena.alloc(25)
    assert arena.blocks() == before


def test_errors_are_arena_errors():
    arena = Arena(8)
    with pytest.raises(ArenaError):
        arena.alloc(9)
    with pytest.raises(ArenaError):
        arena.free(0)


def test_first_fit_is_the_lowest_offset(comb):
    assert comb.alloc(8) == 0
    assert comb.alloc(16) == 32
    assert comb.alloc(8) == 8


def test_first_fit_is_not_best_fit():
    arena = Arena(64)
    first, _, third, _ = arena.alloc(24), arena.alloc(8), arena.alloc(8), arena.alloc(8)
    arena.free(first)
    arena.free(third)
    assert arena.alloc(8) == 0
    assert holes(arena) == [(8, 16), (32, 8), (48, 16)]


def test_first_fit_skips_what_is_too_small(comb):
    assert comb.alloc(24) == 64


def test_rest_of_a_split_block_is_free(comb):
    comb.alloc(8)
    assert holes(comb) == [(8, 8), (32, 16), (64, 64)]


def test_exact_fit_leaves_no_rest(comb):
    comb.alloc(16)
    assert comb.blocks()[0] == (0, 16, True)
    assert holes(comb) == [(32, 16), (64, 64)]


def test_free_joins_both_sides(comb):
    comb.free(16)
    assert holes(comb) == [(0, 48), (64, 64)]


def test_free_joins_the_block_behind(comb):
    comb.free(48)
    assert holes(comb) == [(0, 16), (32, 96)]


def test_free_joins_the_block_before():
    arena = Arena(48)
    first, second, _ = arena.alloc(16), arena.alloc(16), arena.alloc(16)
    arena.free(first)
    arena.free(second)
    assert holes(arena) == [(0, 32)]


def test_everything_freed_is_one_block(comb):
    comb.free(48)
    comb.free(16)
    assert comb.blocks() == [(0, 128, False)]


def test_fragmentation_is_out_of_memory():
    arena = Arena(64)
    offsets = [arena.alloc(16) for _ in range(4)]
    arena.free(offsets[0])
    arena.free(offsets[2])
    assert (arena.free_bytes, arena.largest_free) == (32, 16)
    with pytest.raises(OutOfMemory):
        arena.alloc(24)


def test_bad_free_changes_nothing(comb):
    before = comb.blocks()
    for offset in (0, 8, 64, 128, -16, 20):
        with pytest.raises(BadFree):
            comb.free(offset)
        assert comb.blocks() == before


def test_realloc_to_the_same_size(comb):
    before = comb.blocks()
    assert comb.realloc(16, 10) == 16
    assert comb.blocks() == before


def test_realloc_shrinks_in_place_and_joins(comb):
    assert comb.realloc(16, 8) == 16
    assert comb.blocks()[:3] == [(0, 16, False), (16, 8, True), (24, 24, False)]


def test_realloc_grows_in_place(comb):
    assert comb.realloc(16, 24) == 16
    assert comb.blocks()[:4] == [(0, 16, False), (16, 24, True), (40, 8, False), (48, 16, True)]


def test_realloc_grows_into_the_whole_block_behind(comb):
    assert comb.realloc(16, 32) == 16
    assert comb.blocks()[:3] == [(0, 16, False), (16, 32, True), (48, 16, True)]


def test_realloc_moves_when_there_is_no_room(comb):
    assert comb.realloc(16, 40) == 64
    assert comb.blocks() == [(0, 48, False), (48, 16, True), (64, 40, True), (104, 24, False)]


def test_realloc_does_not_move_into_itself():
    arena = Arena(64)
    first, second = arena.alloc(16), arena.alloc(16)
    arena.alloc(16)
    arena.free(first)
    with pytest.raises(OutOfMemory):
        arena.realloc(second, 32)
    assert live(arena) == [(16, 16), (32, 16)]


def test_failed_realloc_changes_nothing(comb):
    before = comb.blocks()
    with pytest.raises(OutOfMemory):
        comb.realloc(16, 128)
    assert comb.blocks() == before


def test_realloc_of_what_is_not_live(comb):
    with pytest.raises(BadFree):
        comb.realloc(0, 8)
    with pytest.raises(ValueError):
        comb.realloc(16, 0)


def test_long_run_keeps_the_books():
    arena = Arena(512)
    held = []
    for step in range(300):
        if step % 3 == 2 and held:
            arena.free(held.pop(step * 7 % len(held)))
        else:
            try:
                held.append(arena.alloc(step * 13 % 40 + 1))
            except OutOfMemory:
                arena.free(held.pop(0))
        blocks = arena.blocks()
        assert [block[0] for block in blocks] == [sum(b[1] for b in blocks[:i]) for i in range(len(blocks))]
        assert sum(block[1] for block in blocks) == 512
        assert all(a[2] or b[2] for a, b in pairwise(blocks))
    assert sorted(held) == [offset for offset, _ in live(arena)]
