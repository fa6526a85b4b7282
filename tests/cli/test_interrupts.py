"""Ctrl-C at any moment: at most one line, nothing half-written, nothing temporary left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ncu_roofline import cli

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = str(DEMO / "gpp-v100.ncu-rep"), str(DEMO / "gpp-v100-ceilings.json")
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the test's own parent ignores it
from ncu_roofline.__main__ import main
print("there", file=sys.stderr, flush=True)
sys.exit(main())
"""
WORDS = {
    "help": ["--help"],
    "show": ["show", REPORT],
    "input": ["show", "-"],
    "png": ["render", REPORT, "-o", "out.png"],
    "html": ["render", REPORT, "-o", "out.html"],
    "advise": ["advise", REPORT, "--ceilings", CEILINGS],
    "annotate": ["annotate", REPORT, "-o", "out.ncu-rep"],
    "ranks": ["ranks", REPORT, "-o", "out.csv"],
}
ENDS = {".png": b"IEND\xaeB`\x82", ".html": b"</html>"}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.sampled("show-200", "png-800", "html-600", "advise-400", "input-100", "ranks-20", "help-5")
@pytest.mark.parametrize("milliseconds", [5, 20, 50, 100, 200, 300, 400, 600, 800, 1000, 1300])
@pytest.mark.parametrize("name", WORDS)
def test_any_moment(tmp_path: Path, name: str, milliseconds: int) -> None:
    temporary, place = tmp_path / "temporary", tmp_path / "place"
    temporary.mkdir()
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *WORDS[name]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env=environment,
    ) as process:
        assert process.stderr
        assert process.stderr.readline() == b"there\n"
        time.sleep(milliseconds * 1e-3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    done = [f"Wrote {path.name}\n".encode() for path in place.iterdir()]
    assert (process.returncode, told) in [(130, b"ncu-roofline: interrupted\n"), *((code, b"".join(done)) for code in (0, -2))]
    assert not list(temporary.iterdir())
    for path in place.iterdir():
        assert path.name in WORDS[name]
        assert path.read_bytes().rstrip(b"\n").endswith(ENDS.get(path.suffix, b""))


def test_an_import_that_makes_another_error_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As that of numpy, whose extension modules forget what kept them from being loaded."""

    def load(*_: object) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("numpy C-extensions failed")

    monkeypatch.setattr(cli, "parse", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert (cli.main(["show", REPORT]), signal.getsignal(signal.SIGINT)) == (130, signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "ncu-roofline: interrupted\n")


def test_the_first_moment() -> None:
    program = """
from ncu_roofline import __main__

def interrupted(*_):
    raise KeyboardInterrupt

__main__.signal.getsignal = interrupted
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"ncu-roofline: interrupted\n")
