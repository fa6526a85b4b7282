"""A report with `--run`, beside counted.session: what stands at whose time, the command for the rest, and real traces."""

from __future__ import annotations

import gzip
import json
import math
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.made import GNU, NAMED, STEADY, counted
from tests.analyses.makers import written
from tests.analyses.traces_made import real, write
from tests.cli.command import Command
from tests.factory import H100 as GPU
from tests.factory import NO_WORK, KernelData, flops, report, timing, traffic
from tests.schemas import assert_fits

LAUNCHES = ((1000, 20, GNU, 8), (2000, 30, GNU, 8), (3000, 50, "other(int)", 8))
Shown = Callable[..., dict[str, Any]]


@pytest.fixture
def shown(run: Command, tmp_path: Path) -> Shown:
    """What `show --json` says of a report with a trace."""

    def said(kernels: list[dict[str, Any]], *launches: tuple[Any, ...], words: tuple[str, ...] = ()) -> dict[str, Any]:
        trace = write(tmp_path / "run.json", counted(*launches))
        outcome = run("show", written(tmp_path, "a", kernels), "--run", trace, "--json", *words)
        found: dict[str, Any] = assert_fits("counted", outcome.out)
        return found

    return said


def test_times_of_the_run_and_counts_of_the_report(shown: Shown) -> None:
    """One launch is counted, two ran, in 20 and 30 us, where it took 40: 2 x 10^6 bytes in 50 us are 40 GB/s."""
    found = shown([NAMED], *LAUNCHES)
    (one,), (point, *_) = found["kernels"], [row for row in found["points"] if row["level"] == "dram"]
    assert (one["launches"], one["seconds"], one["time_share"]) == (2, pytest.approx(50e-6), pytest.approx(0.5))
    assert (point["traffic"], point["intensity"]) == (2e6, pytest.approx(2.0))
    assert (point["performance"], point["bandwidth"]) == pytest.approx((4e6 / 50e-6, 40e9))
    assert one["clock_profiled"] is None  # nobody knows that of the run
    (foo,) = found["needs"]
    assert (foo["calls"], foo["bytes"], foo["flops"]) == (3, 3 * 3 * 2 * 64 * 64, 3 * 2 * 64**3)
    assert (foo["counted"], foo["profiled"], foo["moved"]) == (pytest.approx(0.5), pytest.approx(80e-6), None)
    (need,) = shown([NAMED, {**STEADY, "name": "other(int)", "fp32": 0, "dram": 3e6}], *LAUNCHES)["needs"]
    assert (need["moved"], need["executed"]) == (5e6, 4e6)
    assert need["waste"] == pytest.approx(5e6 / (3 * 3 * 2 * 64 * 64))
    assert (need["bandwidth"], need["performance"]) == pytest.approx((5e6 / 100e-6, 4e6 / 100e-6))
    assert need["bandwidth_fraction"] == pytest.approx(5e6 / 100e-6 / 3.352e12, rel=1e-3)


def test_as_many_launches_are_the_same_in_order(shown: Shown) -> None:
    found = shown([{**NAMED, "dram": 1e6}, {**NAMED, "dram": 2e6}], *LAUNCHES, words=("--by", "launch"))
    moved = {row["launch"]: (row["traffic"], row["seconds"]) for row in found["points"] if row["level"] == "dram"}
    assert moved == {0: (1e6, pytest.approx(20e-6)), 1: (2e6, pytest.approx(30e-6))}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="demangle needs Python 3.11")
def test_names_of_thousands_of_characters(shown: Shown) -> None:
    mangled = "".join(f"8pair{place:04}IifE" for place in range(250))
    full = f"void foo<{', '.join(f'pair{place:04}<int, float>' for place in range(250))} >(float*)"
    found = shown([{**NAMED, "name": "foo", "mangled": f"_Z3fooI{mangled}EvPf"}], (1000, 20, full, 8))
    assert (len(full) > 5000, found["coverage"][0]["covered"]) == (True, 1)


