"""Controllers: what a packet says of a failed solution, chosen by a rule."""
