"""The tests; live ones are in `live`."""
