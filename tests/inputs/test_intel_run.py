"""Intel SDE and VTune: NERSC's published example, widths and masks, files of one run together, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.bench.device import parse_device
from ncu_roofline.formats.inputs import intel as importer
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.tables import ImportedPoint
from tests.bench import test_cpu_files
from tests.cli.command import Command, assert_refused
from tests.inputs import intel_output as intel
from tests.inputs import test_advisor


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def point_of(folder: Path, text: str) -> tuple[ImportedPoint, str]:
    """The point of a mix, and its warnings."""
    table = importer.read_sde(write(folder / "mix.txt", text))
    return table.points[0], " ".join(table.warnings)


def test_published_example_of_nersc(tmp_path: Path, run: Command) -> None:
    mix = write(tmp_path / "sde.txt", intel.mix(intel.STREAM))
    events = write(tmp_path / "vtune.csv", intel.events())
    times = write(tmp_path / "summary.csv", intel.summary())
    outcome = run("show", mix, events, times, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    points = {point["level"]: point for point in json.loads(outcome.out)["points"]}
    assert {level: round(point["intensity"], 4) for level, point in points.items()} == {"l1": 0.0802, "dram": 0.0825}
    assert {level: point["traffic"] for level, point in points.items()} == {
        "l1": intel.STREAM_L1_BYTES,
        "dram": intel.STREAM_DRAM_BYTES,
    }
    assert {(point["kernel"], point["precision"], point["work"]) for point in points.values()} == {
        ("stream.exe", "fp64", intel.STREAM_FLOP)
    }
    assert points["l1"]["performance"] == pytest.approx(intel.STREAM_FLOP / 0.75)


@pytest.mark.parametrize("measured_by", ["bench run", "advisor"])
def test_under_the_roofs_of_a_cpu(tmp_path: Path, run: Command, measured_by: str) -> None:
    files = [write(tmp_path / "sde.txt", intel.mix(intel.STREAM)), write(tmp_path / "vtune.csv", intel.events())]
    files.append(write(tmp_path / "summary.csv", intel.summary()))
    roofs = write(tmp_path / "roofs.csv", "Name,Bandwidth,Type\nDRAM Bandwidth,8e10,memory\nDP Vector FMA Peak,1e12,compute\n")
    bandwidth = 8e10
    if measured_by == "bench run":
        roofs, bandwidth = test_cpu_files.write(tmp_path / "cpu.json", parse_device(test_cpu_files.EPYC)), 380e9
    outcome = run("render", *files, "--ceilings", roofs, "-o", tmp_path / "x.json")
    assert outcome.code == 0, outcome
    points = json.loads((tmp_path / "x.json").read_text())["points"]
    dram = next(point for point in points if point["level"] == "dram")
    assert dram["fraction"] == pytest.approx(intel.STREAM_DRAM_BYTES / 0.75 / bandwidth)


def test_advisor_under_the_roofs_of_a_cpu(tmp_path: Path, run: Command) -> None:
    survey = write(tmp_path / "survey.csv", test_advisor.survey(test_advisor.TRIAD))
    roofs = test_cpu_files.write(tmp_path / "cpu.json", parse_device(test_cpu_files.EPYC))
    outcome = run("render", survey, "--ceilings", roofs, "-o", tmp_path / "x.json")
    assert outcome.code == 0, outcome
    points = json.loads((tmp_path / "x.json").read_text())["points"]
    dram = next(point for point in points if point["level"] == "dram")
    assert dram["fraction"] == pytest.approx(16e9 / 2.0 / 380e9)


def test_a_public_mix_with_opcodes(tmp_path: Path) -> None:
    point, said = point_of(tmp_path, intel.mix(intel.GRAPH, intel.GRAPH_CODES, image="/mnt/A/gapbs-exp/cc"))
    assert point.name == "cc"
    assert point.work == {"fp32": 15392, "fp64": 73}
    assert point.traffic["l1"] == sum(
        int(name.rpartition("-")[2]) * count
        for name, count in intel.GRAPH.items()
        if name.startswith("mem-") and name[-1].isdigit()
    )
    assert "it holds no time" in said
    assert "FLOP/B at l1" in said


def test_threads_are_added_where_there_is_no_sum(tmp_path: Path) -> None:
    point, _ = point_of(tmp_path, intel.mix(intel.STREAM, threads=3))
    assert (point.work["fp64"], point.traffic["l1"]) == (3 * intel.STREAM_FLOP, 3 * intel.STREAM_L1_BYTES)


FUSED = {
    "VFMADD231PD_YMMqq_YMMqq_MEMqq": ("double", 4),
    "VFNMADD213PS_XMMdq_XMMdq_XMMdq": ("single", 4),
    "VFMSUB132SD_XMMdq_XMMq_MEMq": ("double", 1),
    "VFMADDSUB231PS_YMMqq_YMMqq_YMMqq": ("single", 8),
    "VFMADD231PD_ZMMf64_MASKmskw_ZMMf64_ZMMf64_AVX512": ("double", 8),
    "VFNMSUB213SS_XMMf32_MASKmskw_XMMf32_XMMf32_AVX512": ("single", 1),
}


@pytest.mark.parametrize("code", FUSED)
def test_fused_instructions_do_two_operations_on_each_number(tmp_path: Path, code: str) -> None:
    kind, width = FUSED[code]
    point, _ = point_of(tmp_path, intel.mix({f"elements_fp_{kind}_{width}": 10, "mem-read-8": 1}, {code: 4, "ADDSD": 6}))
    ((precision, work),) = point.work.items()
    assert (precision, work) == ({"double": "fp64", "single": "fp32"}[kind], width * (10 + 4))
    assert point.fma_share[precision] == pytest.approx(0.4)


def test_few_masked_instructions_are_noted(tmp_path: Path) -> None:
    counts = {"elements_fp_double_8": 10_000, "elements_fp_double_8_masked": 10}
    point, said = point_of(tmp_path, intel.mix(counts))
    assert point.work == {"fp64": 80_000}
    assert "at most 80 FLOP" in point.note
    assert "left out" not in said


def test_many_masked_instructions_leave_the_work_open(tmp_path: Path) -> None:
    counts = {"elements_fp_double_8": 100, "elements_fp_double_8_masked": 50, "elements_fp_single_4": 3}
    point, said = point_of(tmp_path, intel.mix(counts, {"VFMADD231PD_ZMMf64_MASKmskw_ZMMf64_ZMMf64_AVX512": 80}))
    # 100 sure and 30 of the fused ones sure; all 150, and all 80 fused ones.
    assert point.work == {"fp32": 12}
    assert "fp64 work left out: it is between 1040 and 1840 FLOP" in said


def test_fused_instructions_without_their_width(tmp_path: Path) -> None:
    point, said = point_of(tmp_path, intel.mix({"elements_fp_double_4": 10, "mem-read-8": 1}, {"VFMADD231PD": 4}))
    assert point.work == {}
    assert "VFMADD231PD does not say how wide it is; run SDE with -iform 1" in said


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_bytes_of_the_memory_controllers(tmp_path: Path, delimiter: str) -> None:
    table = importer.read_vtune(write(tmp_path / "v.csv", "vtune: Using result path `x'\n" + intel.events(delimiter=delimiter)))
    assert table.points[0].traffic == {"dram": intel.STREAM_DRAM_BYTES}
    assert "holds no operations" in table.warnings[0]


def test_memory_on_the_package(tmp_path: Path) -> None:
    text = (
        intel.events((1, 2), (3, 4))
        .replace("UNC_M_CAS_COUNT.RD", "UNC_E_RPQ_INSERTS")
        .replace("UNC_M_CAS_COUNT.WR", "UNC_E_WPQ_INSERTS")
    )
    assert importer.read_vtune(write(tmp_path / "v.csv", text)).points[0].traffic == {"mcdram": 640}


def test_reads_alone_are_no_traffic(tmp_path: Path) -> None:
    table = importer.read_vtune(write(tmp_path / "v.csv", intel.events((1, 2), ())))
    assert table.points[0].traffic == {}
    assert "dram traffic left out: its reads and its writes were not counted by the same controllers" in table.warnings[0]


@pytest.mark.parametrize(("cell", "seconds"), [("149.771137", 149.771137), ("8.0s", 8.0), ("800ms", 0.8)])
@pytest.mark.parametrize("levels", [True, False])
def test_the_time_of_a_summary(tmp_path: Path, cell: str, seconds: float, levels: bool) -> None:
    assert importer.read_vtune(write(tmp_path / "s.csv", intel.summary(cell, levels))).points[0].seconds == pytest.approx(
        seconds
    )


def test_processes_of_one_run_add_up(tmp_path: Path) -> None:
    mixes = [write(tmp_path / f"sde.{rank}", intel.mix(intel.STREAM)) for rank in range(2)]
    rest = [write(tmp_path / "v.csv", intel.events()), write(tmp_path / "s.csv", intel.summary())]
    points = roofline([*mixes, *rest]).points.set_index("level")
    assert points.loc["dram", "work"] == 2 * intel.STREAM_FLOP
    assert points.loc["l1", "traffic"] == 2 * intel.STREAM_L1_BYTES
    assert "the sum of 2 processes" in points.loc["l1", "notes"]


def test_runs_go_in_pairs(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"{n}.txt", intel.mix({"elements_fp_single_1": 10 * n, "mem-read-8": 1}, image=f"/run{n}"))
        for n in (1, 2)
    ]
    files += [write(tmp_path / f"{n}.csv", intel.summary(f"{n}.0")) for n in (1, 2)]
    points = roofline(files).points
    assert [(row.kernel, row.work, row.seconds) for row in points.itertuples()] == [("run1", 10, 1.0), ("run2", 20, 2.0)]


def test_what_belongs_to_nobody_is_told(tmp_path: Path, run: Command) -> None:
    mixes = [write(tmp_path / f"sde.{rank}", intel.mix(intel.STREAM)) for rank in range(3)]
    times = [write(tmp_path / f"{n}.csv", intel.summary()) for n in range(2)]
    outcome = run("show", *mixes, *times)
    assert outcome.code == 0
    assert "3 mixes of SDE, 0 reports of events and 2 summaries of VTune are not joined" in outcome.err


def test_a_mix_alone_says_what_adds_the_time(tmp_path: Path, run: Command) -> None:
    outcome = run("show", write(tmp_path / "sde.txt", intel.mix(intel.STREAM)))
    assert outcome.code == 0
    assert "only the intensity is known (0.0802 FLOP/B at l1)" in outcome.err
    assert "vtune -report summary -format=csv" in outcome.err
    assert math.isnan(roofline(tmp_path / "sde.txt").kernels.seconds[0])


GOOD = intel.mix(intel.GRAPH, intel.GRAPH_CODES)
BAD = {
    "cut off": GOOD[:-60],
    "no end": GOOD.replace("# END_GLOBAL_DYNAMIC_STATS\n", ""),
    "two regions": GOOD + GOOD,
    "a size missing": GOOD.replace(next(line for line in GOOD.split("\n") if line.startswith("*mem-read-8 ")) + "\n", ""),
    "no number": GOOD.replace("26274841", "many"),
    "a fraction": GOOD.replace("15392", "15392.5"),
    "a unit": GOOD.replace("15392", "15392k"),
    "twice": GOOD.replace("*elements_i32_4 ", "*elements_fp_double_1 "),
    "nothing": intel.mix({"elements_i32_4": 3}),
    "more fused ones than any": intel.mix({"elements_fp_double_4": 1}, {"VFMADD231PD_YMMqq_YMMqq_MEMqq": 2}),
    "no statistics": "# Mix output version 10\n# Intel(R) SDE version: 9.24.0 external\n",
    "events cut off": intel.events()[:-10].rpartition(",")[0] + "\n",
    "events of functions": intel.events().replace("Package", "Function"),
    "an event without a number": intel.events().replace("63626023", "n/a"),
    "one package twice": intel.events().replace("package_1", "package_0"),
    "two reports": intel.events() + intel.events(),
    "other events": "Package,Uncore Event Count:UNC_M_CLOCKTICKS\npackage_0,3\n",
    "no packages": intel.events().split("\n")[0] + "\n",
    "no time": intel.summary("n/a"),
    "an unknown unit": intel.summary("3 fortnights"),
    "a summary without a time": intel.summary().replace("Elapsed Time", "CPU Time"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_refused(tmp_path: Path, run: Command, bad: str) -> None:
    path = write(tmp_path / "bad.csv", BAD[bad])
    assert importer.recognises_sde(BAD[bad]) != importer.recognises_vtune(BAD[bad])
    assert_refused(run("show", path), path)


@pytest.mark.parametrize("text", [intel.mix(intel.STREAM), intel.events(), intel.summary()])
def test_nobody_else_takes_them(tmp_path: Path, text: str) -> None:
    assert open_input(write(tmp_path / "x", text)).format == "intel"
