"""A first-fit allocator over one arena of fixed size, with splitting and coalescing."""

ALIGN = 8


class ArenaError(Exception):
    """Something that the arena can't do."""


class OutOfMemory(ArenaError):
    """No free block is large enough. Nothing has changed."""


class BadFree(ArenaError):
    """The offset is not that of a live allocation. Nothing has changed."""


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {type(value).__name__}: expected int")
    return value


class Arena:
    """
    A range of `size` bytes, given out in blocks. Offsets and sizes of blocks are multiples of 8; a request is
    rounded up to the next one. Blocks lie side by side and cover the arena; two free blocks never touch.
    """

    def __init__(self, size: int):
        """
        One free block of `size` bytes. ValueError unless `size` is a positive multiple of 8; TypeError for no int.
        """
        if _count("size", size) <= 0 or size % ALIGN:
            raise ValueError(f"size is {size}: expected a positive multiple of {ALIGN}")
        self._blocks = [[0, size, False]]

    @staticmethod
    def _rounded(count):
        if _count("count", count) <= 0:
            raise ValueError(f"count is {count}: expected 1 or more")
        return (count + ALIGN - 1) // ALIGN * ALIGN

    def alloc(self, count: int) -> int:
        """
        The offset of a new block of `count` bytes, rounded up: the lowest offset at which a free block is large
        enough. What is left over of that block stays free. OutOfMemory if there is none; ValueError for a count
        below 1; TypeError for a count that is no int or is a bool.
        """
        need = self._rounded(count)
        for index, (offset, size, used) in enumerate(self._blocks):
            if not used and size >= need:
                self._take(index, need)
                return offset
        raise OutOfMemory(f"no free block of {need} bytes")

    def _take(self, index, need):
        offset, size, _ = self._blocks[index]
        rest = [[offset + need, size - need, False]] if size > need else []
        self._blocks[index : index + 1] = [[offset, need, True], *rest]

    def _find(self, offset):
        for index, block in enumerate(self._blocks):
            if block[0] == offset and block[2]:
                return index
        raise BadFree(f"{offset!r} is not the offset of a live allocation")

    def free(self, offset: int) -> None:
        """
        Give back the block at `offset`; it joins with the free blocks that touch it on either side. BadFree for
        anything but the offset of a live allocation.
        """
        index = self._find(offset)
        self._blocks[index][2] = False
        self._join(index)

    def _join(self, index):
        if index + 1 < len(self._blocks) and not self._blocks[index + 1][2]:
            self._blocks[index][1] += self._blocks.pop(index + 1)[1]
        if index > 0 and not self._blocks[index - 1][2]:
            self._blocks[index - 1][1] += self._blocks.pop(index)[1]

    def realloc(self, offset: int, count: int) -> int:
        """
        Make the block at `offset` hold `count` bytes, rounded up, and return its offset. A block that shrinks stays
        where it is and gives its end back, which joins with a free block behind it. A block that grows stays where
        it is if the block behind it is free and the two together are large enough; else a new block is found as
        `alloc` finds it, while the old one is still live, and then the old one is freed. If there is none,
        OutOfMemory, and nothing has changed. BadFree, ValueError and TypeError as in `free` and `alloc`.
        """
        index = self._find(offset)
        need = self._rounded(count)
        size = self._blocks[index][1]
        behind = self._blocks[index + 1] if index + 1 < len(self._blocks) else None
        room = size + (behind[1] if behind is not None and not behind[2] else 0)
        if need > room:
            moved = self.alloc(count)
            self.free(offset)
            return moved
        if room > size:
            self._blocks[index][1] += self._blocks.pop(index + 1)[1]
        self._take(index, need)
        return offset

    def blocks(self) -> list:
        """All blocks by rising offset, each as a tuple (offset, size, used) with `used` a bool."""
        return [tuple(block) for block in self._blocks]

    @property
    def free_bytes(self) -> int:
        """The sizes of all free blocks together."""
        return sum(size for _, size, used in self._blocks if not used)

    @property
    def largest_free(self) -> int:
        """The size of the largest free block; 0 if there is none."""
        return max((size for _, size, used in self._blocks if not used), default=0)
