def middle(numbers: list):
    """Return the middle value of the sorted numbers; of an even count, the lower of the two in the middle.

    >>> middle([5, 1, 3, 9])
    3
    """
    ordered = sorted(numbers)
    return ordered[(len(ordered) - 1) // 2]
