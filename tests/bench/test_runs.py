"""`ncu-roofline bench` around a played program (plays are sessions of a user there), and the program as a process."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.bench import build, campaign, measure
from ncu_roofline.bench.device import choose, local_rank, parse_device
from ncu_roofline.bench.runner import Job, Runner, RunnerFailed, Session, Trial
from ncu_roofline.cli.bench import Bar
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.plugin.machine.install import kept
from ncu_roofline.plugin.machine.machine import this_machine
from tests.bench.fakes import H200, HERE, MACHINES, RATES, SECOND, FakeNvml, Program, device, scenario
from tests.bench.made import FILES
from tests.cli.command import Command, assert_no_leftovers
from tests.processes import parents
from tests.schemas import assert_fits
from tests.test_sessions import test_session as play


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("path", sorted(HERE.glob("*.play")), ids=lambda path: path.stem)
def test_play(path: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mig = (1, 1) if path.stem == "instances" else (0, 0)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(DeviceGetMigMode=mig))
    play(path, run, tmp_path, monkeypatch)


@pytest.mark.usefixtures("machine")
def test_documents_fit_their_schemas_and_the_picture_never_replaces_the_measurements(run: Command) -> None:
    FILES["runner"](Path("runner"))
    words = ("--runner", "runner", "--only", "fp64.fma", "--json", "-o", "x.json")
    assert assert_fits("ceilings", run("bench", "run", *words, "--no-picture").out)["device"]["name"] == "NVIDIA H200"
    rows = {row["ceiling"]: row for row in assert_fits("bench-list", run("bench", "list", "--runner", "runner", "--json").out)}
    found = [rows["tensor.fp8.mma"][name] for name in ("applies to", "emulated on")]
    assert [*found, rows["fp64.fma"]["applies to"]] == [["8.9", "12.0"], ["9.0"], ["all"]]
    Path("x.json").unlink()
    Path("x.json").symlink_to("x.svg")
    outcome = run("bench", "run", *words, "--force")
    assert (outcome.code, "the picture of the roofline would replace the measurements" in outcome.err) == (2, True)


@pytest.mark.parametrize("case", ["alone", "ranks", "no place"])
def test_a_whole_run_is_kept(run: Command, machine: Program, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Ranks keep nothing, write a file each and say nothing."""
    FILES["runner"](Path("runner"))
    Path("out").mkdir()
    machine.content, ranks = scenario(devices=[H200, SECOND]), case == "ranks"
    if ranks:
        monkeypatch.setenv("PMI_LOCAL_RANK", "1")
    if case == "no place":
        Path(os.environ["XDG_DATA_HOME"]).write_text("", encoding="utf-8")
    outcome = run("bench", "run", "--runner", "runner", "--trials", "3", "--sessions", "1", "--no-picture", "-o", "out")
    assert outcome.code == 0, outcome.err
    (path,) = Path("out").iterdir()
    assert ((outcome.out == ""), read_ceilings(path).uuid) == (ranks, (SECOND if ranks else H200)["uuid"])
    assert ("not kept for --ceilings auto: Cannot " in outcome.err) == (case == "no place")
    assert [Path(one.path).read_bytes() for one in kept(this_machine())] == ([path.read_bytes()] if case == "alone" else [])


def test_measure_for_other_commands(machine: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FILES["runner"](tmp_path / "runner")
    monkeypatch.setattr(build, "build", lambda nvcc="": build.describe(tmp_path / "runner"))  # noqa: ARG005
    assert set(read_ceilings(measure("0", True, tmp_path / "out.json")).by_id) == set(RATES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [measure(H200["uuid"], quick=True), measure(quick=True)]  # again: overwritten
    assert (paths[0], paths[0].parent) == (paths[1], tmp_path / "cache" / "ncu-roofline" / "ceilings")
    with campaign._alone(device()), pytest.raises(RooflineError, match=f"{H200['uuid']}: another .* is measuring it"):
        measure(quick=True)
    assert machine.contexts == 3
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "runner"))
    with pytest.raises(RooflineError, match="Set XDG_CACHE_HOME"):
        measure(quick=True)


def test_which_of_several_gpus() -> None:
    both = [device(), device(SECOND, 1)]
    for word in ("1", SECOND["uuid"], "GPU-2222", "22222222", "2222", SECOND["uuid"].upper(), "00000000:2b:00.0", " 1,1"):
        assert choose(both, word, None) == (both[1],), word
    for word in ("2", "GPU-3333", "GPU-", "x", ",", "", "222"):
        with pytest.raises(UsageError, match="Cannot use --device"):
            choose(both, word, None)
    assert [choose(both, "all", 0), choose(both[:1], "auto", 3)] == [tuple(both), (both[0],)]  # a launcher bound the rank to it
    assert [choose(both, "auto", rank)[0].index for rank in (None, 0, 1)] == [0, 0, 1]
    with pytest.raises(RooflineError, match=r"rank 2 of this node has no GPU of its own, there are 2\. Start 2 ranks per node"):
        choose(both, "auto", 2)
    found = {words: local_rank(dict(one.split("=") for one in words.split())) for words in MACHINES["ranks"]}
    assert {words: -1 if rank is None else rank for words, rank in found.items()} == MACHINES["ranks"]
    for value in (float("inf"), float("nan"), 10**400, "7", True, [], -1):
        assert parse_device({**H200, "sm_count": value, "sm_clock_max_mhz": value}).sm_count == 0
        with pytest.raises(ValueError, match="a device has no index"):
            parse_device({**H200, "index": value})


