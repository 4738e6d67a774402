"""What came of an execution, by what was heard of it: a seat's own doing is its own, whatever the kernel chose to end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.errors import WorkspaceError
from harness.workspaces.bubblewrap_streams import Run


def run(*, started: bool, exit_code: int | None, cut_short: bool = False) -> Run:
    """A run that is over."""
    execution = SimpleNamespace(exit_code=exit_code, cut_short=cut_short)
    made = Run(execution, b"MARK", 100)  # type: ignore[arg-type]
    made._err.data += b"MARK" if started else b"bwrap: no"
    return made


@pytest.mark.parametrize(
    ("started", "exit_code", "starved", "status"),
    [
        (True, 3, False, 3),
        (True, 3, True, 3),
        (True, None, True, 137),
        (False, None, True, 137),
        (True, None, False, None),
    ],
)
def test_what_the_kernel_ended_for_want_of_memory_has_the_status_of_it(
    started: bool, exit_code: int | None, starved: bool, status: int | None
) -> None:
    """The program, bwrap itself or the launcher: the files and programs in the workspace took its memory."""
    assert run(started=started, exit_code=exit_code).result(1.0, starved=starved).status == status


def test_a_sandbox_that_could_not_be_set_up_is_ours() -> None:
    """Nothing was short of memory, and nobody ended it."""
    with pytest.raises(WorkspaceError, match="could not be set up"):
        run(started=False, exit_code=None).result(1.0, starved=False)
    assert run(started=False, exit_code=None, cut_short=True).result(1.0, starved=False).status is None
