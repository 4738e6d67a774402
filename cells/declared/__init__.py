"""Declared sets of cells: from any harness's file, named one by one, read side by side."""
