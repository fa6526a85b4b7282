"""Performance portability against the published tables, and what the set of platforms decides."""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.portability import (
    PORTABILITY_PLATFORMS,
    PORTABILITY_SUMMARY,
    Choices,
    Platform,
    PlatformRoof,
    PlatformRun,
    Portability,
    Reading,
    performance_portability,
    portability,
    read_runs,
    runs_of_roofline,
    runs_of_table,
    table_roofs,
)
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs.plain_table import plain_rows
from ncu_roofline.formats.report import read_report
from tests import published, published_report
from tests.analyses import published_portability as paper
from tests.factory import A100, NO_WORK, flops, kernel, opcodes, report, timing, traffic

PLATFORMS = ("KNL", "V100")
STEPS = [(name, i) for name, sweep in paper.SWEEPS.items() for i in range(len(sweep.values))]


def misprinted(name: str, i: int) -> bool:
    return (paper.SWEEPS[name], i) == paper.MISPRINTED


def sweep_table(folder: Path, sweep: paper.Sweep) -> Path:
    """A published table as a CSV file for users: rates, intensities and ceilings, and no e."""
    path = folder / "gpp.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        peak = {"fma": "peak_fma_gflops", "nofma": "Peak no-FMA [GFLOP/s]"}[sweep.ceiling]
        writer.writerow(["Platform", "application", sweep.parameter, "GFLOP/s", "AI (HBM)", peak, "hbm bandwidth (GB/s)"])
        for p, platform in enumerate(PLATFORMS):
            for i, value in enumerate(sweep.values):
                cells = (sweep.gflops[p][i], sweep.intensity[p][i], sweep.compute[p], sweep.bandwidth[p])
                writer.writerow([platform, "GPP", value, *map(repr, cells)])
    return path


@pytest.mark.parametrize(("name", "i"), STEPS)
def test_printed_efficiencies_give_the_printed_portability(name: str, i: int) -> None:
    sweep = paper.SWEEPS[name]
    got = 100 * performance_portability(sweep.efficiency[p][i] / 100 for p in range(2))
    if misprinted(name, i):
        assert abs(got - sweep.portability[i]) == pytest.approx(0.26, abs=0.01)
    else:
        assert got == pytest.approx(sweep.portability[i], abs=paper.TOLERANCE)


@pytest.mark.parametrize("bar", paper.TABLE_2, ids=lambda bar: bar.name)
def test_table_2(bar: paper.Bar) -> None:
    bandwidth = (paper.KNL_HBM, paper.V100_HBM)
    es = [bar.gflops[p] / min(bar.ceiling[p], bandwidth[p] * bar.intensity[p]) for p in range(2)]
    assert [100 * e for e in es] == pytest.approx(bar.efficiency, abs=paper.TOLERANCE)
    assert 100 * performance_portability(es) == pytest.approx(bar.portability, abs=paper.TOLERANCE)


@pytest.mark.parametrize("name", paper.SWEEPS)
def test_sweeps_from_a_table(tmp_path: Path, name: str) -> None:
    sweep = paper.SWEEPS[name]
    runs, warnings = read_runs([sweep_table(tmp_path, sweep)])
    result = portability(runs, Choices(ceiling=sweep.ceiling))
    assert warnings == []
    above = [i for i in range(len(sweep.values)) if misprinted(name, i)]  # where the raw data give more than 100 %
    assert [text.partition(":")[0] for text in result.warnings] == [f"V100 {sweep.parameter}={sweep.values[i]}" for i in above]
    assert list(result.summary["variant"]) == [f"{sweep.parameter}={value}" for value in sweep.values]
    assert list(100 * result.summary["portability"]) == pytest.approx(sweep.portability, abs=paper.TOLERANCE)
    for p, platform in enumerate(PLATFORMS):
        got = list(100 * result.platforms.query("platform == @platform")["efficiency"])
        for i, printed in enumerate(sweep.efficiency[p]):
            if misprinted(name, i) and platform == "V100":
                assert got[i] == pytest.approx(100.64, abs=paper.TOLERANCE)
            else:
                assert got[i] == pytest.approx(printed, abs=paper.TOLERANCE)


