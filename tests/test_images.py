"""Images: layers whose bytes depend on their content alone, a store that notices changes, archives that an engine reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ImageError, IntegrityError, WorkspaceError
from harness.workspaces.docker_engine import NotFoundError
from harness.workspaces.docker_images import archive, engine_image
from harness.workspaces.image_build import build_from_debian, build_from_host, host_mirror
from harness.workspaces.image_dockerfile import build_from_dockerfile
from harness.workspaces.image_layer import pack, unpack
from harness.workspaces.image_rootfs import furnish, strip
from harness.workspaces.images import ImageStore, content_digest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small root file system with what a packer could stumble over."""
    made = tmp_path / "made"
    for name in ("usr/bin", "workspace", "tmp", "dev", "proc/1"):
        (made / name).mkdir(parents=True)
    (made / "usr" / "bin" / "tool").write_text("#!/bin/sh\n")
    (made / "usr" / "bin" / "tool").chmod(0o4755)
    (made / "data").write_bytes(b"data" * 1000)
    (made / "data").chmod(0o600)
    (made / "bin").symlink_to("usr/bin")
    (made / "loop").symlink_to("loop")
    (made / "dev" / "leftover").write_text("x")
    os.mkfifo(made / "pipe")
    return made


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """An empty store."""
    return ImageStore(tmp_path / "store")


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    """What is in a tar."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: member for member in tar}


def packed(folder: Path) -> bytes:
    """The layer of a folder."""
    sink = io.BytesIO()
    pack(folder, sink)
    return sink.getvalue()


def test_a_layer_depends_on_its_files_alone(root: Path) -> None:
    """Dates, owners, the order of creation and bits that no image needs make no difference; a byte does."""
    first = packed(root)
    os.utime(root / "data", (1, 2))
    (root / "data").chmod(0o640)
    text = (root / "usr" / "bin" / "tool").read_text()
    (root / "usr" / "bin" / "tool").unlink()
    (root / "usr" / "bin" / "tool").write_text(text)
    (root / "usr" / "bin" / "tool").chmod(0o711)
    assert packed(root) == first
    assert pack(root, None) == hashlib.sha256(first).hexdigest()
    (root / "data").write_bytes(b"dat0" * 1000)
    assert packed(root) != first


def test_a_layer_is_readable_and_gives_no_rights(root: Path) -> None:
    """Everything is root's and readable, nothing setuid; devices and FIFOs are left out, /dev and /proc are empty."""
    found = members(packed(root))
    assert sorted(found) == ["bin", "data", "dev", "loop", "proc", "tmp", "usr", "usr/bin", "usr/bin/tool", "workspace"]
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {(0, 0, 0)}
    modes = {name: member.mode for name, member in found.items()}
    assert (modes["data"], modes["usr/bin/tool"], modes["usr"]) == (0o644, 0o755, 0o755)
    assert (modes["workspace"], modes["tmp"]) == (0o700, 0o1777)


def test_unpacking_makes_the_same_again(root: Path, tmp_path: Path) -> None:
    """What was unpacked packs to the same layer."""
    layer = packed(root)
    (tmp_path / "again").mkdir()
    unpack(io.BytesIO(layer), tmp_path / "again")
    assert packed(tmp_path / "again") == layer
    assert (tmp_path / "again" / "bin").readlink() == Path("usr/bin")


@pytest.mark.parametrize("through", [False, True])
def test_an_entry_that_leaves_the_folder_is_refused(tmp_path: Path, *, through: bool) -> None:
    """Neither `..` nor a link that an earlier entry made leads out of the folder that is unpacked into."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        if through:
            link = tarfile.TarInfo("out")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
            tar.addfile(link)
        evil = tarfile.TarInfo("out/evil" if through else "../evil")
        evil.size = 1
        tar.addfile(evil, io.BytesIO(b"x"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ImageError, match="leaves its folder"):
        unpack(io.BytesIO(data.getvalue()), tmp_path / "folder")
    assert not (tmp_path / "evil").exists()


def test_the_store_knows_an_image_by_name_and_digest(root: Path, store: ImageStore) -> None:
    """The digest is the content's: the same under another name and in another store, another for other content."""
    one = store.add("one", root, {"by": "test"})
    two = store.add("two", root, {"by": "someone else"})
    assert (store.names(), store.get("one")) == (["one", "two"], one)
    assert store.digest("one") == store.digest("two") == two.digest
    assert (store.find("one"), store.find(one.digest), store.find("none")) == (one, one, None)
    (root / "data").write_text("other")
    store.add("one", root, {})
    assert store.digest("one") != store.digest("two")


