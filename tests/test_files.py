"""A file appears whole or not at all, and nothing is lost that was there."""

from __future__ import annotations

import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import ReportNames, check_target, temporary_folder, write_atomically
from ncu_roofline.base.texts import expression, printable

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file that is there."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    return path


def test_files_are_written_whole_and_replaced_only_when_told(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RooflineError, match=r"the file exists. .*--force"):
        write_atomically(target, [b"new"], overwrite=False)
    assert target.read_bytes() == b"old"
    write_atomically(target, (bytes([number]) * 1000 for number in range(5)), overwrite=True)
    assert target.read_bytes() == b"".join(bytes([number]) * 1000 for number in range(5))
    monkeypatch.chdir(target.parent)
    long = "\u00fc" * 120
    for name in ("relative", long):
        write_atomically(name, [b"a"], overwrite=False)
        assert (target.parent / name).read_bytes() == b"a"
    assert names(target.parent) == sorted(["out", "relative", long])


def test_a_failure_midway_leaves_what_was_there(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half" * 100_000
        raise ValueError("no more")

    def full(handle: object, *_: object) -> None:
        if isinstance(handle, int):
            os.close(handle)
        raise OSError(28, "No space left on device")

    for path in (target, target.parent / "other"):
        with pytest.raises(ValueError, match="no more"):
            write_atomically(path, chunks(), overwrite=True)
        for where in ("replace", "chmod", "fdopen"):
            with monkeypatch.context() as patch:
                patch.setattr(f"ncu_roofline.base.files.os.{where}", full)
                with pytest.raises(RooflineError, match=r"No space left on device\. Choose a place"):
                    write_atomically(path, [b"x"], overwrite=True)
    assert names(target.parent) == ["out"]
    assert target.read_bytes() == b"old"


def test_places_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    wrong = {"folder": "it is a folder", "nowhere/out": "there is no folder", "file/out": "there is no folder"}
    for place, reason in wrong.items():
        for overwrite in (False, True):
            with pytest.raises(RooflineError, match=reason) as caught:
                check_target(tmp_path / place, overwrite)
            assert caught.value.exit_code == 1
            with pytest.raises(RooflineError, match=reason):
                write_atomically(tmp_path / place, [b"x"], overwrite=overwrite)
    with pytest.raises(RooflineError, match="Cannot write"):
        write_atomically(tmp_path / ("x" * 300), [b"x"], overwrite=True)
    assert names(tmp_path) == ["file", "folder"]


@POSIX
def test_devices_are_not_replaced_and_links_stay_links(tmp_path: Path, target: Path) -> None:
    pipe, link, lost = tmp_path / "pipe", tmp_path / "link", tmp_path / "lost"
    os.mkfifo(pipe)
    for place in (Path("/dev/null"), pipe):
        with pytest.raises(RooflineError, match="no ordinary file"):
            write_atomically(place, [b"x"], overwrite=True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    link.symlink_to(target)
    lost.symlink_to(tmp_path / "gone" / "real")
    with pytest.raises(RooflineError, match="the file exists"):
        write_atomically(link, [b"new"], overwrite=False)
    assert target.read_bytes() == b"old"
    write_atomically(link, [b"new"], overwrite=True)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    with pytest.raises(RooflineError, match="there is no folder"):
        write_atomically(lost, [b"new"], overwrite=True)


@POSIX
def test_permissions_are_those_of_the_file_before_or_of_any_new_one(tmp_path: Path, target: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", [b"x"], overwrite=False)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    for mode in (0o600, 0o400, 0o664, 0o755):
        target.chmod(mode)
        write_atomically(target, [b"new"], overwrite=True)
        assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.parametrize("reason", ["", "missing", "none", "full"])
def test_a_folder_for_the_time_being(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    there = reason in ("", "full")
    monkeypatch.setattr(tempfile, "tempdir", None if reason == "none" else str(tmp_path / ("" if there else "no")))
    if reason == "none":
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "no")])
    if reason == "full":
        monkeypatch.setattr(Path, "write_bytes", full)
    if reason:
        with pytest.raises(RooflineError, match=r"^Cannot write .*: .*\. Set TMPDIR to a folder"), temporary_folder({"a": b""}):
            pytest.fail("there is no folder")
    else:
        with temporary_folder({"a": b"1", "b": b"2"}) as folder:
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"1", "b": b"2"}
            assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_errors_are_one_line_and_travel_between_processes() -> None:
    error = RooflineError("Cannot read", "a\nb\x1b[31m", "it is \u202eodd.", "Try\tagain.")
    assert str(error) == "Cannot read a\ufffdb\ufffd[31m: it is \ufffdodd. Try\ufffdagain."
    for kind, code in ((RooflineError, 1), (UsageError, 2)):
        again = pickle.loads(pickle.dumps(kind("Cannot", Path("x"), "reason", "Next.")))
        assert (type(again), str(again), again.exit_code, again.path) == (kind, "Cannot x: reason. Next.", code, "x")
    assert printable("plain \u00fc \u4e2d") == "plain \u00fc \u4e2d"
    assert printable("\x00\x7f\x9b\u200b\u2028\udcff") == "\ufffd" * 6
    for text in ("(", "[", "*", r"(?P<1>a)", "a{2,1}"):
        with pytest.raises(ValueError, match="is not a regular expression"):
            expression(text)


def test_reports_are_called_by_no_more_of_their_paths_than_tells_them_apart() -> None:
    for paths, shown in (
        (["/home/me/a.ncu-rep", "b.ncu-rep"], ["a.ncu-rep", "b.ncu-rep"]),
        (["/w/x/1/r", "/w/y/1/r", "/w/secret/other"], ["x/1/r", "y/1/r", "other"]),
        (["r", "old/r"], ["r", "old/r"]),
        (["./r"], ["r"]),
        (["bad\udcff"], ["bad?"]),
        ([], []),
    ):
        assert list(map(ReportNames.apart(paths), paths)) == shown
    assert ReportNames(full=True)("x/r") == str(Path.cwd() / "x" / "r")
