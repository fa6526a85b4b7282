"""A report that somebody cuts short or writes to while it is read: a sentence, in a process that lives to say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs.text import lines_of
from ncu_roofline.formats.report import framing, read_report
from tests.cli.command import assert_no_leftovers
from tests.factory import complete, kernel, report
from tests.report.factory import encoded, saxpy, write
from tests.report.frames import packed

# Runs a command, and cuts the file short once its blocks were found, before its launches are decoded.
CUT = """
import os, sys
from ncu_roofline.cli import main
from ncu_roofline.formats.report import reader

whole = reader.Report.__init__

def cut(self, raw):
    whole(self, raw)
    os.truncate(sys.argv[1], int(sys.argv[2]))

reader.Report.__init__ = cut
sys.exit(main(sys.argv[3:]))
"""
MANY = 400  # launches, of 10 kB


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    launches = [kernel({**complete(), "text__long": "x" * 10_000}) for _ in range(MANY)]
    return report(tmp_path_factory.mktemp("whole") / "r.ncu-rep", *launches).read_bytes()


@pytest.mark.sampled
@pytest.mark.parametrize("size", [0, 5000, 2_000_000])
@pytest.mark.parametrize("words", ["show {}", "advise {}", "annotate {} -o out.ncu-rep", "render {} -o out.svg"])
def test_cut_short(tmp_path: Path, whole: bytes, words: str, size: int) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(whole)
    command = [sys.executable, "-c", CUT, str(path), str(size), *words.format(path).split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.splitlines()[-1] == (
        f"ncu-roofline: Cannot read {path}: it changed while it was read. "
        "Wait until nothing writes to it, then run the command again."
    )
    assert "Traceback" not in done.stderr
    assert_no_leftovers(tmp_path, "r.ncu-rep")


def changes(path: Path) -> dict[str, bytes]:
    data = path.read_bytes()
    return {"longer": data + b"x", "shorter": data[:-1], "empty": b"", "other": b"\0" * len(data)}


@pytest.mark.parametrize("change", ["longer", "shorter", "empty", "other"])
def test_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setattr(framing, "_READ_AT_ONCE", 100)
    path = write(tmp_path, encoded([saxpy(i) for i in range(50)]))
    with read_report(path) as opened:
        data = changes(path)[change]
        before = path.stat().st_mtime_ns
        path.write_bytes(data)
        os.utime(path, ns=(before + 10**9,) * 2)  # clocks of files are coarse
        with pytest.raises(RooflineError, match="it changed while it was read"):
            opened.columns(["metric"])


def test_what_was_unpacked_does_not_change(tmp_path: Path) -> None:
    path = write(tmp_path, packed(encoded([saxpy(i) for i in range(50)])))
    with read_report(path) as opened:
        path.write_bytes(b"")
        assert len(opened.launches()) == 50


def test_slices_are_those_of_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 4
    path = tmp_path / "x"
    path.write_bytes(data)
    for window in (1, 7, 64, 1 << 20):
        monkeypatch.setattr(framing, "_READ_AT_ONCE", window)
        bytes_ = framing.FileBytes(path, path.open("rb"))
        assert len(bytes_) == len(data)
        parts = [slice(a, b) for a in (None, 0, 3, 100, 1023, 1024, 2000) for b in (None, 0, 2, 99, 101, 1024, 5000)]
        assert [bytes_[part] for part in (*parts, *reversed(parts))] == [data[part] for part in (*parts, *reversed(parts))]
        bytes_.close()
        with pytest.raises(ValueError, match="closed"):
            bytes_[:1]


def test_nothing_of_a_file_is_mapped() -> None:
    """Not even of a temporary one: what maps is killed where the file is cut short."""
    assert not hasattr(framing, "mmap")


def test_a_table_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" * 100_000)
    lines = lines_of(path)
    next(lines)
    os.truncate(path, 200_000)
    with pytest.raises(RooflineError, match="it changed while it was read"):
        list(lines)
