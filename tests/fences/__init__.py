"""Tests: fences."""
