"""Reports that are compressed, come through pipes, or change while they are read: in bounded memory, or refused."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.text import lines_of
from ncu_roofline.formats.report import ReportData, framing, read_report, reader, write_report
from ncu_roofline.formats.report.framing import file_start
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel, report
from tests.report.factory import SESSION, encoded, saxpy, write
from tests.report.frames import MAGIC, by_hand, packed, zstd
from tests.report.transcript import transcript

WHOLE = encoded([saxpy(i) for i in range(3)])
LONG = encoded([saxpy(i, metrics={"text__long": "x" * 100_000}) for i in range(30)])
GB = 10**9
Feed = Callable[..., Path]
pipes = pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")


# Frames.
def test_read_by_content_and_written_by_name(tmp_path: Path) -> None:
    said = transcript(write(tmp_path, WHOLE, "x"))
    frames = (packed(WHOLE), packed(WHOLE, checksum=True), by_hand(WHOLE, 0))
    for data in (*frames, packed(LONG)):
        for name in ("x", "x.ncu-rep", "x.ncu-repz"):
            assert data == packed(LONG) or transcript(write(tmp_path, data, name)).replace(name, "x") == said
    with open_input(write(tmp_path, packed(LONG), "x.bin")) as found:  # type: ignore[union-attr]  # larger than a chunk
        assert found.columns(["text__long"])["text__long"] == ["x" * 100_000] * 30
    for name in ("a.ncu-rep", "a.ncu-repz", "b.NCU-REPZ"):
        write_report(tmp_path / name, ReportData([saxpy(i) for i in range(3)], SESSION))
    frame = (tmp_path / "a.ncu-repz").read_bytes()
    assert frame.startswith(MAGIC)
    assert zstd().decompress(frame) == (tmp_path / "a.ncu-rep").read_bytes() == WHOLE
    assert frame == (tmp_path / "b.NCU-REPZ").read_bytes()
    with pytest.raises(RooflineError, match="two files were joined"):
        read_report(write(tmp_path, frame * 2))


@pytest.mark.parametrize(
    ("data", "limit", "reason"),
    [
        (packed(WHOLE), len(WHOLE), ""),
        (packed(WHOLE), len(WHOLE) - 1, "read up to"),
        (by_hand(WHOLE, 0), len(WHOLE), "it has more than"),
        (
            by_hand(file_start(), 100 * GB),
            30_000_000,
            r"more than 0\.03 GB.*read up to 0\.03 GB\. Write it to a file, unpacked by `zstd -d`",
        ),
    ],
)
def test_the_limit_of_what_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, limit: int, reason: str
) -> None:
    monkeypatch.setattr(framing, "MOST_BYTES", limit)
    path = write(tmp_path, data)
    if not reason:
        read_report(path).close()
        return
    with pytest.raises(RooflineError, match=reason):
        read_report(path)


PEAK = """
import resource, sys
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import framing, read_report
framing.MOST_BYTES = 200_000_000
try:
    read_report(sys.argv[1])
except RooflineError as error:
    assert "read up to" in str(error)
zstd = any("zstd" in name and "ncu_roofline" not in name for name in sys.modules)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024), zstd)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module there")
def test_a_bomb_costs_what_a_small_report_costs_and_a_plain_one_needs_no_module(tmp_path: Path) -> None:
    found = []
    for data in (by_hand(file_start(), 100 * GB), WHOLE):
        words = [sys.executable, "-c", PEAK, str(write(tmp_path, data))]
        found.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert int(found[0][0]) < int(found[1][0]) + 35_000_000
    assert [zstd for _, zstd in found] == ["True", "False"]


def test_no_room_and_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, packed(WHOLE))

    class Full(io.FileIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **_: Full(tmp_path / "full", "w"))
        with pytest.raises(RooflineError, match=r"Cannot write .*No space left on device\. Set TMPDIR"):
            read_report(path)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        with pytest.raises(RooflineError, match=r"Cannot write .*nowhere: No such file or directory\. Set TMPDIR"):
            read_report(path)
    monkeypatch.setitem(sys.modules, zstd().__name__, None)
    with pytest.raises(RooflineError, match=r"Cannot read .*zstd module can't be loaded.*pip install"):
        read_report(path)
    with pytest.raises(RooflineError, match=r"Cannot write .*zstd module can't be loaded"):
        write_report(tmp_path / "new.ncu-repz", ReportData([saxpy()]))


