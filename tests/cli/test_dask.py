"""--dask: the same work on a cluster, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import executors
from ncu_roofline.cli.executors import outcomes_on, read_batch
from tests.analyses.ranks_made import Faults, write_ranks
from tests.cli.command import Command, assert_refused

COUNT = 12
COMMANDS = (
    ("ranks", "--json"),
    ("show", "--json"),
    ("show", "--by", "kernel"),
    ("explain",),
    ("advise", "--longest", "1", "--json"),
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("ranks")
    write_ranks(found, COUNT, Faults(slow={3}))
    return found


@contextmanager
def a_cluster(elsewhere: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler with a worker in another folder, and its address."""
    pytest.importorskip("distributed", reason="distributed is not installed")
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
        yield process, process.stdout.readline().strip()
        process.communicate("", timeout=60)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler; it and its worker end with the test, and none is left."""
    with a_cluster(tmp_path_factory.mktemp("worker")) as (process, address):
        yield address
    assert process.returncode == 0


def _exit(path: str, name: str) -> None:
    os._exit(len(path + name) and 1)


class _MissingFunction:
    """Work that only the client has."""

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (os, "no_such_function")


def _slowly(path: str, name: str) -> str:
    time.sleep(0.01)
    return _name(path, name)


def _deadly(path: str, name: str) -> str:
    return _name(path, name) if name != "5" else str(os._exit(1))


def _wrong(path: str, name: str) -> str:
    return str(1 / int(_name(path, name)))


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
    run: Command, folder: Path, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert_refused(run("ranks", "report.1.ncu-rep", "nope.ncu-rep", "--dask", scheduler), "nope.ncu-rep")
    outcome = run("ranks", "nope.ncu-rep", "report.1.ncu-rep", "--keep-going", "--dask", scheduler)
    assert outcome.code == 1
    assert outcome.err.startswith("ncu-roofline: Cannot read nope.ncu-rep: there is no such file")
    assert outcome.out.startswith("1 rank, ")
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": scheduler}))
    assert run("ranks", folder, "--dask", file) == run("ranks", folder)


def assert_refused_cluster(outcome: Any, address: object) -> None:
    assert_refused(outcome, address)
    assert outcome.err.startswith(f"ncu-roofline: Cannot use the dask cluster {address}: ")


def test_no_scheduler(run: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        assert_refused_cluster(run("ranks", folder, "--dask", address), address)
    assert_refused_cluster(run("ranks", folder, "--dask", "nope://host:1"), "nope://host:1")
    file = tmp_path / "scheduler.json"
    for content in (None, "", "{}"):
        if content is not None:
            file.write_text(content)
        assert_refused_cluster(run("ranks", folder, "--dask", file), file)


def test_without_the_package(run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = run("ranks", folder, "--dask", "tcp://host:8786")
    assert_refused_cluster(outcome, "tcp://host:8786")
    assert "pip install 'ncu-roofline[dask]'" in outcome.err


def test_workers_of_another_version_or_that_do_not_see_the_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"they have ncu-roofline .*, not 0\.0"):
        read_batch("0.0", _exit, [])
    (found,) = read_batch(executors.__version__, _exit, [(str(tmp_path / "gone.ncu-rep"), "gone.ncu-rep", True)])
    assert isinstance(found, RooflineError)
    assert "does not see it as" in str(found)
    assert found.path == "gone.ncu-rep"


@pytest.mark.exhaustive
def test_work_that_is_sent(scheduler: str) -> None:
    """Batches keep the order, an error of any type costs its report, and workers may lack the program."""
    names = [f"{number}" for number in range(500)]
    assert list(outcomes_on(scheduler, _name, names)) == names
    found = list(outcomes_on(scheduler, _wrong, ["1", "0", "2"]))
    assert (found[0], found[2]) == ("1.0", "0.5")
    assert "ncu-roofline itself failed: ZeroDivisionError" in str(found[1])
    with pytest.raises(RooflineError, match=r"its workers cannot run this program \(.+\)\. Install ncu-roofline"):
        list(outcomes_on(scheduler, _MissingFunction(), [__file__]))  # type: ignore[arg-type]


def _name(path: str, name: str) -> str:
    return name if path.endswith(name) else path


def test_a_scheduler_that_goes_away(tmp_path: Path) -> None:
    names = [f"{number}" for number in range(64)]
    with a_cluster(tmp_path) as (process, address):
        outcomes = outcomes_on(address, _slowly, names)
        assert next(outcomes) == "0"
        process.kill()
        with pytest.raises(RooflineError, match=r"it went away, or has no workers\. Start it again"):
            list(outcomes)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_that_dies(scheduler: str) -> None:
    """The last of this module: the worker is started anew, but not at once."""
    names = [f"{number}" for number in range(8)]
    found = list(outcomes_on(scheduler, _deadly, names))
    died = [one for one, name in zip(found, names, strict=True) if one != name]
    assert 1 <= len(died) <= 3  # what was read beside it, too
    assert found[5] in died
    assert str(found[5]).startswith("Cannot read 5: the workers of the dask cluster that read it died")
