"""The registered arms of controllers. Each takes the options of its controller by keyword, and none needs any."""

from __future__ import annotations

from arms.controllers.inversion import AssumptionInversion
from arms.controllers.kernel import ConstraintKernel
from arms.controllers.linucb import ACTIONS, LinUCB
from arms.controllers.packet import ControlledPacket, DecoyPacket, ShapePacket
from arms.controllers.trace import OutcomeTrace

__all__ = [
    "invert",
    "invert_decoy",
    "invert_shape",
    "kernel",
    "kernel_decoy",
    "kernel_shape",
    "linucb",
    "linucb_decoy",
    "linucb_shape",
    "trace",
    "trace_decoy",
    "trace_shape",
]


def trace(*, weights: object = None) -> ControlledPacket:
    """The outcome trace."""
    return ControlledPacket("TRACE", OutcomeTrace(weights))


def trace_shape() -> ShapePacket:
    """Its shape placebo."""
    return ShapePacket("TRACE", OutcomeTrace())


def trace_decoy(*, seed: object = "") -> DecoyPacket:
    """Its decoy."""
    return DecoyPacket("TRACE", OutcomeTrace(), seed)


def kernel() -> ControlledPacket:
    """The constraint kernel."""
    return ControlledPacket("KERNEL", ConstraintKernel())


def kernel_shape() -> ShapePacket:
    """Its shape placebo."""
    return ShapePacket("KERNEL", ConstraintKernel())


def kernel_decoy(*, seed: object = "") -> DecoyPacket:
    """Its decoy."""
    return DecoyPacket("KERNEL", ConstraintKernel(), seed)


def invert(*, corpus: bytes | None = None) -> ControlledPacket:
    """The assumption inversion."""
    return ControlledPacket("INVERT", AssumptionInversion(corpus))


def invert_shape(*, corpus: bytes | None = None) -> ShapePacket:
    """Its shape placebo; the corpus tells it which words are nobody's."""
    return ShapePacket("INVERT", AssumptionInversion(corpus))


def invert_decoy(*, corpus: bytes | None = None, seed: object = "") -> DecoyPacket:
    """Its decoy."""
    return DecoyPacket("INVERT", AssumptionInversion(corpus), seed)


def linucb(
    *, alpha: object = 1.0, actions: object = ACTIONS, corpus: bytes | None = None, weights: object = None
) -> ControlledPacket:
    """The bandit."""
    return ControlledPacket("LINUCB", LinUCB(alpha, actions, corpus, weights))


def linucb_shape(*, actions: object = ACTIONS, corpus: bytes | None = None) -> ShapePacket:
    """Its shape placebo; actions and corpus tell it which words are nobody's."""
    return ShapePacket("LINUCB", LinUCB(actions=actions, corpus=corpus))


def linucb_decoy(*, actions: object = ACTIONS, corpus: bytes | None = None, seed: object = "") -> DecoyPacket:
    """Its decoy: lines of any of its actions."""
    made = LinUCB(actions=actions, corpus=corpus)
    return DecoyPacket("LINUCB", made, seed, made.actions)