# Pipes.
@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Gives the path of a pipe into which a thread writes chunks for as long as someone reads."""

    def start(chunks: Any) -> Path:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)

        def pour() -> None:
            with suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as file:
                for chunk in chunks:
                    file.write(chunk)

        threading.Thread(target=pour, daemon=True).start()
        return pipe

    return start


@pipes
@pytest.mark.parametrize(("data", "size"), [(LONG, 1000), (packed(LONG), 1 << 22)])
def test_a_report_in_pieces(feed: Feed, data: bytes, size: int) -> None:
    with read_report(feed([data[i : i + size] for i in range(0, len(data), size)])) as opened:
        assert [one.metrics["text__long"] for one in opened.kernels] == ["x" * 100_000] * 30


@pipes
@pytest.mark.parametrize(
    ("first", "chunk", "least", "reason"),
    [
        (b"", b"", 0, "the file is empty"),
        (b"NVR", b"", 0, "cut off after 3 bytes"),
        (b"", bytes(4096), 0, "does not begin with"),
        (b"", b"a,b\n" * 1024, 0, "it is a text file.*Write it to a file"),
        (file_start(), bytes(4096), 3_000_000, r"it has more than 0\.003 GB, and .*read up to 0\.003 GB\. \S.*\.$"),
        # A frame without its size and with a window of 1 MB; empty blocks that are not the last, of three bytes each.
        (MAGIC + b"\0\x50", bytes(3 * 1365), 3_000_000, r"it has more than 0\.003 GB, and .*read up to 0\.003 GB\. \S.*\.$"),
    ],
    ids=["empty", "short", "zeros", "text", "report", "compressed"],
)
def test_what_is_no_report_is_refused_at_its_beginning_or_at_a_limit(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, first: bytes, chunk: bytes, least: int, reason: str
) -> None:
    monkeypatch.setattr(framing, "MOST_BYTES", 3_000_000)
    taken = [0]

    def endless() -> Iterator[bytes]:
        yield from [first] if first else []
        for taken[0], again in enumerate(repeat(chunk, 5000 if chunk else 0), 1):
            yield again

    with pytest.raises(RooflineError, match=reason):
        read_report(feed(endless()))
    assert least / 4096 <= taken[0] < (1500 if least else 100)


@pipes
def test_no_room_for_a_stream(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing.tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(RooflineError, match=r"Cannot write .*nowhere: No such file.*\. Set TMPDIR"):
        read_report(feed([LONG[:5000]]))


# Files that somebody cuts short or writes to while they are read.
@pytest.mark.parametrize("size", [0, 5000, 500_000])
@pytest.mark.parametrize("words", ["show", "advise", "annotate -o out.ncu-rep", "render -o out.svg"])
def test_cut_short_under_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command, words: str, size: int
) -> None:
    whole, path = reader.Report.__init__, tmp_path / "r.ncu-rep"

    def cut(self: reader.Report, raw: framing.RawFile) -> None:
        whole(self, raw)
        os.truncate(path, size)  # once its blocks were found, before its launches are decoded

    report(path, *[kernel({**complete(), "text__long": "x" * 20_000}) for _ in range(100)])
    monkeypatch.setattr(reader.Report, "__init__", cut)
    monkeypatch.chdir(tmp_path)
    outcome = run(*words.split(), path)
    assert_refused(outcome, path)
    assert "it changed while it was read. Wait until nothing writes to it, then run the command again." in outcome.err
    assert_no_leftovers(tmp_path, "r.ncu-rep")


@pytest.mark.parametrize(
    "change", [lambda data: data + b"x", lambda data: data[:-1], lambda _: b"", lambda data: bytes(len(data))]
)
def test_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes]) -> None:
    monkeypatch.setattr(framing, "_READ_AT_ONCE", 100)
    path = write(tmp_path, encoded([saxpy(i) for i in range(50)]))
    compressed = read_report(write(tmp_path, packed(WHOLE), "other"))
    with read_report(path) as opened:
        before = path.stat().st_mtime_ns
        for one in (path, tmp_path / "other"):
            one.write_bytes(change(one.read_bytes()))
            os.utime(one, ns=(before + 10**9,) * 2)  # clocks of files are coarse
        with pytest.raises(RooflineError, match="it changed while it was read"):
            opened.columns(["metric"])
    assert len(compressed.launches()) == 3  # what was unpacked does not change
    assert not hasattr(framing, "mmap")  # what maps a file is killed where it is cut short
    table = tmp_path / "x.csv"
    table.write_text("a,b\n" * 100_000)
    lines = lines_of(table)
    next(lines)
    os.truncate(table, 200_000)
    with pytest.raises(RooflineError, match="it changed while it was read"):
        list(lines)


def test_slices_are_those_of_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 4
    path = write(tmp_path, data)
    for window in (1, 7, 64, 1 << 20):
        monkeypatch.setattr(framing, "_READ_AT_ONCE", window)
        found = framing.RawFile(path, path.open("rb"))
        assert len(found) == len(data)
        parts = [slice(a, b) for a in (None, 0, 3, 100, 1023, 1024, 2000) for b in (None, 0, 2, 99, 101, 1024, 5000)]
        assert [found[part] for part in (*parts, *reversed(parts))] == [data[part] for part in (*parts, *reversed(parts))]
        found.close()
        with pytest.raises(ValueError, match="closed"):
            found[:1]
