"""The time-based roofline against the published figures, and the property that defines its 4D chart."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline import roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.model import Selection
from tests import published
from tests.analyses.time_frames import GPU, ordinary, point
from tests.factory import A100, H100, NO_WORK, complete, flops, kernel, report, timing, traffic
from tests.published_report import gpp_ceilings

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"

# Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis" (2020).
TENSOR_PEAK = 107.479e12  # section III: measured tensor peak of a V100 at 1.312 GHz, FLOP/s
HBM = 828.8e9  # B/s
BALANCE = 129.68  # FLOP/B
LATENCY = 4.2e-6  # section IV-B: seconds per launch
ROUNDED_PEAK, HIDING_WORK = 1.06e14, 0.4452e9  # section IV-B: FLOP/s, and FLOP that one launch must do


def only(result: TimeRoofline) -> Any:
    assert len(result.points) == 1
    return result.points.iloc[0]


def latencies(path: Path, **values: float) -> Path:
    """A ceilings file of the V100 that holds launch latencies too."""
    document = gpp_ceilings()
    document["ceilings"] = [one for one in document["ceilings"] if one["unit"] != "s"] + [
        {"id": f"launch.{name}", "value": value, "unit": "s", "accepted": True} for name, value in values.items()
    ]
    path.write_text(json.dumps(document))
    return path


class TestPublished:
    def test_machine_balance(self) -> None:
        frame = ordinary([point(precision="tensor.fp16", compute_roof=TENSOR_PEAK, bandwidth_roof=HBM)])
        machine = time_roofline(frame).machines.iloc[0]
        assert machine["balance"] == pytest.approx(BALANCE, abs=0.005)
        assert only(time_roofline(frame))["balance"] == machine["balance"]

    def test_work_that_hides_a_launch(self) -> None:
        frame = ordinary([point(compute_roof=ROUNDED_PEAK, bandwidth_roof=HBM)])
        machine = time_roofline(frame, launch_latency=LATENCY).machines.iloc[0]
        assert machine["overhead_work"] == pytest.approx(HIDING_WORK, rel=1e-12)
        assert machine["overhead_traffic"] == pytest.approx(LATENCY * HBM, rel=1e-12)
        assert machine["latency_origin"] == "given"

    def test_gpp(self) -> None:
        """Bound by HBM at nw = 1, by compute at nw = 6; inefficiency is the inverse of the published efficiency."""
        frame = roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", by="kernel")
        points = time_roofline(frame).points
        balance = published.FP64_FMA / published.DRAM
        assert points["balance"].tolist() == pytest.approx([balance] * 6)
        expected = ["memory" if one < balance else "compute" for one in published.INTENSITY_DRAM]
        assert points["bound"].tolist() == expected
        assert (expected[0], expected[5]) == ("memory", "compute")
        for row, intensity in zip(points.itertuples(), published.INTENSITY_DRAM, strict=True):
            times = (row.bandwidth_seconds, row.compute_seconds)
            other = row.seconds * (intensity / balance if row.bound == "memory" else balance / intensity)
            wanted = (row.seconds, other) if row.bound == "memory" else (other, row.seconds)
            assert times == pytest.approx(wanted, rel=1e-9)
        assert (100 / points["inefficiency"]).tolist() == pytest.approx(published.EFFICIENCY, abs=0.02)


positive = st.floats(1e-3, 1e3)


@given(work=positive, moved=positive, peak=positive, bandwidth=positive, slower=st.floats(1.0, 1e4))
def test_filled_meets_open_exactly_at_the_roofline(
    work: float, moved: float, peak: float, bandwidth: float, slower: float
) -> None:
    """On axes scaled by bandwidth and peak the two symbols are apart by the inefficiency, on both axes alike."""
    work, moved, peak, bandwidth = work * 1e9, moved * 1e8, peak * 1e12, bandwidth * 1e11
    seconds = slower * max(work / peak, moved / bandwidth)
    row = only(
        time_roofline(ordinary([point(work=work, traffic=moved, seconds=seconds, compute_roof=peak, bandwidth_roof=bandwidth)]))
    )
    across = row["bandwidth_seconds"] * bandwidth / moved
    upwards = row["compute_seconds"] * peak / work
    assert across == pytest.approx(slower, rel=1e-9)
    assert upwards == pytest.approx(slower, rel=1e-9)
    assert row["inefficiency"] == pytest.approx(slower, rel=1e-9)
    assert max(row["bandwidth_seconds"], row["compute_seconds"]) == pytest.approx(seconds)
    assert row["bound"] == ("compute" if work / moved >= peak / bandwidth else "memory")


class TestPrecisions:
    def test_the_one_with_the_most_work(self) -> None:
        rows = [point(precision="fp64", work=1e9), point(precision="fp32", work=3e9), point(precision="fp16", work=2e9)]
        assert only(time_roofline(ordinary(rows)))["precision"] == "fp32"

    def test_floating_point_before_integers(self) -> None:
        rows = [point(precision="fp64", work=1e6), point(precision="tensor.int8", work=3e9, unit="op")]
        assert only(time_roofline(ordinary(rows)))["precision"] == "fp64"
        assert only(time_roofline(ordinary(rows[1:])))["unit"] == "op"

    def test_mixed_kernels_stand_under_the_busiest_pipe(self, tmp_path: Path) -> None:
        work = {**flops("d", fma=10**9), **flops("f", fma=4 * 10**9)}
        metrics = {**A100, **timing(1e-3), **NO_WORK, **work, **traffic(10**9, 10**7, 10**9)}
        frame = roofline(report(tmp_path / "mixed.ncu-rep", kernel(metrics)), by="kernel")
        row = only(time_roofline(frame))
        assert (row["precision"], row["work"]) == ("mixed", 1e10)
        peaks = frame.roofs[frame.roofs["roof"].isin(["fp64.fma", "fp32.fma"])].set_index("precision")["value"]
        busiest = max(2e9 / peaks["fp64"], 8e9 / peaks["fp32"])
        assert row["compute_roof"] == pytest.approx(1e10 / busiest)
        assert row["roofline_seconds"] == pytest.approx(max(busiest, 1e9 / row["bandwidth_roof"]))


class TestOverhead:
    @pytest.mark.parametrize(
        ("seconds", "launches", "bound"),
        [(4.1e-6, 1, "overhead"), (4.3e-6, 1, "memory"), (8.3e-6, 2, "overhead"), (8.5e-6, 2, "memory")],
    )
    def test_bound_by_launches(self, seconds: float, launches: int, bound: str) -> None:
        frame = ordinary([point(seconds=seconds, launches=launches, work=1e6, traffic=1e6)])
        row = only(time_roofline(frame, launch_latency=LATENCY))
        assert row["overhead_seconds"] == pytest.approx(launches * LATENCY)
        assert (row["bound"], row["overhead_bound"]) == (bound, "yes" if bound == "overhead" else "no")

    def test_no_number_is_assumed(self) -> None:
        result = time_roofline(ordinary([point()]))
        row, machine = only(result), result.machines.iloc[0]
        assert all(
            math.isnan(value)
            for value in (row["latency"], row["overhead_seconds"], machine["latency"], machine["overhead_work"])
        )
        assert (row["overhead_bound"], machine["latency_origin"]) == ("", "")

    @pytest.mark.parametrize(
        ("values", "seconds"),
        [
            ({"stream": 2e-6, "sync": 6e-6, "graph": 1e-6}, 2e-6),
            ({"sync": 6e-6, "graph": 1e-6}, 6e-6),
            ({"graph": 1e-6}, 1e-6),
        ],
    )
    def test_measured_latency(self, tmp_path: Path, values: dict[str, float], seconds: float) -> None:
        ceilings = read_ceilings(latencies(tmp_path / "c.json", **values))
        machine = time_roofline(ordinary([point()]), ceilings=[ceilings]).machines.iloc[0]
        assert machine["latency"] == seconds
        assert machine["latency_origin"].startswith(f"measured: launch.{next(iter(values))} of c.json")

    def test_given_latency_comes_first(self, tmp_path: Path) -> None:
        ceilings = read_ceilings(latencies(tmp_path / "c.json", stream=2e-6))
        assert only(time_roofline(ordinary([point()]), launch_latency=LATENCY, ceilings=[ceilings]))["latency"] == LATENCY

    def test_latency_of_another_gpu_does_not_count(self, tmp_path: Path) -> None:
        ceilings = read_ceilings(latencies(tmp_path / "c.json", stream=2e-6))
        rows = [point(), point("other", device="NVIDIA A100", compute_capability="8.0")]
        found = time_roofline(ordinary(rows), ceilings=[ceilings]).points.set_index("device")["latency"]
        assert found[GPU] == 2e-6
        assert math.isnan(found["NVIDIA A100"])

    @pytest.mark.parametrize("latency", [0.0, -1e-6, math.inf, math.nan])
    def test_impossible_latency(self, latency: float) -> None:
        with pytest.raises(ValueError, match="launch_latency"):
            time_roofline(ordinary([point()]), launch_latency=latency)


class TestAbsent:
    def test_kernels_without_work_keep_time_and_bytes(self, tmp_path: Path) -> None:
        copy = {**A100, **timing(2e-3), **NO_WORK, **traffic(10**9, 10**7, 10**9)}
        path = report(
            tmp_path / "copy.ncu-rep", kernel(complete()), kernel(copy, "void copy(int *)"), kernel(copy, "void copy(int *)")
        )
        result = time_roofline(roofline(path, by="kernel"), launch_latency=LATENCY)
        assert only(result)["kernel"] == "kernel"
        row = result.absent.iloc[0]
        assert (row["kernel"], row["status"], row["invocations"]) == ("copy", "zero-flop", 2)
        assert (row["seconds"], row["traffic"]) == pytest.approx((4e-3, 2e9))
        assert row["time_share"] == pytest.approx(0.8)
        assert row["roofline_seconds"] == pytest.approx(2e9 / only(result)["bandwidth_roof"])
        assert row["inefficiency"] == pytest.approx(4e-3 / row["roofline_seconds"])
        assert row["overhead_seconds"] == pytest.approx(2 * LATENCY)

    def test_reasons(self, tmp_path: Path) -> None:
        path = report(tmp_path / "r.ncu-rep", kernel(complete()))
        frame = roofline(path, by="kernel")
        assert time_roofline(frame, level="shared").absent["status"].tolist() == ["no-level"]
        chosen = roofline(path, by="kernel", select=Selection(precisions=("fp32",)))
        assert time_roofline(chosen).absent["status"].tolist() == ["no-precision"]
        rates = ordinary([point(work=math.nan)])
        assert time_roofline(rates).absent["status"].tolist() == ["no-totals"]

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        path = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing()}))
        result = time_roofline(roofline(path, by="kernel"))
        assert (len(result.points), len(result.machines)) == (0, 0)
        assert result.absent["status"].tolist() == ["no-work-metrics"]


def test_every_kernel_is_somewhere_once(tmp_path: Path) -> None:
    launches = [
        kernel(complete(A100)),
        kernel(complete(H100)),
        kernel({**A100, **timing(), **NO_WORK, **traffic(1, 1, 1)}, "void z()"),
    ]
    path = report(tmp_path / "r.ncu-rep", *launches, *launches)
    for by in ("launch", "kernel", "application"):
        frame = roofline(path, by=by)
        result = time_roofline(frame)
        assert len(result.points) + len(result.absent) == len(frame.kernels)
        assert result.points["invocations"].sum() + result.absent["invocations"].sum() == frame.kernels["launches"].sum()


def test_steps_of_a_sweep_are_rows() -> None:
    frame = roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")
    points = time_roofline(frame).points
    assert points["label"].tolist() == [f"nw={nw}" for nw in range(1, 7)]
    assert points["step"].tolist() == list(range(6))
    assert points["traffic"].tolist() == pytest.approx([run.bytes_dram for run in published.gpp_runs()])


def test_unknown_roof() -> None:
    row = only(time_roofline(ordinary([point(compute_roof=math.nan)]), launch_latency=LATENCY))
    assert (row["bound"], row["overhead_bound"]) == ("", "")
    assert all(
        math.isnan(row[name])
        for name in ("balance", "compute_seconds", "bandwidth_seconds", "roofline_seconds", "inefficiency")
    )
    assert row["overhead_seconds"] == LATENCY


def test_faster_than_its_roof_is_said() -> None:
    row = only(time_roofline(ordinary([point(seconds=1e-4, notes="first")])))
    assert row["inefficiency"] == pytest.approx(0.2)
    assert row["notes"].startswith("first; faster than its roof allows")


def test_columns_are_those_declared() -> None:
    result = time_roofline(ordinary([point()], [{"kernel": "z", "seconds": 1.0, "status": "zero-flop"}], dram=[5e8, 1.0]))
    for name, declared in (
        ("points", columns.TIME_POINTS),
        ("machines", columns.TIME_MACHINES),
        ("absent", columns.TIME_ABSENT),
    ):
        frame = getattr(result, name)
        kinds = {"object": "str", "int64": "int", "float64": "float"}
        assert [(column, kinds[str(frame[column].dtype)]) for column in frame.columns] == [(c.name, c.dtype) for c in declared]
        assert len(frame) == 1


def test_machine_has_every_level() -> None:
    rows = [point(level=level, bandwidth_roof=speed) for level, speed in (("l1", 14e12), ("l2", 3e12), ("dram", 1e12))]
    machines = time_roofline(ordinary(rows), launch_latency=LATENCY).machines.set_index("level")
    assert machines["balance"].to_dict() == pytest.approx({"l1": 8 / 14, "l2": 8 / 3, "dram": 8.0})
    assert machines.loc["l2", "overhead_traffic"] == pytest.approx(LATENCY * 3e12)
    assert set(machines["peak_origin"]) == set(machines["bandwidth_origin"]) == {"theoretical"}


def test_rates_without_totals_are_absent_for_that_reason(tmp_path: Path) -> None:
    table = tmp_path / "gpp.txt"
    table.write_text(
        "memroofs 829\nmem_roof_names 'HBM'\ncomproofs 7068\ncomp_roof_names 'FMA'\nAI 2 4\nGFLOPs 1500 3000\nlabels 'a' 'b'\n"
    )
    result = time_roofline(roofline(table, by="kernel"))
    assert list(result.absent["status"]) == ["no-totals"]
    text = render(result, "text").decode()
    assert "0.0 %" not in text
    assert not re.search(r"\b0 %", text)
