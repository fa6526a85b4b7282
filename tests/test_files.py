"""A file appears whole or not at all, and nothing is lost that was there."""

from __future__ import annotations

import os
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


def test_writes_all_chunks(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_atomically(target, (bytes([number]) * 1000 for number in range(5)), overwrite=False)
    assert target.read_bytes() == b"".join(bytes([number]) * 1000 for number in range(5))
    assert names(tmp_path) == ["out"]


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically("out", [b"a"], overwrite=False)
    assert (tmp_path / "out").read_bytes() == b"a"


def test_existing_files_need_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(RooflineError, match=r"the file exists. .*--force"):
        write_atomically(target, [b"new"], overwrite=False)
    assert target.read_bytes() == b"old"
    write_atomically(target, [b"new"], overwrite=True)
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_midway_leaves_what_was_there(tmp_path: Path, existing: bool) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half" * 100_000
        raise ValueError("no more")

    target = tmp_path / "out"
    if existing:
        target.write_bytes(b"old")
    with pytest.raises(ValueError, match="no more"):
        write_atomically(target, chunks(), overwrite=True)
    assert names(tmp_path) == (["out"] if existing else [])
    assert not existing or target.read_bytes() == b"old"


@pytest.mark.parametrize("where", ["replace", "chmod", "fdopen"])
def test_errors_of_the_system_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def fail(handle: object, *_: object) -> None:
        if isinstance(handle, int):
            os.close(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"ncu_roofline.base.files.os.{where}", fail)
    with pytest.raises(RooflineError, match=r"No space left on device\. Choose a place"):
        write_atomically(tmp_path / "out", [b"x"], overwrite=True)
    assert names(tmp_path) == []


def test_places_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for place, reason in (
        ("folder", "it is a folder"),
        ("nowhere/out", "there is no folder"),
        ("file/out", "there is no folder"),
    ):
        for overwrite in (False, True):
            with pytest.raises(RooflineError, match=reason) as caught:
                check_target(tmp_path / place, overwrite)
            assert caught.value.exit_code == 1
            with pytest.raises(RooflineError, match=reason):
                write_atomically(tmp_path / place, [b"x"], overwrite=overwrite)
    with pytest.raises(RooflineError, match="Cannot write"):
        write_atomically(tmp_path / ("x" * 300), [b"x"], overwrite=True)
    assert names(tmp_path) == ["file", "folder"]


def test_long_names_that_the_system_takes(tmp_path: Path) -> None:
    target = tmp_path / ("\u00fc" * 120)
    write_atomically(target, [b"x"], overwrite=False)
    assert target.read_bytes() == b"x"


@POSIX
def test_devices_are_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (Path("/dev/null"), pipe):
        with pytest.raises(RooflineError, match="no ordinary file"):
            write_atomically(place, [b"x"], overwrite=True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


@POSIX
def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    link.symlink_to(real)
    with pytest.raises(RooflineError, match="the file exists"):
        write_atomically(link, [b"new"], overwrite=False)
    assert not real.exists()
    write_atomically(link, [b"new"], overwrite=True)
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    link.unlink()
    link.symlink_to(tmp_path / "gone" / "real")
    with pytest.raises(RooflineError, match="there is no folder"):
        write_atomically(link, [b"new"], overwrite=True)


@POSIX
def test_permissions_are_those_of_an_ordinary_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out", [b"x"], overwrite=False)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o664, 0o755])
def test_what_is_overwritten_hands_on_its_permissions(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(mode)
    write_atomically(target, [b"new"], overwrite=True)
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_folder_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder({"a": b"1", "b": b"2"}) as folder:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"1", "b": b"2"}
        assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reason", ["missing", "none", "full"])
def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", None if reason == "none" else str(tmp_path / ("" if reason == "full" else "no")))
    if reason == "none":
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "no")])
    if reason == "full":
        monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RooflineError, match=r"^Cannot write .*: .*\. Set TMPDIR to a folder"), temporary_folder({"a": b""}):
        pytest.fail("there is no folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["(", "[", "*", r"(?P<1>a)", "a{2,1}"])
def test_what_is_no_regular_expression_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="is not a regular expression"):
        expression(text)


class TestErrors:
    def test_one_line(self) -> None:
        error = RooflineError("Cannot read", "a\nb\x1b[31m", "it is \u202eodd.", "Try\tagain.")
        assert str(error) == "Cannot read a\ufffdb\ufffd[31m: it is \ufffdodd. Try\ufffdagain."

    @pytest.mark.parametrize(("kind", "code"), [(RooflineError, 1), (UsageError, 2)])
    def test_travels_between_processes(self, kind: type[RooflineError], code: int) -> None:
        import pickle

        error = pickle.loads(pickle.dumps(kind("Cannot", Path("x"), "reason", "Next.")))
        assert type(error) is kind
        assert (str(error), error.exit_code, error.path) == ("Cannot x: reason. Next.", code, "x")

    def test_printable(self) -> None:
        assert printable("plain \u00fc \u4e2d") == "plain \u00fc \u4e2d"
        assert printable("\x00\x7f\x9b\u200b\u2028\udcff") == "\ufffd" * 6


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/home/me/a.ncu-rep", "b.ncu-rep"], ["a.ncu-rep", "b.ncu-rep"]),
        (["/w/x/1/r", "/w/y/1/r", "/w/secret/other"], ["x/1/r", "y/1/r", "other"]),
        (["r", "old/r"], ["r", "old/r"]),
        (["./r"], ["r"]),
        (["bad\udcff"], ["bad?"]),
        ([], []),
    ],
)
def test_reports_are_called_by_no_more_of_their_paths_than_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert list(map(ReportNames.apart(paths), paths)) == names


def test_full_names_are_absolute() -> None:
    assert ReportNames(full=True)("x/r") == str(Path.cwd() / "x" / "r")
