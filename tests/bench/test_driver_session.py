"""The program as a process: what it loses when it breaks, and that nothing of it is left behind."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench import runner as runner_module
from ncu_roofline.bench.campaign import find_devices, list_variants
from ncu_roofline.bench.device import parse_device
from ncu_roofline.bench.runner import Job, Runner, RunnerFailed, Session, Trial, _Process
from ncu_roofline.formats.ceilings import CPU
from tests.bench.fakes import H200, Machine, make_machine, scenario

SECOND = {**H200, "uuid": "GPU-22222222-2222-3333-4444-555555555555"}
BUSY = "asking for the GPU's properties: all CUDA-capable devices are busy or unavailable"
UNUSABLE = {"unusable": BUSY}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The fake program."""
    return make_machine(tmp_path, monkeypatch.setenv)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[_Process]:
    """The processes that were started."""
    found: list[_Process] = []
    begin = _Process.__init__

    def kept(self: _Process, path: Path, words: list[str]) -> None:
        begin(self, path, words)
        found.append(self)

    monkeypatch.setattr(_Process, "__init__", kept)
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """After each test: no thread, no open file and no child more than before, which may be those of other tests."""
    threads, files, others = threading.active_count(), open_files(), children()
    yield
    if threading.active_count() > threads or open_files() > files:
        gc.collect()
    assert threading.active_count() <= threads
    assert open_files() <= files
    assert children() <= others


def open_files() -> int:
    """How many this process has, where the system tells."""
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


def children() -> set[int]:
    """The processes that this one started and that run, or that nobody asked for their end; where the system tells."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            if int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(path.parent.name))
    return found


@pytest.fixture
def session(machine: Machine) -> Iterator[Session]:
    """A session on the first GPU."""
    made = Session(Runner(machine.program), 0, start=10.0)
    yield made
    made.renew()


def job(ceiling: str = "fp64.fma", trials: int = 3) -> Job:
    """A short job."""
    return Job(ceiling, "best", trials, 0.01)


def run(session: Session, ceiling: str = "fp64.fma", timeout: float = 10.0) -> list[Trial]:
    """All trials of a job."""
    found, launch = session.run(job(ceiling), timeout)
    assert launch == {"grid": 528, "block": 256, "trips": 1000}
    return found


def processes(machine: Machine) -> list[int]:
    """The process of each run, numbered as they came: [0, 0, 1] is two runs of one and one of the next."""
    numbers = [int(call["process"]) for call in machine.runs()]
    known = list(dict.fromkeys(numbers))
    return [known.index(number) for number in numbers]


def test_one_process_takes_job_after_job(machine: Machine, session: Session, started: list[_Process]) -> None:
    for ceiling in ("fp64.fma", "dram.read", "fp64.fma"):
        assert len(run(session, ceiling)) == 3
    assert processes(machine) == [0, 0, 0]
    assert len(started) == 1


def test_a_renewed_session_has_a_fresh_process(machine: Machine, session: Session) -> None:
    run(session)
    session.renew()
    run(session)
    session.renew()
    session.renew()
    assert processes(machine) == [0, 1]


def test_a_job_that_fails_keeps_the_process(machine: Machine, session: Session) -> None:
    machine.play(scenario(fp64_fma={"calls": [{"mode": "error", "text": "out of memory."}, {}]}))
    with pytest.raises(RunnerFailed, match=r"^out of memory$"):
        run(session)
    assert len(run(session)) == 3
    assert processes(machine) == [0, 0]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"mode": "fatal"}, "an illegal memory access was encountered"),
        ({"mode": "fatal", "text": ""}, "it failed without a reason"),
        ({"mode": "crash"}, r"it ended with code 3 \(CUDA error: an illegal memory access was encountered\)"),
        ({"mode": "crash", "text": "abort"}, "it was killed by signal 6"),
        ({"mode": "garbage"}, "it printed no JSON"),
        ({"mode": "short"}, "it ended before its last trial"),
        ({"mode": "hang"}, r"it said nothing for 0\.5 s"),
    ],
)
def test_what_breaks_the_program_costs_one_job(machine: Machine, session: Session, call: dict[str, str], reason: str) -> None:
    machine.play(scenario(fp64_fma={"calls": [call, {}]}))
    assert len(run(session, "dram.read")) == 3
    begin = time.monotonic()
    with pytest.raises(RunnerFailed, match=reason):
        run(session, timeout=0.5 if call["mode"] == "hang" else 60.0)
    assert time.monotonic() - begin < 30
    assert len(run(session)) == 3
    assert len(run(session, "dram.read")) == 3
    assert processes(machine) == [0, 0, 1, 1]


def test_a_slow_start_is_no_hang(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    granted: list[float] = []
    line = _Process.line

    def noted(self: _Process, timeout: float) -> Any:
        granted.append(timeout)
        return line(self, timeout)

    monkeypatch.setattr(_Process, "line", noted)
    for _ in range(2):
        assert len(run(session, timeout=20.0)) == 3
    assert granted == [30.0, *[20.0] * 7]  # of two jobs with three trials and an end each


def test_a_start_that_never_ends_is_one(machine: Machine) -> None:
    machine.play({**scenario(), "start": 60.0})
    with pytest.raises(RunnerFailed, match=r"it said nothing for 0\.5 s"):
        run(Session(Runner(machine.program), 0, start=0.2), timeout=0.3)


def test_an_interruption_ends_the_process(
    machine: Machine, session: Session, started: list[_Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be in the middle of a kernel."""
    machine.play(scenario(fp64_fma={"calls": [{"pause": 60.0}, {}]}))

    line = _Process.line

    def interrupted(self: _Process, timeout: float) -> Any:
        line(self, timeout)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Process, "line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(session)
    assert started[0]._process.returncode == -9
    assert len(run(session)) == 3
    assert processes(machine) == [0, 1]


