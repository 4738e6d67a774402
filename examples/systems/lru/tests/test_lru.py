import pytest
from solution import LRU


@pytest.fixture
def full():
    """Three entries of three: a is the oldest, c the newest."""
    cache = LRU(3)
    for key, value in (("a", 1), ("b", 2), ("c", 3)):
        cache.put(key, value)
    return cache


def test_new_cache_is_empty():
    cache = LRU(2)
    assert len(cache) == 0
    assert cache.keys() == []
    assert cache.capacity == 2
    assert cache.stats() == {"hits": 0, "misses": 0}


def test_capacity_below_one_is_a_value_error():
    for capacity in (0, -1):
        with pytest.raises(ValueError):
            LRU(capacity)


def test_capacity_of_another_type_is_a_type_error():
    for capacity in (True, 2.0, "2", None):
        with pytest.raises(TypeError):
            LRU(capacity)


def test_get_what_was_put(full):
    assert [full.get(key) for key in "abc"] == [1, 2, 3]


def test_get_what_is_missing(full):
    assert full.get("x") is None
    assert full.get("x", 7) == 7
    assert "x" not in full


def test_a_stored_none_is_found(full):
    full.put("c", None)
    assert full.get("c", 7) is None
    assert full.stats() == {"hits": 1, "misses": 0}


def test_keys_are_newest_first(full):
    assert full.keys() == ["c", "b", "a"]
    assert list(full) == ["c", "b", "a"]


def test_the_oldest_goes(full):
    assert full.put("d", 4) == ("a", 1)
    assert full.keys() == ["d", "c", "b"]
    assert len(full) == 3


def test_nothing_goes_while_there_is_room():
    cache = LRU(2)
    assert cache.put("a", 1) is None
    assert cache.put("b", 2) is None
    assert len(cache) == 2


def test_get_makes_newest(full):
    full.get("a")
    assert full.keys() == ["a", "c", "b"]
    assert full.put("d", 4) == ("b", 2)


def test_put_again_makes_newest_and_replaces(full):
    assert full.put("a", 9) is None
    assert full.keys() == ["a", "c", "b"]
    assert full.peek("a") == 9
    assert len(full) == 3


def test_peek_changes_nothing(full):
    assert full.peek("a") == 1
    assert full.peek("x") is None
    assert full.peek("x", 5) == 5
    assert full.keys() == ["c", "b", "a"]
    assert full.stats() == {"hits": 0, "misses": 0}


def test_contains_changes_nothing(full):
    assert "a" in full
    assert "x" not in full
    assert full.keys() == ["c", "b", "a"]
    assert full.stats() == {"hits": 0, "misses": 0}


def test_a_missed_get_changes_no_order(full):
    full.get("x")
    assert full.keys() == ["c", "b", "a"]


def test_counts(full):
    for key in ("a", "x", "b", "a", "y"):
        full.get(key)
    assert full.stats() == {"hits": 3, "misses": 2}


def test_counts_are_a_copy(full):
    counts = full.stats()
    full.get("a")
    assert counts == {"hits": 0, "misses": 0}


def test_delete(full):
    assert full.delete("b") is True
    assert full.delete("b") is False
    assert full.keys() == ["c", "a"]
    assert full.put("d", 4) is None


def test_deleted_key_is_new_when_it_comes_back(full):
    full.delete("c")
    full.put("c", 5)
    assert full.keys() == ["c", "b", "a"]
    assert full.peek("c") == 5


def test_shrinking_gives_up_the_oldest_first(full):
    full.get("a")
    assert full.resize(1) == [("b", 2), ("c", 3)]
    assert full.keys() == ["a"]
    assert full.capacity == 1


def test_growing_gives_up_nothing(full):
    assert full.resize(4) == []
    assert full.put("d", 4) is None
    assert full.put("e", 5) == ("a", 1)


def test_bad_resize_changes_nothing(full):
    with pytest.raises(ValueError):
        full.resize(0)
    with pytest.raises(TypeError):
        full.resize("2")
    assert full.capacity == 3
    assert full.keys() == ["c", "b", "a"]


def test_clear_keeps_counts_and_capacity(full):
    full.get("a")
    full.clear()
    assert len(full) == 0
    assert full.keys() == []
    assert full.capacity == 3
    assert full.stats() == {"hits": 1, "misses": 0}


def test_one_entry_only():
    cache = LRU(1)
    assert cache.put("a", 1) is None
    assert cache.put("a", 2) is None
    assert cache.put("b", 3) == ("a", 2)
    assert cache.keys() == ["b"]


def test_caches_are_independent():
    left, right = LRU(2), LRU(2)
    left.put("a", 1)
    assert len(right) == 0
    assert "a" not in right


def test_against_a_list():
    cache, model = LRU(5), []
    for step in range(400):
        key = step * step % 11
        if step % 3:
            gone = cache.put(key, step)
            model = [(key, step), *(entry for entry in model if entry[0] != key)]
            assert gone == (model.pop() if len(model) > 5 else None)
        else:
            found = [entry for entry in model if entry[0] == key]
            assert cache.get(key, "no") == (found[0][1] if found else "no")
            model = found + [entry for entry in model if entry[0] != key]
        assert cache.keys() == [entry[0] for entry in model]
