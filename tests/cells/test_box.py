"""The load of a machine is read from what its kernel says; what it does not say is None and never 0."""

from __future__ import annotations

from cells.box import box_load


def test_the_load_is_what_the_kernel_says(tmp_path):
    """Units: threads, CPUs, bytes."""
    (tmp_path / "loadavg").write_text("1.25 0.80 0.31 3/412 7811\n", "utf-8")
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:     2048 kB\n", "utf-8")
    found = box_load(2, load=tmp_path / "loadavg", memory=tmp_path / "meminfo")
    assert (found.load_1m, found.runnable, found.free_memory_bytes, found.cells) == (1.25, 3, 2048 * 1024, 2)


def test_what_is_not_told_is_none(tmp_path):
    """A machine without these files, or with other ones."""
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\n", "utf-8")
    found = box_load(1, load=tmp_path / "loadavg", memory=tmp_path / "meminfo")
    assert (found.load_1m, found.runnable, found.free_memory_bytes) == (None, None, None)
    assert found.cpus >= 1


def test_this_machine_says_all_of_it():
    """On Linux nothing is None."""
    found = box_load(1).to_json()
    assert None not in found.values()
