"""Fixtures shared by all tests: real reports, real ncu releases, Chromium; each skipped aloud where it is absent."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.cli.command import Command
from tests.sharing import made_once

ROOT = Path(__file__).resolve().parent.parent

# By default the same examples each time; `--hypothesis-profile search` tries more of them, and others.  No limits of time: the
# machine may be busy.
settings.register_profile(
    "search", max_examples=500, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("same", settings.get_profile("search"), max_examples=100, derandomize=True)
settings.load_profile("same")
# Hypothesis would also take constants out of whatever modules the tests before have loaded.
if hasattr(providers, "_local_constants"):  # private
    providers._get_local_constants = lambda: providers._local_constants


# What `-m quick` takes: every number's definition, no picture, no process, no browser.
QUICK = (
    *("facts/test_*", "check/test_chips*", "check/test_remarks*", "generate/test_agreement*", "model/test_every_column*"),
    *("model/test_launches*", "analyses/test_portability*", "inputs/test_readings*", "sectionfile/test_transcripts*"),
    *("test_files*", "test_formula*", "test_layers*", "test_units*", "test_verdict*"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` chooses."""
    for item in items:
        if any(item.path.match(f"tests/{name}") for name in QUICK) and not item.get_closest_marker("exhaustive"):
            item.add_marker("quick")


# A digest and a test in each line: passed with these files and compilers, so builds of the same are left out.
PROVED = ROOT / "tests" / "proved.txt"
_PROVING: dict[str, str] = {}


@cache
def _digest(patterns: tuple[str, ...]) -> str:
    """Of the files, and of the compilers here."""
    found = hashlib.sha256()
    for path in sorted({path for one in patterns for path in ROOT.glob(one) if path.is_file() and path.suffix != ".pyc"}):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    for variable, usual in (("NVCC", "nvcc"), ("CXX", "g++")):
        if compiler := shutil.which(os.environ.get(variable, usual)):
            found.update(subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout)
    return found.hexdigest()[:16]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture is built."""
    if marker := item.get_closest_marker("proved"):
        line = f"{_digest(marker.args)} {item.nodeid}"
        if os.environ.get("NCU_ROOFLINE_PROVE"):
            _PROVING[item.nodeid] = line
        elif not os.environ.get("UPDATE_GOLDEN") and line in PROVED.read_text(encoding="utf-8").splitlines():
            pytest.skip("proved with the same files and compilers (tests/proved.txt; NCU_ROOFLINE_PROVE=1 proves it again)")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes down what was proved; workers take turns."""
    if report.when == "call" and report.passed and (line := _PROVING.pop(report.nodeid, "")):
        fcntl = pytest.importorskip("fcntl")
        with PROVED.open("r+", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            others = [one for one in stream.read().splitlines() if one.partition(" ")[2] != report.nodeid]
            stream.seek(0)
            stream.truncate()
            stream.write("".join(f"{one}\n" for one in sorted([*others, line], key=lambda one: one.partition(" ")[2])))


@pytest.fixture(scope="session", autouse=True)
def _tables_of_hypothesis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of Hypothesis in the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(tmp_path_factory.getbasetemp() / "hypothesis"))
        yield


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of one width, whatever runs the tests."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No ceilings of the developer's own GPUs."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "no-data"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, run in the process of the tests."""
    return Command(capsys)


@pytest.fixture(scope="session")
def real_reports() -> dict[str, Path]:
    """Real reports by file name, from $NCU_ROOFLINE_REPORTS or the folder that developers keep beside the checkout."""
    folder = Path(os.environ.get("NCU_ROOFLINE_REPORTS", ROOT.parent / "shared" / "data" / "reports"))
    found = {path.name: path for path in sorted(folder.glob("*.ncu-rep"))}
    if not found:
        pytest.skip("no collection of real reports (set NCU_ROOFLINE_REPORTS to a folder of .ncu-rep files)")
    return found


@pytest.fixture(scope="session")
def h100_reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with reports that ncu made on an H100 with our sections and rules, unpacked once."""

    def unpack(folder: Path) -> None:
        with tarfile.open(ROOT / "tests" / "bench" / "measured_h100" / "reports.tar.xz") as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member)
                if content is not None:
                    (folder / Path(member.name).name).write_bytes(content.read())

    return made_once(tmp_path_factory, "h100", unpack)


@pytest.fixture(scope="session")
def ncu_releases() -> dict[str, Path]:
    """The ncu binaries of real releases ("2024.2" -> path), from $NCU_ROOFLINE_NCU_RELEASES or ~/.cache/ncu-releases."""
    folder = Path(os.environ.get("NCU_ROOFLINE_NCU_RELEASES", Path.home() / ".cache" / "ncu-releases"))
    found = {}
    for release in sorted(folder.glob("20*")):
        binaries = [path for path in release.glob("**/target/*/ncu") if path.is_file()]
        if binaries:
            found[release.name] = binaries[0]
    if not found:
        pytest.skip("no Nsight Compute releases (set NCU_ROOFLINE_NCU_RELEASES to a folder with one folder per release)")
    return found


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium or Chrome, from $CHROMIUM or the PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = os.environ.get("CHROMIUM") or next((path for name in names if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("no Chromium on this machine (set CHROMIUM to its path)")
    return found


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a quarter of the time a worker waits for a browser or a child process."""
    return (os.cpu_count() or 1) + 1
