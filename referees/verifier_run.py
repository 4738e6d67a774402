"""One run of the verifier in a fresh room, and its report read strictly."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from harness.errors import RefereeError
from harness.ports import RoomOpener
from referees.verifier_card import VerifierOptions
from referees.verifier_screen import audited

__all__ = ["Proof", "Report", "room_source", "verify"]

_REPORT = "report.xml"
_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the room's own
    "TMPDIR": "/tmp",  # noqa: S108
    "LC_ALL": "C.UTF-8",
    "MONO_DISABLE_SHARED_AREA": "1",
}
_NAME = re.compile(r"^(?P<kind>[A-Za-z]+)\$\$(?:_\d+_)?(?P<module>[^.$]+)\.(?P<member>.+)$")
_SUMMARY = re.compile(r"^Dafny program verifier finished with (\d+) verified, (\d+) errors?$")
_FAULT = re.compile(r"^[^\n]{1,400}: Error: [^\n]*$")
_UNRESOLVED, _NOT_COMPILED = 2, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """
    What became of one proof: `proved`, `refuted` (the solver found no proof and gave up by itself) or `undecided`.

    `kind` is `Impl` for a body against its contract; `module` and `member` are the verifier's own names.
    """

    kind: str
    module: str
    member: str
    end: str
    detail: str = ""

    @property
    def name(self) -> str:
        """The member's name as it stands in the text."""
        return self.member.rpartition(".")[2].replace("__", "_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """
    What one run said. `resolved` is whether the program was one at all; `whole` whether the verifier came to its end
    and its summary agrees with its report; `fault` its first complaint, but for `believed`, what its compiler found
    believed and not proved; `exhausted` the limit that it ran into.
    """

    resolved: bool
    whole: bool
    proofs: tuple[Proof, ...]
    fault: str
    believed: str | None
    compiled: bool
    exhausted: str | None
    cpu_s: float

    def with_end(self, end: str) -> list[Proof]:
        """The proofs that ended so."""
        return [proof for proof in self.proofs if proof.end == end]


def room_source(name: str) -> str:
    """A program that is sent into the room."""
    return resources.files("referees").joinpath(f"{name}.py").read_text(encoding="utf-8")


async def verify(
    files: Mapping[str, str],
    rooms: RoomOpener,
    options: VerifierOptions,
    *,
    rlimit: int,
    nonce: str,
    proofs: bool,
    compiler: bool = True,
) -> Report:
    """
    Run the verifier over all `files` in their order; without `proofs` the program is only read and resolved, without
    `compiler` it is only proved.

    Raises `RefereeError` where the room has no verifier or did not answer, and passes on what the workspace raises.
    """
    order = {
        "files": dict(files),
        "argv": _argv(list(files), rlimit, proofs=proofs, compiler=compiler),
        "env": _ENV,
        "report": _REPORT,
        "solver": room_source("verifier_solver"),
        "cpu_s": options.cpu_s,
        "wall_s": options.wall_s,
        "memory_bytes": options.memory_bytes,
        "nonce": nonce,
    }
    async with rooms() as room:
        done = await room.exec(
            ["python3", "-I", "-S", "-c", room_source("verifier_room")],
            stdin=json.dumps(order).encode(),
            timeout_s=options.wall_s + 60,
            output_bytes=16 << 20,
        )
    if done.status != 0 or done.timed_out or done.stdout_cut:
        said = done.stderr.decode("utf-8", "replace")[-400:]
        raise RefereeError(f"the verifier's room ended with status {done.status} and no answer: {said}")
    return _read({**_answer(done.stdout, nonce), "seconds": done.seconds}, options)


def _argv(names: Sequence[str], rlimit: int, *, proofs: bool, compiler: bool) -> list[str]:
    """
    `/compile:2` has the compiler look at the program whatever the proofs came to: it names what was believed only.
    One error a proof is enough, and one proof at a time keeps the solver's input the same from run to run.
    """
    work = [f"/rlimit:{rlimit}", "/errorLimit:1", "/vcsCores:1", f"/xml:{_REPORT}"] if proofs else ["/noVerify"]
    return ["dafny", f"/compile:{2 if proofs and compiler else 0}", *work, *names]


def _answer(stdout: bytes, nonce: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(stdout)
    except ValueError as error:
        raise RefereeError(f"the verifier's room answered nonsense: {error}") from None
    if answer.get("nonce") != nonce:
        raise RefereeError("the verifier's room gave no answer to this order")
    if "missing" in answer:
        raise RefereeError(
            f"the room has no {answer['missing']!r}: judge in an image that has Debian's package `dafny`, which "
            "`proctor image build --name proctor-provers --package dafny` builds and the card's `image` names"
        )
    return answer


def _read(answer: Mapping[str, Any], options: VerifierOptions) -> Report:
    status, lines = int(answer["status"]), str(answer["printed"]).splitlines()
    faults = [line for line in lines if _FAULT.match(line) and not audited(line)]
    proofs = _proofs(str(answer["report"]), _answers(str(answer["answers"])))
    summary = next((match for line in reversed(lines) if (match := _SUMMARY.match(line))), None)
    proved = sum(proof.end == "proved" for proof in proofs or ())
    agrees = summary is not None and int(summary.group(1)) == proved
    return Report(
        resolved=status != _UNRESOLVED,
        whole=proofs is not None and agrees and status in (0, _NOT_COMPILED, 4),
        proofs=proofs or (),
        fault=(faults or _last_words(lines))[0][:400],
        believed=next(filter(None, map(audited, lines)), None),
        compiled=status != _NOT_COMPILED or not faults,
        exhausted=_exhausted(answer, proofs or (), options),
        cpu_s=float(answer["cpu_s"]),
    )


def _last_words(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()][-1:] or ["it printed nothing"]


def _exhausted(answer: Mapping[str, Any], proofs: Sequence[Proof], options: VerifierOptions) -> str | None:
    """The limit that ended the run, or some of its proofs, where it was one."""
    if answer["overdue"]:
        return f"{options.wall_s:g} s for the whole run"
    if max(answer["cpu_s"], answer["seconds"]) >= options.cpu_s and not proofs:
        return f"{options.cpu_s} s of the processor"
    first = next((proof for proof in proofs if proof.end == "undecided"), None)
    return None if first is None else f"the solver's units or memory, at {first.module}.{first.name}"


def _answers(log: str) -> list[str]:
    """What the solver answered, in order: `unsat`, `sat`, or its reason for `unknown`."""
    answers: list[str] = []
    for line in log.splitlines():
        if line.startswith("(:reason-unknown") and answers:
            answers[-1] = line.partition('"')[2].rstrip('")')
        else:
            answers.append(line.strip())
    return answers


def _proofs(report: str, answers: Sequence[str]) -> tuple[Proof, ...] | None:
    """
    The proofs in the verifier's report in its order, held against the solver's answers: one for each, since one error
    ends a proof. None where the report is no whole one, or calls proved what the solver did not.
    """
    text = report.removeprefix("\ufeff")
    if "<!" in text:
        return None
    try:
        root = ET.fromstring(text)  # noqa: S314 - no declaration and no entity: see above
    except ET.ParseError:
        return None
    proofs = [_proof(method) for method in root.iter("method")]
    open_ones = [answer for answer in answers if answer != "unsat"]
    if sum(proof.end != "proved" for proof in proofs) != len(open_ones):
        return None
    reasons = iter(open_ones)
    return tuple(proof if proof.end == "proved" else _reasoned(proof, next(reasons)) for proof in proofs)


def _reasoned(proof: Proof, reason: str) -> Proof:
    """A proof was refuted if the solver knows a counterexample, or had tried all it has; else it was cut short."""
    tried = reason == "sat" or "incomplete" in reason
    return proof if tried else replace(proof, end="undecided", detail=f"{proof.detail} (the solver: {reason})"[:400])


def _proof(method: ET.Element) -> Proof:
    """
    One proof, before the solver's reasons are looked at. What was not decided stands in the report as `errors` without
    an error, or by another name, and in the summary not at all: the verifier then prints `0 errors` and ends with
    status 0. What it found no words for stands there in the same way: a loop whose end it can't prove.
    """
    name, conclusion, error = str(method.get("name")), method.find("conclusion"), method.find("error")
    outcome = "" if conclusion is None else str(conclusion.get("outcome"))
    match = _NAME.match(name)
    kind, module, member = match.group("kind", "module", "member") if match else ("", "", name)
    end = {"correct": "proved", "errors": "refuted"}.get(outcome, "undecided")
    where = "the verifier names no error"
    if error is not None:
        where = f"{error.get('file')}({error.get('line')}): {error.get('message')}"
    return Proof(kind=kind, module=module.replace("__", "_"), member=member, end=end, detail=where[:400])
