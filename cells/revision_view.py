"""The reading of revisions as tables and as JSON; every share stands as its two counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cells.figures import UNDEFINED, p_text
from cells.score_tables import Sheet

if TYPE_CHECKING:
    from cells.revision_reading import ArmRevisions, AtRevision, RevisionReading

__all__ = ["revision_sheets", "revisions_to_json"]

WITHHELD = "comparisons are withheld until the record is whole"
_CONDITION = ("arm", "extras", "model")


def revision_sheets(found: RevisionReading, *, final: bool) -> list[Sheet]:
    """The tables; without those of the contrasts while the record is not whole."""
    sheets = [_states(found), _work(found), _replies(found)]
    return [*sheets, _contrasts(found)] if final else sheets


def revisions_to_json(found: RevisionReading, *, final: bool, **about: Any) -> dict[str, Any]:
    """
    The reading and what it is of; `contrasts` is null while the record is not whole. Each arm's `shares` are those that
    its tables print, null where there is nothing that they would be of.
    """
    return {
        **about,
        "arms": [{**asdict(arm), "shares": _shares(arm)} for arm in found.arms],
        "contrasts": [asdict(item) for item in found.contrasts] if final else None,
    }


def _shares(arm: ArmRevisions) -> dict[str, Any]:
    return {
        "correct": [_share(at.correct, at.known) for at in arm.by_revision],
        "ever_correct": [_share(at.ever, at.traced) for at in arm.by_revision],
        "lost": _share(arm.lost, arm.traced),
        "harm": _share(arm.harmed, arm.correct_starts),
        "repair": _share(arm.repaired, arm.wrong_starts),
        "sound": _share(arm.sound, arm.judged),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _key(arm: ArmRevisions) -> tuple[str, ...]:
    return arm.arm, arm.extras, arm.model


def _of(part: int, whole: int) -> str:
    """A share as what it is made of: three decimals, and the counts; undefined of nothing."""
    return f"{part / whole:.3f} ({part}/{whole})" if whole else UNDEFINED


def _states(found: RevisionReading) -> Sheet:
    """Correct now and ever, by revision."""
    most = max((len(arm.by_revision) for arm in found.arms), default=0)
    header = ["start", *(f"after {number}" for number in range(1, most))]
    rows = []
    for arm in found.arms:
        for word, told in (("correct", _now), ("ever correct", _ever)):
            row = [told(at) for at in arm.by_revision]
            rows.append((*_key(arm), word, *row, *([UNDEFINED] * (most - len(row)))))
    return Sheet(
        title="correct states by revision, as the public tests say",
        header=(*_CONDITION, "", *header),
        rows=tuple(rows),
        left=4,
        notes=("a cell that ended by itself keeps its last state; one that was stopped is known as far as it came",),
    )


def _now(at: AtRevision) -> str:
    return _of(at.correct, at.known)


def _ever(at: AtRevision) -> str:
    return _of(at.ever, at.traced)


def _work(found: RevisionReading) -> Sheet:
    """Work lost, harm, repair, soundness."""
    return Sheet(
        title="work lost, harm and repair",
        header=(
            *_CONDITION, "seen", "lost after correct", "harm of correct starts", "repair of wrong starts",
            "sound completion", "certified, rejected", "restored", "escalated",
        ),
        rows=tuple(
            (
                *_key(arm),
                f"{arm.seen} of {arm.declared}",
                _of(arm.lost, arm.traced),
                _of(arm.harmed, arm.correct_starts),
                _of(arm.repaired, arm.wrong_starts),
                _of(arm.sound, arm.judged),
                str(arm.unsound),
                str(arm.restored),
                str(arm.escalated),
            )
            for arm in found.arms
        ),
        left=3,
        notes=(
            "lost: of cells whose every state is known, those that held a correct one and whose last is not",
            "harm and repair: what shipped, by its certificate",
            "sound: of judged cells, those whose certificate and whose referee accept what shipped",
        ),
    )  # fmt: skip


def _replies(found: RevisionReading) -> Sheet:
    """What the replies came to, and what became of evidence."""
    return Sheet(
        title="replies and evidence",
        header=(*_CONDITION, "patches admitted", "nothing changed, by rule", "evidence", "stale shown"),
        rows=tuple(
            (
                *_key(arm),
                f"{arm.admitted} of {arm.patches}",
                _counted(arm.notes),
                _counted(arm.handlings),
                str(arm.stale_shown),
            )
            for arm in found.arms
        ),
        left=3,
    )


def _counted(counts: Any) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "-"


def _contrasts(found: RevisionReading) -> Sheet:
    """Arms against each other, pair by pair."""
    return Sheet(
        title="arms against each other, by pairs of cells",
        header=(
            "measure", "treatment", "control", "extras", "pairs", "clusters", "treatment only", "control only",
            "difference", "interval", "p exact", "p clustered",
        ),
        rows=tuple(
            (
                item.measure,
                item.treatment,
                item.control,
                item.extras,
                str(item.pairs),
                str(item.clusters),
                str(item.b01),
                str(item.b10),
                UNDEFINED if item.difference is None else f"{item.difference:+.3f}",
                UNDEFINED if item.low is None or item.high is None else f"{item.low:+.3f} to {item.high:+.3f}",
                p_text(item.p_exact),
                p_text(item.p_clustered),
            )
            for item in found.contrasts
        ),
        left=4,
        notes=(
            "two-sided, not adjusted and not registered: a verdict rests on registered contrasts alone",
            "p clustered and the interval (95 %, whole clusters drawn) know which pairs belong together, p exact not",
        ),
    )  # fmt: skip