def test_a_missing_image_says_how_to_build_it(root: Path, store: ImageStore) -> None:
    """The message names the known images, the nearest one, and the command."""
    store.add("proctor-seat", root, {})
    with pytest.raises(ImageError, match=r"Did you mean 'proctor-seat'\?.*proctor image build --name proctor-set"):
        store.digest("proctor-set")
    with pytest.raises(ImageError, match="proctor image build"):
        store.rootfs("missing")


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "-x", "x" * 70, "a\n"])
def test_a_name_that_could_be_a_path_is_refused(name: str, root: Path, store: ImageStore) -> None:
    """A name is a plain word, since it becomes a file's name and an engine's tag."""
    with pytest.raises(ImageError, match="is refused"):
        store.add(name, root, {})
    with pytest.raises(ImageError, match="is refused"):
        store.get(name)


def test_the_folder_of_an_image_is_passable_for_everybody(root: Path, store: ImageStore) -> None:
    """An unprivileged sandbox reaches the root file system and every file in it, whatever the umask was."""
    before = os.umask(0o077)
    try:
        store.add("one", root, {})
        folder = store.rootfs("one")
    finally:
        os.umask(before)
    for path in (folder, folder.parent, store.folder, folder / "usr" / "bin"):
        assert path.stat().st_mode & 0o055 == 0o055, path
    assert (folder / "data").stat().st_mode & 0o444 == 0o444
    assert store.rootfs("one") == folder


def test_a_changed_layer_is_never_used(root: Path, store: ImageStore) -> None:
    """One flipped byte in the layer is found before it is unpacked, and by `check`."""
    image = store.add("one", root, {})
    store.check("one")
    path = store.layer(image)
    data = bytearray(path.read_bytes())
    data[data.index(b"datadata")] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="was changed"):
        store.rootfs("one")
    with pytest.raises(IntegrityError, match="was changed"):
        store.check("one")


def test_a_changed_folder_is_found(root: Path, store: ImageStore) -> None:
    """A file added to an unpacked root file system is found by `check`."""
    store.add("one", root, {})
    folder = store.rootfs("one")
    store.check("one")
    (folder / "planted").write_text("x")
    with pytest.raises(IntegrityError, match="Delete it"):
        store.check("one")


def test_removing_keeps_what_another_image_has(root: Path, store: ImageStore) -> None:
    """A layer goes with the last image that has it, and so does the unpacked folder."""
    image = store.add("one", root, {})
    store.add("two", root, {})
    folder = store.rootfs("one")
    store.remove("one")
    assert (store.names(), store.layer(image).is_file(), folder.is_dir()) == (["two"], True, True)
    store.remove("two")
    assert (store.names(), folder.exists()) == ([], False)
    with pytest.raises(ImageError, match="lost its layer"):
        store.layer(image)


def test_a_description_that_is_none_is_an_integrity_error(root: Path, store: ImageStore) -> None:
    """A file in the store that does not describe an image is not read as one."""
    store.add("one", root, {})
    (store.folder / "names" / "one.json").write_text('{"name": "one"}')
    with pytest.raises(IntegrityError, match="not an image's description"):
        store.get("one")


def test_the_digest_counts_what_decides_how_programs_run() -> None:
    """Platform, layers, environment and command count; labels, dates and the two ways to write "none" do not."""
    base = {"architecture": "amd64", "os_name": "linux", "layers": ["sha256:aa"], "config": {"Env": ["A=1"]}}
    same = content_digest(**{**base, "layers": ["aa"], "config": {"Env": ["A=1"], "Cmd": None, "Labels": {"x": "y"}}})
    assert content_digest(**base) == same
    others = ({"architecture": "arm64"}, {"layers": ["bb"]}, {"config": {"Env": ["A=2"]}}, {"config": {"User": "x"}})
    assert len({content_digest(**{**base, **other}) for other in others} | {same}) == len(others) + 1


