"""The program as a process: what it loses when it breaks, and that nothing of it is left behind."""

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

from ncu_roofline.bench import runner as runner_module
from ncu_roofline.bench.runner import Job, Runner, RunnerFailed, Session, Trial
from tests.bench.fakes import H200, HERE, Program
from tests.cli.command import assert_no_leftovers

# By ceiling: what the program does before its trials, and what is said of it.
BREAKS = {
    "mute": ("say(error='', fatal=True)", "^it failed without a reason$"),
    "fatal": ("say(error='x' * 9000, fatal=True)", "^x{50,130}[.]{3}x{50,130}$"),
    "crash": ("sys.stderr.write('CUDA error: misaligned'); sys.exit(3)", r"^it ended with code 3 \(CUDA error: misaligned\)$"),
    "abort": ("os.abort()", "^it was killed by signal 6$"),
    "nonsense": ("print('Segmentation fault', flush=True)", "^it printed no JSON: 'Segmentation fault'$"),
    "deep": ("print('[' * 900000, flush=True)", r"^it printed no JSON: '\[{80}'$"),
    "list": ("print('[]', flush=True)", "^it printed no JSON: "),
    "end": ("sys.exit()", "^it ended before its last trial$"),
    "hang": (
        "open('child', 'w').write(str(subprocess.Popen(['sleep', '90']).pid)); time.sleep(90)",
        "^it said nothing for 0.5 s$",
    ),
    "closed": ("os.close(1); time.sleep(90)", "^it ended before its last trial$"),
}
ACTS = {name: act for name, (act, _) in BREAKS.items()} | {"loud": "sys.stderr.write('x' * 300000 + chr(10))"}
SERVING = f"""#!{sys.executable} -S
import json, os, subprocess, sys, time
say = lambda **line: print(json.dumps(line), flush=True)
if sys.argv[1] == "list": say(ceiling="hang", variant="a", unit="B/s"); sys.exit()
if os.path.exists("device.json") and sys.argv[1] == "devices": print(open("device.json").read()); sys.exit()
while sys.argv[1] == "devices": say(); time.sleep(0.1)
open("starts", "a").write("x")
for line in sys.stdin:
    if "error" in line: say(error="out of memory."); continue
    exec({ACTS!r}.get(line.split()[1], ""))
    for i in range(3): say(trial=i, seconds=0.01, work=1e9, sm_mhz=1980, checksum_ok=True, begin=1 + i, end=1.01 + i)
    say(done=True, grid=528)
"""


def children() -> set[int]:
    """The processes that this one started and that run, or that nobody asked for their end; where the system tells."""
    with suppress(OSError):
        return {int(one) for task in Path("/proc/self/task").iterdir() for one in (task / "children").read_text().split()}
    return set()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """After each test: no thread, no open file and no child more than before, which may be those of other tests."""
    threads, files, others = threading.active_count(), len(list(Path("/proc/self").glob("fd/*"))), children()
    yield
    gc.collect()
    assert (threading.active_count() <= threads, children() <= others) == (True, True)
    assert len(list(Path("/proc/self").glob("fd/*"))) <= files


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real program in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program"
    path.write_text(SERVING, encoding="utf-8")
    path.chmod(0o755)
    return path


def run(session: Session, ceiling: str = "fp64.fma", timeout: float = 60.0) -> list[Trial]:
    """All trials of a job."""
    return session.run(Job(ceiling, "best", 3, 0.01), timeout)[0]


def test_one_process_takes_job_after_job_and_is_closed_at_the_end(serving: Path) -> None:
    session = Session(Runner(serving), 0)
    for ceiling in ("fp64.fma", "loud", "fp64.fma"):
        assert run(session, ceiling) == [Trial(0.01, 1e9, 1.98e9, True, 1.0 + i, 1.01 + i) for i in range(3)]
    with pytest.raises(RunnerFailed, match=r"^out of memory$"):
        run(session, "error")  # of one job only
    assert len(run(session)) == 3
    assert Path("starts").read_text(encoding="utf-8") == "x"
    (child,) = {one for one in children() if f"{serving}" in Path(f"/proc/{one}/cmdline").read_text(encoding="utf-8")}
    os.kill(child, signal.SIGKILL)  # between two jobs
    with pytest.raises(RunnerFailed, match=r"^it was killed by signal 9 \(x+[.]{3}x+\)$"):
        run(session)
    assert len(run(session)) == 3
    session.renew()
    session.renew()
    assert Path("starts").read_text(encoding="utf-8") == "xx"


