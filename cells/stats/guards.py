"""Guards: registered predicates beside a test, which say that a result would not mean what it seems to."""

from __future__ import annotations

from dataclasses import dataclass

from cells.stats.arguments import count, inside_unit, positive, probability
from cells.stats.exact import mcnemar_exact

__all__ = ["Guard", "harm_gate", "material_rescue", "stratum_gate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """A guard's word: whether it passes, by which rule, and the figure that decided."""

    name: str
    passes: bool
    rule: str
    value: float


def harm_gate(b10: int, n: int, *, most: float = 0.02) -> Guard:
    """
    Passes while the share of all `n` pairs that the treatment alone loses is at most `most`.

    Raises `ValueError` for what is no count, `n` of 0, and `b10` above `n`. Source: the published guard of
    arXiv:2606.31511, table 9.
    """
    b10, n, most = count("b10", b10), count("n", n, least=1), inside_unit("most", most)
    if b10 > n:
        raise ValueError(f"b10 is {b10}: expected at most n, which is {n}")
    return Guard(name="harm gate", passes=b10 / n <= most, rule=f"b10 / n <= {most:g}", value=b10 / n)


def material_rescue(placebo_net: int, treatment_net: int, *, share: float = 0.5) -> Guard:
    """
    Passes while a placebo's net gain is less than `share` of the treatment's, both against one control.

    A net is b01 - b10 and may be negative. Raises `ValueError` for what is no whole number, and for a share of 0 or
    none. Source: the published guard of arXiv:2606.31511, table 9, where the share is a half.
    """
    placebo, treatment = (_net(label, net) for label, net in (("placebo", placebo_net), ("treatment", treatment_net)))
    bound = probability("share", positive("share", share)) * treatment
    return Guard(name="material rescue", passes=placebo < bound, rule=f"placebo net < {bound:g}", value=float(placebo))


def stratum_gate(b01: int, b10: int, *, worst_net: int = -2, alpha: float = 0.05) -> Guard:
    """
    Passes unless a stratum's net is `worst_net` or less, or its one-sided exact p in the direction of harm is below
    `alpha`.

    Raises `ValueError` for what is no count. Source: the published guard of arXiv:2606.31511.
    """
    b01, b10, alpha = count("b01", b01), count("b10", b10), inside_unit("alpha", alpha)
    net, p_harm = b01 - b10, mcnemar_exact(b01, b10, alternative="less").p_value
    return Guard(
        name="stratum gate",
        passes=net > _net("worst", worst_net) and p_harm >= alpha,
        rule=f"net > {worst_net} and one-sided p of harm >= {alpha:g}",
        value=float(net),
    )


def _net(label: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{label} net is {value!r}: expected a whole number")  # noqa: TRY004 - one type for all
    return value
