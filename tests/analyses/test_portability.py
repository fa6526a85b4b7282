"""Performance portability against the published tables, and of reports; what the set of platforms decides is in *.frames."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import portability as analysis
from ncu_roofline.analyses import render
from ncu_roofline.analyses.portability import Choices, Platform, PlatformRoof, PlatformRun, Reading, portability, read_runs
from ncu_roofline.formats.report import read_report
from tests import published, published_report
from tests.analyses import published_portability as paper
from tests.analyses.makers import written

PLATFORMS = ("KNL", "V100")


def misprinted(name: str, i: int) -> bool:
    return (paper.SWEEPS[name], i) == paper.MISPRINTED


def sweep_table(folder: Path, sweep: Any) -> Path:
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


def test_printed_efficiencies_give_the_printed_portability() -> None:
    for name, sweep in paper.SWEEPS.items():
        for i in range(len(sweep.values)):
            got = 100 * analysis.performance_portability(sweep.efficiency[p][i] / 100 for p in range(2))
            off = 0.26 if misprinted(name, i) else 0
            assert abs(got - sweep.portability[i]) == pytest.approx(off, abs=paper.TOLERANCE), (name, i)
    for bar in paper.TABLE_2:
        bandwidth = (paper.KNL_HBM, paper.V100_HBM)
        es = [bar.gflops[p] / min(bar.ceiling[p], bandwidth[p] * bar.intensity[p]) for p in range(2)]
        assert [100 * e for e in es] == pytest.approx(bar.efficiency, abs=paper.TOLERANCE)
        assert 100 * analysis.performance_portability(es) == pytest.approx(bar.portability, abs=paper.TOLERANCE)
    gflops, intensity, printed = paper.DATA["STRIDE_16_KNL"]  # where the V100 was not run
    assert 100 * analysis.performance_portability([gflops / (paper.DATA["HBM_STRIDES"] * intensity)]) == pytest.approx(
        printed, abs=0.02
    )
    for values in ([], [0.5, math.nan], [-0.1]):
        with pytest.raises(ValueError, match="efficiency of at least 0"):
            analysis.performance_portability(values)


def test_canonical_flops_of_table_1() -> None:
    roofs = {"compute": {"fma": PlatformRoof(7e12, "measured")}, "bandwidth": {"dram": PlatformRoof(8e11, "measured")}}
    for nw, (executed, canonical) in paper.TABLE_1.items():
        with_divides, printed = paper.TABLE_1_INTENSITY[nw]
        counted = {
            "work": executed * 1e9,
            "canonical": canonical * 1e9,
            "performance": 2e12,
            "intensity": {"dram": with_divides},
        }
        (row,) = portability(
            [PlatformRun("V100", "GPP", "", "t.csv", **counted, **roofs)], Choices(flops="canonical")
        ).platform_rows
        assert row["intensity"] == pytest.approx(printed, rel=1e-4)
        assert row["performance"] == pytest.approx(2e12 * canonical / executed)


@pytest.mark.parametrize("name", paper.SWEEPS)
def test_sweeps_from_a_table(tmp_path: Path, name: str) -> None:
    sweep = paper.SWEEPS[name]
    path = sweep_table(tmp_path, sweep)
    runs, warnings = read_runs([path])
    result = portability(runs, Choices(ceiling=sweep.ceiling))
    above = [i for i in range(len(sweep.values)) if misprinted(name, i)]  # where the raw data give more than 100 %
    told = [text.partition(":")[0] for text in result.warnings]
    assert (warnings, told) == ([], [f"V100 {sweep.parameter}={sweep.values[i]}" for i in above])
    assert list(result.summary["variant"]) == [f"{sweep.parameter}={value}" for value in sweep.values]
    assert list(100 * result.summary["portability"]) == pytest.approx(sweep.portability, abs=paper.TOLERANCE)
    for p, platform in enumerate(PLATFORMS):
        rows = result.platforms.query("platform == @platform")
        printed = [100.64 if i in above and platform == "V100" else one for i, one in enumerate(sweep.efficiency[p])]
        assert list(100 * rows["efficiency"]) == pytest.approx(printed, abs=paper.TOLERANCE)
        if (name, platform) == ("table III, FMA", "V100"):
            assert list(rows["bound"]) == ["dram"] * 3 + ["compute"] * 3
    if sweep.ceiling == "fma":  # a frame from a notebook is the same
        assert portability(pd.read_csv(path)).summary["portability"].tolist() == result.summary["portability"].tolist()


def test_a_report_beside_a_table(tmp_path: Path) -> None:
    """Table III once more: the V100 from a report's counters and measured ceilings, the KNL from a table."""
    published_report.write(tmp_path)
    sweep = paper.TABLE_3_FMA
    knl = sweep_table(tmp_path, sweep)
    knl.write_text("".join(line for line in knl.read_text().splitlines(keepends=True) if "V100" not in line))
    path, ceilings = (tmp_path / name for name in (published_report.REPORT, published_report.CEILINGS))
    runs, _ = read_runs([Platform(str(knl)), Platform(str(path), "V100")], [ceilings], Reading(label="nvtx"))
    result = portability(runs)
    assert list(100 * result.summary["portability"]) == pytest.approx(sweep.portability, abs=paper.TOLERANCE)
    v100 = result.platforms.query("platform == 'V100'")
    assert list(100 * v100["efficiency"]) == pytest.approx(published.EFFICIENCY, abs=paper.TOLERANCE)
    about = v100[["compute_origin", "bandwidth_origin", "precision", "application"]].drop_duplicates()
    assert about.to_numpy().tolist() == [["measured", "measured", "fp64", "GPP"]]  # the report names no application
    alone = analysis.runs_of_roofline(roofline(path, ceilings, by="kernel"), by="kernel")
    found = [100 * row["efficiency"] for row in portability(alone).platform_rows]
    assert found == pytest.approx(published.EFFICIENCY, abs=paper.TOLERANCE)


def test_levels_keep_their_order() -> None:
    """Of several that bind alike the first is named, in every run."""
    levels = ("l1", "dram", "shared", "l2", "pcie", "system", "l3", "nvlink")
    row: Any = SimpleNamespace(roofs=(), traffic=dict.fromkeys(levels[:4], 1.0), intensity=dict.fromkeys(levels, 1.0))
    roof = SimpleNamespace(value=1e12, impossible=False)
    ceilings: Any = SimpleNamespace(by_id={}, status="measured", compute=lambda _: None, bandwidth=lambda _: roof)
    assert tuple(analysis.table_roofs(row, ceilings, "fp64")[1]) == levels


def test_integer_work_of_every_launch(tmp_path: Path) -> None:
    """Also of those with other work, which is what counts unless integers are asked for; what lacks counts is told."""
    idle = {"idle": True, "l1": 10**8, "l2_sectors": 10**6, "dram": 10**7}
    both = {**idle, "name": "both", "opcodes": {"IMAD": 3e6, "FFMA": 1e6}, "fp32": 1e8}
    several = [{**idle, "name": "alone", "opcodes": {"IMAD": 1e6}}, both]
    runs, said = read_runs([written(tmp_path, "a", several)], reading=Reading(precision="int32"))
    result = portability(runs)
    (row,) = result.platform_rows
    assert (row["unit"], row["work"], row["seconds"], said) == ("op", 32 * 4e6, 2e-3, [])
    text = render(result, "text").decode()
    told = ("64 GOP/s", "6.4 OP/B", "P: performance [OP/s]", "Executed OPs under the ceiling of INT32")
    assert [one for one in told if one not in text] == []
    assert ("FLOP" in text, "64 GOP/s" in repr(result)) == (False, True)
    runs, said = read_runs([written(tmp_path, "b", [*several, idle])], reading=Reading(precision="int32"))
    assert (runs[0].work, len(said)) == (32 * 4e6, 1)
    assert "launches with 33.3 % of the time are left out, as they lack metrics" in said[0]
    full = {**idle, "fp32": 1e6, "opcodes": {"IMAD": 0.9 * 64 * 108 * 1.41e9 * 1e-3 / 32, "FFMA": 1e4}}
    (run,), _ = read_runs([written(tmp_path, "c", [full])])
    assert run.precision == "fp32"


def test_an_open_report_is_no_run() -> None:
    demo = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep"
    with read_report(demo) as opened, pytest.raises(TypeError, match="not of type Report"):
        portability(opened)  # type: ignore[arg-type]
