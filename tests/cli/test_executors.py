"""Where the work on reports runs: in several processes, or with --dask on a cluster; what dies there costs its report alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import executors
from ncu_roofline.cli.executors import in_processes, outcomes_on, read_batch
from tests.analyses.ranks_made import write_ranks
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report
from tests.processes import descendants, parents

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
# Two processes that read for ever; each leaves a file beside its report.
ENDLESS = """
import os, sys
from ncu_roofline.__main__ import main
from ncu_roofline.cli import executors, reading
from tests.cli.test_executors import endless
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
    (tmp_path / "endless.py").write_text(ENDLESS)
    words = [sys.executable, str(tmp_path / "endless.py"), *paths[:2]]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True)
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


# A scheduler and a worker in processes of their own; the address goes to standard output.  Ends with its standard input.
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_ranks(tmp_path, 4)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def a_cluster(elsewhere: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler with a worker in another folder, and its address; both end with the block."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    (elsewhere / "cluster.py").write_text(CLUSTER)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    words = [sys.executable, str(elsewhere / "cluster.py")]
    with subprocess.Popen(words, cwd=elsewhere, env=ENVIRONMENT, **pipes) as process:  # type: ignore[call-overload]
        yield process, process.stdout.readline().strip()
        process.communicate("", timeout=60)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_cluster(tmp_path_factory.mktemp("worker")) as (process, address):
        yield address
    assert process.returncode == 0


def named(path: str, name: str) -> str:
    """The work of a test: slowly, the name; 0 is an error, "deadly" kills who reads it."""
    time.sleep(0.01)
    if name == "deadly":
        os._exit(1)
    return name if name != "0" else str(1 / int(path[-1]))


class Missing:  # at a worker: work that only the client has
    __reduce__ = lambda _: (getattr, (os, "no_such_function"))  # type: ignore[assignment]  # noqa: E731


@pytest.mark.exhaustive
def test_the_same_as_here(run: Command, folder: Path, scheduler: str) -> None:
    """Bad reports are named as the user names them; a scheduler file is as good as an address."""
    names = sorted(os.listdir(folder))
    lines = "ranks --json, show --json, show --by kernel, explain, advise --longest 1 --json, render -o - --format csv"
    for line in lines.split(", "):
        here = run(*line.split(), *names)
        assert here.code == 0
        assert run(*line.split(), *names, "--dask", scheduler) == here
    assert_refused(run("ranks", "report.1.ncu-rep", "nope.ncu-rep", "--dask", scheduler), "nope.ncu-rep")
    file = folder / "scheduler.json"
    file.write_text(f'{{"address": "{scheduler}"}}')
    outcome = run("ranks", "nope.ncu-rep", "report.1.ncu-rep", "--keep-going", "--dask", file)
    assert (outcome.code, outcome.out.startswith("1 rank, ")) == (1, True)
    assert outcome.err.startswith("ncu-roofline: Cannot read nope.ncu-rep: there is no such file")


def test_no_cluster(run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers, the address or the file is none, workers are of another version or do not see it, or no package."""
    with pytest.raises(RuntimeError, match=r"they have ncu-roofline .*, not 0\.0"):
        read_batch("0.0", named, [])
    (found,) = read_batch(executors.__version__, named, [(str(folder / "gone.ncu-rep"), "gone.ncu-rep", True)])
    assert isinstance(found, RooflineError)
    assert (found.path, "does not see it as" in str(found)) == ("gone.ncu-rep", True)
    pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.5)
    (folder / "empty.json").touch()
    (folder / "other.json").write_text("{}")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        for where in (address, "nope://host:1", "missing.json", "empty.json", "other.json"):
            outcome = run("ranks", "report.1.ncu-rep", "--dask", where)
            assert_refused(outcome, where)
            assert outcome.err.startswith(f"ncu-roofline: Cannot use the dask cluster {where}: ")
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = run("ranks", "report.1.ncu-rep", "--dask", "tcp://host:8786")
    assert_refused(outcome, "tcp://host:8786")
    assert "pip install 'ncu-roofline[dask]'" in outcome.err


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_work_that_is_sent(scheduler: str) -> None:
    """Batches keep the order; an error, or a worker that dies and is started anew, costs its reports; programs may lack."""
    names = [str(number) for number in range(1, 500)]
    assert list(outcomes_on(scheduler, named, names)) == names
    found = list(outcomes_on(scheduler, named, ["1", "0", "2"]))
    assert (found[0], found[2]) == ("1", "2")
    assert "ncu-roofline itself failed: ZeroDivisionError" in str(found[1])
    with pytest.raises(RooflineError, match=r"its workers cannot run this program \(.+\)\. Install ncu-roofline"):
        list(outcomes_on(scheduler, Missing(), [__file__]))  # type: ignore[arg-type]
    found = list(outcomes_on(scheduler, named, [*"12345", "deadly", *"67"]))
    died = [str(one) for one in found if isinstance(one, RooflineError)]
    assert 1 <= len(died) <= 3  # what was read beside it, too
    assert any(one.startswith("Cannot read deadly: the workers of the dask cluster that read it died") for one in died)


def test_a_scheduler_that_goes_away(tmp_path: Path) -> None:
    names = [str(number) for number in range(1, 65)]
    with a_cluster(tmp_path) as (process, address):
        outcomes = outcomes_on(address, named, names)
        assert next(outcomes) == "1"
        process.kill()
        with pytest.raises(RooflineError, match=r"it went away, or has no workers\. Start it again"):
            list(outcomes)
