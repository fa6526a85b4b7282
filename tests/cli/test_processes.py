"""Reports read in several processes: one that dies costs its report, and all of them end with the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import executors, reading
from ncu_roofline.cli.executors import in_processes
from tests.cli.command import Command
from tests.factory import complete, kernel, report
from tests.processes import descendants, parents

ROOT = Path(__file__).resolve().parents[2]
# Two processes that read for ever; says so when both do.
ENDLESS = """
import sys
from ncu_roofline.__main__ import main
from ncu_roofline.cli import executors, reading
from tests.cli.test_processes import endless
if __name__ == "__main__":
    import os
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


def name(path: str, _: str) -> str:
    """The work of a test: the file's name; those named 3 and 5 kill who reads them."""
    if Path(path).stem in ("3", "5"):
        os._exit(1)
    return Path(path).stem


def unpicklable(path: str, _: str) -> object:
    """The work of a test: what can't leave its process."""
    return (lambda: 1) if Path(path).stem == "2" else Path(path).stem


def endless(path: str, _: str) -> None:
    """The work of a test: leaves a file beside the report, and goes on for ever."""
    Path(f"{path}.begun").touch()
    while True:
        time.sleep(0.01)


def test_a_process_that_dies_costs_its_report(paths: list[str]) -> None:
    found = list(in_processes(name, paths, 2))
    assert [one if isinstance(one, str) else "" for one in found] == ["0", "1", "2", "", "4", "", "6"]
    errors = [one for one in found if isinstance(one, RooflineError)]
    assert [error.path for error in errors] == [paths[3], paths[5]]
    assert all(str(error).startswith(f"Cannot read {error.path}: the process that read it died") for error in errors)


def test_what_cannot_travel_costs_its_report(paths: list[str]) -> None:
    found = list(in_processes(unpicklable, paths[:4], 2))
    assert [isinstance(one, RooflineError) for one in found] == [False, False, True, False]


def test_a_command_goes_on(run: Command, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "PARALLEL_FROM_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    given = reading.for_each_report
    monkeypatch.setattr(reading, "for_each_report", lambda reports, _, **__: given(reports, name))  # names are no explanations
    outcome = run("explain", *paths)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"ncu-roofline: Cannot read {paths[3]}: the process that read it died")
    assert len(outcome.err.splitlines()) == 1


def begin(tmp_path: Path, paths: list[str]) -> subprocess.Popen[str]:
    """The program, as it begins."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    words = [sys.executable, str(script), *paths[:2]]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True)


def until(process: subprocess.Popen[str], ready: Callable[[], bool]) -> set[int]:
    """Its children, once it is ``ready``."""
    deadline = time.monotonic() + 60
    while not ready():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return descendants(process.pid)


def assert_end(processes: set[int]) -> None:
    deadline = time.monotonic() + 20
    while alive := processes & parents().keys():
        assert time.monotonic() < deadline, alive
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
class TestEnding:
    def test_with_their_parent(self, tmp_path: Path, paths: list[str]) -> None:
        process = begin(tmp_path, paths)
        children = until(process, lambda: all(Path(f"{path}.begun").exists() for path in paths[:2]))
        assert len(children) >= 2
        process.kill()
        process.communicate(timeout=60)
        assert_end(children)

    @pytest.mark.parametrize("at_work", [True, False])
    def test_ctrl_c_is_quiet(self, tmp_path: Path, paths: list[str], at_work: bool) -> None:
        """While they read, and while they start."""
        process = begin(tmp_path, paths)
        if at_work:
            children = until(process, lambda: all(Path(f"{path}.begun").exists() for path in paths[:2]))
        else:
            children = until(process, lambda: len(descendants(process.pid)) >= 2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told) == (130, "ncu-roofline: interrupted\n")
        assert_end(children)
