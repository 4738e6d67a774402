"""Spans of whole numbers."""


def merge(spans):
    """The same numbers in as few spans as possible, in rising order."""
    merged = []
    for start, end in sorted(spans):
        if start > end:
            raise ValueError(f"span ({start}, {end}) ends before it starts")
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged
