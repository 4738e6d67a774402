"""
The registered text arms: the text, one blank line, the task's instruction.

`plain` has no text at all, so it renders the instruction alone; `placebo` has a treatment's shape and none of its
advice; an experiment brings its own with `load_text_arm`.
"""

from __future__ import annotations

from importlib.resources import files

from harness.text_arm import MAX_TEXT_BYTES, SEAT_KINDS, TextArm, load_text_arm, with_extras

__all__ = ["MAX_TEXT_BYTES", "SEAT_KINDS", "TextArm", "load_text_arm", "placebo", "plain", "with_extras"]


def plain() -> TextArm:
    """The arm without a text: zero bytes of instruction, so the task's own is all that the seat is told."""
    return TextArm("plain", b"")


def placebo() -> TextArm:
    """The arm with a neutral text: headings, lists and length of a treatment, and no advice about the work."""
    return TextArm("placebo", files("arms").joinpath("texts/placebo.md").read_bytes())
