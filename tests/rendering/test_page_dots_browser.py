"""What the dots of the page say: fills for precisions, names where the verdict is, axes that follow it."""

from __future__ import annotations

import pytest

from tests.rendering.browser import Open, until
from tests.rendering.frames import FakeRoofline, make_roofline

pytestmark = pytest.mark.browser

# [precision, whether it is filled with the colour of its level, whether there is a dot in it] of each dot that is drawn.
LOOKS = """chart.data.filter((trace) => trace.meta === "dots")
    .flatMap(({ customdata, marker }) => customdata.map((index, at) => {
    const point = POINTS[index];
    return [point.precision, marker.color[at] === levelColour(point.level), marker.symbol[at].endsWith("-dot")];
}))"""


def several_precisions() -> FakeRoofline:
    """Kernels that work in FP64 and, a hundredth of it three decades left of the axes, in FP32."""
    roofline = make_roofline(4, ("fp64", "fp32"))
    side = roofline.points["precision"] == "fp32"
    for column, factor in {"work": 1e-4, "performance": 1e-4, "intensity": 1e-4}.items():
        roofline.points.loc[side, column] *= factor
    roofline.kernels["limit"] = roofline.points["binds"] = "dram"
    return roofline


def test_precisions_differ_by_their_fills(open_page: Open) -> None:
    page = open_page(make_roofline(4, ("fp64", "fp32", "fp16")))
    looks: dict[str, set[tuple[bool, bool]]] = {}
    for precision, *look in page.evaluate(LOOKS):
        looks.setdefault(precision, set()).add(tuple(look))
    assert {len(found) for found in looks.values()} == {1}
    assert len({next(iter(found)) for found in looks.values()}) == len(looks) > 1
    key = page.locator("#key")
    assert all(label in key.inner_text() for label in ("FP64", "FP32", "filled by precision"))
    page.locator("[data-precision=fp32]").click()
    assert "FP64" not in key.inner_text()


def test_symbols_of_kernels_are_never_open(open_page: Open) -> None:
    page = open_page(make_roofline(40))
    dots = "chart.data.filter((trace) => trace.meta === 'dots')"
    symbols = page.evaluate(f"distinct({dots}.flatMap(({{ marker }}) => marker.symbol))")
    assert len(symbols) > 14
    assert not [symbol for symbol in symbols if "open" in symbol]


def test_a_name_stands_at_the_precision_of_the_verdict(open_page: Open) -> None:
    page = open_page(several_precisions())
    assert set(page.evaluate("ORDER.map((kernel) => mainRow(kernel).precision)")) == {"fp64"}  # that with most work
    both = page.evaluate("ORDER.findIndex((kernel) => ROWS_OF.get(kernel.index).length === 2)")
    page.evaluate(f"ORDER[{both}].limit = 'fp32.fma'")
    assert page.evaluate(f"mainRow(ORDER[{both}]).precision") == "fp32"


def test_side_precisions_do_not_stretch_the_axes(open_page: Open) -> None:
    page = open_page(several_precisions())
    low, high = page.evaluate("chart.layout.xaxis.range")
    assert high - low < 5.5
    arrows = page.evaluate("chart.data.filter((trace) => trace.meta === 'edge').flatMap(({ customdata }) => customdata)")
    assert arrows
    assert {page.evaluate(f"POINTS[{index}].precision") for index in arrows} == {"fp32"}


def test_a_typed_filter_is_kept(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    page.evaluate(
        """() => {
            const box = document.getElementById("query");
            box.value = "gpp";
            box.dispatchEvent(new Event("input"));
            document.querySelector("[data-level=l2]").click();
        }"""
    )
    until(page, "state.query === 'gpp' && location.hash.includes('q=gpp')")
    assert page.input_value("#query") == "gpp"
    page.evaluate(
        """() => {
            const box = document.getElementById("query");
            box.value = "smooth";
            box.dispatchEvent(new Event("input"));
            document.getElementById("reset").click();
        }"""
    )
    page.wait_for_timeout(200)
    assert page.input_value("#query") == ""


def test_cut_names_differ(open_page: Open) -> None:
    page = open_page(make_roofline(2))
    names = [f"DeviceRadixSort{part}Kernel" for part in ("Onesweep", "Histogram", "ExclusiveSum", "Onesweeping")]
    cut = page.evaluate("(names) => [...shortenApart(names, 16).values()]", [*names, "short"])
    assert len(set(cut)) == 5
    assert max(map(len, cut)) <= 16
    assert cut[-1] == "short"


def test_kernels_without_dots_are_those_of_the_gpu(open_page: Open) -> None:
    roofline = make_roofline(6, zero_flop=4)
    last = roofline.kernels.index[-1]
    other = "NVIDIA H100 80GB HBM3"
    roofline.kernels.loc[last, "device"] = other
    page = open_page(roofline)
    lines = "[...document.querySelectorAll('#usage tr[data-device]')]"
    shown = f"{lines}.filter((row) => row.checkVisibility()).map((row) => row.dataset.device)"
    assert set(page.evaluate(shown)) == {roofline.kernels["device"][0]}
    page.select_option("[data-pick=GPU]", other)
    assert page.evaluate(shown) == [other]
    assert "GPU" in page.locator("#usage thead th").all_inner_texts()


@pytest.mark.parametrize("width", [1400, 390])
def test_kernels_without_dots_fit(open_page: Open, width: int) -> None:
    page = open_page(make_roofline(6, zero_flop=4))
    page.set_viewport_size({"width": width, "height": 900})
    until(page, "Math.abs(chart.layout.width - chart.parentElement.clientWidth) < 2")
    box = page.locator("#usage .scroll")
    assert box.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    labels = page.evaluate("getComputedStyle(document.querySelector('#usage tbody td'), '::before').content")
    assert (labels != "none") == (width == 390)


def test_names_are_whole_on_paper(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    page.emulate_media(media="print")
    until(page, "document.documentElement.dataset.theme === 'light'")
    cells = "[...document.querySelectorAll('#table tbody th span')]"
    assert page.evaluate(f"{cells}.every((cell) => getComputedStyle(cell).whiteSpace === 'normal')")