def test_the_command_counts_nine_tenths_of_the_time(shown: Shown) -> None:
    """The launches that pass its filters are of each kernel that is missing from nine tenths of the time, in any order."""
    names = ["a::one<(int)4>(int)", "one(long)", "two", "three", "b::one<(int)4>(int)", "two", "four"]
    took = [10.0, 300, 50, 5, 200, 50, 385]
    launches = [(1000 * (place + 1), us, name, 8) for place, (name, us) in enumerate(zip(names, took, strict=True))]
    words = shlex.split(shown([{**STEADY, "name": "four"}], *launches)["coverage"][0]["command"])
    option = dict(zip(words[1::2], words[2::2], strict=False))
    functions = [re.sub(r"<.*|\(.*", "", name).rpartition("::")[2] for name in names]
    passing = [place for place, name in enumerate(functions) if re.search(option["--kernel-name"].removeprefix("regex:"), name)]
    skip, count = int(option["--launch-skip"]), int(option["--launch-count"])
    profiled = {names[place] for place in passing[skip : skip + count]} | {"four"}
    assert sum(time for name, time in zip(names, took, strict=True) if name in profiled) >= 900
    assert (skip, count) == (1, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("trace", ["alexnet-a100-times", "owlv2-h100", "qwen-h100"])
def test_real_traces_against_themselves(run: Command, tmp_path: Path, trace: str) -> None:
    """Every second kernel of a real run, counted once: coverage, times and moved bytes by another way."""
    path = real(f"{trace}.pt.trace.json.gz")
    content = json.loads(gzip.decompress(path.read_bytes()))
    gpu = {**GPU, "device__attribute_display_name": content["deviceProperties"][0]["name"]}
    times: dict[tuple[Any, ...], list[float]] = {}
    for one in content["traceEvents"]:
        if one.get("cat") == "kernel":
            about = one["name"], tuple(one["args"]["grid"]), tuple(one["args"]["block"])
            times.setdefault(about, []).append(one["dur"] * 1e-6)
    chosen = list(times)[::2]
    same = {**gpu, **timing(1e-3), **NO_WORK, **flops("f", fma=1000)}
    made = [
        KernelData(f"kernel {n}", "kernel", name, metrics=same | traffic(64, 2, 10**6 * (n + 1)), grid=grid, block=block)
        for n, (name, grid, block) in enumerate(chosen)
    ]
    found = json.loads(run("show", report(tmp_path / "a.ncu-rep", *made), "--run", path, "--json").out)
    (coverage,) = found["coverage"]
    total, mine = (math.fsum(math.fsum(times[one]) for one in of) for of in (times, chosen))
    assert (coverage["kernel_seconds"], coverage["covered"]) == (pytest.approx(total), pytest.approx(mine / total))
    dram = {row["kernel"]: row["traffic"] for row in found["points"] if row["level"] == "dram"}
    seconds = {row["kernel"]: row["seconds"] for row in found["kernels"]}
    bytes_of = {f"kernel {place}": 10**6 * (place + 1) * len(times[one]) for place, one in enumerate(chosen)}
    assert dram == pytest.approx(bytes_of)
    assert seconds == pytest.approx({f"kernel {place}": math.fsum(times[one]) for place, one in enumerate(chosen)})
    assert math.fsum(row["moved"] or 0 for row in found["needs"]) <= math.fsum(bytes_of.values()) * (1 + 1e-9)


def test_real_counters_at_the_times_of_another_run(run: Command) -> None:
    """Of 16 kernels 11 are in both runs, as often; one has a name of 5,123 characters, and one was not recorded."""
    times, counters = (real(f"alexnet-a100-{name}.pt.trace.json.gz") for name in ("times", "counters"))
    (coverage,) = json.loads(run("show", counters, "--run", times, "--json").out)["coverage"]
    assert (coverage["covered"], coverage["counted_launches"], coverage["absent"]) == (pytest.approx(0.58483, abs=1e-5), 55, 22)
