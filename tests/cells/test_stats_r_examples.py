"""Figures of R's help pages, as R prints them, where its functions and ours do the same."""

import pytest

from cells.stats import ClusteredPair, clopper_pearson, fisher_exact, holm, mcnemar_clustered, mcnemar_exact


def printed(value, digits):
    """As R prints a figure: so many significant digits."""
    return f"{value:.{digits}g}"


def test_the_performance_of_the_president():
    """
    `mcnemar.test`, "Performance": 150 of 1,600 change to disapproval and 86 from it (Agresti, 1990, p. 350).

    Without its correction R prints chi-squared 17.356 and p 3.099e-05. One pair a cluster makes ours the same; the exact
    test is a little more cautious, and on the same side of every level.
    """
    pairs = [ClusteredPair(name=str(n), n=1, b01=int(n < 86), b10=int(86 <= n < 236)) for n in range(1600)]
    found = mcnemar_clustered(pairs, alternative="two-sided")
    assert printed(found.z**2, 5) == "17.356"
    assert printed(found.p_value, 4) == "3.099e-05"
    assert 3.099e-05 < mcnemar_exact(86, 150, alternative="two-sided").p_value < 4.115e-05  # R's, with its correction


def test_mendels_giants():
    """`binom.test(682, 925)` (Conover, 1971, p. 97): the exact 95 % interval 0.7076683 to 0.7654066."""
    low, high = clopper_pearson(682, 682 + 243)
    assert (printed(low, 7), printed(high, 7)) == ("0.7076683", "0.7654066")


@pytest.mark.parametrize(("alternative", "p"), [("greater", "0.2429"), ("two-sided", "0.4857")])
def test_the_tea_tasting(alternative, p):
    """`fisher.test`, "TeaTasting": three of four cups each way (Agresti, 1990, p. 61)."""
    assert printed(fisher_exact(3, 1, 1, 3, alternative=alternative).p_value, 4) == p


@pytest.mark.parametrize(("alternative", "p"), [("less", "0.0004652"), ("two-sided", "0.0005367")])
def test_the_convictions_of_twins(alternative, p):
    """`fisher.test`, "Convictions": of criminals' twins 2 of 17 dizygotic and 10 of 13 monozygotic ones (Fisher, 1970)."""
    assert printed(fisher_exact(2, 15, 10, 3, alternative=alternative).p_value, 4) == p


def test_p_adjust():
    """`p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")` prints 0.05 0.08 0.09 0.09 0.09: the running maximum."""
    assert [printed(p, 2) for p in holm([0.01, 0.02, 0.03, 0.04, 0.05])] == ["0.05", "0.08", "0.09", "0.09", "0.09"]
