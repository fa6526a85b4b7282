"""The roofline as a chart of marks, and as png, svg or pdf, as one would put it in a paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.answer import answers_of
from ncu_roofline.analyses.hierarchical.chart import (
    MAX_KERNELS,
    ChartKernel,
    RooflineChart,
    Series,
    by_verdict,
    chart,
    of_largest,
    without_last,
)
from ncu_roofline.analyses.hierarchical.chart import Panel as Group
from ncu_roofline.analyses.hierarchical.marks import axes_of, roof_marks, twins
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style, precision_label
from ncu_roofline.analyses.hierarchical.sweeps import STEPS, step_keys, sweep_marks
from ncu_roofline.analyses.hierarchical.usage import (
    BESIDE,
    MARK,
    SM,
    TIME,
    Bars,
    Usage,
    bar_notes,
    bars,
    unit_label,
    usages,
)
from ncu_roofline.base.texts import shorten
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
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.paper import SIZES
from ncu_roofline.rendering.picture import pictures
from ncu_roofline.rendering.style import MARKERS, Hue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    paper = {"width": width, "height": height, "font": font, "dpi": dpi, "preset": preset}
    stages = _stages(roofline, top)

    def staged(less: int) -> Chart | None:
        found = stages(less)
        return roofline_chart(roofline, *found, by_time=size == "time") if found else None

    return chart_figure(staged, title=title, theme=theme, **paper)  # type: ignore[arg-type]


render_png, render_svg, render_pdf = pictures(figure)


def _stages(frames: Frames, top: int) -> Callable[[int], tuple[RooflineChart, Bars] | None]:
    """What is drawn, and so many times less of it: first of the bars, then of the panels, then of the kernels."""
    marks = {usage.kernel: MARK for usage in usages(frames).values() if usage.tensor_unknown}
    data = chart(frames, top, marks)
    dotted = any(panel.series for panel in data.panels)
    shown = bars(frames, min(top, BESIDE) if dotted else top)
    if shown.rows and not dotted:
        data = replace(data, panels=())

    def stage(less: int) -> tuple[RooflineChart, Bars] | None:
        kept, listed = data, shown
        for _ in range(less):
            if len(listed.rows) > (0 if kept.panels else 1):
                listed = replace(listed, rows=listed.rows[: len(listed.rows) * 3 // 4])
            elif len(kept.panels) > 1:
                kept = without_last(kept)
            elif len(kept.kernels) > 1:
                kept = of_largest(kept, len(kept.kernels) // 2)
            else:
                return None
        return kept, listed

    return stage


def roofline_chart(frames: Frames, data: RooflineChart, shown: Bars, by_time: bool = False) -> Chart:
    """The chart of what is drawn of a Roofline: panels of dots under roofs, and bars of kernels without dots."""
    mains = _main_panels(data)
    panels = [
        _panel(panel, data, {name for name, at in mains.items() if at == index}, by_time)
        for index, panel in enumerate(data.panels)
    ]
    rows: list[Sequence[Block]] = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    dotted = any(panel.series for panel in data.panels)
    if shown.rows:
        rows.append([_listing(shown, "Kernels without dots" if dotted else "Kernels by time")])
    answers = answers_of(frames)
    return Chart(
        _title(frames, data),
        answers[0].sentences[:1] if len(answers) == 1 else (),
        captions.subtitle(frames),
        rows,
        _keys(data, by_time) if data.panels else [],
        _names(data),
        [*captions.footnotes(frames, data), *bar_notes(shown)],
        captions.explanation(frames) if data.panels and not dotted else "",
        inside=True,
    )


def _title(frames: Frames, data: RooflineChart) -> str:
    name = captions.name_of(frames) if data.panels else "Utilisation"
    titles = {panel.title for panel in data.panels if panel.title}
    return f"{name}, {next(iter(titles))}" if name == "Roofline" and len(data.panels) == 1 and titles else name


def _names(data: RooflineChart) -> Mapping[str, str]:
    """What the legend says of each kernel: its number where shapes don't suffice, its name and its share of the time."""
    numbered = len(data.kernels) > len(MARKERS)
    return {
        kernel.label: f"{f'{number} ' if numbered else ''}{shorten(kernel.marked, _LONGEST)}"
        f"{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for number, kernel in enumerate(data.kernels, 1)
    }


def _size(share: float) -> float:
    """Points across a symbol whose area is the share of the time, down to what can be seen."""
    return max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0)


