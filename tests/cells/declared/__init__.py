"""Tests: declared sets of cells."""
