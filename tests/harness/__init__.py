"""Tests: harness."""
