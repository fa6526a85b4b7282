"""The instruction roofline drawn: axes, walls, open dots, and shared memory on axes of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncu_roofline.analyses.hierarchical.picture import chart, figure
from ncu_roofline.analyses.instruction import InstructionRoofline, instruction_roofline
from ncu_roofline.rendering.picture import settings
from tests import factory
from tests.instruction_factory import accesses, executed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WALLS = {"stride 0": 1.0, "unit stride, 4 B": 1 / 4, "unit stride, 8 B": 1 / 8, "stride >= 32 B": 1 / 32}
CONFLICTS = {"no": 1.0, **{f"{ways}-way": 1 / ways for ways in (2, 4, 8, 16, 32)}}


def roofline_of(folder: Path, **kinds: tuple[int, int]) -> InstructionRoofline:
    """A kernel with these accesses, (instructions, transactions) each."""
    metrics = {**factory.complete(), **executed(40_000_000), **accesses(**kinds)}  # type: ignore[arg-type]
    return instruction_roofline(factory.report(folder / "made.ncu-rep", factory.kernel(metrics)))


def axes_of(roofline: InstructionRoofline) -> list[Axes]:
    """The panels of its picture."""
    with settings():
        made = figure(roofline)
        made.canvas.draw()
    return [axes for axes in made.axes if axes.get_xscale() == "log"]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def vertical(axes: Axes) -> list[float]:
    """Where vertical lines stand."""
    data = [line.get_xdata() for line in axes.lines if line.get_transform() == axes.transData and len(line.get_xdata()) == 2]
    return sorted({float(xs[0]) for xs in data if xs[0] == xs[1]})


def test_axes_and_walls(tmp_path: Path) -> None:
    (axes,) = axes_of(roofline_of(tmp_path, global_ld=(10**6, 4 * 10**6)))
    assert axes.get_xlabel() == "Warp instructions per transaction [inst/TXN]"
    assert axes.get_ylabel() == "Performance [warp GIPS]"
    assert vertical(axes) == pytest.approx(sorted(WALLS.values()))
    for name in WALLS:
        assert any(text.startswith(name) for text in texts(axes)), name
    assert any("GTXN/s" in text for text in texts(axes))
    assert any(text == "Instruction issue 609 GIPS" for text in texts(axes))


def test_walls_keep_their_labels_off_the_dots(tmp_path: Path) -> None:
    (axes,) = axes_of(roofline_of(tmp_path, global_ld=(10**6, 4 * 10**6)))
    renderer: Any = axes.figure.canvas.get_renderer()  # type: ignore[union-attr, attr-defined]
    places = axes.transData.transform([(0.25, 1e9), (1.28, 40e9), (2.56, 40e9), (5.12, 40e9)])
    boxes = [text.get_window_extent(renderer) for text in axes.texts if any(text.get_text().startswith(w) for w in WALLS)]
    assert len(boxes) == len(WALLS)
    assert not [(box, place) for box in boxes for place in places if box.contains(*place)]


def test_global_loads_are_open_dots(tmp_path: Path) -> None:
    (axes,) = axes_of(roofline_of(tmp_path, global_ld=(10**6, 32 * 10**6)))
    ground = axes.get_facecolor()
    dots = [line for line in axes.lines if (line.get_gid() or "").startswith("dots-")]
    from matplotlib.colors import to_rgba

    opened = {bool(to_rgba(line.get_markerfacecolor()) == ground): float(line.get_xdata()[0]) for line in dots}
    assert opened[True] == pytest.approx(1 / 32)
    assert opened[False] > 1


def test_shared_memory_has_axes_of_its_own(tmp_path: Path) -> None:
    result = roofline_of(tmp_path, global_ld=(1, 1), shared_ld=(10**6, 4 * 10**6), shared_st=(10**6, 4 * 10**6))
    first, second = axes_of(result)
    assert (first.get_title("left"), second.get_title("left")) == ("Warp instructions", "Shared loads and stores")
    assert vertical(second) == pytest.approx(sorted(CONFLICTS.values()))
    assert {text for text in texts(second) if "conflict" in text} == {f"{name} bank conflict" for name in CONFLICTS}
    data = chart(result)
    assert [[roof.id for roof in panel.of_kind("bandwidth")] for panel in data.panels] == [["l1", "l2", "dram"], ["shared"]]


def test_an_empty_chart_names_metrics_and_command(tmp_path: Path) -> None:
    bare = factory.report(tmp_path / "bare.ncu-rep", factory.kernel(factory.complete()))
    (axes,) = axes_of(instruction_roofline(bare))
    text = " ".join(" ".join(texts(axes)).split())
    assert "smsp__inst_executed.sum" in text
    assert "ncu-roofline explain --view instruction" in text
    assert axes.get_ylabel().startswith("Performance [warp ")
    assert vertical(axes) == pytest.approx(sorted(WALLS.values()))
