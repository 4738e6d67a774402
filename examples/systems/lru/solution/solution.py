"""A cache that gives up its least recently used entry."""

from collections import OrderedDict


class LRU:
    """A mapping of at most `capacity` entries. Each entry has a place in the order of use, the newest first."""

    def __init__(self, capacity: int):
        """An empty cache. ValueError for a capacity below 1; TypeError for one that is no int or is a bool."""
        self._capacity = self._checked(capacity)
        self._entries = OrderedDict()  # the oldest first
        self._hits = 0
        self._misses = 0

    @staticmethod
    def _checked(capacity):
        if isinstance(capacity, bool) or not isinstance(capacity, int):
            raise TypeError(f"capacity is {type(capacity).__name__}: expected int")
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}: expected 1 or more")
        return capacity

    def get(self, key, default=None):
        """The value of `key`, which is now the newest entry, and a hit; or `default`, and a miss."""
        if key not in self._entries:
            self._misses += 1
            return default
        self._hits += 1
        self._entries.move_to_end(key)
        return self._entries[key]

    def peek(self, key, default=None):
        """The value of `key`, or `default`. Neither the order of use nor the counts change."""
        return self._entries.get(key, default)

    def put(self, key, value):
        """
        Store `value`; the entry is now the newest. If a new key makes the cache too large, the oldest entry goes. The
        return value is that entry as a tuple (key, value), or None if none had to go.
        """
        self._entries[key] = value
        self._entries.move_to_end(key)
        return self._entries.popitem(last=False) if len(self._entries) > self._capacity else None

    def delete(self, key) -> bool:
        """Take out `key`; whether it was there."""
        if key not in self._entries:
            return False
        del self._entries[key]
        return True

    def resize(self, capacity: int) -> list:
        """
        Change the capacity; the entries that have to go, as tuples (key, value), the oldest first. The capacity is
        checked as when a cache is made, and a bad one changes nothing.
        """
        self._capacity = self._checked(capacity)
        return [self._entries.popitem(last=False) for _ in range(len(self._entries) - capacity)]

    def keys(self) -> list:
        """A list of the keys, the newest first. It does not change with the cache."""
        return list(reversed(self._entries))

    def stats(self) -> dict:
        """How often `get` found its key and how often not: {"hits": int, "misses": int}."""
        return {"hits": self._hits, "misses": self._misses}

    @property
    def capacity(self) -> int:
        """The most entries that the cache holds."""
        return self._capacity

    def clear(self) -> None:
        """Take out everything. The capacity and the counts stay."""
        self._entries.clear()

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def __contains__(self, key) -> bool:
        """Whether `key` is there. Neither the order of use nor the counts change."""
        return key in self._entries

    def __iter__(self):
        """The keys, the newest first."""
        return iter(self.keys())
