"""A report with `--run`: which kernels are the same, what stands at whose time, and what ncu has to count yet."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import KernelData
from tests.analyses.test_run import BF16, H100, TRACES, document, event
from tests.cli.command import Command, Outcome, assert_refused
from tests.factory import H100 as GPU
from tests.factory import NO_WORK, Metrics, flops, report, timing, traffic
from tests.schemas import assert_fits

MANGLED, GNU, NSIGHT = (
    "_Z3fooILi4EmEvPfT0_",
    "void foo<4, unsigned long>(float*, unsigned long)",
    "void foo<(int)4, unsigned long>(float *, T2)",
)


def launch(at: float, took: float, name: str, grid: int = 8, operator: str = "aten::mm", gpu: int = 0) -> list[dict[str, Any]]:
    """An operator on 64 x 64 matrices that launches a kernel: times in us."""
    shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": [BF16, BF16], "Concrete Inputs": ["", ""]}
    about = {"correlation": int(at), "device": gpu, "stream": 7, "grid": [grid, 1, 1], "block": [128, 1, 1]}
    return [
        event("cpu_op", operator, at, 10, **shapes),
        event("cuda_runtime", "cudaLaunchKernel", at + 2, 3, correlation=int(at)),
        event("kernel", name, at + 20, took, tid=70, **about),
    ]


def kernel(
    name: str, mangled: str = "", dram: int = 10**6, fma: int = 10**6, us: float = 40, grid: int = 8, **more: Any
) -> KernelData:
    """What ncu counted of a launch."""
    metrics: Metrics = {
        **more.get("gpu", GPU),
        **timing(us * 1e-6),
        **NO_WORK,
        **flops("f", fma=fma),
        **traffic(2 * dram, dram // 32, dram),
    }
    function = re.split(r"[<(]", name)[0].split()[-1]
    return KernelData(
        name=name, function_name=function, mangled_name=mangled, metrics=metrics, grid=(grid, 1, 1), block=(128, 1, 1)
    )


@pytest.fixture
def counted(run: Command, tmp_path: Path) -> Callable[..., Outcome]:
    """`show` of a report with a trace."""

    def shown(kernels: list[KernelData], *launches: list[dict[str, Any]], words: tuple[str, ...] = ("--json",)) -> Outcome:
        trace = tmp_path / "run.pt.trace.json"
        trace.write_text(json.dumps(document(*launches)))
        return run("show", report(tmp_path / "a.ncu-rep", *kernels), "--run", trace, *words)

    return shown


LAUNCHES = (launch(1000, 20, GNU), launch(2000, 30, GNU), launch(3000, 50, "other(int)"))


@pytest.mark.parametrize(
    ("profiled", "covered", "absent"),
    [
        ([kernel(NSIGHT, MANGLED)], 0.5, 0),  # as GNU's demangler writes it
        ([kernel(GNU)], 0.5, 0),  # Nsight Systems has Nsight Compute's name
        ([kernel(NSIGHT, MANGLED), kernel("other(int)")], 1.0, 0),
        ([kernel(NSIGHT, MANGLED), kernel("other(int)", grid=9)], 0.5, 1),  # of another size
        ([kernel(NSIGHT, MANGLED), kernel("void foo<(int)8, unsigned long>(float *, T2)", "_Z3fooILi8EmEvPfT0_")], 0.5, 1),
        ([kernel(NSIGHT, MANGLED), kernel("other(long)", "_Z5otherl")], 0.5, 1),  # another function of that name
    ],
)
def test_which_kernels_are_the_same(
    counted: Callable[..., Outcome], profiled: list[KernelData], covered: float, absent: int
) -> None:
    found = json.loads(counted(profiled, *LAUNCHES).out)
    (coverage,) = found["coverage"]
    assert (coverage["covered"], coverage["absent"]) == (pytest.approx(covered), absent)
    assert sum(row["seconds"] for row in found["kernels"]) == pytest.approx(covered * 100e-6)
    assert coverage["launches"] == 3


@pytest.mark.skipif(sys.version_info < (3, 11), reason="demangle needs Python 3.11")
def test_names_of_thousands_of_characters(counted: Callable[..., Outcome]) -> None:
    mangled = "".join(f"8pair{place:04}IifE" for place in range(250))
    full = f"void foo<{', '.join(f'pair{place:04}<int, float>' for place in range(250))} >(float*)"
    assert len(full) > 5000
    found = json.loads(counted([kernel("foo", f"_Z3fooI{mangled}EvPf")], launch(1000, 20, full)).out)
    assert found["coverage"][0]["covered"] == 1


def test_times_of_the_run_and_counts_of_the_report(counted: Callable[..., Outcome]) -> None:
    """One launch is counted, two ran, in 20 and 30 us, where it took 40: 2 x 10^6 bytes in 50 us are 40 GB/s."""
    outcome = counted([kernel(NSIGHT, MANGLED)], *LAUNCHES)
    found = assert_fits("counted", outcome.out)
    (one,), (point, *_) = found["kernels"], [row for row in found["points"] if row["level"] == "dram"]
    assert (one["launches"], one["seconds"], one["time_share"]) == (2, pytest.approx(50e-6), pytest.approx(0.5))
    assert point["traffic"] == 2e6
    assert point["performance"] == pytest.approx(4e6 / 50e-6)
    assert point["intensity"] == pytest.approx(2.0)
    assert point["bandwidth"] == pytest.approx(40e9)
    assert one["clock_profiled"] is None  # nobody knows that of the run
    foo = next(row for row in found["needs"] if row["counted"] == pytest.approx(0.5))
    assert (foo["calls"], foo["bytes"], foo["flops"]) == (3, 3 * 3 * 2 * 64 * 64, 3 * 2 * 64**3)
    assert foo["moved"] is None  # as one of its kernels was not counted
    assert foo["profiled"] == pytest.approx(80e-6)
    whole = json.loads(counted([kernel(NSIGHT, MANGLED), kernel("other(int)", dram=3 * 10**6, fma=0)], *LAUNCHES).out)
    (need,) = whole["needs"]
    assert (need["moved"], need["executed"]) == (5e6, 4e6)
    assert need["waste"] == pytest.approx(5e6 / (3 * 3 * 2 * 64 * 64))
    assert need["bandwidth"] == pytest.approx(5e6 / 100e-6)
    assert need["bandwidth_fraction"] == pytest.approx(5e6 / 100e-6 / 3.352e12, rel=1e-3)
    assert need["performance"] == pytest.approx(4e6 / 100e-6)


def test_as_many_launches_are_the_same_in_order(counted: Callable[..., Outcome]) -> None:
    mine = [kernel(NSIGHT, MANGLED, dram=count * 10**6) for count in (1, 2)]
    found = json.loads(counted(mine, *LAUNCHES, words=("--json", "--by", "launch")).out)
    moved = {row["launch"]: (row["traffic"], row["seconds"]) for row in found["points"] if row["level"] == "dram"}
    assert moved == {0: (1e6, pytest.approx(20e-6)), 1: (2e6, pytest.approx(30e-6))}


def test_function_names_of_a_table_where_one_kernel_has_them(run: Command, tmp_path: Path) -> None:
    """ncu's CSV has `foo`; with another `foo` of that size in the run nobody knows which it is."""
    capability = "device__attribute_compute_capability_"
    columns = ("ID", "Kernel Name", "Grid Size", "Block Size", f"{capability}major", f"{capability}minor")
    columns += ("device__attribute_display_name", "gpu__time_duration.sum", "dram__bytes.sum")
    cells = ("0", "foo", "(8, 1, 1)", "(128, 1, 1)", "9", "0", H100["name"], "40000", "1000000")
    lines = [columns, ("", "", "", "", "", "", "", "ns", "byte"), cells]
    table, trace = tmp_path / "a.csv", tmp_path / "run.json"
    table.write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    trace.write_text(json.dumps(document(*LAUNCHES)))
    found = json.loads(run("show", table, "--run", trace, "--json").out)
    assert (found["coverage"][0]["covered"], found["needs"][0]["profiled"]) == (pytest.approx(0.5), pytest.approx(80e-6))
    trace.write_text(json.dumps(document(*LAUNCHES, launch(4000, 10, GNU.replace("4", "8")))))
    assert "none of the kernels in a.csv was launched in it" in run("show", table, "--run", trace).err