def test_an_archive_is_what_an_engine_reads(root: Path, store: ImageStore) -> None:
    """Configuration, layer and manifest agree by their digests, and the pieces make one tar."""
    image = store.add("one", root, {})
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(image, store.layer(image))))) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}
    [manifest] = json.loads(files["manifest.json"])
    config = json.loads(files[manifest["Config"]])
    assert hashlib.sha256(files[manifest["Config"]]).hexdigest() == image.engine_id.removeprefix("sha256:")
    assert manifest["RepoTags"] == ["one:latest"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files[manifest['Layers'][0]]).hexdigest()}"]


class FakeEngine:
    """An engine's images as a table; loading an archive adds what is in it, under its id and its tag."""

    def __init__(self, *, forget_environment: bool = False) -> None:
        self.images: dict[str, dict[str, Any]] = {}
        self.loads = 0
        self.forgetful = forget_environment

    async def call(self, ask: Callable[[Any], Any]) -> Any:
        """What `ask` makes of the fake's own client."""
        return ask(self)

    def inspect_image(self, name: str) -> dict[str, Any]:
        """One image, or the engine's word that it has none."""
        if name not in self.images:
            raise NotFoundError(name)
        return self.images[name]

    def load_image(self, pieces: Any) -> list[dict[str, Any]]:
        """Load an archive."""
        self.loads += 1
        with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as tar:
            [manifest] = json.load(tar.extractfile("manifest.json"))
            config = json.load(tar.extractfile(manifest["Config"]))
        if self.forgetful:
            del config["config"]["Env"]
        number = f"sha256:{manifest['Config'].removesuffix('.json')}"
        facts = {
            "Id": number, "Architecture": config["architecture"], "Os": config["os"], "Config": config["config"],
            "RootFS": {"Layers": config["rootfs"]["diff_ids"]},
        }  # fmt: skip
        self.images[number] = self.images[manifest["RepoTags"][0]] = facts
        return [{"stream": "Loaded"}]


@pytest.mark.anyio
async def test_the_engine_gets_the_stores_image_once(root: Path, store: ImageStore) -> None:
    """An image of the store is loaded when the engine lacks it, has the same digest there, and is known by its id."""
    image = store.add("one", root, {})
    engine = FakeEngine()
    first = await engine_image(engine, store, "one")
    again = await engine_image(engine, store, image.digest)
    assert (first.id, first.digest, engine.loads) == (image.engine_id, image.digest, 1)
    assert again.id == first.id


@pytest.mark.anyio
async def test_a_moved_tag_does_not_swap_the_image(root: Path, store: ImageStore) -> None:
    """The tag in the engine is given to another image: the store's own is still the one that is used."""
    image = store.add("one", root, {})
    engine = FakeEngine()
    await engine_image(engine, store, "one")
    engine.images["one:latest"] = {**engine.images["one:latest"], "Id": "sha256:evil"}
    assert (await engine_image(engine, store, "one")).id == image.engine_id


@pytest.mark.anyio
async def test_an_engines_image_of_other_content_is_refused(root: Path, store: ImageStore) -> None:
    """An engine that has something else under the image's id is not believed."""
    store.add("one", root, {})
    with pytest.raises(WorkspaceError, match="is not the store's 'one'"):
        await engine_image(FakeEngine(forget_environment=True), store, "one")


@pytest.mark.anyio
async def test_an_image_that_nobody_has_says_how_to_build_it(store: ImageStore) -> None:
    """Neither store nor engine has it: the message names the command."""
    with pytest.raises(ImageError, match="proctor image build --name gone"):
        await engine_image(FakeEngine(), store, "gone")


@pytest.mark.anyio
async def test_an_image_of_the_engines_own_is_usable(store: ImageStore) -> None:
    """What the store does not have may be the engine's: it is pinned by the digest of its content all the same."""
    engine = FakeEngine()
    facts = {
        "Id": "sha256:x",
        "Architecture": "amd64",
        "Os": "linux",
        "Config": None,
        "RootFS": {"Layers": ["sha256:a"]},
    }
    engine.images["python:3"] = facts
    found = await engine_image(engine, store, "python:3")
    assert (found.id, len(found.digest)) == ("sha256:x", 64)


