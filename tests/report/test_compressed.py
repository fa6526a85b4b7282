"""`.ncu-repz`: read by content and written by name, and every frame that is not one whole report refused in bounded memory."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.report import ReportData, read_report, write_report
from ncu_roofline.formats.report import framing as module
from ncu_roofline.formats.report.framing import file_start
from tests.report.factory import SESSION, encoded, saxpy, write
from tests.report.frames import MAGIC, SKIPPABLE, by_hand, packed, zstd
from tests.report.test_damage import flip, read_everything

WHOLE = encoded([saxpy(i) for i in range(3)])
GB = 10**9


def data_of(path: Path) -> Any:
    with read_report(path) as report:
        return report.session, report.launches(), report.columns(sorted(report.metric_names))


@pytest.mark.parametrize("name", ["x.ncu-repz", "x.ncu-rep", "x", "x.bin"])
def test_read_by_content_whatever_the_name(tmp_path: Path, name: str) -> None:
    plain = data_of(write(tmp_path, WHOLE, "plain.ncu-repz"))
    path = write(tmp_path, packed(WHOLE), name)
    assert data_of(path) == plain
    with open_input(path) as report:  # type: ignore[union-attr]
        assert (len(report), report.path) == (3, str(path))


@pytest.mark.parametrize("make", [packed, lambda data: packed(data, checksum=True), lambda data: by_hand(data, 0)])
def test_frames_with_and_without_checksum_and_size(tmp_path: Path, make: Any) -> None:
    assert data_of(write(tmp_path, make(WHOLE)))[1] == data_of(write(tmp_path, WHOLE))[1]


def test_written_by_name(tmp_path: Path) -> None:
    kernels = [saxpy(i) for i in range(3)]
    for name in ("a.ncu-rep", "a.ncu-repz", "b.NCU-REPZ"):
        write_report(tmp_path / name, ReportData(kernels, SESSION))
    frame = (tmp_path / "a.ncu-repz").read_bytes()
    assert frame.startswith(MAGIC)
    assert zstd().decompress(frame) == (tmp_path / "a.ncu-rep").read_bytes() == WHOLE
    assert frame == (tmp_path / "b.NCU-REPZ").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ncu-rep", "a.ncu-repz", "b.NCU-REPZ"]


def test_nothing_is_half_written(tmp_path: Path) -> None:
    def fails() -> Any:
        yield saxpy()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_report(tmp_path / "x.ncu-repz", ReportData(fails()))
    assert not list(tmp_path.iterdir())


def test_larger_than_a_chunk(tmp_path: Path) -> None:
    text = "".join(random.Random(3).choices("abcdefgh", k=3 << 20))
    data = encoded([saxpy(metrics={"text__long": text})])
    with read_report(write(tmp_path, packed(data))) as report:
        assert report.kernels[0].metrics["text__long"] == text


def repeated(data: bytes, times: int) -> bytes:
    return packed(data) * times


DAMAGED = {
    "nothing": (packed(b""), "what is inside is no Nsight Compute report"),
    "text": (packed(b"hello\n" * 99), "what is inside is no Nsight Compute report"),
    "a frame in a frame": (packed(packed(WHOLE)), "what is inside is no Nsight Compute report"),
    "a part of the magic": (packed(b"NVR"), "cut off after 3 bytes"),
    "a report cut off": (packed(WHOLE[:-9]), r"cut off at byte \d+.*bytes of the unpacked file\)\. Copy"),
    "a damaged report": (packed(WHOLE + b"\xff" * 30), r"damaged at byte \d+.*\(bytes of the unpacked file\)\. Copy"),
    "two reports in a frame": (packed(WHOLE + WHOLE), "two files were joined"),
    "two frames": (repeated(WHOLE, 2), rf"frame ends at byte {len(packed(WHOLE))}, and more follows"),
    "a report in two frames": (packed(WHOLE[:500]) + packed(WHOLE[500:]), "and more follows"),
    "many empty frames": (packed(WHOLE) + packed(b"") * 300_000, "and more follows"),
    "garbage behind": (packed(WHOLE) + b"garbage", "and more follows"),
    "a zero behind": (packed(WHOLE) + b"\0", "and more follows"),
    "skippable behind": (packed(WHOLE) + SKIPPABLE, "and more follows"),
    "skippable before": (SKIPPABLE + packed(WHOLE), r"skippable zstd frame.*`zstd -d`"),
    "magic only": (MAGIC, "cut off after 4 bytes: its zstd frame goes on"),
    "cut off": (packed(WHOLE)[:-10], r"cut off after \d+ bytes: its zstd frame goes on"),
    "wrong checksum": (packed(WHOLE, checksum=True)[:-1] + b"\0", "damaged before byte .*checksum"),
    "reserved bits": (MAGIC + b"\xff" * 20, "zstd frame is damaged"),
    "size too small": (by_hand(WHOLE, 0, size=10), "zstd frame is damaged"),
    "size too large": (by_hand(WHOLE, 0, size=len(WHOLE) + 1), "zstd frame is damaged"),
    "100 GB, it says": (by_hand(WHOLE, 0, size=100 * GB), r"unpacked it has 100 GB.*up to 2 GB.*`zstd -d -o .*x\.ncu-rep`"),
    "100 GB of zeros": (by_hand(bytes(9), 100 * GB), "what is inside is no Nsight Compute report"),
    "a window of 2 GB": (by_hand(WHOLE, 0, window_log=31), "wants a window of more than 128 MB.*`zstd -d"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    data, expected = DAMAGED[name]
    path = write(tmp_path, data)
    with pytest.raises(RooflineError, match=expected) as caught:
        read_report(path)
    assert str(caught.value).startswith(f"Cannot read {path}: ")
    assert "\n" not in str(caught.value)


def test_a_bomb_with_the_beginning_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 30_000_000)
    with pytest.raises(RooflineError, match=r"more than 0\.03 GB.*read up to 0\.03 GB\. Unpack it by hand \(`zstd -d"):
        read_report(write(tmp_path, by_hand(file_start(), 100 * GB)))


def test_the_limit_itself_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, packed(WHOLE))
    monkeypatch.setattr(module, "MOST_BYTES", len(WHOLE))
    read_report(path).close()
    monkeypatch.setattr(module, "MOST_BYTES", len(WHOLE) - 1)
    with pytest.raises(RooflineError, match="read up to"):
        read_report(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module there")
def test_memory_is_bounded(tmp_path: Path) -> None:
    """A bomb costs what a small report costs, and a few MB."""
    bomb = write(tmp_path, by_hand(file_start(), 100 * GB), "bomb")
    small = write(tmp_path, packed(WHOLE), "small")
    code = (
        "import resource, sys\nfrom ncu_roofline.base.errors import RooflineError\n"
        "from ncu_roofline.formats.report import framing, read_report\nframing.MOST_BYTES = 200_000_000\n"
        "try:\n    read_report(sys.argv[1])\nexcept RooflineError as error:\n    assert 'read up to' in str(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024))"
    )

    def peak(path: Path) -> int:
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert peak(bomb) < peak(small) + 30_000_000


def test_truncation_anywhere(tmp_path: Path) -> None:
    frame = packed(WHOLE)
    for end in range(len(MAGIC), len(frame)):
        with pytest.raises(RooflineError, match="its zstd frame goes on"):
            read_report(write(tmp_path, frame[:end]))


def test_bit_flips(tmp_path: Path) -> None:
    frame, generator = packed(WHOLE), random.Random(4)
    for _ in range(400):
        read_everything(write(tmp_path, flip(frame, generator)))


def test_no_room_to_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, packed(WHOLE))

    class Full(io.FileIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full(tmp_path / "full", "w"))
    with pytest.raises(RooflineError, match=r"temporary file \(No space left on device\)\. Set TMPDIR"):
        read_report(path)
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(RooflineError, match=r"temporary file \(No such file or directory\)\. Set TMPDIR"):
        read_report(path)


def test_without_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, packed(WHOLE))
    monkeypatch.setitem(sys.modules, zstd().__name__, None)
    with pytest.raises(RooflineError, match=r"Cannot read .*zstd module can't be loaded.*pip install"):
        read_report(path)
    with pytest.raises(RooflineError, match=r"Cannot write .*zstd module can't be loaded"):
        write_report(tmp_path / "new.ncu-repz", ReportData([saxpy()]))
    assert len(read_report(write(tmp_path, WHOLE, "plain.ncu-rep"))) == 3


def test_plain_reports_do_without_the_module(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ncu_roofline.formats.report import read_report\nread_report(sys.argv[1]).close()\n"
        "print(any('zstd' in name and 'ncu_roofline' not in name for name in sys.modules))"
    )
    path = write(tmp_path, WHOLE)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_name_without_suffix_is_found(tmp_path: Path) -> None:
    write(tmp_path, packed(WHOLE), "run.ncu-repz")
    with pytest.raises(RooflineError, match=r"Did you mean .*run\.ncu-repz\?"):
        read_report(tmp_path / "run")


@pytest.mark.exhaustive
@pytest.mark.reports
def test_real_reports(tmp_path: Path, real_reports: dict[str, Path]) -> None:
    for path in sorted(real_reports.values(), key=lambda one: one.stat().st_size)[::6]:
        assert data_of(write(tmp_path, packed(path.read_bytes()), "x.ncu-repz"))[1:] == data_of(path)[1:]
