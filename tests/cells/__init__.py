"""Tests: cells."""