def test_what_breaks_the_program_costs_one_job(serving: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Runner(serving), 0, start=10.0)
    for number, (ceiling, (_, reason)) in enumerate(BREAKS.items(), 1):
        begin = time.monotonic()
        assert len(run(session)) == 3
        with pytest.raises(RunnerFailed, match=reason):
            run(session, ceiling, timeout=0.5 if ceiling == "hang" else 60.0)
        assert time.monotonic() - begin < 30
        assert len(Path("starts").read_text(encoding="utf-8")) == number
    session.renew()
    child, deadline = int(Path("child").read_text(encoding="utf-8")), time.monotonic() + 30
    with suppress(OSError):  # what it started ends with it: then nobody, or only its zombie, is there
        while " Z " not in Path(f"/proc/{child}/stat").read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    for path in (serving.parent / "missing", Path(__file__)):
        with pytest.raises(RunnerFailed, match="it can't be started"):
            run(Session(Runner(path), 0))
    monkeypatch.setattr(runner_module, "_QUICK_CALL", 0.5)
    with pytest.raises(RunnerFailed, match="it said nothing for"):  # lines come, but no end
        Runner(serving).devices()


def test_a_slow_start_is_no_hang_and_an_interruption_ends_the_process(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted: list[float] = []

    def noted(path: Path, words: tuple[str, ...]) -> Any:
        process = program.started(path, words)
        answer = process.line
        process.line = lambda timeout: granted.append(timeout) or answer(timeout)  # type: ignore[func-returns-value, method-assign]
        return process

    def interrupt(_trials: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner_module, "_Process", noted)
    session = Session(Runner(Path("program")), 0, start=10.0)
    assert [len(run(session, timeout=20.0)) for _ in range(2)] == [3, 3]
    assert granted == [30.0, *[20.0] * 7]  # of two jobs with three trials and an end each
    with pytest.raises(KeyboardInterrupt):  # it may be in the middle of a kernel: the next job gets another process
        session.run(Job("fp64.fma", "best", 3, 0.01), 20.0, interrupt)
    assert (len(run(session)), program.contexts) == (3, 2)


def test_numbers_of_a_trial_that_are_none(program: Program) -> None:
    good = {"trial": 0, "seconds": 1.0, "work": 1.0, "sm_mhz": 1.0, "begin": 1.0, "end": 2.0}

    def trial(**changes: Any) -> list[Trial]:
        program.trials = lambda *_: iter([{**good, **changes}])  # type: ignore[method-assign]
        return run(Session(Runner(Path("program")), 0))

    for key in ("seconds", "work", "begin", "end"):
        for value in (json.loads("1e400"), float("nan"), 10**400, "7", True, [], 1e200, None, -1, 0):
            with pytest.raises(RunnerFailed, match=r"a trial (has no time or no work|does not say when it was)"):
                trial(**{key: value})
    for clock, check in ((0, None), (None, "yes"), ("7", 1)):
        assert trial(sm_mhz=clock, checksum_ok=check) == [Trial(1.0, 1.0, None, None, 1.0, 2.0)]


# What a shell starts in the background, and all that it starts, does not listen to Ctrl-C.
LISTENING = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
LISTENING += "; from ncu_roofline.cli import main; sys.exit(main())"


def test_ctrl_c_leaves_nothing_behind(serving: Path, tmp_path: Path) -> None:
    Path("device.json").write_text(json.dumps({**H200, "index": 0}), encoding="utf-8")
    Path("here").mkdir()
    words = [sys.executable, "-c", LISTENING, "bench", "run", "--runner", str(serving), "--quick", "-o", "here/x.json"]
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
