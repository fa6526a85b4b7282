"""--dask: the same work on a cluster, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.cli import executors
from ncu_roofline.cli.executors import Dask, read_batch
from ncu_roofline.errors import RooflineError
from tests.analyses.ranks_made import Faults, write_ranks
from tests.cli.command import Command, assert_refused

COUNT = 12
COMMANDS = (
    ("ranks", "--json"),
    ("show", "--json"),
    ("show", "--by", "kernel"),
    ("explain",),
    ("advise", "--top", "1", "--json"),
    ("render", "-o", "-", "--format", "csv"),
)
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
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("ranks")
    write_ranks(found, COUNT, Faults(slow={3}))
    return found


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with a worker in another folder; both end with the test, and none is left."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    elsewhere = tmp_path_factory.mktemp("worker")
    program = elsewhere / "cluster.py"
    program.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    ) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.communicate("", timeout=60)
    assert process.returncode == 0


def _exit(path: str, name: str) -> None:
    os._exit(len(path + name) and 1)


def _missing_function(path: str, name: str) -> None:
    raise AttributeError(f"no attribute {path} {name}"[:12])


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_same_as_here(
    run: Command, folder: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)  # relative names: the worker is elsewhere
    names = sorted(os.listdir(folder))[: 2 if "advise" in words else COUNT]
    here = run(*words, *names)
    assert here.code == 0
    assert run(*words, *names, "--dask", scheduler) == here


@pytest.mark.exhaustive
def test_bad_reports_are_named_as_the_user_names_them(
    run: Command, folder: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert_refused(run("ranks", "report.1.ncu-rep", "nope.ncu-rep", "--dask", scheduler), "nope.ncu-rep")
    outcome = run("ranks", "nope.ncu-rep", "report.1.ncu-rep", "--keep-going", "--dask", scheduler)
    assert outcome.code == 1
    assert outcome.err.startswith("ncu-roofline: Cannot read nope.ncu-rep: there is no such file")
    assert outcome.out.startswith("1 rank, ")


@pytest.mark.exhaustive
def test_a_scheduler_file(run: Command, folder: Path, scheduler: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": scheduler}))
    assert run("ranks", folder, "--dask", file) == run("ranks", folder)


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_no_scheduler_file(run: Command, folder: Path, tmp_path: Path, content: str | None) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    outcome = run("ranks", folder, "--dask", file)
    assert_refused_cluster(outcome, file)


def assert_refused_cluster(outcome: Any, address: object) -> None:
    assert_refused(outcome, address)
    assert outcome.err.startswith(f"ncu-roofline: Cannot use the dask cluster {address}: ")


def test_no_scheduler(run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 1)
    with socket.socket() as silent:  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert_refused_cluster(run("ranks", folder, "--dask", address), address)
        silent.listen()
        assert_refused_cluster(run("ranks", folder, "--dask", address), address)
    assert_refused_cluster(run("ranks", folder, "--dask", "nope://host:1"), "nope://host:1")


def test_without_the_package(run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = run("ranks", folder, "--dask", "tcp://host:8786")
    assert_refused_cluster(outcome, "tcp://host:8786")
    assert "pip install 'ncu-roofline[dask]'" in outcome.err


def test_workers_of_another_version() -> None:
    with pytest.raises(RuntimeError, match=r"they have ncu-roofline .*, not 0\.0"):
        read_batch("0.0", _exit, [])


def test_a_worker_that_does_not_see_the_file(tmp_path: Path) -> None:
    item = executors._Item(str(tmp_path / "gone.ncu-rep"), "gone.ncu-rep", seen=True)
    (found,) = read_batch(executors.__version__, _exit, [item])
    assert isinstance(found, RooflineError)
    assert "does not see it as" in str(found)
    assert found.path == "gone.ncu-rep"


@pytest.mark.exhaustive
def test_workers_that_cannot_run_this(scheduler: str) -> None:
    with pytest.raises(RooflineError, match=r"its workers cannot run this program \(no attribute\)\. Install ncu-roofline"):
        list(Dask(scheduler).outcomes(_missing_function, [__file__]))


@pytest.mark.exhaustive
def test_batches_keep_the_order(scheduler: str) -> None:
    names = [f"{number}" for number in range(500)]
    assert list(Dask(scheduler).outcomes(_name, names)) == names


def _name(path: str, name: str) -> str:
    return name if path.endswith(name) else path


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_that_dies(scheduler: str) -> None:
    """The last of this module: the worker is started anew, but not at once."""
    with pytest.raises(RooflineError, match="the workers that read some of the reports died"):
        list(Dask(scheduler).outcomes(_exit, [__file__]))
