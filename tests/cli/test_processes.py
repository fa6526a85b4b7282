"""Reports read in several processes: one that dies costs its report, and all of them end with the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli.executors import in_processes
from tests.factory import complete, kernel, report
from tests.processes import descendants, parents

ROOT = Path(__file__).resolve().parents[2]
# Two processes that read for ever; each leaves a file beside its report.
ENDLESS = """
import os, sys
from ncu_roofline.__main__ import main
from ncu_roofline.cli import executors, reading
from tests.cli.test_processes import endless
if __name__ == "__main__":
    os.cpu_count = lambda: 2
    executors.PARALLEL_FROM_BYTES = 0
    given = reading.for_each_report
    reading.for_each_report = lambda reports, work, **_: given(reports, endless)
    sys.argv[1:] = ["explain", *sys.argv[1:]]
    sys.exit(main())
"""


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(report(tmp_path / f"{number}.ncu-rep", kernel(complete()))) for number in range(7)]


def name(path: str, _: str) -> object:
    """The work of a test: the file's name; those named 3 and 5 kill who reads them, what comes of 2 can't leave its process."""
    stem = Path(path).stem
    if stem in ("3", "5"):
        os._exit(1)
    return (lambda: 1) if stem == "2" else stem


def endless(path: str, _: str) -> None:
    """The work of a test: leaves a file beside the report, and goes on for ever."""
    Path(f"{path}.begun").touch()
    while True:
        time.sleep(0.01)


def test_a_process_that_dies_or_an_outcome_that_cannot_travel_costs_its_report(paths: list[str]) -> None:
    found = list(in_processes(name, paths, 2))
    assert [one if isinstance(one, str) else "" for one in found] == ["0", "1", "", "", "4", "", "6"]
    lost, *died = (one for one in found if isinstance(one, RooflineError))
    assert "pickle" in str(lost)
    assert [error.path for error in died] == [paths[3], paths[5]]
    assert all(str(error).startswith(f"Cannot read {error.path}: the process that read it died") for error in died)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize(("ended_by", "at_work"), [("the kernel", True), ("Ctrl-C", True), ("Ctrl-C", False)])
def test_they_end_with_their_parent(tmp_path: Path, paths: list[str], ended_by: str, at_work: bool) -> None:
    """Quietly; while they read, and while they start."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    words = [sys.executable, str(tmp_path / "endless.py"), *paths[:2]]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (all(Path(f"{path}.begun").exists() for path in paths[:2]) if at_work else len(descendants(process.pid)) >= 2):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    children = descendants(process.pid)
    assert len(children) >= 2
    if ended_by == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told) == (130, "ncu-roofline: interrupted\n")
    else:
        process.kill()
        process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while alive := children & parents().keys():
        assert time.monotonic() < deadline, alive
        time.sleep(0.02)
