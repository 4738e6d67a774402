def window(numbers: list, width: int):
    """Return the largest sum of `width` neighbours in the list, or None where the list is shorter than that.

    >>> window([1, 5, 2, 4], 2)
    7
    """
    if width < 1 or len(numbers) < width:
        return None
    return max(sum(numbers[at:at + width]) for at in range(len(numbers) - width + 1))
