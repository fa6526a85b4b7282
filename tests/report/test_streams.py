"""Reports that come through pipes and devices: read where they are reports, refused at once or at a limit where not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import framing, read_report
from ncu_roofline.formats.report.framing import file_start
from tests.report.factory import encoded, saxpy, write
from tests.report.frames import MAGIC, packed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")

WHOLE = encoded([saxpy(i, metrics={"text__long": "x" * 100_000}) for i in range(30)])
Feed = Callable[..., Path]


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Gives the path of a pipe into which a thread writes chunks for as long as someone reads, and how many it wrote."""

    def start(chunks: object) -> Path:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)

        def pour() -> None:
            with suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as file:
                for chunk in chunks:  # type: ignore[attr-defined]
                    file.write(chunk)

        threading.Thread(target=pour, daemon=True).start()
        return pipe

    return start


@pytest.mark.parametrize("data", [WHOLE, packed(WHOLE)], ids=["plain", "compressed"])
@pytest.mark.parametrize("size", [1000, 1 << 22])
def test_a_report_in_pieces(feed: Feed, data: bytes, size: int) -> None:
    with read_report(feed([data[i : i + size] for i in range(0, len(data), size)])) as report:
        assert [kernel.metrics["text__long"] for kernel in report.kernels] == ["x" * 100_000] * 30


class Counted:
    """At most ``limit`` chunks of 4 kB: an endless stream that does not hang the test where nothing stops reading."""

    def __init__(self, first: bytes, chunk: bytes, limit: int = 5000) -> None:
        self.taken, self._first, self._chunk, self._limit = 0, first, chunk, limit

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> bytes:
        if self.taken == self._limit:
            raise StopIteration
        self.taken += 1
        return self._first if self._first and self.taken == 1 else self._chunk


@pytest.mark.parametrize(("chunk", "reason"), [(bytes(4096), "does not begin with"), (b"a,b\n" * 1024, "it is a text file")])
def test_what_is_no_report_is_refused_at_its_beginning(feed: Feed, chunk: bytes, reason: str) -> None:
    endless = Counted(b"", chunk)
    with pytest.raises(RooflineError, match=reason):
        read_report(feed(endless))
    assert endless.taken < 100  # what a pipe holds beyond what was read


@pytest.mark.parametrize("data", [b"", b"NVR"], ids=["empty", "cut off"])
def test_short_streams(feed: Feed, data: bytes) -> None:
    with pytest.raises(RooflineError, match="cut off after 3 bytes" if data else "the file is empty"):
        read_report(feed([data] if data else []))


@pytest.mark.parametrize("compression", [False, True])
def test_a_report_without_end(feed: Feed, monkeypatch: pytest.MonkeyPatch, compression: bool) -> None:
    monkeypatch.setattr(framing, "MOST_BYTES", 3_000_000)
    # A frame without its size and with a window of 1 MB; empty blocks that are not the last, of three bytes each.
    endless = Counted(MAGIC + b"\0\x50", bytes(3 * 1365)) if compression else Counted(file_start(), bytes(4096))
    with pytest.raises(RooflineError, match=r"it has more than 0\.003 GB, and .*read up to 0\.003 GB\. \S.*\.$"):
        read_report(feed(endless))
    assert 3_000_000 / 4096 <= endless.taken < 1500


@pytest.mark.sampled("compressed", "table")
@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="standard input has no name")
@pytest.mark.parametrize("kind", ["plain", "compressed", "piped", "table"])
def test_standard_input(tmp_path: Path, kind: str) -> None:
    report = encoded([saxpy()])
    table = b"name,flops,bytes,seconds\nsaxpy,1e9,1e8,0.1\n"
    data = {"plain": report, "piped": report, "compressed": packed(report), "table": table}[kind]
    command = [sys.executable, "-m", "ncu_roofline", "show", "/dev/stdin"]
    if kind == "piped":
        done = subprocess.run(command, input=data, capture_output=True, check=False)
    else:
        with write(tmp_path, data).open("rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"saxpy" in done.stdout


def test_no_room_for_a_stream(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing.tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(RooflineError, match=r"it can't be read into a temporary file \(No such file.*\. Set TMPDIR"):
        read_report(feed(chain([WHOLE[:5000]], repeat(b"", 1))))
