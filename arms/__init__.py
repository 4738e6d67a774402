"""The arms room."""
