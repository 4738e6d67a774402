"""Tests: the comparison benches."""