def test_at_the_end_everything_is_closed(session: Session, started: list[_Process]) -> None:
    run(session)
    (process,) = started
    assert process._process.poll() is None
    session.renew()
    assert process._process.returncode is not None
    for stream in (process._process.stdin, process._process.stdout, process._process.stderr):
        assert stream is not None
        assert stream.closed
    assert not any(reader.is_alive() for reader in process._readers)


def test_a_process_killed_between_jobs_is_told(machine: Machine, session: Session, started: list[_Process]) -> None:
    run(session)
    started[0]._process.kill()
    started[0]._process.wait()
    with pytest.raises(RunnerFailed, match="it was killed by signal 9"):
        run(session)
    assert len(run(session)) == 3
    assert processes(machine) == [0, 1]


def test_much_on_standard_error_blocks_nobody(machine: Machine, session: Session) -> None:
    text = machine.program.read_text()
    loud = "def play(*words, **how):\n    sys.stderr.write('x' * 300000 + chr(10))\n    return quiet(*words, **how)\n\n\n"
    noisy = text.replace("def play(", f"{loud}def quiet(")
    assert noisy != text
    machine.program.write_text(noisy)
    assert len(run(session)) == 3


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    session = Session(Runner(tmp_path / "missing"), 0)
    for _ in range(2):
        with pytest.raises(RunnerFailed, match="it can't be started"):
            run(session)


# Programs that want to keep us


def program(machine: Machine, text: str) -> Runner:
    """A program of our own."""
    machine.program.write_text(f"#!{sys.executable} -S\nimport os, subprocess, sys, time\n{text}\n")
    return Runner(machine.program)


ROW = json.dumps({"ceiling": "fp64.fma", "variant": "a", "unit": "FLOP/s"})
TRIAL = '{"trial": 0, "seconds": 1, "work": 1, "sm_mhz": 1, "begin": 1, "end": 2}'


