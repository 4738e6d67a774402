"""Results of other harnesses as cells: read from what they left on disk, without them and without running anything."""