def test_a_report_beside_a_table(tmp_path: Path) -> None:
    """Table III once more: the V100 from a report's counters and measured ceilings, the KNL from a table."""
    published_report.write(tmp_path)
    sweep = paper.TABLE_3_FMA
    knl = sweep_table(tmp_path, sweep)
    knl.write_text("".join(line for line in knl.read_text().splitlines(keepends=True) if "V100" not in line))
    inputs = [Platform(str(knl)), Platform(str(tmp_path / published_report.REPORT), "V100")]
    ceilings = [tmp_path / published_report.CEILINGS]
    runs, _ = read_runs(inputs, ceilings, Reading(label="nvtx"))
    result = portability(runs)
    assert list(100 * result.summary["portability"]) == pytest.approx(sweep.portability, abs=paper.TOLERANCE)
    v100 = result.platforms.query("platform == 'V100'")
    assert list(100 * v100["efficiency"]) == pytest.approx(published.EFFICIENCY, abs=paper.TOLERANCE)
    assert set(v100["compute_origin"]) == set(v100["bandwidth_origin"]) == {"measured"}
    assert set(v100["precision"]) == {"fp64"}
    assert set(v100["application"]) == {"GPP"}  # the report names none


def test_bound_as_published(tmp_path: Path) -> None:
    runs, _ = read_runs([sweep_table(tmp_path, paper.TABLE_3_FMA)])
    rows = portability(runs).platforms.query("platform == 'V100'")
    assert list(rows["bound"]) == ["dram"] * 3 + ["compute"] * 3


@pytest.mark.parametrize("nw", paper.TABLE_1)
def test_canonical_flops_of_table_1(nw: int) -> None:
    executed, canonical = paper.TABLE_1[nw]
    with_divides, printed = paper.TABLE_1_INTENSITY[nw]
    run = PlatformRun("V100", "GPP", f"nw={nw}", "t.csv", performance=2e12, work=executed * 1e9, canonical=canonical * 1e9)
    run = with_roofs(run, with_divides)
    row = portability([run], Choices(flops="canonical")).platform_rows[0]
    assert row["intensity"] == pytest.approx(printed, rel=1e-4)
    assert row["performance"] == pytest.approx(2e12 * canonical / executed)
    assert row["work"] == canonical * 1e9
    given = portability([run], Choices(flops="canonical", canonical={run.variant: executed * 1e9})).platform_rows[0]
    assert given["performance"] == pytest.approx(2e12)


def with_roofs(run: PlatformRun, intensity: float = 4.0, origin: str = "measured") -> PlatformRun:
    return PlatformRun(
        **{
            **{name: getattr(run, name) for name in run.__dataclass_fields__},
            "intensity": {"dram": intensity, "l2": 1.0},
            "compute": {
                "fma": PlatformRoof(7.0e12, origin),
                "nofma": PlatformRoof(3.5e12, origin),
                "divide_nofma": PlatformRoof(0.5e12, origin),
            },
            "bandwidth": {"dram": PlatformRoof(0.8e12, origin), "l2": PlatformRoof(3.0e12, origin)},
        }
    )


def runs_of(*names: str, **others: str) -> list[PlatformRun]:
    """A run on each platform; ``others`` maps platforms to what their table says of support."""
    found = [with_roofs(PlatformRun(name, "A", "", "t.csv", performance=1.6e12)) for name in names]
    return [*found, *(PlatformRun(name, "A", "", "t.csv", supported=word) for name, word in others.items())]


def only(result: Portability) -> float:
    (row,) = result.summary_rows
    return float(row["portability"])


def test_the_set_of_platforms_decides() -> None:
    assert only(portability(runs_of("P", "Q"))) == pytest.approx(0.5)
    assert only(portability(runs_of("P", "Q", R="no"))) == 0
    assert only(portability(runs_of("P", "Q", R="no"), Choices(platforms=("P", "Q")))) == pytest.approx(0.5)


def test_not_run_is_left_out_and_said() -> None:
    gflops, intensity, printed = paper.STRIDE_16_KNL
    knl = PlatformRun("KNL", "GPP", "stride=16", "t.csv", performance=gflops * 1e9, intensity={"dram": intensity})
    knl = PlatformRun(**{**knl.__dict__, "compute": {"fma": PlatformRoof(paper.KNL_FMA * 1e9, "measured")}})
    knl = PlatformRun(**{**knl.__dict__, "bandwidth": {"dram": PlatformRoof(paper.KNL_HBM_STRIDES * 1e9, "measured")}})
    result = portability([knl, PlatformRun("V100", "GPP", "stride=16", "t.csv", supported="not run")])
    assert 100 * only(result) == pytest.approx(printed, abs=paper.TOLERANCE)
    assert result.warnings == ("V100 stride=16: not run, and left out of the set of platforms",)
    assert result.summary_rows[0]["platforms"] == 1
    assert result.summary_rows[0]["not_run"] == "V100"


def test_a_platform_without_a_row_makes_it_zero_and_is_named() -> None:
    result = portability(runs_of("P", "Q"), Choices(platforms=("P", "Q", "R")))
    assert only(result) == 0
    assert any(text.startswith("R: no input has it") for text in result.warnings)
    assert result.summary_rows[0]["unsupported"] == "R"


def test_above_one_hundred_per_cent_is_called_impossible() -> None:
    result = portability(runs_of("P"), Choices(ceiling="divide_nofma"))
    assert only(result) == pytest.approx(3.2)
    assert "320.0% is impossible: executed FLOPs do not belong under" in result.warnings[0]
    assert portability(runs_of("P")).warnings == ()


@pytest.mark.parametrize(("share", "warned"), [(1.0, False), (1.0064, True)])
def test_a_little_above_is_told_with_its_other_reason(share: float, warned: bool) -> None:
    run = dataclasses.replace(runs_of("P")[0], performance=share, attainable=1.0, compute={}, bandwidth={})
    warnings = portability([run]).warnings
    assert [w for w in warnings if "impossible (unless two measurements differ by that much)" in w] == list(warnings) * warned
    assert bool(warnings) == warned


def test_theoretical_roofs_are_said() -> None:
    run = with_roofs(runs_of("P")[0], origin="theoretical")
    assert "theoretical" in portability([run]).warnings[0]


def test_levels_and_ceilings() -> None:
    run = PlatformRun(**{**runs_of("P")[0].__dict__, "fma_share": 0.6})

    def row(**choices: object) -> dict[str, object]:
        return portability([run], Choices(**choices)).platform_rows[0]  # type: ignore[arg-type]

    assert row()["attainable"] == pytest.approx(3.2e12)
    assert row(level="l2")["attainable"] == pytest.approx(3.0e12)
    assert row(level="binding")["level"] == "l2"
    assert row(levels={"P": "l2"})["level"] == "l2"
    assert row(levels={"Q": "l2"})["level"] == "dram"
    assert row(ceiling="mix")["compute_roof"] == pytest.approx(
        0.8 * 7.0e12
    )  # beta of alpha 60 %, section III of the 2019 paper


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (Choices(level="mcdram"), r"Cannot compare t\.csv: P has no intensity at mcdram \(it has dram, l2\)"),
        (Choices(ceiling="divide"), r"has no divide ceiling in fp \(it has fma, nofma, divide_nofma\)"),
        (Choices(ceiling="mix"), r"has no mix ceiling"),
        (Choices(flops="canonical"), r"has no canonical FLOP count"),
        (Choices(flops="canonical", canonical={"": 1e12}), r"rates only"),
        (Choices(flops="canonical", canonical={"x": 1e12}), r"Cannot use --canonical-flops of x: there is no such variant"),
    ],
)
def test_what_is_missing_is_named(choices: Choices, message: str) -> None:
    with pytest.raises(RooflineError, match=message):
        portability(runs_of("P"), choices)


def test_levels_keep_their_order() -> None:
    """Of several that bind alike the first is named, in every run."""
    levels = ("l1", "dram", "shared", "l2", "pcie", "system", "l3", "nvlink")
    row: Any = SimpleNamespace(roofs=(), traffic=dict.fromkeys(levels[:4], 1.0), intensity=dict.fromkeys(levels, 1.0))
    ceilings: Any = SimpleNamespace(
        by_id={}, status="measured", compute=lambda _: None, bandwidth=lambda _: SimpleNamespace(value=1e12, impossible=False)
    )
    assert tuple(table_roofs(row, ceilings, "fp64")[1]) == levels


def test_one_canonical_count_for_several_variants_is_refused() -> None:
    runs = [PlatformRun(**{**run.__dict__, "variant": name}) for name in "ab" for run in runs_of("P")]
    with pytest.raises(RooflineError, match=r"can't hold for 2 variants. Give one for each, as a=1e12"):
        portability(runs, Choices(flops="canonical", canonical={"": 1e12}))


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [-0.1]])
def test_no_portability_without_efficiencies(values: list[float]) -> None:
    with pytest.raises(ValueError, match="efficiency of at least 0"):
        performance_portability(values)


def test_unknown_choices() -> None:
    with pytest.raises(ValueError, match="flops must be one of executed, canonical"):
        Choices(flops="counted")
    with pytest.raises(RooflineError, match="they hold no run"):
        portability([])


