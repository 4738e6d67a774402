"""Promotion: an effect of a finished discovery run is registered for a confirmation, once, and nothing is pooled."""
