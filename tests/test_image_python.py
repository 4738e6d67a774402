"""Python packages in images: resolved for the image's Python, from wheels alone, laid out without running anything."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cells import cli
from harness import environment
from harness.errors import ImageError
from harness.workspaces.image_layer import pack
from harness.workspaces.image_python import PythonPackages, add_python_packages, python_target
from harness.workspaces.image_resolving import WheelFinder
from harness.workspaces.image_wheels import PythonTarget, Wheel, lock_text, wish
from harness.workspaces.images import ImageStore
from tests.wheels import write_wheel

pytestmark = pytest.mark.timeout(120)  # pip takes seconds to start on a busy machine

TARGET = PythonTarget(version="3.11", machine="x86_64", glibc=36)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The parts of a root file system that packages are put into."""
    made = tmp_path / "root"
    for name in ("usr/bin", "usr/local/bin", "usr/lib/x86_64-linux-gnu", "opt"):
        (made / name).mkdir(parents=True)
    (made / "usr/bin/python3.11").write_bytes(b"")
    (made / "usr/bin/python3").symlink_to("python3.11")
    (made / "usr/lib/x86_64-linux-gnu/libc.so.6").write_bytes(b"GNU C Library stable release version 2.36.\n")
    return made


def quiet(_line: str) -> None:
    """Progress that nobody looks at."""


def found(tmp_path: Path, *texts: str, target: PythonTarget = TARGET, **how) -> list[Wheel]:
    """What the finder takes for these requirements."""
    folder = tmp_path / "fetched"
    folder.mkdir(exist_ok=True)
    return WheelFinder(target, progress=quiet, **how).find([wish(text) for text in texts], folder)


def names(wheels: list[Wheel]) -> list[str]:
    """Their names and versions."""
    return [f"{wheel.name}=={wheel.version}" for wheel in wheels]


def test_all_that_is_needed_is_found_and_nothing_else(index: Path, tmp_path: Path) -> None:
    """Dependencies and extras come with it, in the versions that fit; what no marker asks for does not."""
    write_wheel(index, "agent", needs=["lib>=1", "more; extra == 'full'", "windows; sys_platform == 'win32'"])
    write_wheel(index, "lib", "2.0", needs=["deep"])
    write_wheel(index, "lib", "0.5")
    for name in ("deep", "more", "windows", "other"):
        write_wheel(index, name)
    assert names(found(tmp_path, "agent")) == ["agent==1.0", "deep==1.0", "lib==2.0"]
    assert names(found(tmp_path, "Agent[full]")) == ["agent==1.0", "deep==1.0", "lib==2.0", "more==1.0"]


def test_markers_are_answered_for_the_images_python(index: Path, tmp_path: Path) -> None:
    """What the host's Python would not need is there where the image's does, and the other way round."""
    host = ".".join(map(str, sys.version_info[:2]))
    write_wheel(index, "agent", needs=[f"back; python_version != '{host}'", f"now; python_version == '{host}'"])
    write_wheel(index, "back", needs=["deeper"])
    write_wheel(index, "deeper")
    write_wheel(index, "now")
    elsewhere = PythonTarget(version="3.99", machine="x86_64", glibc=36)
    assert names(found(tmp_path, "agent", target=elsewhere)) == ["agent==1.0", "back==1.0", "deeper==1.0"]


def test_a_dependency_can_be_left_out(index: Path, tmp_path: Path) -> None:
    """It and what only it needs are not taken."""
    write_wheel(index, "agent", needs=["big", "lib"])
    write_wheel(index, "big", needs=["bigger"])
    write_wheel(index, "bigger")
    write_wheel(index, "lib")
    assert names(found(tmp_path, "agent", without=["Big"])) == ["agent==1.0", "lib==1.0"]
    with pytest.raises(ImageError, match="'bib' is to be left out, and nothing needs it"):
        found(tmp_path, "agent", without=["big", "bib"])


def test_wheels_fit_the_images_c_library(index: Path, tmp_path: Path) -> None:
    """The newest wheel whose platform the image can load is taken; one for a newer C library or machine is not."""
    write_wheel(index, "fast", "1.0", tag="cp311-abi3-manylinux_2_36_x86_64")
    write_wheel(index, "fast", "2.0", tag="cp311-abi3-manylinux_2_37_x86_64")
    write_wheel(index, "fast", "3.0", tag="cp311-cp311-manylinux2014_aarch64")
    write_wheel(index, "fast", "4.0", tag="cp312-cp312-manylinux2014_x86_64")
    write_wheel(index, "old", tag="cp311-cp311-manylinux1_x86_64")
    assert names(found(tmp_path, "fast", "old")) == ["fast==1.0", "old==1.0"]
    with pytest.raises(ImageError, match=r"fast>1 can't be had as wheels for Python 3.11 on x86_64 with glibc 2.36"):
        found(tmp_path, "fast>1")


