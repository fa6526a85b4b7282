"""Temporary files are gone at the end, also where a run was killed; what is not ours, or still in use, is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.base import temporary
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import write_atomically
from ncu_roofline.base.temporary import part_of, temporary_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")

# Writes a file, or has a folder, and stays in the middle of it.
BUSY = {
    "file": """
def chunks():
    yield b"half" * 100_000
    print("there", flush=True)
    time.sleep(300)
write_atomically(sys.argv[1] + "/out", chunks(), overwrite=False)
""",
    "folder": """
tempfile.tempdir = sys.argv[1]
with temporary_folder({"a": b"b"}):
    print("there", flush=True)
    time.sleep(300)
""",
}
IMPORTS = """
import sys, tempfile, time
from ncu_roofline.base.files import write_atomically
from ncu_roofline.base.temporary import temporary_folder
"""
MINUTES_AGO = 600
DAYS_AGO = 200_000


@pytest.fixture(params=list(BUSY))
def busy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run in the middle of it, and what it has made."""
    words = [sys.executable, "-c", IMPORTS + BUSY[request.param], str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
        (made,) = tmp_path.iterdir()
        yield process, made
        process.kill()


@pytest.fixture
def next_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def another_run(folder: Path) -> list[str]:
    """What lies in ``folder`` once another run has written there, but for what that wrote."""
    write_atomically(folder / "new", [b"x"], overwrite=True)
    with temporary_folder() as own:
        assert own.parent == folder
    (folder / "new").unlink()
    return sorted(path.name for path in folder.iterdir())


def made_before(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.usefixtures("next_run")
def test_a_living_run_keeps_what_it_has_however_old(busy: tuple[subprocess.Popen[str], Path]) -> None:
    _, made = busy
    for seconds in (0, MINUTES_AGO, DAYS_AGO):
        made_before(made, seconds)
        assert another_run(made.parent) == [made.name]


@pytest.mark.usefixtures("next_run")
def test_a_killed_run_leaves_nothing_behind_the_next(busy: tuple[subprocess.Popen[str], Path]) -> None:
    process, made = busy
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert another_run(made.parent) == [made.name]  # another run may just be about to lock it
    made_before(made, MINUTES_AGO)
    assert another_run(made.parent) == []


@pytest.mark.usefixtures("next_run")
@pytest.mark.parametrize("seconds", [MINUTES_AGO, DAYS_AGO])
@pytest.mark.parametrize("name", [".out.01234567-abcdefgh.ncu-roofline.part", "ncu-roofline-01234567-abcdefgh"])
def test_of_other_hosts_only_what_is_old_goes(tmp_path: Path, name: str, seconds: float) -> None:
    left = tmp_path / name
    if name.startswith("."):
        left.touch()
    else:
        (left / "in").mkdir(parents=True)
    made_before(left, seconds)
    assert another_run(tmp_path) == ([name] if seconds == MINUTES_AGO else [])


@pytest.mark.usefixtures("next_run")
@pytest.mark.parametrize("locks", [True, False])
def test_where_there_are_no_locks_only_what_is_old_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool) -> None:
    handle, path = part_of(tmp_path / "out")
    os.close(handle)
    if not locks:
        monkeypatch.setitem(sys.modules, "fcntl", None)
    made_before(Path(path), MINUTES_AGO)
    assert another_run(tmp_path) == ([] if locks else [Path(path).name])
    if not locks:
        made_before(Path(path), DAYS_AGO)
        assert another_run(tmp_path) == []


@pytest.mark.usefixtures("next_run")
def test_what_is_not_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = temporary._host()
    part, folder = f".out.{host}-abcdefgh.ncu-roofline.part", f"ncu-roofline-{host}-abcdefgh"
    (tmp_path / "elsewhere").mkdir()
    others = [".out.part", ".out.abcdefgh.part", part[1:], f"{part}~", f".out.{host}-abc.ncu-roofline.part"]
    for name in others:
        (tmp_path / name).touch()
    for name in (part, f"{folder}x", "ncu-roofline-rules"):  # a folder where a file of ours would be
        (tmp_path / name).mkdir()
    (tmp_path / folder).symlink_to(tmp_path / "elsewhere")
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert another_run(tmp_path) == before
    (tmp_path / part).rmdir()
    (tmp_path / part).touch()
    made_before(tmp_path / part, DAYS_AGO)
    owner = os.getuid()
    monkeypatch.setattr("ncu_roofline.base.temporary.os.getuid", lambda: owner + 1)
    assert another_run(tmp_path) == before


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
