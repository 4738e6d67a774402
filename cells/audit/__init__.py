"""The audit of a run: invariants that every honest record keeps, each a small class that says when one does not."""
