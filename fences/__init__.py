"""The fences room."""
