"""Slugs: words for web addresses."""

import re


def slug(title, limit=40):
    """The word for `title`, of at most `limit` characters."""
    if limit < 1:
        raise ValueError(f"limit is {limit}: expected 1 or more")
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:limit].rstrip("-") or "untitled"
