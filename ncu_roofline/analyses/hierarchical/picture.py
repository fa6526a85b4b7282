"""The roofline as a chart of marks, and as png, svg or pdf, as one would put it in a paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, ChartKernel, RooflineChart, Series, by_verdict, chart
from ncu_roofline.analyses.hierarchical.chart import Panel as Group
from ncu_roofline.analyses.hierarchical.kernels import LONGEST, SM, TIME, Bars, answers_of, bars, unit_label
from ncu_roofline.analyses.hierarchical.marks import STEPS, axes_of, roof_marks, step_keys, sweep_marks, twins
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style, precision_label
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.rendering.chart import (
    ASIDE,
    FOLLOWED,
    SEEN,
    Block,
    Chart,
    Key,
    Line,
    Listing,
    Mark,
    Panel,
    Point,
    Row,
    Scale,
    Text,
)
from ncu_roofline.rendering.chart_picture import chart_figure
from ncu_roofline.rendering.frames import Frames, rows
from ncu_roofline.rendering.paper import SIZES
from ncu_roofline.rendering.picture import pictures
from ncu_roofline.rendering.style import MARKERS, Hue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BESIDE = 8  # kernels in the bars below a chart that has dots
_DIRECT = 8  # kernels that are named at their dots, those that could save most
_NAME, _BRIEF, _LONGEST = 32, 18, 40  # characters of a name: at a dot, there where room is scarce, in the legend
_SMALLEST, _WHOLE = 2.8, 13.0  # symbols in points of no and of all the time
_EXAMPLES = (0.5, 0.05)  # shares of the time whose dots explain the sizes


def figure(
    roofline: Frames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = MAX_KERNELS,
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
    size: str = "equal",
) -> Figure:
    """The chart of the ``top`` largest kernels as a matplotlib figure; the paper as `chart_figure` takes it.

    ``size`` is "time" where the areas of dots are to be shares of the time; raises ValueError for an unknown one.
    """
    if size not in SIZES:
        raise ValueError(f"size {size!r} is not one of {', '.join(SIZES)}")
    stages = _stages(roofline, top, by_time=size == "time")
    return chart_figure(stages, title=title, theme=theme, width=width, height=height, font=font, dpi=dpi, preset=preset)


render_png, render_svg, render_pdf = pictures(figure)


def _stages(frames: Frames, top: int, by_time: bool) -> Callable[[int], Chart | None]:
    """What is drawn, and so many times less of it: first of the bars, then of the panels, then of the kernels."""
    whole = chart(frames, top)
    dotted = any(panel.series for panel in whole.panels)
    shown = bars(frames, min(top, _BESIDE) if dotted else top)
    if shown.rows and not dotted:
        whole = whole._replace(panels=())

    def stage(less: int) -> Chart | None:
        listed, panels, kernels = len(shown.rows), len(whole.panels), len(whole.kernels)
        for _ in range(less):
            if listed > (0 if panels else 1):
                listed = listed * 3 // 4
            elif panels > 1:
                panels -= 1
            elif kernels > 1:
                kernels //= 2
            else:
                return None
        fewer = panels < len(whole.panels) or kernels < len(whole.kernels)
        data = chart(frames, kernels, panels) if fewer else whole
        return roofline_chart(frames, data, shown._replace(rows=shown.rows[:listed]), by_time)

    return stage


def roofline_chart(frames: Frames, data: RooflineChart, shown: Bars, by_time: bool = False) -> Chart:
    """The chart of what is drawn of a Roofline: panels of dots under roofs, and bars of kernels without dots."""
    sizes = _sizes(data) if by_time else lambda _: 0.0
    ranked = sorted(data.kernels, key=lambda kernel: -kernel.recoverable if kernel.recoverable > 0 else 0.0)
    panels = [_panel(panel, data, _named(panel, data, ranked), sizes) for panel in data.panels]
    dotted = any(panel.series for panel in data.panels)
    blocks: list[Sequence[Block]] = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    blocks += [[_listing(shown, "Kernels without dots" if dotted else "Kernels by time")]] if shown.rows else []
    answers, numbered = answers_of(frames), len(data.kernels) > len(MARKERS)
    names = {
        kernel.label: f"{f'{number} ' if numbered else ''}{shorten(f'{kernel.label} {kernel.mark}'.rstrip(), _LONGEST)}"
        f"{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for number, kernel in enumerate(data.kernels, 1)
    }
    notes = [LONGEST] if any(row.longest for row in shown.rows) else []
    if len(shown.rows) < shown.total:
        notes.append(f"Bars of the {len(shown.rows)} longest of {shown.total} kernels without dots.")
    title = captions.name_of(frames) if data.panels else "Utilisation"
    if title == "Roofline" and len(data.panels) == 1 and data.panels[0].title:
        title = f"{title}, {data.panels[0].title}"
    return Chart(
        title,
        answers[0].sentences[:1] if len(answers) == 1 else (),
        captions.subtitle(frames),
        blocks,
        _keys(frames, data, by_time) if data.panels else [],
        names,
        [*captions.footnotes(frames, data), *notes],
        captions.explanation(frames) if data.panels and not dotted else "",
        inside=True,
    )


def _size(share: float) -> float:
    """Points across a symbol whose area is the share of the time, down to what can be seen."""
    return max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0)


def _sizes(data: RooflineChart) -> Callable[[Series], float]:
    return lambda one: _size(one.seconds / data.seconds if data.seconds > 0 else math.nan)


def _keys(frames: Frames, data: RooflineChart, by_time: bool) -> list[Key]:
    """Levels, precisions, lines and sizes, as far as the chart has them."""
    labels = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    found = [Key(labels.get(level) or level_style(level).label, "dot", level_style(level)) for level in data.levels]
    fills: dict[str, list[str]] = {}
    for precision in data.precisions():
        fills.setdefault(data.fills[precision], []).append(precision_label(precision))
    found += [Key(" or ".join(names), "dot", fill=fill) for fill, names in fills.items()]  # fills are of all panels
    several, empirical = len(data.origins) > 1, captions.empirical_name(frames)
    for origin in data.origins:
        line = "theory" if several and origin == "theoretical" else "roof"
        found.append(Key(f"{empirical if origin == 'measured' else origin} roof", line))
    wide = any(band.wide for panel in data.panels for roof in panel.roofs for band in roof.bands.values())
    found += [Key("range over launches", "band")] if wide else []
    found += [Key(f"{percent(share)} of the time", "dot", size=_size(share)) for share in _EXAMPLES if by_time]
    return [*found, *(Key(text, instead=STEPS) for text in step_keys(data.panels))]


def _named(panel: Group, data: RooflineChart, ranked: Sequence[ChartKernel]) -> Sequence[ChartKernel]:
    """The kernels named in a panel: of those that could save most, in the one of most of their work by share of a roof."""

    def best(kernel: ChartKernel, among: Group) -> tuple[float, ...]:
        return min((by_verdict(one) for one in among.series if one.kernel == kernel.label), default=(math.inf,))

    def main(kernel: ChartKernel) -> Group:
        return min(data.panels, key=lambda each: best(kernel, each))

    return [kernel for kernel in ranked[:_DIRECT] if main(kernel) is panel]


def _panel(panel: Group, data: RooflineChart, named: Sequence[ChartKernel], size: Callable[[Series], float]) -> Panel:
    """Roofs, ridge points, sweeps, dots in the shape of their kernel, and the names of kernels."""
    series = sorted(panel.series, key=by_verdict)
    marks: list[Mark] = [*roof_marks(panel, len(data.origins) > 1), *_ridges(panel), *sweep_marks(panel, data.panels)]
    marks += _dots(panel, series, data, size)
    for kernel in named:
        mine = [one for one in series if one.kernel == kernel.label]
        more = f"{f' {kernel.mark}' if kernel.mark else ''}{f' {percent(kernel.share)}' if kernel.share > 0 else ''}"
        labels = tuple(f"{shorten(kernel.label, length)}{more}" for length in (_NAME, _BRIEF))
        main = [one for one in mine if one.precision == mine[0].precision]
        places = tuple((x, one.performance) for one in main for _, x in reversed(one.dots))
        weight = kernel.share if kernel.share > 0 else 0.0
        marks.append(Text(role="name", labels=labels, places=places, key=kernel.label, weight=weight))
    return Panel(panel.title if len(data.panels) > 1 else "", *axes_of(panel.unit), marks, "roofline")


def _ridges(panel: Group) -> Iterator[Mark]:
    """Where bandwidth roofs meet the highest compute roof; the outermost with its machine balance."""
    compute = panel.of_kind("compute")
    found = [(compute[0].value / group[0].value, group[0]) for group in twins(panel.of_kind("bandwidth")) if compute]
    for intensity, roof in found:
        hue: Hue = level_style(roof.level)
        yield Point(role="ridge", hue=hue, x=intensity, y=compute[0].value)
        if intensity == max(x for x, _ in found):
            text = f"ridge {format_value(intensity, COUNTED[panel.unit].intensity_unit, 3)}"
            yield Text(role="ridge", labels=(text,), hue=hue, places=((intensity, compute[0].value),))


def _dots(panel: Group, series: Sequence[Series], data: RooflineChart, size: Callable[[Series], float]) -> Iterator[Mark]:
    """Dots in the colour of their level and the fill of their precision; those of a series joined, but in a sweep.

    Axes reach to those that carry a verdict, of kernels that matter.
    """
    matter = {kernel.label for kernel in data.kernels if kernel.matters}
    seen = [one for one in series if not one.side and (not matter or one.kernel in matter)] or series
    kept = set(map(id, seen))
    for one in series:
        for level, intensity in reversed(one.dots):
            extent = ASIDE if id(one) not in kept else SEEN if one.nearest in ("", level) else FOLLOWED
            yield Point(
                role="dot", hue=level_style(level), x=intensity, y=one.performance, name=one.kernel,
                fill=data.fills[one.precision], size=size(one), extent=extent,
                of=precision_label(one.precision) if len(panel.precisions) > 1 else "",
            )  # fmt: skip
        if len(one.dots) > 1 and one.step < 0:
            xs = [x for _, x in one.dots]
            yield Line(role="joined", places=((min(xs), one.performance), (max(xs), one.performance)))


def _listing(data: Bars, title: str) -> Listing:
    """Bars of how full the units of the GPU were, with names and verdicts of the kernels."""
    hues = [None if unit in (SM, TIME) else level_style(unit) for unit in data.units]
    listed = []
    for one in data.rows:
        shares = data.shares(one)
        known = [share for share in shares if math.isfinite(share)]
        scale = Scale(list(zip(shares, hues, strict=True)), text=percent(max(known)) if known else "not collected")
        time = [f"{one.launches_text} launches"] if one.launches > 1 else []
        time += [format_value(one.seconds, "second", 3)] if math.isfinite(one.seconds) else []
        time += [percent(one.time_share)] if math.isfinite(one.time_share) else []
        listed.append(Row(one.marked, [scale], ", ".join(time), ", ".join(filter(None, (one.verdict, one.headroom_text)))))
    limit = f"from {100 * REACHED:.0f} % on (dashed) a unit limits"
    names = ("% of the time",) if data.of_time else (f"% of peak; {limit}", "% of peak")
    said = "verdict, headroom" if any(row.verdict for row in data.rows) else ""
    keys = [] if data.of_time else [Key(unit_label(unit), "bar", hue) for unit, hue in zip(data.units, hues, strict=True)]
    return Listing(title, ("", said), listed, keys, names, 0.0 if data.of_time else REACHED)