def test_what_it_started_ends_with_it(machine: Machine) -> None:
    place = machine.folder / "child"
    text = f"child = subprocess.Popen(['sleep', '90'])\nprint(child.pid, file=open({str(place)!r}, 'w'), flush=True)"
    runner = program(machine, f"{text}\nprint({TRIAL!r}, flush=True)\ntime.sleep(90)")
    with pytest.raises(RunnerFailed, match="it said nothing"):
        run(Session(runner, 0), timeout=0.5)
    child = int(place.read_text())
    deadline = time.monotonic() + 30
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(process: int) -> bool:
    """Whether a process runs; one that only waits for somebody to ask for its end does not."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"print('[' * 900000)\nprint({ROW!r})", "it printed no JSON"),
        ("print('{\"a\":' * 50000 + '1' + '}' * 50000)", "it printed no JSON"),
        ("print('{\"error\": \"' + 'x' * 9000 + '\"}')", "^x{50,130}[.]{3}x{50,130}$"),
    ],
)
def test_nonsense_is_told_in_a_sentence(machine: Machine, text: str, reason: str) -> None:
    with pytest.raises(RunnerFailed, match=reason) as caught:
        program(machine, text).variants()
    assert len(str(caught.value)) < 300


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", ["while True: print('{}', flush=True); time.sleep(0.1)", "while True: print(flush=True)"])
def test_an_answer_has_to_end(machine: Machine, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(runner_module, "_QUICK_CALL", 1.0)
    begin = time.monotonic()
    with pytest.raises(RunnerFailed, match="it said nothing for"):
        program(machine, text).devices()
    assert time.monotonic() - begin < 30


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("number", ["1e400", "NaN", "1" + "0" * 400, '"7"', "true", "[]", "1e200"])
@pytest.mark.parametrize("key", ["seconds", "work", "begin", "end"])
def test_numbers_that_are_none(machine: Machine, number: str, key: str) -> None:
    fields = {"trial": "0", "seconds": "1", "work": "1", "sm_mhz": "1", "begin": "1", "end": "2", key: number}
    line = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    runner = program(machine, f"print('{{{line}}}', flush=True)\ntime.sleep(30)")
    with pytest.raises(RunnerFailed, match="a trial"):
        run(Session(runner, 0))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, "7", True, [], -1])
def test_numbers_of_a_device_that_are_none(value: Any) -> None:
    assert parse_device({**H200, "sm_count": value, "sm_clock_max_mhz": value}).sm_count == 0
    with pytest.raises(ValueError, match="a device has no index"):
        parse_device({**H200, "index": value})


# Discovery


def test_a_program_without_ceilings_says_so(machine: Machine) -> None:
    machine.play({**scenario(), "rows": []})
    with pytest.raises(RooflineError, match="its list of ceilings is empty"):
        list_variants(Runner(machine.program))


@pytest.mark.parametrize("text", ['print(\'{"error": "no cores"}\')', "print('{\"uuid\": 7}')", "print('nonsense')"])
def test_nobody_is_sent_to_the_driver_of_gpus_for_a_cpu(machine: Machine, text: str) -> None:
    path = program(machine, text).path
    for call in (find_devices, list_variants):
        with pytest.raises(RooflineError) as caught:
            call(Runner(path, CPU))
        assert not [word for word in ("nvidia-smi", "GPU", "bench build") if word in str(caught.value)]


def test_all_gpus_are_found_by_one_process(machine: Machine, started: list[_Process]) -> None:
    machine.play(scenario(H200, SECOND))
    assert [device.uuid for device in find_devices(Runner(machine.program))] == [H200["uuid"], SECOND["uuid"]]
    assert len(started) == 1


def test_a_gpu_that_cannot_be_used_hides_no_other(machine: Machine) -> None:
    machine.play(scenario(UNUSABLE, SECOND))
    (found,) = find_devices(Runner(machine.program))
    assert (found.index, found.uuid) == (1, SECOND["uuid"])


def refusal(machine: Machine) -> str:
    """What is said where no GPU can be used."""
    with pytest.raises(RooflineError) as caught:
        find_devices(Runner(machine.program))
    return str(caught.value)


def test_where_none_can_be_used_the_reason_is_told(machine: Machine) -> None:
    machine.play(scenario(UNUSABLE, {"unusable": "something else"}))
    text = refusal(machine)
    assert text.startswith(f"Cannot measure on a GPU: {BUSY}. Check that `nvidia-smi` works here")


def test_no_gpu_at_all(machine: Machine) -> None:
    machine.play({**scenario(), "devices": []})
    assert refusal(machine).startswith("Cannot measure on a GPU: there is none. Check")
