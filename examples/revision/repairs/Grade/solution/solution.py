def grade(mark: int) -> str:
    """Return 'high' for marks of 80 and more, 'middle' for marks of 50 to 79, and 'low' for any below.

    >>> grade(80)
    'high'
    """
    if mark >= 80:
        return 'high'
    if mark >= 50:
        return 'middle'
    return 'low'
