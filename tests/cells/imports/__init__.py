"""The importers of other harnesses' results."""