def test_stripping_stays_inside_the_image(root: Path, tmp_path: Path) -> None:
    """A folder of the image that is a link to the host's is refused, and nothing behind it is touched."""
    host = tmp_path / "host"
    (host / "cache").mkdir(parents=True)
    (host / "cache" / "precious").write_text("x")
    (root / "var").symlink_to(host)
    with pytest.raises(ImageError, match="is a link"):
        strip(root)
    (root / "var").unlink()
    (root / "var").mkdir()
    (root / "var" / "cache").symlink_to(host / "cache")
    strip(root)
    assert (host / "cache" / "precious").exists()


def test_stripping_takes_what_differs_by_build(root: Path) -> None:
    """Machine ids, caches and logs are gone; programs stay."""
    for name in ("etc/machine-id", "var/cache/apt/x.bin", "var/log/y.log", "usr/share/doc/z/copyright"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    strip(root)
    left = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert left == {"data", "usr/bin/tool", "dev/leftover"}


def test_furnishing_adds_our_users_and_keeps_the_others(root: Path) -> None:
    """Keeper and every seat are there under their numbers, whoever had them before; other accounts stay."""
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text(
        "root:x:0:0::/:/bin/sh\nmail:x:8:8::/:/bin/false\nthief:x:20001:1::/:/bin/sh\nlate:x:20512:1::/:/bin/sh\n"
    )
    furnish(root)
    lines = (root / "etc" / "passwd").read_text().splitlines()
    assert {line.split(":")[0]: line.split(":")[2] for line in lines} == {
        "root": "0", "nobody": "65534", "keeper": "20000", "seat": "20001", "mail": "8",
        **{f"seat-{uid}": str(uid) for uid in range(20002, 20513)},
    }  # fmt: skip
    assert len(lines) == 516
    groups = [line.split(":") for line in (root / "etc" / "group").read_text().splitlines()]
    assert {group[2] for group in groups} >= {str(uid) for uid in range(20000, 20513)}
    assert "127.0.0.1 localhost" in (root / "etc" / "hosts").read_text()
    assert "myhostname" in (root / "etc" / "nsswitch.conf").read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "# deb http://no/ bookworm main\ndeb [arch=amd64] http://mirror/debian bookworm main\n"),
        ("sources.list.d/a.list", "deb http://mirror/debian bookworm main contrib\n"),
        ("sources.list.d/a.sources", "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n"),
        (
            "sources.list.d/a.sources",
            "Types: deb\nURIs: http://no/\nSuites: bookworm\nEnabled: no\n\nTypes: deb-src\nURIs: http://no/\nSuites: bookworm\n\nTypes: deb\nURIs: http://mirror/debian\nSuites: bookworm\n",
        ),
    ],
)
def test_the_mirror_is_the_hosts_own(name: str, text: str, tmp_path: Path) -> None:
    """Both forms of apt's sources are read; comments, disabled stanzas and source archives are not taken."""
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    assert host_mirror("bookworm", tmp_path) == "http://mirror/debian"
    with pytest.raises(ImageError, match="name a mirror"):
        host_mirror("trixie", tmp_path)


def test_a_build_that_cannot_start_says_why(store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not root, a package that is an option in disguise, no Dockerfile: each refusal has its next step."""
    with pytest.raises(ImageError, match=r"package '--foreign' is refused"):
        build_from_debian(packages=["--foreign"], store=store)
    with pytest.raises(ImageError, match="suite '-x' is refused"):
        build_from_debian(suite="-x", store=store)
    with pytest.raises(ImageError, match="has no Dockerfile"):
        build_from_dockerfile("one", tmp_path, store=store)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError, match=r"needs root.*from this host or from a Dockerfile"):
        build_from_debian(store=store)
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ImageError, match="expected Linux"):
        build_from_host(store=store)
    assert store.names() == []


def test_a_description_keeps_how_it_was_made(root: Path, store: ImageStore) -> None:
    """Name, size and origin come back from disk, and the origin has no part in the digest."""
    image = store.add("one", root, {"by": "debootstrap", "suite": "bookworm"})
    read = store.get("one")
    assert (read.made, read.size) == ({"by": "debootstrap", "suite": "bookworm"}, store.layer(image).stat().st_size)
    assert replace(read, made={}).digest == read.digest
