"""seats."""
