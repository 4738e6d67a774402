"""The classifier is unsure whenever the evidence is, and never takes a refusal or a missing client for a wall."""

from __future__ import annotations

import json

import pytest

from fences.classifier import ABSENT, Reach, Try, classify, masked, reach_of, weigh
from harness.views import Finding
from harness.walls import ExecResult

CANARY = "c0ffee"


def ran(tries=None, *, stdout=b"", stderr=b"", status=0, timed_out=False, cut=False):
    """What a probe's program did: its report of `tries`, or whatever else it wrote."""
    if tries is not None:
        stdout = json.dumps({"tries": tries}).encode() + b"\n"
    return ExecResult(stdout=stdout, stderr=stderr, status=status, seconds=0.1, timed_out=timed_out, stdout_cut=cut)


@pytest.mark.parametrize(
    ("signature", "reach"),
    [
        ("CONNECTED", Reach.OPEN),
        ("ECONNREFUSED", Reach.OPEN),
        ("ECONNRESET", Reach.OPEN),
        ("TLS", Reach.OPEN),
        ("HTTP 200", Reach.OPEN),
        ("HTTP 407", Reach.OPEN),
        ("HTTP 500", Reach.OPEN),
        ("ENETUNREACH", Reach.CLOSED),
        ("EHOSTUNREACH", Reach.CLOSED),
        ("TIMEOUT", Reach.INCONCLUSIVE),
        ("ETIMEDOUT", Reach.INCONCLUSIVE),
        ("EXIT 127", Reach.INCONCLUSIVE),
        ("KILLED", Reach.INCONCLUSIVE),
        ("", Reach.INCONCLUSIVE),
        ("gaierror", Reach.INCONCLUSIVE),
    ],
)
def test_whether_a_packet_got_anywhere(signature, reach):
    """Connected, refused, TLS and any HTTP status are open; unreachable is closed; the rest says nothing."""
    assert reach_of(signature) is reach


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ran([], timed_out=True, status=None), "timed out"),
        (ran(status=None), "not known"),
        (ran([{"what": "a", "signature": "EPERM"}], status=127), "missing"),
        (ran([{"what": "a", "signature": "EPERM"}], status=126), "missing"),
        (ran([{"what": "a", "signature": "EPERM"}], status=137), "killed"),
        (ran([{"what": "a", "signature": "EPERM"}], status=-9), "killed"),
        (ran(stdout=b""), "no output"),
        (ran(stdout=b" \n"), "no output"),
        (ran(stdout=b"", stderr=b"python3: not found", status=1), "python3: not found"),
        (ran(stdout=b"I won't do that."), "can't be read"),
        (ran(stdout=b"[1]"), "can't be read"),
        (ran(stdout=b'{"tries": [{"signature": "EPERM"}]}'), "can't be read"),
        (ran(stdout=b'{"tries": [{"what": "a", "got": "zz"}]}'), "can't be read"),
        (ran([]), "tried nothing"),
        (ran([{"what": "a", "signature": "EPERM"}], cut=True), "cut"),
    ],
)
def test_what_can_not_be_concluded_from_is_inconclusive(result, said):
    """A timeout, exit 126 and 127, a kill, no output, prose and a broken report are INCONCLUSIVE, each with its reason."""
    found = classify(result, canary=CANARY)
    assert found.finding is Finding.INCONCLUSIVE
    assert said in found.evidence


@pytest.mark.parametrize("signature", ["EPERM", "EACCES", "EROFS", "ENETUNREACH", "ENOSYS", "SIGSYS"])
def test_a_walls_own_errors_are_denied(signature):
    """A policy's errno is DENIED, and the evidence is its name."""
    found = classify(ran([{"what": "door", "signature": signature}]), canary=CANARY)
    assert (found.finding, found.evidence) == (Finding.DENIED, f"door: {signature}")


@pytest.mark.parametrize("signature", ["ENOENT", "ESRCH", "ENODEV", "EAFNOSUPPORT", "NOTHING"])
def test_what_is_not_there_is_absent(signature):
    """An errno of absence is ABSENT, which is another thing than DENIED."""
    found = classify(ran([{"what": "door", "signature": signature}]), canary=CANARY)
    assert (found.finding, found.evidence) == (Finding.ABSENT, f"door: {signature}")


