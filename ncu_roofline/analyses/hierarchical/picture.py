"""The roofline as a chart of marks, and as png, svg or pdf, as one would put it in a paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ncu_roofline.analyses.hierarchical import captions, kernels, marks
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, ChartKernel, Panel, RooflineChart, Series, by_verdict, chart
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style, precision_label
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.rendering import chart as draw
from ncu_roofline.rendering.frames import Frames, rows
from ncu_roofline.rendering.paper import SIZES
from ncu_roofline.rendering.picture import figure_of, pictures
from ncu_roofline.rendering.style import MARKERS

_BESIDE = 8  # kernels in the bars below a chart that has dots
_DIRECT = 8  # kernels that are named at their dots, those that could save most
_NAME, _BRIEF, _LONGEST = 32, 18, 40  # characters of a name: at a dot, there where room is scarce, in the legend
_SMALLEST, _WHOLE = 2.8, 13.0  # symbols in points of no and of all the time
_EXAMPLES = (0.5, 0.05)  # shares of the time whose dots explain the sizes


def charts(frames: Frames, *, top: int = MAX_KERNELS, size: str = "equal") -> Callable[[int], draw.Chart | None]:
    """The ``top`` largest kernels, and so many times less of them: first of the bars, then of the panels, then of the kernels.

    ``size`` is "time" where the areas of dots are to be shares of the time; raises ValueError for an unknown one.
    """
    if size not in SIZES:
        raise ValueError(f"size {size!r} is not one of {', '.join(SIZES)}")
    whole, absent = chart(frames, top), kernels.without_dots(frames)
    dotted = any(panel.series for panel in whole.panels)
    bars = kernels.per_kernel(absent) if kernels.tells(frames, absent) else []
    if bars and not dotted:
        whole = whole._replace(panels=())

    def stage(less: int) -> draw.Chart | None:
        listed = min(len(bars), top, _BESIDE if dotted else top)
        panels, most = len(whole.panels), len(whole.kernels)
        for _ in range(less):
            if listed > (0 if panels else 1):
                listed = listed * 3 // 4
            elif panels > 1:
                panels -= 1
            elif most > 1:
                most //= 2
            else:
                return None
        fewer = panels < len(whole.panels) or most < len(whole.kernels)
        return roofline_chart(frames, chart(frames, most, panels) if fewer else whole, bars, listed, size == "time")

    return stage


figure = figure_of(charts)
render_png, render_svg, render_pdf = pictures(figure)


def roofline_chart(
    frames: Frames, data: RooflineChart, bars: Sequence[kernels.Kernel] = (), listed: int = 0, by_time: bool = False
) -> draw.Chart:
    """What is drawn of a Roofline: panels of dots under roofs, and the first ``bars`` of kernels without dots."""
    saving = sorted(data.kernels, key=lambda kernel: -kernel.recoverable if kernel.recoverable > 0 else 0.0)
    panels = [_panel(panel, data, _named(panel, data, saving), by_time) for panel in data.panels]
    dotted = any(panel.series for panel in data.panels)
    blocks: list[Sequence[draw.Block]] = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    notes = captions.footnotes(frames, data)
    if listed:
        blocks.append([_listing(bars[:listed], "Kernels without dots" if dotted else "Kernels by time")])
        notes += [kernels.LONGEST] if any(row.longest for row in bars[:listed]) else []
    if listed < len(bars):
        notes.append(f"Bars of the {listed} longest of {len(bars)} kernels without dots.")
    answers, numbered = kernels.answers_of(frames), len(data.kernels) > len(MARKERS)
    names = {
        kernel.label: f"{f'{number} ' if numbered else ''}{shorten(f'{kernel.label} {kernel.mark}'.rstrip(), _LONGEST)}"
        f"{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for number, kernel in enumerate(data.kernels, 1)
    }
    title = captions.name_of(frames) if data.panels else "Utilisation"
    if title == "Roofline" and len(data.panels) == 1 and data.panels[0].title:
        title = f"{title}, {data.panels[0].title}"
    return draw.Chart(
        title,
        answers[0].sentences[:1] if len(answers) == 1 else (),
        captions.subtitle(frames),
        blocks,
        _keys(frames, data, by_time) if data.panels else [],
        names,
        notes,
        captions.explanation(frames) if data.panels and not dotted else "",
        inside=True,
    )


def _size(share: float) -> float:
    """Points across a symbol whose area is the share of the time, down to what can be seen."""
    return max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0)


def _keys(frames: Frames, data: RooflineChart, by_time: bool) -> list[draw.Key]:
    """Levels, precisions, lines and sizes, as far as the chart has them."""
    labels = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    styles = {level: level_style(level) for level in data.levels}
    found = [draw.Key(labels.get(level) or style.label, "dot", style) for level, style in styles.items()]
    fills: dict[str, list[str]] = {}
    for precision in data.precisions():
        fills.setdefault(data.fills[precision], []).append(precision_label(precision))
    found += [draw.Key(" or ".join(names), "dot", fill=fill) for fill, names in fills.items()]  # fills are of all panels
    several, empirical = len(data.origins) > 1, captions.empirical_name(frames)
    for origin in data.origins:
        line = "theory" if several and origin == "theoretical" else "roof"
        found.append(draw.Key(f"{empirical if origin == 'measured' else origin} roof", line))
    wide = any(band.wide for panel in data.panels for roof in panel.roofs for band in roof.bands.values())
    found += [draw.Key("range over launches", "band")] if wide else []
    found += [draw.Key(f"{percent(share)} of the time", "dot", size=_size(share)) for share in _EXAMPLES if by_time]
    return [*found, *(draw.Key(text, instead=marks.STEPS) for text in marks.step_keys(data.panels))]


def _named(panel: Panel, data: RooflineChart, saving: Sequence[ChartKernel]) -> Sequence[ChartKernel]:
    """The kernels named in a panel: of those that could save most, in the one of most of their work by share of a roof."""

    def best(kernel: ChartKernel, among: Panel) -> tuple[float, ...]:
        return min((by_verdict(one) for one in among.series if one.kernel == kernel.label), default=(math.inf,))

    return [one for one in saving[:_DIRECT] if min(data.panels, key=lambda each: best(one, each)) is panel]


def _panel(panel: Panel, data: RooflineChart, named: Sequence[ChartKernel], by_time: bool) -> draw.Panel:
    """Roofs, ridge points, sweeps, dots in the shape of their kernel, and the names of kernels."""
    series = sorted(panel.series, key=by_verdict)
    drawn = [*marks.roof_marks(panel, len(data.origins) > 1), *_ridges(panel), *marks.sweep_marks(panel, data.panels)]
    drawn += _dots(panel, series, data, by_time)
    for kernel in named:
        mine = [one for one in series if one.kernel == kernel.label]
        more = f"{f' {kernel.mark}' if kernel.mark else ''}{f' {percent(kernel.share)}' if kernel.share > 0 else ''}"
        labels = tuple(f"{shorten(kernel.label, length)}{more}" for length in (_NAME, _BRIEF))
        main = [one for one in mine if one.precision == mine[0].precision]
        places = tuple((x, one.performance) for one in main for _, x in reversed(one.dots))
        weight = kernel.share if kernel.share > 0 else 0.0
        drawn.append(draw.Text(role="name", labels=labels, places=places, key=kernel.label, weight=weight))
    return draw.Panel(panel.title if len(data.panels) > 1 else "", *marks.axes_of(panel.unit), drawn, "roofline")


def _ridges(panel: Panel) -> Iterator[draw.Mark]:
    """Where bandwidth roofs meet the highest compute roof; the outermost with its machine balance."""
    compute = panel.of_kind("compute")
    found = [(compute[0].value / group[0].value, group[0]) for group in marks.twins(panel.of_kind("bandwidth")) if compute]
    for intensity, roof in found:
        hue = level_style(roof.level)
        yield draw.Point(role="ridge", hue=hue, x=intensity, y=compute[0].value)
        if intensity == max(x for x, _ in found):
            text = f"ridge {format_value(intensity, COUNTED[panel.unit].intensity_unit, 3)}"
            yield draw.Text(role="ridge", labels=(text,), hue=hue, places=((intensity, compute[0].value),))


def _dots(panel: Panel, series: Sequence[Series], data: RooflineChart, by_time: bool) -> Iterator[draw.Mark]:
    """Dots in the colour of their level and the fill of their precision; those of a series joined, but in a sweep.

    Axes reach to those that carry a verdict, of kernels that matter.
    """
    matter = {kernel.label for kernel in data.kernels if kernel.matters}
    seen = [one for one in series if not one.side and (not matter or one.kernel in matter)] or series
    kept = set(map(id, seen))
    for one in series:
        share = one.seconds / data.seconds if data.seconds > 0 else math.nan
        for level, intensity in reversed(one.dots):
            near = draw.SEEN if one.nearest in ("", level) else draw.FOLLOWED
            yield draw.Point(
                role="dot", hue=level_style(level), x=intensity, y=one.performance, name=one.kernel,
                fill=data.fills[one.precision], size=_size(share) if by_time else 0.0,
                extent=near if id(one) in kept else draw.ASIDE,
                of=precision_label(one.precision) if len(panel.precisions) > 1 else "",
            )  # fmt: skip
        if len(one.dots) > 1 and one.step < 0:
            xs = [x for _, x in one.dots]
            yield draw.Line(role="joined", places=((min(xs), one.performance), (max(xs), one.performance)))


def _listing(shown: Sequence[kernels.Kernel], title: str) -> draw.Listing:
    """Bars of how full the units of the GPU were, or of the time where nothing else is known; names and verdicts."""
    units = kernels.units_of(shown)
    hues = [None if unit == kernels.SM else level_style(unit) for unit in units] or [None]
    listed = []
    for one in shown:
        shares = [one.fractions.get(unit, math.nan) for unit in units] or [one.time_share]
        known = [share for share in shares if math.isfinite(share)]
        scale = draw.Scale(list(zip(shares, hues, strict=True)), text=percent(max(known)) if known else "not collected")
        time = [f"{one.launches_text} launches"] if one.launches > 1 else []
        time += [format_value(one.seconds, "second", 3)] if math.isfinite(one.seconds) else []
        time += [percent(one.time_share)] if math.isfinite(one.time_share) else []
        end = ", ".join(filter(None, (one.verdict, one.headroom_text)))
        listed.append(draw.Row(one.marked, [scale], ", ".join(time), end))
    names = (f"% of peak; from {100 * REACHED:.0f} % on (dashed) a unit limits", "% of peak") if units else ("% of the time",)
    keys = [draw.Key(kernels.unit_label(unit), "bar", hue) for unit, hue in zip(units, hues, strict=False)]
    said = "verdict, headroom" if any(one.verdict for one in shown) else ""
    return draw.Listing(title, ("", said), listed, keys, names, REACHED if units else 0.0)
