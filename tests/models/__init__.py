"""Tests of the model providers; a package, so that the live tests can use its servers."""
