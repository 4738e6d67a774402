"""Tests: referees."""
