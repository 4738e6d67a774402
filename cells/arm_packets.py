"""What an arm that shows facts, or mirrors one that does, makes of a sample task: its packet, and its audit's word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from harness import plugins
from harness.arm_check import ArmFinding
from harness.errors import MirrorBroken, ProctorError, TokensShown
from harness.mirror import arm_state, mirror_state
from harness.mirror_audit import audit_packet
from harness.ports import Arm
from harness.seats.mirroring import as_seen
from harness.views import Fact, MirrorState, Previous, PublicReading, RoundView

__all__ = ["check_packet"]

_TASK = '''def middle(numbers):
    """Return the one of three numbers that is neither the least nor the greatest."""'''
_CODE = "def middle(numbers):\n    return numbers[1]\n"
_FACTS = (
    Fact(call="middle([3, 1, 2])", expected="2", observed="1"),
    Fact(call="middle([1, 3, 2])", expected="2", observed="3"),
)


def check_packet(arm: Arm, others: Mapping[str, Arm]) -> list[ArmFinding]:
    """
    The packet of an arm that keeps anything of a state, on a sample task whose earlier solution failed two public
    tests, with the verdict of its audit; and whether the audit passes it where nothing failed yet. `others` are arms
    at hand beside the registered ones. Empty for any other arm. Never raises.
    """
    keeps: frozenset[str] = getattr(arm, "keeps", frozenset())
    source: str | None = getattr(arm, "mirrors", None)
    if not keeps and source is None:
        return []
    try:
        return [*_rounds(arm, source, others)]
    except Exception as error:  # noqa: BLE001 - an arm is a plugin: whatever it raises is the finding
        return [_error(f"the sample can't be rendered: {type(error).__name__}: {error}")]


def _rounds(arm: Arm, source: str | None, others: Mapping[str, Arm]) -> Iterator[ArmFinding]:
    origin = arm if source is None else _at_hand(source, others)
    for view in (_view(1, ()), _view(2, _FACTS)):
        state = mirror_state(str(source), view.round, view.previous) if origin is None else arm_state(origin, view)
        seen = as_seen(arm, view, state)
        text = arm.render(seen)
        yield _audited(arm, seen, state, text)
        if view.previous is not None:
            of = f"round {view.round} of a sample task{_silence(origin, view)}"
            yield ArmFinding(rule="packet", level="note", detail=f"{of}:\n{text}")


def _silence(origin: Arm | None, view: RoundView) -> str:
    """That a controller has nothing to say there, which its packet would else be taken for all of."""
    fires: Callable[[RoundView], bool] | None = getattr(origin, "fires", None)
    if origin is None or fires is None or fires(view):
        return ""
    return f", on which the controller of {origin.name!r} does not fire"


def _view(number: int, facts: tuple[Fact, ...]) -> RoundView:
    """A round of the sample task; with facts it has the earlier solution that violates them."""
    reading = PublicReading(reading="FAIL", accepted=False, passed=1, total=1 + len(facts), facts=facts)
    return RoundView(
        instruction=_TASK,
        details={"entry_point": "middle"},
        round=number,
        rounds=4,
        previous=Previous(code=_CODE, reading=reading) if facts else None,
    )


def _at_hand(source: str, others: Mapping[str, Arm]) -> Arm | None:
    """The arm that is mirrored; None where it is not here, and then the state has the facts as they are."""
    if source in others:
        return others[source]
    if source not in plugins.table("arms"):
        return None
    try:
        made: Arm = plugins.load("arms", source)()
    except (ProctorError, TypeError):  # it takes options that only an experiment gives
        return None
    return made


def _audited(arm: Arm, view: RoundView, state: MirrorState, text: str) -> ArmFinding:
    keeps: frozenset[str] = getattr(arm, "keeps", frozenset())
    try:
        audit_packet(arm, view, state, text)
    except (MirrorBroken, TokensShown) as error:
        return _error(f"{error}. A run would stop there")
    of = "its own facts" if view.mirrored is None else f"the state of {state.source!r}"
    shown = f"{state.bullets} bullets" if state.failed else "nothing that failed"
    kept = ", ".join(sorted(keeps)) or "nothing"
    return ArmFinding(
        rule="mirror",
        level="note",
        detail=f"round {view.round}, on {of} with {shown}: its audit passes; it keeps {kept}",
    )


def _error(detail: str) -> ArmFinding:
    return ArmFinding(rule="mirror", level="error", detail=detail)