def test_the_bar_and_lines_above_it(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for shown in (False, True):
        with Bar("NVIDIA H200", shown=shown) as bar:
            bar.start(3)
            bar.begin("fp64.fma")
            bar.step()
            bar.line("fp64.fma\33[31m 33 TFLOP/s")
            bar.begin("dram.read")
        said.append(capsys.readouterr().err)
    assert said[0] == "fp64.fma\ufffd[31m 33 TFLOP/s\n"
    assert all(text in said[1] for text in ("NVIDIA H200", "1/3", "dram.read ...", said[0][9:]))


BREAKS: dict[str, list[str]] = MACHINES["breaks"]
ACTS = {name: act for name, (act, _) in BREAKS.items()} | {"loud": "sys.stderr.write('x' * 300000 + chr(10))"}


def children() -> set[int]:
    """The processes that this one started and that run, or that nobody asked for their end; where the system tells."""
    with suppress(OSError):
        return {int(one) for task in Path("/proc/self/task").iterdir() for one in (task / "children").read_text().split()}
    return set()


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real program in the current folder; after it no thread, open file and child more than before, which may be others'."""
    threads, files, others = threading.active_count(), len(list(Path("/proc/self").glob("fd/*"))), children()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program"
    path.write_text(f"#!{sys.executable} -S\nACTS = {ACTS!r}\n{MACHINES['serving']['text']}", encoding="utf-8")
    path.chmod(0o755)
    yield path
    gc.collect()
    left = (threading.active_count() <= threads, children() <= others, len(list(Path("/proc/self").glob("fd/*"))) <= files)
    assert left == (True, True, True)


def run(session: Session, ceiling: str = "fp64.fma", timeout: float = 60.0) -> list[Trial]:
    return session.run(Job(ceiling, "best", 3, 0.01), timeout)[0]


def test_one_process_takes_job_after_job_and_is_closed_at_the_end(serving: Path) -> None:
    session = Session(Runner(serving), 0)
    for ceiling in ("fp64.fma", "loud", "fp64.fma"):
        assert run(session, ceiling) == [Trial(0.01, 1e9, 1.98e9, True, 1.0 + i, 1.01 + i) for i in range(3)]
    with pytest.raises(RunnerFailed, match=r"^out of memory$"):
        run(session, "error")  # of one job only
    assert len(run(session)) == 3
    (child,) = Path("starts").read_text(encoding="utf-8").split()
    os.kill(int(child), signal.SIGKILL)  # between two jobs
    with pytest.raises(RunnerFailed, match=r"^it was killed by signal 9 \(x+[.]{3}x+\)$"):
        run(session)
    assert len(run(session)) == 3
    session.renew()
    session.renew()
    assert len(Path("starts").read_text(encoding="utf-8").split()) == 2


def test_what_breaks_the_program_costs_one_job(serving: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Runner(serving), 0, start=10.0)
    for number, (ceiling, (_, reason)) in enumerate(BREAKS.items(), 1):
        begin = time.monotonic()
        assert len(run(session)) == 3
        with pytest.raises(RunnerFailed, match=reason):
            run(session, ceiling, timeout=0.5 if ceiling == "hang" else 60.0)
        assert time.monotonic() - begin < 30
        assert len(Path("starts").read_text(encoding="utf-8").split()) == number
    session.renew()
    child, deadline = int(Path("child").read_text(encoding="utf-8")), time.monotonic() + 30
    while child in parents():  # what it started ends with it: then nobody, or only its zombie, is there
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for path in (serving.parent / "missing", Path(__file__)):
        with pytest.raises(RunnerFailed, match="it can't be started"):
            run(Session(Runner(path), 0))
    monkeypatch.setattr("ncu_roofline.bench.runner._QUICK_CALL", 0.5)
    with pytest.raises(RooflineError, match="it said nothing for"):  # lines come, but no end
        Runner(serving).devices()


def test_patience_interruptions_and_numbers_that_are_none(program: Program) -> None:
    session = Session(Runner(Path("program")), 0, start=10.0)
    assert [len(run(session, timeout=20.0)) for _ in range(2)] == [3, 3]
    assert program.granted == [30.0, *[20.0] * 7]  # of two jobs with three trials and an end each
    with pytest.raises(KeyboardInterrupt):  # it may be in the middle of a kernel: the next job gets another process
        session.run(Job("fp64.fma", "best", 3, 0.01), 20.0, lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert (len(run(session)), program.contexts) == (3, 2)

    def trial(**changes: Any) -> list[Trial]:
        told = {"trial": 0, "seconds": 1.0, "work": 1.0, "sm_mhz": 1.0, "begin": 1.0, "end": 2.0, **changes}
        program.trials = lambda *_: iter([told])  # type: ignore[method-assign]
        return run(Session(Runner(Path("program")), 0))

    for key in ("seconds", "work", "begin", "end"):
        for value in (json.loads("1e400"), float("nan"), 10**400, "7", True, [], 1e200, None, -1, 0):
            with pytest.raises(RunnerFailed, match=r"a trial (has no time or no work|does not say when it was)"):
                trial(**{key: value})
    for clock, check in ((0, None), (None, "yes"), ("7", 1)):
        assert trial(sm_mhz=clock, checksum_ok=check) == [Trial(1.0, 1.0, None, None, 1.0, 2.0)]


def test_ctrl_c_leaves_nothing_behind(serving: Path, tmp_path: Path) -> None:
    Path("device.json").write_text(json.dumps({**H200, "index": 0}), encoding="utf-8")
    Path("here").mkdir()
    # What a shell starts in the background, and all that it starts, does not listen to Ctrl-C.
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    listening += "; from ncu_roofline.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", listening, "bench", "run", "--runner", str(serving), "--quick", "-o", "here/x.json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(HERE.parents[1])}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True) as process:
        deadline = time.monotonic() + 60
        while not Path("child").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert_no_leftovers(tmp_path / "here")
