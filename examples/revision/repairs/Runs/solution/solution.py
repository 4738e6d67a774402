def runs(text: str) -> list:
    """Return the lengths of the runs of equal neighbours in the text, in their order.

    >>> runs('aabccc')
    [2, 1, 3]
    """
    lengths = []
    for at, char in enumerate(text):
        if at > 0 and text[at - 1] == char:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths
