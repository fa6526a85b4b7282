"""The time view: what the charts show as data, then the artists, then tables, data formats and the page."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from ncu_roofline import roofline
from ncu_roofline.analyses import ANALYSES, render, text_table
from ncu_roofline.analyses.hierarchical.style import bounds
from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.analyses.time.picture import chart, time_figure
from ncu_roofline.rendering.chart import Line, Panel
from ncu_roofline.rendering.paper import Pen
from ncu_roofline.rendering.plan import Plan
from tests.analyses.time_frames import ordinary, point
from tests.rendering.frames import ODD
from tests.rendering.test_picture import drawn, faults

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
LATENCY = 4.2e-6
FORMATS = ("html", "png", "svg", "pdf", "csv", "json", "parquet", "md", "text")


@pytest.fixture(scope="module")
def gpp() -> TimeRoofline:
    frame = roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")
    return time_roofline(frame, launch_latency=LATENCY)


def several(gpus: int = 2) -> TimeRoofline:
    """Kernels of all kinds on some GPUs: bound by memory, compute and launches, at the roofline, without work."""
    rows = []
    for device, scale in (("GPU one", 1.0), ("GPU two", 3.0))[:gpus]:
        machine = {"device": device, "compute_roof": 8e12 * scale, "bandwidth_roof": 1e12 * scale}
        rows += [
            point("stream", work=1e8, traffic=1e9, seconds=3e-3 / scale, launches=3, **machine),
            point("matmul", work=1e11, traffic=1e9, seconds=2e-2 / scale, **machine),
            point("tiny", work=1e4, traffic=1e5, seconds=3e-6, **machine),
            point("ideal", work=8e9, traffic=1e9, seconds=1e-3 / scale, **machine),
            point(
                "single", work=8e9, traffic=1e8, seconds=1e-3, **{**machine, "precision": "fp32", "compute_roof": 16e12 * scale}
            ),
        ]
    idle = {"kernel": "copy", "seconds": 1e-3, "status": "zero-flop", "device": "GPU one", "launches": 7}
    return time_roofline(ordinary(rows, [idle], dram=[row["traffic"] for row in rows] + [5e8]), launch_latency=LATENCY)


def hostile() -> TimeRoofline:
    rows = [point(short, seconds=10.0**-n, notes=full) for n, (full, short) in enumerate(ODD)]
    return time_roofline(ordinary(rows, [{"kernel": ODD[1][0], "seconds": 1.0, "status": "zero-flop"}]), launch_latency=LATENCY)


def panels(frames: TimeRoofline) -> dict[str, Plan]:
    """The first panel of each title, on paper."""
    made = chart(frames)
    assert made
    found = {
        panel.title: Plan(panel, 200, 180, Pen()) for row in reversed(made.rows) for panel in row if isinstance(panel, Panel)
    }
    return {title.partition(",")[0] if title.startswith("Complexity, ") else title: one for title, one in found.items()}


def by_name(found: Plan, role: str = "dot") -> dict[str, tuple[float, float]]:
    return {point.name: (point.x, point.y) for point in found.points if point.role == role}


def lines(found: Plan, role: str) -> list[Line]:
    return [line for line in found.lines if line.role == role]


class TestPanels:
    def test_complexity(self) -> None:
        found = panels(several(1))["Complexity"]
        places = by_name(found)
        assert (places["stream"], places["tiny"]) == ((1e9, 1e8), (1e5, 1e4))
        balances = lines(found, "balance")
        labels = [mark.labels for mark in found.panel.marks if mark.role == "balance"]
        assert labels == [("balance 8 FLOP/B (FP64)",), ("balance 16 FLOP/B (FP32)",)]
        for line, balance in zip(balances, (8.0, 16.0), strict=True):
            assert [y / x for x, y in line.places] == pytest.approx([balance] * 2)
        for line in lines(found, "contour"):
            (x0, y0), (x1, y1) = line.places
            assert y0 / x0 == pytest.approx(y1 / x1)
            assert math.log10(y0 / x0) == pytest.approx(round(math.log10(y0 / x0)))

    def test_overhead_regions(self) -> None:
        found = panels(several(1))
        regions = found["Complexity"].regions
        assert [region.labels[0] for region in regions] == ["overhead of 1 launch", "overhead of 3 launches"]
        for region, launches in zip(regions, (1, 3), strict=True):
            assert (region.x, region.y) == pytest.approx((launches * LATENCY * 1e12, launches * LATENCY * 8e12))
        for region, launches in zip(found["Time"].regions, (1, 3), strict=True):
            assert (region.x, region.y) == pytest.approx((launches * LATENCY, launches * LATENCY))

    def test_a_far_region_is_left_to_the_table(self, gpp: TimeRoofline) -> None:
        assert panels(gpp)["Complexity"].regions == []

    def test_time(self) -> None:
        frames = several(1)
        found = panels(frames)["Time"]
        assert (found.view.x0, found.view.x1) == (found.view.y0, found.view.y1)
        for row in frames.points.itertuples():
            assert by_name(found)[row.kernel] == (row.bandwidth_seconds, row.compute_seconds)
            assert max(by_name(found)[row.kernel]) == pytest.approx(row.seconds)
        (diagonal,) = lines(found, "balance")
        assert all(x == pytest.approx(y) for x, y in diagonal.places)
        for line in lines(found, "contour"):  # along it the larger of both times is the same
            assert {max(place) for place in line.places} == {line.places[1][0]}

    def test_dots_meet_rings_at_the_roofline_only(self) -> None:
        frames = several(1)
        found = panels(frames)["Complexity and time, FP64"]
        dots, rings = by_name(found), by_name(found, "ring")
        assert set(dots) == {"stream", "matmul", "tiny", "ideal"}
        assert rings["ideal"] == pytest.approx(dots["ideal"])
        factors = dict(zip(frames.points["kernel"], frames.points["inefficiency"], strict=True))
        for kernel, (x, y) in dots.items():
            assert rings[kernel] == pytest.approx((factors[kernel] * x, factors[kernel] * y))
            assert found.view.holds(x, y)
            assert found.view.holds(*rings[kernel])

    def test_sweep_lines_join_steps_in_order(self, gpp: TimeRoofline) -> None:
        found = panels(gpp)["Complexity and time, FP64"]
        rows = gpp.points.sort_values("step")
        (sweep,), (at_roofs,) = lines(found, "sweep"), lines(found, "sweep-time")
        assert sweep.places == tuple(zip(rows["traffic"], rows["work"], strict=True))
        times = rows["bandwidth_seconds"] * rows["bandwidth_roof"], rows["compute_seconds"] * rows["compute_roof"]
        assert at_roofs.places == tuple(zip(*times, strict=True))

    def test_the_largest_kernels(self) -> None:
        rows = [point(f"k{n}", seconds=1e-3 * (n + 1)) for n in range(40)]
        made = chart(time_roofline(ordinary(rows)))
        assert made
        assert len(made.names) == 30
        assert next(iter(made.names.values())) == "1 k39  4.9 %"
        assert any(note.startswith("The 30 largest of 40 kernels by time are drawn") for note in made.notes)

    def test_less_where_there_is_no_room(self) -> None:
        titles = []
        less = 0
        while made := chart(several(2), less=less):
            titles.append([panel.title for row in made.rows for panel in row])
            less += 1
        assert [len(each) for each in titles] == [8, 6, 4, 2]
        assert titles[-1] == ["Complexity", "Time"]


@pytest.fixture(scope="module")
def picture() -> tuple[Figure, list[Text]]:
    """The figure of `several()` and its visible texts: to look at, not to change."""
    return drawn(several(), time_figure)


class TestPicture:
    def test_second_axes_are_seconds_at_the_roofs(self, gpp: TimeRoofline) -> None:
        made, _ = drawn(gpp, time_figure)
        machine = gpp.machines[gpp.machines["level"] == "dram"].iloc[0]
        both = next(axes for axes in made.axes if axes.get_title(loc="left").startswith("Complexity and time"))
        twins = [axes for axes in made.axes if axes is not both and axes.get_position().bounds == both.get_position().bounds]
        assert len(twins) == 2
        upper, right = twins
        assert upper.get_xlim() == pytest.approx([at / machine.bandwidth for at in both.get_xlim()])
        assert right.get_ylim() == pytest.approx([at / machine.peak for at in both.get_ylim()])

    def test_symbols(self, picture: tuple[Figure, list[Text]]) -> None:
        made, _ = picture
        both = next(axes for axes in made.axes if axes.get_title(loc="left") == "Complexity and time, FP64")
        places = {
            gid: [place for line in both.lines if line.get_gid() == gid for place in line.get_xydata().tolist()]
            for gid in ("dots-full", "point-ring")
        }
        assert len(places["dots-full"]) == len(places["point-ring"]) == 4
        assert any(one == pytest.approx([1e9, 8e9]) for one in places["dots-full"])
        assert any(one == pytest.approx([1e9, 8e9]) for one in places["point-ring"])

    def test_a_row_of_charts_per_gpu(self, picture: tuple[Figure, list[Text]]) -> None:
        made, _ = picture
        titles = [title for axes in made.axes if (title := axes.get_title(loc="left"))]
        charts = ["Time", "Complexity and time, FP64", "Complexity and time, FP32"]
        assert titles == ["Complexity, GPU one", *charts, "Complexity, GPU two", *charts]

    def test_no_text_upon_another(self, picture: tuple[Figure, list[Text]]) -> None:
        assert faults(*picture) == []

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_no_text_upon_another_whatever_is_drawn(self, gpp: TimeRoofline, theme: str) -> None:
        many = [
            point(f"kernel_{n}", work=1e6 * 3.1**n, traffic=1e6 * 1.9**n, seconds=2e-6 * 2.5**n, launches=1 + n % 4)
            for n in range(16)
        ]
        for frames in (gpp, several(), time_roofline(ordinary(many), launch_latency=LATENCY)):
            assert faults(*drawn(frames, time_figure, theme=theme)) == []

    def test_legend(self, gpp: TimeRoofline, picture: tuple[Figure, list[Text]]) -> None:
        _, texts = picture
        said = {one.get_text() for one in texts}
        assert {bounds()[name].label for name in ("memory", "compute", "overhead")} <= said
        assert {"machine balance", "launch overhead"} <= said
        assert "launch overhead" not in {one.get_text() for one in drawn(gpp, time_figure)[1]}

    def test_without_latency(self) -> None:
        _, texts = drawn(time_roofline(ordinary([point()])), time_figure)
        said = " ".join(one.get_text() for one in texts)
        assert "Launch latency unknown" in said
        assert "--launch-latency TIME" in said

    def test_without_roofs(self) -> None:
        made, _ = drawn(time_roofline(ordinary([point(compute_roof=math.nan, bandwidth_roof=math.nan)])), time_figure)
        assert [title for axes in made.axes if (title := axes.get_title(loc="left"))] == ["Complexity", "Time"]


def test_data_formats() -> None:
    frames = several()
    assert set(ANALYSES["time"].formats) == set(FORMATS)
    tables = {"points": columns.TIME_POINTS, "machines": columns.TIME_MACHINES, "absent": columns.TIME_ABSENT}
    for table, declared in tables.items():
        rows = list(csv.DictReader(io.StringIO(render(frames, "csv", table=table).decode())))
        assert list(rows[0]) == [one.name for one in declared]
        floats = [one.name for one in declared if one.dtype == "float"]
        for row, wanted in zip(rows, getattr(frames, table).to_dict("records"), strict=True):
            for name in floats:
                assert math.isnan(wanted[name]) or float(row[name]) == wanted[name]
    with pytest.raises(ValueError, match="points, machines, absent"):
        render(frames, "csv", table="roofs")
    document = json.loads(render(frames, "json"))
    assert (document["view"], document["units"]["compute_seconds"]) == ("time", "second")
    assert [len(document[name]) for name in tables] == [10, 4, 1]
    assert document["absent"][0]["traffic"] == 5e8
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(render(frames, "parquet", table="machines")))
    assert table.schema.field("balance").metadata[b"unit"] == b"flop/byte"
    assert table.column("latency").to_pylist() == [LATENCY] * len(table)


def test_hostile_names() -> None:
    assert all(line.count("|") == 13 for line in render(hostile(), "md").decode().splitlines()[4 : 6 + len(ODD)])
    for output in ("html", "svg"):
        assert "<script>alert" not in render(hostile(), output).decode()


def test_unknown_tensor_work_is_told() -> None:
    frames = several(1)
    kernels = frames.kernel_columns
    kernels["verdict"] = kernels["verdict"].astype(object)
    kernels["verdict"][0] = "tensor work unknown"
    for name in ("text", "html"):
        assert b"Tensor work unknown, so no verdict" in render(frames, name)
        assert b"Tensor work unknown, so no verdict" not in render(several(1), name)


def test_tables(gpp: TimeRoofline) -> None:
    for width in (60, 80, 100, 160):
        lines = text_table(several(), width=width, ascii_only=width == 100).splitlines()
        assert max(map(len, lines)) <= width
        assert any(line.startswith("matmul") and "compute" in line for line in lines)
    text = text_table(several(), width=200)
    first = text.partition("GPU two")[0] if text.startswith("GPU one") else "GPU one" + text.partition("GPU one")[2]
    stream = next(line for line in first.splitlines() if line.split()[:1] == ["stream"])
    micro = "\N{MICRO SIGN}"
    for cell in (" 3 ", "3 ms", "FP64", "100 MFLOP", "1 GB", "0.1", "memory", f"37.5 {micro}s", f"12.6 {micro}s", "3.00x"):
        assert cell in stream, cell
    assert "copy    without floating-point work" in text
    assert f"Launch latency: 4.2 {micro}s (given)." in text
    assert "2 of 10 symbols bound by launch overhead" in text
    lines = [line for line in text_table(gpp).splitlines() if line.startswith("sigma_gpp_gpu")]
    assert [line.split()[1] for line in lines] == [f"nw={nw}" for nw in range(1, 7)]


@pytest.mark.exhaustive
@pytest.mark.reports
@pytest.mark.parametrize(
    "name", ["a100-ncu2022.4-full-1.ncu-rep", "a10g-ncu2023.1-roofline-1.ncu-rep", "a40-ncu2022.4-full-1.ncu-rep"]
)
def test_real_reports(real_reports: dict[str, Path], name: str) -> None:
    frame = roofline(real_reports[name], by="kernel")
    result = time_roofline(frame, launch_latency=LATENCY)
    for row, ordinary_row in zip(
        result.points.itertuples(),
        result.points.merge(frame.points[frame.points.level == "dram"], on=["kernel", "precision"]).itertuples(),
        strict=True,
    ):
        assert max(row.compute_seconds, row.bandwidth_seconds) == pytest.approx(row.seconds)
        assert row.inefficiency == pytest.approx(
            1 / ordinary_row.fraction
        )  # the ordinary model's share of the roof, turned over
    assert faults(*drawn(result, time_figure)) == []


def test_integer_work_counts_operations() -> None:
    whole = point("sort", precision="int32", unit="op", compute_roof=4e12)
    frames = time_roofline(ordinary([whole], [{"kernel": "copy", "seconds": 1e-3, "status": "no-work-metrics"}]))
    for text in (text_table(frames, width=200), render(frames, "md").decode().replace("\\", "")):
        assert "FLOP" not in text
        assert all(unit in text for unit in ("OP/B", "4 TOP/s", "1 GOP"))
        assert "logarithmic" not in text  # what was not collected may well have a place there
    both = time_roofline(ordinary([whole, point("sum")]))
    assert "FLOP/B or OP/B" in text_table(both, width=200) or "OP/B or FLOP/B" in text_table(both, width=200)
    assert "4 OP/B" in text_table(both, width=200)
    assert "8 FLOP/B" in text_table(both, width=200)
