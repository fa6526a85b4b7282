"""The fuzzer works: it runs, finds what is there to find, and finds nothing in a few seconds; hypothesis looks as well."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncu_roofline import roofline
from ncu_roofline.report import read_report
from ncu_roofline.report.compressed import is_compressed
from tests.fuzz import fuzz_reader

SCRIPT = Path(fuzz_reader.__file__)


def test_samples_hold_what_the_reader_knows(tmp_path: Path) -> None:
    kinds, points, charts, said = set(), 0, 0, 0
    for data in fuzz_reader.samples():
        path = tmp_path / "sample.ncu-rep"
        path.write_bytes(data)
        with read_report(path) as report:
            kinds |= {kernel.kind for kernel in report.kernels}
            said += sum(len(kernel.rule_results) for kernel in report.kernels)
            points += len(roofline(report).points)
            charts += len(roofline(report, source="embedded").points)
    assert kinds == {"kernel", "range", "graph", "cmdlist"}
    assert min(points, charts, said) > 0


def test_frames_are_damaged_too(tmp_path: Path) -> None:
    wholes = fuzz_reader.samples()
    blocks = [fuzz_reader.blocks_of(whole, tmp_path / "x") for whole in wholes]
    made = [fuzz_reader.damaged(6, iteration, wholes, blocks) for iteration in range(300)]
    framed = [what for what, data in made if is_compressed(data)]
    assert any(what.endswith("of a frame") for what in framed)
    assert any(what.endswith("inside, in a frame") for what in framed)


def test_a_fixed_seed_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_reader.fuzz(seconds=2, seed=1) == 0
    assert "nothing found in" in capsys.readouterr().out


def test_iterations_are_reproducible(tmp_path: Path) -> None:
    wholes = fuzz_reader.samples()
    blocks = [fuzz_reader.blocks_of(whole, tmp_path / "x") for whole in wholes]
    for iteration in range(20):
        assert fuzz_reader.damaged(5, iteration, wholes, blocks) == fuzz_reader.damaged(5, iteration, wholes, blocks)


def test_a_finding_is_told_and_can_be_run_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[bytes] = []

    def third_fails(path: Path) -> None:
        seen.append(path.read_bytes())
        if len(seen) == 3:
            raise ZeroDivisionError("a bug")

    monkeypatch.setattr(fuzz_reader, "exercise", third_fails)
    assert fuzz_reader.fuzz(seconds=60, seed=4) == 1
    message = capsys.readouterr().err
    assert "ZeroDivisionError: a bug" in message
    assert "--seed 4 --first 2 --seconds 0" in message
    assert fuzz_reader.fuzz(seconds=0, seed=4, first=2) == 0
    assert seen[3] == seen[2]


def test_as_a_script(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--seconds", "0.2", "--seed", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "per second, seed 2" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mutation", fuzz_reader.MUTATIONS)
def test_mutations_change_something(mutation: Callable[[bytes, random.Random], bytes]) -> None:
    data = bytes(range(256)) * 4
    changed = [mutation(data, random.Random(seed)) for seed in range(10)]
    assert sum(one != data for one in changed) >= 8
    assert mutation(b"x", random.Random(1)) is not None


DAMAGE = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(("set", "insert", "delete")), st.binary(max_size=12)), max_size=6
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 3), record=st.integers(0, 100), damage=DAMAGE)
def test_arbitrary_damage_inside_records(
    tmp_path: Path, number: int, record: int, damage: list[tuple[int, str, bytes]]
) -> None:
    path = tmp_path / "x.ncu-rep"
    blocks = fuzz_reader.blocks_of(fuzz_reader.samples()[number], path)

    def apply(data: bytes, _: random.Random) -> bytes:
        for position, what, put in damage:
            start = position % (len(data) + 1)
            end = start if what == "insert" else start + len(put)
            data = data[:start] + (b"" if what == "delete" else put) + data[end:]
        return data

    path.write_bytes(fuzz_reader.mutate_inside(blocks, apply, random.Random(record)))
    fuzz_reader.exercise(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400))
def test_arbitrary_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.ncu-rep"
    for start in (b"", fuzz_reader.file_start()):
        path.write_bytes(start + data)
        fuzz_reader.exercise(path)
