"""The referees room."""