def test_sums_without_sizes(run: Command, tmp_path: Path) -> None:
    """Of `cuda_gpu_kern_sum`, which has no grids: what a report has in two sizes nobody can share out."""
    sums = tmp_path / "sums.csv"
    sums.write_text("Time (%),Total Time (ns),Instances,Name\n60,60000,3,one(int)\n40,40000,4,two(int)\n")
    kernels = [kernel("one(int)"), kernel("two(int)"), kernel("two(int)", grid=9)]
    found = json.loads(
        run("show", report(tmp_path / "a.ncu-rep", *kernels), "--run", sums, "--json", "--board", "H100 SXM5").out
    )
    assert [(row["launches"], row["seconds"]) for row in found["kernels"]] == [(3, pytest.approx(60e-6))]
    assert (found["coverage"][0]["covered"], found["coverage"][0]["absent"]) == (pytest.approx(0.6), 2)


@pytest.mark.parametrize(
    ("kernels", "words", "code", "said"),
    [
        (
            [kernel("else(int)")],
            (),
            1,
            "none of the kernels in a.ncu-rep was launched in it with the same name, grid and block",
        ),
        (
            [kernel(GNU, gpu={**GPU, "device__attribute_display_name": "NVIDIA L4"})],
            (),
            1,
            "it is of NVIDIA H100 80GB HBM3, the report of NVIDIA L4",
        ),
        (
            [kernel(GNU), kernel(GNU, gpu={**GPU, "device__attribute_display_name": "NVIDIA L4"})],
            (),
            1,
            "the reports are of several GPUs (NVIDIA H100 80GB HBM3 and NVIDIA L4)",
        ),
        ([kernel(GNU)], ("--view", "time"), 2, "with --view"),
        ([kernel(GNU)], ("--clock", "max"), 2, "with --clock"),
    ],
)
def test_what_does_not_go_together(
    counted: Callable[..., Outcome], kernels: list[KernelData], words: tuple[str, ...], code: int, said: str
) -> None:
    outcome = counted(kernels, *LAUNCHES, words=words)
    assert (outcome.code, outcome.out) == (code, "")
    assert re.fullmatch(rf"ncu-roofline: Cannot use --run .*{re.escape(said)}.*\. \S.*\.", outcome.err.strip())


