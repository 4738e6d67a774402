"""Tests: arms."""
