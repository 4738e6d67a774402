"""Pools: candidates that were made once, kept by digest, and tell which units of a population are dead."""