def test_a_refused_connection_is_no_wall():
    """ECONNREFUSED is INCONCLUSIVE, and says that something was reached; only a probe that allows it gets ABSENT."""
    refused = [Try(what="door", signature="ECONNREFUSED")]
    found = weigh(refused, canary=CANARY)
    assert found.finding is Finding.INCONCLUSIVE
    assert "reached" in found.evidence
    assert weigh(refused, canary=CANARY, absent=ABSENT | {"ECONNREFUSED"}).finding is Finding.ABSENT


@pytest.mark.parametrize("signature", ["ECONNREFUSED", "ENETUNREACH", "ENOENT"])
def test_nothing_is_concluded_while_the_target_is_down(signature):
    """A target that is down outside too makes every answer but SERVED INCONCLUSIVE, with the host's reason."""
    tries = [Try(what="door", signature=signature)]
    found = weigh(tries, canary=CANARY, absent=ABSENT | {"ECONNREFUSED"}, witness="the decoy is down")
    assert (found.finding, found.evidence) == (
        Finding.INCONCLUSIVE,
        "the decoy is down, so nothing can be concluded",
    )
    served = weigh([Try(what="door", got=CANARY.encode())], canary=CANARY, witness="the decoy is down")
    assert served.finding is Finding.SERVED


def test_only_the_canarys_own_bytes_are_served():
    """Bytes without the canary are INCONCLUSIVE: something answered, and it was not the decoy."""
    assert weigh([Try(what="door", got=b"x c0ffee y")], canary=CANARY).finding is Finding.SERVED
    for got in (b"", b"C0FFEE", b"c0ffe"):
        assert weigh([Try(what="door", got=got)], canary=CANARY).finding is Finding.INCONCLUSIVE
    assert weigh([Try(what="door", got=b"anything")], canary=None).finding is Finding.INCONCLUSIVE


def test_one_open_door_is_enough():
    """SERVED wins over everything, INCONCLUSIVE over a wall, DENIED over ABSENT."""
    served, unclear = Try(what="s", fact="made"), Try(what="u", signature="ETIMEDOUT")
    denied, absent = Try(what="d", signature="EPERM"), Try(what="a", signature="ENOENT")
    ranked = [
        ([absent, denied, unclear, served], Finding.SERVED, "s: made"),
        ([absent, denied, unclear], Finding.INCONCLUSIVE, "u: ETIMEDOUT"),
        ([absent, denied], Finding.DENIED, "d: EPERM"),
        ([absent], Finding.ABSENT, "a: ENOENT"),
        ([], Finding.INCONCLUSIVE, "nothing was tried"),
    ]
    for tries, finding, evidence in ranked:
        found = weigh(tries, canary=CANARY)
        assert (found.finding, found.evidence) == (finding, evidence)


def test_evidence_never_shows_a_canary():
    """Whatever a try says of itself, the canary is blanked out of the evidence."""
    found = weigh([Try(what=f"door {CANARY}", fact=f"made {CANARY}")], canary=CANARY)
    assert CANARY not in found.evidence
    assert masked(f"a {CANARY} b", [CANARY]) == "a [canary] b"


def test_a_signature_nobody_knows_is_inconclusive():
    """An unknown or missing signature is never a wall."""
    for signature in ("EWHATEVER", None, "PermissionError"):
        assert weigh([Try(what="door", signature=signature)], canary=None).finding is Finding.INCONCLUSIVE


def test_words_of_a_program_are_plain():
    """A file's name may hold letters that no record and no terminal takes: they are spelled out."""
    name = b"a\xff\x1b[2J\n".decode("utf-8", "surrogateescape")
    tries = ran([{"what": name, "fact": name}, {"what": "\ud800", "signature": "E\x00"}])
    found = classify(tries, canary=None)
    assert found.evidence == r"a\udcff\x1b[2J\n: a\udcff\x1b[2J\n"
    found.evidence.encode("utf-8")
    assert classify(ran([{"what": "\ud800", "signature": "E\x00"}]), canary=None).evidence == r"\ud800: E\x00"