def test_source_is_refused_and_named(index: Path, tmp_path: Path) -> None:
    """A package of source alone is not built, not even as a dependency: the message names it and the next step."""
    write_wheel(index, "agent", needs=["sourceonly"])
    ran = tmp_path / "ran"
    with tarfile.open(index / "sourceonly-1.0.tar.gz", "w:gz") as archive:
        (tmp_path / "setup.py").write_text(f"open({str(ran)!r}, 'w')\n")
        archive.add(tmp_path / "setup.py", "sourceonly-1.0/setup.py")
    with pytest.raises(ImageError, match=r"(?s)No matching distribution found for sourceonly.*build a wheel of it"):
        found(tmp_path, "agent")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--index-url=http://x", "Expected a requirement"),
        ("-r x", "Expected a requirement"),
        ("", "Expected a requirement"),
        ("a b", "Expected a requirement"),
        ("a @ https://example.org/a.whl#", "it has an address"),
        ("a; python_version > '3'", "it has a marker"),
        ("gone-1.0-py3-none-any.whl", "no such file"),
        ("gone.whl", "Invalid wheel filename"),
    ],
)
def test_what_is_no_requirement_is_refused(text: str, said: str) -> None:
    """Options, addresses and files that are no wheels never reach pip; the message holds what was given."""
    with pytest.raises(ImageError, match=re.escape(repr(text))) as caught:
        PythonPackages.of([text])
    assert said in str(caught.value)


def test_packages_are_asked_for_once(tmp_path: Path) -> None:
    """The same package twice, a lock that is not there, or a lock for nothing: refused before anything is done."""
    with pytest.raises(ImageError, match="'a-b' is asked for 2 times"):
        PythonPackages.of(["a_b==1", "A-b==2"])
    with pytest.raises(ImageError, match="is no file: expected requirements with hashes"):
        PythonPackages.of(["a"], lock=tmp_path / "none")
    with pytest.raises(ImageError, match="--python-package NAME"):
        PythonPackages.of([], without=["b"])
    with pytest.raises(ImageError, match="'A_b' is asked for and is to be left out"):
        PythonPackages.of(["a-b"], without=["A_b"])


def test_a_lock_gives_the_same_again(index: Path, tmp_path: Path) -> None:
    """What pip would take today makes no difference to what a lock says; a changed file or a missing one is refused."""
    write_wheel(index, "agent", needs=["lib"])
    kept = write_wheel(index, "lib")
    lock = tmp_path / "lock.txt"
    lock.write_text(lock_text(found(tmp_path, "agent")))
    write_wheel(index, "lib", "2.0")
    (tmp_path / "fetched").rename(tmp_path / "first")
    assert lock_text(found(tmp_path, "agent", lock=lock)) == lock.read_text()
    kept.write_bytes(kept.read_bytes() + b" ")
    with pytest.raises(ImageError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        found(_fresh(tmp_path), "agent", lock=lock)
    lock.write_text(lock.read_text().splitlines()[0] + "\n")
    with pytest.raises(ImageError, match=r"lacks lib, needed on Python 3.11"):
        found(_fresh(tmp_path), "agent", lock=lock)
    with pytest.raises(ImageError, match=r"lacks agent==9"):
        found(_fresh(tmp_path), "agent==9", lock=lock)


def _fresh(tmp_path: Path) -> Path:
    folder = tmp_path / f"fresh{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    return folder


def test_packages_have_an_environment_of_their_own(index: Path, root: Path) -> None:
    """Commands of what was asked for are on the PATH, those of dependencies are not; the description has the lock."""
    write_wheel(index, "agent", needs=["lib"], commands={"go": "agent:main"})
    write_wheel(index, "lib", commands={"libtool": "lib:main"}, files={"lib-1.0.data/scripts/old": "#!python\nx\n"})
    made = add_python_packages(root, PythonPackages.of(["agent"]), quiet)
    agent = root / "opt/agent"
    assert (root / "usr/local/bin/go").readlink() == Path("/opt/agent/bin/go")
    assert sorted(path.name for path in (root / "usr/local/bin").iterdir()) == ["go"]
    assert (agent / "bin/go").read_text().startswith("#!/opt/agent/bin/python3\n")
    assert (agent / "bin/old").read_text() == "#!/opt/agent/bin/python3\nx\n"
    assert (agent / "bin/python3").readlink() == Path("/usr/bin/python3.11")
    assert "include-system-site-packages = false" in (agent / "pyvenv.cfg").read_text()
    assert (agent / "lib/python3.11/site-packages/lib.py").is_file()
    assert made == {"python_packages": "agent", "python_lock": (agent / "requirements.txt").read_text()}
    assert made["python_lock"].startswith("agent==1.0 --hash=sha256:")
    again = root.parent / "again"
    subprocess.run(["cp", "-a", str(root), str(again)], check=True)
    subprocess.run(["rm", "-r", str(again / "opt/agent"), str(again / "usr/local/bin/go")], check=True)
    add_python_packages(again, PythonPackages.of(["agent"]), quiet)
    assert pack(again, None) == pack(root, None)


def test_an_installed_command_runs(index: Path, root: Path) -> None:
    """The environment is one that Python knows: with a real interpreter in the image's place its command works."""
    write_wheel(
        index,
        "agent",
        needs=["lib"],
        commands={"go": "agent:main"},
        files={"agent.py": "import lib\nmain = lib.main\n"},
    )
    write_wheel(index, "lib")
    add_python_packages(root, PythonPackages.of(["agent"]), quiet)
    library = root / "opt/agent/lib/python3.11/site-packages"
    script = (root / "opt/agent/bin/go").read_text()
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(library)}, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == (b"lib\n", b"")


