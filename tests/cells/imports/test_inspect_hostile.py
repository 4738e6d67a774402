"""A log that Inspect would not write is refused by its file, member and field, whatever it was made to do."""

import pytest

from cells.imports.importing import import_cells
from harness.errors import DeclarationError
from tests.cells.imports.foreign_writers import archive, dump, eval_log, header, sample


def read(log):
    """The cells of a log."""
    return list(import_cells("inspect", [log], {}))


def broken_header(**changes):
    """A log whose header is changed."""
    head = header()
    for name, value in changes.items():
        head["eval" if name in head["eval"] else name] = (
            value if name not in head["eval"] else head["eval"] | {name: value}
        )
    return lambda path: eval_log(path, head, [sample()])


def members(*more):
    """An archive of a header and these."""
    return lambda path: archive(path, [("header.json", dump(header())), *more])


HOSTILE = {
    "version": (broken_header(version=3), "version is 3: expected 1 or 2"),
    "no version": (broken_header(version=None), "version is None: expected 1 or 2"),
    "true version": (broken_header(version=True), "version is True"),
    "no eval": (broken_header(eval=None), "eval is None: expected a JSON object"),
    "no task": (broken_header(task=""), "eval.task is '': expected a text"),
    "no model": (broken_header(model=5), "eval.model is 5: expected a text"),
    "bar": (broken_header(model="a|b"), "without '|'"),
    "no header": (lambda path: archive(path, [("samples/s1_epoch_1.json", dump(sample()))]), "neither header.json nor"),
    "torn header": (
        lambda path: archive(path, [("header.json", dump(header())[:50])]),
        "header.json' is not JSON at byte 50",
    ),
    "torn sample": (members(("samples/s1_epoch_1.json", dump(sample())[:99])), "s1_epoch_1.json' is not JSON at byte"),
    "list": (members(("samples/s1_epoch_1.json", b"[]")), "the whole is []"),
    "no id": (
        members(("samples/s1_epoch_1.json", dump(sample() | {"id": None}))),
        "id is None: expected a text or a whole",
    ),
    "epoch": (
        members(("samples/s1_epoch_1.json", dump(sample(epoch=0)))),
        "epoch is 0: expected a whole number from 1",
    ),
    "name": (members(("samples/s2_epoch_1.json", dump(sample()))), "holds the sample 's1_epoch_1'"),
    "path": (members(("samples/../../etc/x_epoch_1.json", dump(sample()))), "holds the sample 's1_epoch_1'"),
    "stray": (members(("samples/s1.json", dump(sample()))), "expected samples/ID_epoch_N.json"),
    "scores": (members(("samples/s1_epoch_1.json", dump(sample(scores=[1])))), "scores is [1]: expected a JSON object"),
    "usage": (
        members(("samples/s1_epoch_1.json", dump(sample(model_usage={"p/m": {"total_tokens": 1.5}})))),
        "model_usage.p/m.total_tokens is 1.5: expected a whole number",
    ),
    "time": (members(("samples/s1_epoch_1.json", dump(sample(total_time=float("inf"))))), "expected a finite number"),
    "error": (members(("samples/s1_epoch_1.json", dump(sample(error="x")))), "error is 'x': expected a JSON object"),
    "no zip": (lambda path: path.write_bytes(b"PK\x03\x04 and no more") and path, "no whole ZIP archive"),
    "no json": (lambda path: path.write_bytes(b"hello") and path, "is not JSON at byte"),
    "empty": (lambda path: (path.write_bytes(b"") and (path, 0)[1]) or path, "ends too early"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_inspect_would_not_write_is_refused(tmp_path, name):
    """By the file, the member and the field."""
    make, said = HOSTILE[name]
    log = make(tmp_path / "log.eval")
    with pytest.raises(DeclarationError) as caught:
        read(log)
    assert said in str(caught.value)
    assert "log.eval" in str(caught.value)