def test_neither_a_trace_before_it_nor_a_report_behind_it(run: Command, tmp_path: Path) -> None:
    trace, other = tmp_path / "run.json", report(tmp_path / "a.ncu-rep", kernel(GNU))
    trace.write_text(json.dumps(document(*LAUNCHES)))
    assert_refused(run("show", trace, "--run", trace), f"--run {trace}", 2)
    assert_refused(run("show", other, "--run", other), f"--run {other}", 2)


def test_what_is_said_and_written(counted: Callable[..., Outcome], run: Command, tmp_path: Path) -> None:
    first, *lines = counted([kernel(NSIGHT, MANGLED)], *LAUNCHES, words=()).out.splitlines()
    assert first.startswith(
        "50.0 % of the kernels' time in the run is counted (2 of 3 launches); of the rest most is other, 50.0 %"
    )
    text = " ".join(line.strip() for line in lines)
    assert "takes 50 µs in the run, and under the profiler 80 µs (1.6x)" in text
    assert "ncu --set full --kernel-name 'regex:^(other)$' --launch-skip 0 --launch-count 1 -o more ./app" in text
    given = (tmp_path / "a.ncu-rep", "--run", tmp_path / "run.pt.trace.json")
    for name in ("a.html", "a.md", "a.svg", "needs.csv"):
        run("render", *given, "-o", tmp_path / name, *(("--table", "needs") if name == "needs.csv" else ()))
        content = (tmp_path / name).read_text().replace("&#58;", ":")
        assert ("aten::mm" in content) == (name != "a.svg")
        assert ("50.0 % of the kernels" in content) == (name != "needs.csv")


