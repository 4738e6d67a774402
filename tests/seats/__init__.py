"""Tests: seats."""