def _keys(data: RooflineChart, by_time: bool) -> list[Key]:
    """Levels, precisions, lines and sizes, as far as the chart has them."""
    found = [Key(data.level_labels.get(level) or level_style(level).label, "dot", level_style(level)) for level in data.levels]
    fills: dict[str, list[str]] = {}
    for precision in data.precisions():
        fills.setdefault(data.fills[precision], []).append(precision_label(precision))
    found += [Key(" or ".join(names), "dot", fill=fill) for fill, names in fills.items()]  # fills are of all panels
    roofs = [roof for panel in data.panels for roof in panel.roofs]
    if data.several_origins:
        found += [Key(f"{data.empirical} roof", "roof"), Key("theoretical roof", "theory")]
    else:
        origins = [name for name in ("measured", "theoretical") if any(getattr(roof, name) > 0 for roof in roofs)]
        found += [Key(f"{data.empirical if name == 'measured' else name} roof", "roof") for name in origins]
    found += [Key("range over launches", "band")] if any(roof.bands for roof in roofs) else []
    found += [Key(f"{percent(share)} of the time", "dot", size=_size(share)) for share in _EXAMPLES if by_time]
    return [*found, *(Key(text, instead=STEPS) for text in step_keys(data.panels))]


def _main_panels(data: RooflineChart) -> dict[str, int]:
    """The panel that a kernel is named in, the one of most of its work by share of a roof; of those that could save most."""
    found = {}
    for kernel in _ranked(data)[:_DIRECT]:
        drawn = [
            (*by_verdict(one), index)
            for index, panel in enumerate(data.panels)
            for one in panel.series
            if one.kernel == kernel.label
        ]
        if drawn:
            found[kernel.label] = min(drawn)[-1]
    return found


def _ranked(data: RooflineChart) -> list[ChartKernel]:
    """The kernels, those that could save most first."""
    return sorted(data.kernels, key=lambda kernel: -kernel.recoverable if kernel.recoverable > 0 else 0.0)


def _panel(panel: Group, data: RooflineChart, named: set[str], by_time: bool) -> Panel:
    """Roofs, ridge points, sweeps, dots in the shape of their kernel, and the names of kernels."""
    series = sorted(panel.series, key=by_verdict)
    marks: list[Mark] = [
        *roof_marks([roof for kind in ("compute", "bandwidth", "wall") for roof in panel.of_kind(kind)], data.several_origins)
    ]
    marks += _ridges(panel)
    marks += sweep_marks(panel, data.panels)
    marks += _dots(panel, series, data, by_time)
    for kernel in _ranked(data):
        mine = [one for one in series if one.kernel == kernel.label and kernel.label in named]
        main = [one for one in mine if one.precision == mine[0].precision]
        if main:
            more = f"{f' {kernel.mark}' if kernel.mark else ''}{f' {percent(kernel.share)}' if kernel.share > 0 else ''}"
            labels = tuple(f"{shorten(kernel.label, length)}{more}" for length in (_NAME, _BRIEF))
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


def _dots(panel: Group, series: Sequence[Series], data: RooflineChart, by_time: bool) -> Iterator[Mark]:
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
                fill=data.fills[one.precision], size=_size(data.share_of(one)) if by_time else 0.0, extent=extent,
                of=precision_label(one.precision) if len(panel.precisions) > 1 else "",
            )  # fmt: skip
        if len(one.dots) > 1 and one.step < 0:
            xs = [x for _, x in one.dots]
            yield Line(role="joined", places=((min(xs), one.performance), (max(xs), one.performance)))


def _listing(data: Bars, title: str) -> Listing:
    """Bars of how full the units of the GPU were, with names and verdicts of the kernels."""
    hues = {unit: None if unit in (SM, TIME) else level_style(unit) for unit in data.units}
    rows = []
    for one in data.rows:
        shares = data.shares(one)
        cells = [(shares.get(unit, math.nan), hues[unit]) for unit in data.units]
        known = [share for share, _ in cells if math.isfinite(share)]
        scale = Scale(cells, text=percent(max(known)) if known else "not collected")
        rows.append(Row(one.marked, [scale], _time_text(one), ", ".join(filter(None, (one.verdict, one.headroom_text)))))
    limit = f"from {100 * REACHED:.0f} % on (dashed) a unit limits"
    names = ("% of the time",) if data.of_time else (f"% of peak; {limit}", "% of peak")
    said = "verdict, headroom" if any(row.verdict for row in data.rows) else ""
    keys = [] if data.of_time else [Key(unit_label(unit), "bar", hues[unit]) for unit in data.units]
    return Listing(title, ("", said), rows, keys, names, 0.0 if data.of_time else REACHED)


def _time_text(one: Usage) -> str:
    parts = [f"{one.launches_text} launches"] if one.launches > 1 else []
    parts += [format_value(one.seconds, "second", 3)] if math.isfinite(one.seconds) else []
    return ", ".join([*parts, percent(one.share)] if math.isfinite(one.share) else parts)