def test_the_command_counts_nine_tenths_of_the_time(counted: Callable[..., Outcome]) -> None:
    """The launches that pass its filters are of each kernel that is missing from nine tenths of the time, in any order."""
    names = ["a::one<(int)4>(int)", "one(long)", "two", "three", "b::one<(int)4>(int)", "two", "four"]
    took = [10.0, 300, 50, 5, 200, 50, 385]
    launches = [launch(1000 * (place + 1), time, name) for place, (name, time) in enumerate(zip(names, took, strict=True))]
    found = json.loads(counted([kernel("four")], *launches).out)
    words = shlex.split(found["coverage"][0]["command"])
    option = dict(zip(words[1::2], words[2::2], strict=False))
    functions = [re.sub(r"<.*|\(.*", "", name).rpartition("::")[2] for name in names]
    passing = [place for place, name in enumerate(functions) if re.search(option["--kernel-name"].removeprefix("regex:"), name)]
    skip, count = int(option["--launch-skip"]), int(option["--launch-count"])
    profiled = {names[place] for place in passing[skip : skip + count]} | {"four"}
    assert sum(time for name, time in zip(names, took, strict=True) if name in profiled) >= 900
    assert (skip, count) == (1, 3)


def test_ranges_that_ncu_knows(counted: Callable[..., Outcome]) -> None:
    """PyTorch's annotations are none: ncu would never see them."""
    around = [event("user_annotation", "step", 900, 3000)]
    words = ("--json", "--operators-by", "annotation")
    command = json.loads(counted([kernel(NSIGHT, MANGLED)], around, *LAUNCHES, words=words).out)["coverage"][0]["command"]
    assert "--nvtx" not in command
    assert "other" in command


@pytest.mark.parametrize("trace", ["owlv2-h100", "qwen-h100", "alexnet-a100-times"])
def test_real_traces_against_themselves(run: Command, tmp_path: Path, trace: str) -> None:
    """Every second kernel of a real run, counted once: coverage, times and moved bytes by another way."""
    import gzip

    path = TRACES / f"{trace}.pt.trace.json.gz"
    if not path.is_file():
        pytest.skip("no real traces (NCU_ROOFLINE_TRACES)")
    content = json.loads(gzip.decompress(path.read_bytes()))
    kernels = [one for one in content["traceEvents"] if one.get("cat") == "kernel"]
    gpu = {**GPU, "device__attribute_display_name": content["deviceProperties"][0]["name"]}
    times: dict[tuple[Any, ...], list[float]] = {}
    for one in kernels:
        about = one["name"], tuple(one["args"]["grid"]), tuple(one["args"]["block"])
        times.setdefault(about, []).append(one["dur"] * 1e-6)
    chosen = list(times)[::2]
    made = [
        KernelData(
            name=f"kernel {place}",
            function_name="kernel",
            mangled_name=name,
            metrics={**gpu, **timing(1e-3), **NO_WORK, **flops("f", fma=1000), **traffic(64, 2, 10**6 * (place + 1))},
            grid=grid,
            block=block,
        )
        for place, (name, grid, block) in enumerate(chosen)
    ]
    found = json.loads(run("show", report(tmp_path / "a.ncu-rep", *made), "--run", path, "--json").out)
    (coverage,) = found["coverage"]
    total, mine = (math.fsum(math.fsum(times[one]) for one in of) for of in (times, chosen))
    assert (coverage["kernel_seconds"], coverage["covered"]) == (pytest.approx(total), pytest.approx(mine / total))
    dram = {row["kernel"]: row for row in found["points"] if row["level"] == "dram"}
    seconds = {row["kernel"]: row["seconds"] for row in found["kernels"]}
    for place, one in enumerate(chosen):
        assert dram[f"kernel {place}"]["traffic"] == pytest.approx(10**6 * (place + 1) * len(times[one]))
        assert seconds[f"kernel {place}"] == pytest.approx(math.fsum(times[one]))
    moved = math.fsum(10**6 * (place + 1) * len(times[one]) for place, one in enumerate(chosen))
    assert math.fsum(row["moved"] or 0 for row in found["needs"]) <= moved * (1 + 1e-9)


def test_real_counters_at_the_times_of_another_run(run: Command) -> None:
    """Of 16 kernels 11 are in both runs, as often; one has a name of 5,123 characters, and one was not recorded."""
    times, counters = (TRACES / f"alexnet-a100-{name}.pt.trace.json.gz" for name in ("times", "counters"))
    if not times.is_file():
        pytest.skip("no real traces (NCU_ROOFLINE_TRACES)")
    (coverage,) = json.loads(run("show", counters, "--run", times, "--json").out)["coverage"]
    assert (coverage["covered"], coverage["counted_launches"], coverage["absent"]) == (pytest.approx(0.58483, abs=1e-5), 55, 22)