def test_two_applications_need_names() -> None:
    runs = [PlatformRun(**{**run.__dict__, "application": name}) for name in ("A", "B", "") for run in runs_of("P")]
    with pytest.raises(RooflineError, match="it names no application, and the other inputs name A, B"):
        portability(runs)
    assert len(portability(runs[:2]).summary) == 2


def test_frames_have_the_declared_columns() -> None:
    result = portability(runs_of("P", "Q", R="no"))
    assert list(result.platforms.columns) == [column.name for column in PORTABILITY_PLATFORMS]
    assert list(result.summary.columns) == [column.name for column in PORTABILITY_SUMMARY]


def test_kernels_of_an_application_are_added_up() -> None:
    """Two kernels, one twice as long as the other: work and bytes of both in the time of both."""
    rows = [
        {"platform": "P", "kernel": "a", "flops": 4e12, "bytes_dram": 1e12, "seconds": 2, "peak": 1e13, "bandwidth_dram": 2e12},
        {"platform": "P", "kernel": "b", "flops": 2e12, "bytes_dram": 2e12, "seconds": 4, "peak": 1e13, "bandwidth_dram": 2e12},
    ]
    table = plain_rows("t", list(rows[0]), [("row", row) for row in rows])
    (row,) = portability(runs_of_table(table, lambda _: None)).platform_rows
    assert (row["performance"], row["intensity"]) == (pytest.approx(1e12), pytest.approx(2.0))
    assert row["efficiency"] == pytest.approx(1e12 / 4e12)
    by_kernel = portability(runs_of_table(table, lambda _: None, by="kernel")).summary
    assert list(by_kernel["variant"]) == ["a", "b"]
    rates = [{**row, "seconds": "", "flops": "", "gflop/s": 1e3} for row in rows]
    table = plain_rows("t", list(rates[0]), [("row", row) for row in rates])
    with pytest.raises(RooflineError, match="can't be added up"):
        portability(runs_of_table(table, lambda _: None))


def test_a_frame_from_a_notebook(tmp_path: Path) -> None:
    sweep = paper.TABLE_4
    result = portability(pd.read_csv(sweep_table(tmp_path, sweep)))
    assert list(100 * result.summary["portability"]) == pytest.approx(sweep.portability, abs=paper.TOLERANCE)


def test_runs_of_a_roofline(tmp_path: Path) -> None:
    published_report.write(tmp_path)
    result = roofline(tmp_path / published_report.REPORT, tmp_path / published_report.CEILINGS, by="kernel")
    runs = runs_of_roofline(result, by="kernel")
    assert [100 * row["efficiency"] for row in portability(runs).platform_rows] == pytest.approx(
        published.EFFICIENCY, abs=paper.TOLERANCE
    )


def test_integer_work_of_every_launch(tmp_path: Path) -> None:
    """Also of those with other work, which is what counts unless integers are asked for; what lacks counts is told."""
    metrics = {**A100, **timing(seconds=1e-3), **NO_WORK, **traffic(10**8, 10**6, 10**7)}
    several = [
        kernel(metrics, name="alone", instances=opcodes(IMAD=1e6)),
        kernel({**metrics, **flops("f", fma=10**8)}, name="both", instances=opcodes(IMAD=3e6, FFMA=1e6)),
    ]
    runs, said = read_runs([report(tmp_path / "a.ncu-rep", *several)], reading=Reading(precision="int32"))
    result = portability(runs)
    (row,) = result.platform_rows
    assert (row["unit"], row["work"], row["seconds"], said) == ("op", 32 * 4e6, 2e-3, [])
    text = render(result, "text").decode()
    told = ("64 GOP/s", "6.4 OP/B", "P: performance [OP/s]", "Executed OPs under the ceiling of INT32")
    assert [one for one in told if one not in text] == []
    assert "FLOP" not in text
    assert "64 GOP/s" in repr(result)
    runs, said = read_runs([report(tmp_path / "b.ncu-rep", *several, kernel(metrics))], reading=Reading(precision="int32"))
    assert runs[0].work == 32 * 4e6
    assert "launches with 33.3 % of the time are left out, as they lack metrics" in said[0]
    full = kernel({**metrics, **flops("f", fma=10**6)}, instances=opcodes(IMAD=0.9 * 64 * 108 * 1.41e9 * 1e-3 / 32, FFMA=1e4))
    (run,), _ = read_runs([report(tmp_path / "c.ncu-rep", full)])
    assert run.precision == "fp32"


def test_an_open_report_is_no_run() -> None:
    with (
        read_report(Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep") as opened,
        pytest.raises(TypeError, match="not of type Report"),
    ):
        portability(opened)  # type: ignore[arg-type]
