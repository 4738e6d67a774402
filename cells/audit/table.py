"""The one table of invariants, in the order that they are told in."""

from __future__ import annotations

from cells.audit.candidates import CandidatesHold
from cells.audit.fence import ControlsHeld, FenceReceipts
from cells.audit.files import Files
from cells.audit.findings import Invariant
from cells.audit.judged import ServedModel, VerdictsKnown
from cells.audit.mirrored import MirrorsHold
from cells.audit.outcomes import CellsComplete, NoVoidNumber, OutcomeForm, RetriesAsRegistered, TriesInOrder
from cells.audit.planned import Amendments, PairingKeys, PooledIsSum
from cells.audit.promotions import DiscoveryApart, Promotions
from cells.audit.reuse import NoReuse
from cells.audit.revised import RevisionsHold
from cells.audit.rounds import RoundsComplete, Seeds
from cells.audit.sessions import Clock, KnownEntries, ProbesRepeated, SessionPins, Sessions
from cells.audit.spending import Prices, SpendAddsUp

__all__ = ["INVARIANTS"]

INVARIANTS: tuple[type[Invariant], ...] = (
    Files,
    Sessions,
    KnownEntries,
    SessionPins,
    Clock,
    PairingKeys,
    OutcomeForm,
    NoVoidNumber,
    CellsComplete,
    TriesInOrder,
    RetriesAsRegistered,
    FenceReceipts,
    ProbesRepeated,
    ControlsHeld,
    VerdictsKnown,
    ServedModel,
    RoundsComplete,
    CandidatesHold,
    MirrorsHold,
    RevisionsHold,
    Seeds,
    NoReuse,
    SpendAddsUp,
    Prices,
    Amendments,
    Promotions,
    DiscoveryApart,
    PooledIsSum,
)
"""A new one is a line here, a row on the page of audits, and a record in the tests that makes it alone speak up."""
