"""Tests: tasks."""
