"""The cells room."""
