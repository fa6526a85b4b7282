"""Sweeps and FMA mixes in pictures and tables: the published GPP sweep, and synthetic ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline import Roofline, roofline
from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.hierarchical.kernels import kernel_labels
from ncu_roofline.analyses.hierarchical.picture import MAX_MIXES, Panel, Series, chart, figure, mixes, sweep_marks
from ncu_roofline.analyses.hierarchical.style import Band, ChartRoof
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.picture import settings
from tests import published
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.rendering.test_picture import drawn as drawn_texts
from tests.rendering.test_picture import overlapping

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
PUBLISHED = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}
NW = [f"nw={nw}" for nw in range(1, 7)]
NAN = float("nan")


@pytest.fixture(scope="module")
def gpp() -> Roofline:
    """The published sweep under the published measured roofs."""
    return roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")


def sweep(kernels: int = 2, steps: int = 3) -> FakeRoofline:
    """Synthetic kernels, each in some steps that move to the right."""
    parts = []
    for step in range(steps):
        made = make_roofline(kernels, zero_flop=0, report=f"n{step}.ncu-rep")
        for frame in (made.points, made.kernels):
            frame["step"], frame["label"], frame["launch"] = step, f"n={step}", -1
        made.points["intensity"] *= 1.7**step
        parts.append(made)
    join = lambda name: pd.concat([getattr(part, name) for part in parts], ignore_index=True)  # noqa: E731
    return FakeRoofline(join("points"), parts[0].roofs, join("kernels"))


def drawn(frames: Any, gid: str) -> list[Any]:
    """The artists of a picture that carry an id."""
    with settings():
        made = figure(frames)
    return [artist for axes in made.axes for artist in [*axes.lines, *axes.texts] if artist.get_gid() == gid]


def marks(frames: Any, role: str) -> list[Any]:
    """The marks of a role in the first panel."""
    panels = chart(frames).panels
    return [mark for mark in sweep_marks(panels[0], panels) if mark.role == role]


def said(frames: Any, role: str) -> list[str]:
    return [mark.labels[0] for mark in marks(frames, role)]


def test_lines_go_through_the_published_points(gpp: Roofline) -> None:
    lines = drawn(gpp, "trajectory")
    assert len(lines) == 3
    for line, intensities in zip(lines, PUBLISHED.values(), strict=True):
        assert line.get_xdata() == pytest.approx(intensities, rel=1e-9)
        assert line.get_ydata() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)


def test_arrows_point_along_the_sweep(gpp: Roofline) -> None:
    with settings():
        (axes,) = [axes for axes in figure(gpp).axes if axes.get_xscale() == "log"]
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) >= 4
    # From one step of GPP to the next performance rises, but for the small step back at nw = 5.
    ups = [arrow.xy[1] - arrow.xyann[1] for arrow in arrows]
    assert sum(up > 0 for up in ups) >= len(ups) - 1
    assert all(0 <= value <= 1 for arrow in arrows for value in arrow.xy)


def test_every_step_is_named_once_and_no_label_covers_another(gpp: Roofline) -> None:
    steps = sorted(drawn(gpp, "label-step"), key=lambda text: str(text.get_text()))
    assert [text.get_text().partition(",")[0] for text in steps] == NW
    assert steps[0].get_text() == "nw=1, 552 ms"
    made, texts = drawn_texts(gpp)
    assert made
    assert overlapping(texts) == []


@pytest.mark.parametrize(
    "preset", ["column", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in (None, "page", "slide"))]
)
def test_every_step_is_told_with_its_time(preset: str | None) -> None:
    reports = [DEMO / f"gpp-h100-nw{nw}.ncu-repz" for nw in range(1, 7)]
    found = roofline(reports, trajectory=True)
    with settings():
        made = figure(found, preset=preset)
    texts = [text for axes in made.axes for text in axes.texts]
    told = [one.get_text() for one in texts if one.get_gid() in ("label-step", "key")]
    times = found.kernels.groupby("step").seconds.sum()
    for step, seconds in times.items():
        time = format_value(seconds, "second", 3)
        assert [one for one in told if one.startswith(f"nw{int(step) + 1}") and one.endswith(time)], (preset, told)


def test_one_kernel_in_the_legend_without_its_reports() -> None:
    frames = sweep(2, 3)
    assert set(kernel_labels(frames).values()) == set(frames.points["kernel"])
    labels = [kernel.label for kernel in chart(frames).kernels]
    assert sorted(labels) == sorted(set(frames.points["kernel"]))
    assert len(labels) == 2


def test_same_kernel_of_two_reports_without_a_sweep_keeps_the_report() -> None:
    frames = sweep(1, 2)
    for frame in (frames.points, frames.kernels):
        frame["step"] = -1
    (name,) = set(frames.points["kernel"])
    assert set(kernel_labels(frames).values()) == {f"{name} [n0]", f"{name} [n1]"}
    assert marks(frames, "trajectory") == []


def test_trajectories_follow_the_steps_not_the_rows() -> None:
    frames = sweep(1, 3)
    shuffled = FakeRoofline(frames.points.iloc[::-1].reset_index(drop=True), frames.roofs, frames.kernels)
    for path in marks(shuffled, "trajectory"):
        assert np.diff([x for x, _ in path.places]).min() > 0


def test_a_step_without_a_level_is_left_out_of_its_line() -> None:
    frames = sweep(1, 3)
    points = frames.points
    frames = FakeRoofline(
        points[(points.level != "l2") | (points.step != 1)].reset_index(drop=True), frames.roofs, frames.kernels
    )
    assert [len(path.places) for path in marks(frames, "trajectory")] == [3, 2, 3]


@pytest.mark.parametrize(("kernels", "named"), [(1, 5), (3, 15), (4, 8), (9, 0)])
def test_many_kernels_are_named_at_the_ends_only(kernels: int, named: int) -> None:
    names = said(sweep(kernels, 5), "step")
    assert len(names) == named
    assert {text.partition(",")[0] for text in names[:5]} == (
        {f"n={i}" for i in range(5)} if kernels <= 3 else {"n=0", "n=4"} if named else set()
    )


def panel(*shares: float, peak: float = 1e13, intensity: float = 100.0) -> Panel:
    """Kernels with these FMA shares at one intensity under a compute roof and its no-FMA half."""
    roofs = [
        ChartRoof("fp64.fma", "compute", "", "fp64", "FMA", "flop/s", {"theoretical": Band(peak, peak)}),
        ChartRoof("fp64.nofma", "compute", "", "fp64", "", "flop/s", {"theoretical": Band(peak / 2, peak / 2)}),
    ]
    roofs.append(ChartRoof("dram", "bandwidth", "dram", "", "DRAM", "byte/s", {"theoretical": Band(1e12, 1e12)}))
    series = [
        Series(f"k{i}", "fp64", 1e12, 1.0, (("dram", intensity),), fma_share=share, mix_roof=peak * (1 + share) / 2)
        for i, share in enumerate(shares)
    ]
    return Panel("", "flop", tuple(series), tuple(roofs))


def test_mark_of_the_published_mix(gpp: Roofline) -> None:
    (mark,) = drawn(gpp, "mix")
    assert mark.get_ydata() == pytest.approx([5.655e12] * 2, rel=1e-3)
    assert mark.get_xdata()[0] < published.INTENSITY_DRAM[-1] < mark.get_xdata()[1]
    assert [text.get_text() for text in drawn(gpp, "label-mix")] == ["FMA mix 80 % 5.66 TFLOP/s"]


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ((0.6,), ["FMA mix 80 % 8 TFLOP/s"]),
        ((0.6, 0.6), ["FMA mix 80 % 8 TFLOP/s"]),
        ((0.6, 0.5), ["FMA mix 80 % 8 TFLOP/s", "FMA mix 75 % 7.5 TFLOP/s"]),
        ((0.7, 0.2), ["FMA mix 85 % 8.5 TFLOP/s", "FMA mix 60 % 6 TFLOP/s"]),
        ((1.0, 0.0), []),  # the roofs themselves
        ((NAN,), []),
    ],
)
def test_marks_of_mixes(shares: tuple[float, ...], texts: list[str]) -> None:
    assert [line.labels[0] for line in mixes(panel(*shares)) if line.labels] == texts


def test_no_mark_where_memory_limits_to_less() -> None:
    assert len(mixes(panel(0.6, intensity=8.1))) == 1
    assert mixes(panel(0.6, intensity=7.9)) == []


def test_no_marks_where_they_would_be_many() -> None:
    shares = (0.05, 0.3, 0.6, 0.9)
    found = mixes(panel(*shares[:MAX_MIXES]))
    assert len(found) == MAX_MIXES
    assert mixes(panel(*shares)) == []


def test_rows_of_a_sweep_stay_together_in_order(gpp: Roofline) -> None:
    assert [row["label"] for row in kernels_table(gpp).rows] == NW
    frames = sweep(2, 3)
    names = [(row["kernel"], row["step"]) for row in kernels_table(frames).rows]
    assert [step for _, step in names] == [0, 1, 2, 0, 1, 2]
    assert len({kernel for kernel, _ in names[:3]}) == 1


@pytest.mark.parametrize("width", [60, 72, 120])
def test_text_has_steps_and_stays_in_its_width(gpp: Roofline, width: int) -> None:
    text = text_table(gpp, width=width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line for line in text.splitlines() if line.startswith("sigm") and ": " not in line.partition("nw=")[2][:4]]
    assert [line.split()[1] for line in lines] == NW
    header = next(line for line in text.splitlines() if line.strip().startswith("precision"))
    assert header.split()[:6] == ["precision", "L1", "L2", "DRAM", "performance", "of"]
    assert ("FMA" in header.split()) == ("of mix" in header) == ("60.0 %  83.0 %" in text) == (width > 60)


def test_markdown_has_steps_and_mixes(gpp: Roofline) -> None:
    lines = [line for line in render(gpp, "md").decode().splitlines() if line.startswith("|")]
    assert [word.strip() for word in lines[0].split("|")[1:3]] == ["kernel", "step"]
    assert [word.strip() for word in lines[0].split("|")[-3:-1]] == ["FMA", "of mix roof"]
    cells = [word.strip() for word in lines[7].split("|")]
    assert cells[2] == "nw=6"
    assert cells[-3:-1] == ["60.0 %", "83.0 %"]


def test_times_that_a_file_does_not_give_do_not_split_a_kernel() -> None:
    frames = make_roofline(1, zero_flop=0)
    frames.points["seconds"] = [float("nan") for _ in range(len(frames.points))]
    (series,) = chart(frames).panels[0].series
    assert len(series.dots) == 3
