def gaps(numbers: list) -> list:
    """Return the differences between neighbours of the list, each as the later less the earlier.

    >>> gaps([1, 4, 2])
    [3, -2]
    """
    return [numbers[at + 1] - numbers[at] for at in range(len(numbers) - 1)]