def test_no_packages_change_nothing(root: Path) -> None:
    """Nothing is fetched or laid out where nothing was asked for."""
    assert add_python_packages(root, PythonPackages.of([]), quiet) == {}
    assert list((root / "opt").iterdir()) == []


@pytest.mark.parametrize(
    "inside", ["../../../../../escaped", "agent-1.0.data/scripts/../../../../../../escaped", "/escaped"]
)
def test_a_wheel_stays_inside_its_environment(index: Path, root: Path, inside: str) -> None:
    """A wheel whose entries lead out of its folder is refused, and nothing is written outside the image."""
    write_wheel(index, "agent", files={inside: "x"})
    with pytest.raises(ImageError, match=r"agent-1.0-py3-none-any.whl can't be installed"):
        add_python_packages(root, PythonPackages.of(["agent"]), quiet)
    assert not [path for path in (root.parent, *root.parents) if (path / "escaped").exists()]
    assert not list(root.rglob("escaped"))


def test_a_link_of_the_image_is_not_followed(index: Path, root: Path, tmp_path: Path) -> None:
    """A root whose /opt leads to the host's is refused."""
    write_wheel(index, "agent")
    (root / "opt").rmdir()
    (tmp_path / "host").mkdir()
    (root / "opt").symlink_to(tmp_path / "host")
    with pytest.raises(ImageError, match="is a link: expected a folder of the image"):
        add_python_packages(root, PythonPackages.of(["agent"]), quiet)
    assert list((tmp_path / "host").iterdir()) == []


@pytest.mark.parametrize("place", ["usr/bin", "usr/local/bin"])
def test_a_command_takes_no_others_place(index: Path, root: Path, place: str) -> None:
    """A package that brings a command of the image's, be it a dangling link, is refused by both names."""
    write_wheel(index, "agent", commands={"ls": "agent:main"})
    (root / place / "ls").symlink_to("nowhere")
    with pytest.raises(ImageError, match=f"agent brings the command 'ls', and the image has /{place}/ls"):
        add_python_packages(root, PythonPackages.of(["agent"]), quiet)


def test_a_command_that_is_a_path_is_refused(index: Path, root: Path) -> None:
    """A command's name leads nowhere else."""
    write_wheel(index, "agent", commands={"../../etc/x": "agent:main"})
    with pytest.raises(ImageError, match="agent"):
        add_python_packages(root, PythonPackages.of(["agent"]), quiet)
    assert not (root / "opt/etc").exists()


def test_an_image_must_say_its_python(root: Path) -> None:
    """Without a Python or a C library that are known, nothing is guessed."""
    assert python_target(root).glibc == 36
    (root / "usr/lib/x86_64-linux-gnu/libc.so.6").write_bytes(b"musl")
    with pytest.raises(ImageError, match="no GNU C library"):
        python_target(root)
    (root / "usr/bin/python3").unlink()
    with pytest.raises(ImageError, match="no /usr/bin/python3"):
        python_target(root)


def test_pip_gets_its_settings_and_no_other_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip and proxies are set to is passed on; a key of a model server is not."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://u:p@registry")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    given = environment.installer_env()
    assert (given["PIP_INDEX_URL"], given["HTTPS_PROXY"]) == ("https://u:p@registry", "http://proxy")
    assert "canary" not in given.values()


def test_the_commands_say_what_goes_with_what(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Dockerfile installs its own packages; an image with packages prints its lock, another has none."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))

    def proctor(*words: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["proctor", "image", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    code, said = proctor("build", "--from", "dockerfile", "--folder", ".", "--python-package", "agent")
    assert (code, "pip install" in said) == (2, True)
    code, said = proctor("build", "--python-package", "--x")
    assert (code, "'--x' is refused" in said) == (2, True)
    ImageStore().add("one", root, {"python_lock": "agent==1.0 --hash=sha256:00\n"})
    ImageStore().add("two", root, {})
    assert proctor("lock", "one")[1] == "agent==1.0 --hash=sha256:00\n"
    code, said = proctor("lock", "two")
    assert (code, "it has no lock" in said) == (2, True)
