"""The roofline as panels of dots under roofs, as a chart of marks, and as png, svg or pdf, as one would put it in a paper.

One panel holds one GPU and one group of precisions whose numbers belong on one axis: all that the cores compute in FLOP, all
tensor types of one unit, or another unit of work.  The precisions of a panel differ by how their symbols are filled.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from ncu_roofline.analyses.hierarchical import captions, kernels, style
from ncu_roofline.analyses.hierarchical.kernels import Kernel
from ncu_roofline.analyses.hierarchical.style import ChartRoof, level_style, precision_label
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, conjoined, plural, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.tables import EXECUTED
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.model.selection import at_stake
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering import chart as draw
from ncu_roofline.rendering.chart import MARKERS
from ncu_roofline.rendering.frames import Frames, rows
from ncu_roofline.rendering.paper import SIZES
from ncu_roofline.rendering.picture import figure_of, pictures

STEPS = "steps"  # key of the legend's entries on steps
MAX_KERNELS, MAX_PANELS = 30, 8
MAX_MIXES = 3  # lines in a panel; more of them are clutter, and the table has them all
_BESIDE, _DIRECT = 8, 8  # kernels in the bars below a chart that has dots; kernels named at their dots
_NAME, _BRIEF, _LONGEST, _STEP = 32, 18, 40, 20  # characters of a name: at a dot, there if need be, in the legend, of a step
_SMALLEST, _WHOLE, _EXAMPLES = 2.8, 13.0, (0.5, 0.05)  # symbols in points of no and of all the time; shares in the legend
_FILLS = ("full", "none", "left", "bottom", "right", "top")  # of symbols, as matplotlib calls them
_SIDE = 0.1  # of the share of its roof of a launch's main precision: less is by the way, as the FP32 at the end of a GEMM
_MORE = 1.01  # by so much nearer to its roof is what binds
_SAME = 0.01  # roofs and ceilings closer than this are one line on paper
_FEW, _SOME = 3, 8  # up to so many kernels every step is named; up to so many the first and the last
_POINT = (
    *("level", "intensity", "performance", "unit", "seconds", "label", "fma_share", "mix_roof"),
    *("binding_fraction", "compute_roof", "bandwidth_roof", "binds"),
)


# The data of a picture


class Series(SimpleNamespace):
    """The dots of one launch (or aggregate) and precision, with columns of its points as attributes: ``dots`` are (level id,
    FLOP/B) each, all at its ``performance`` (FLOP/s); ``step`` is its place in a sweep, -1 outside of sweeps.

    ``kernel``: as `kernel_labels` has it; ``nearest``: the level whose roof is the lowest above it, "" where no roof is known;
    ``compute``: its share of its compute roof; ``side``: another precision dominates; ``group`` of precisions: those whose
    axes it stands on.
    """

    def at(self, level: str) -> draw.Place | None:
        return next(((x, self.performance) for name, x in self.dots if name == level), None)


class Panel(NamedTuple):
    title: str
    unit: str
    series: Sequence[Series]
    roofs: Sequence[ChartRoof]

    @property
    def precisions(self) -> list[str]:
        return sorted({one.precision for one in self.series}, key=style.precision_order)

    def of_kind(self, kind: str) -> list[ChartRoof]:
        """The roofs of one kind, highest first."""
        return sorted((roof for roof in self.roofs if roof.kind == kind), key=lambda roof: (-roof.value, roof.id))


class RooflineChart(NamedTuple):
    """Everything a picture shows; ``total`` counts the kernels that have points, drawn or not.

    ``fills`` says by precision how symbols are filled; ``seconds`` is the time of all rows; ``aside`` are precisions left
    out, as others dominate.
    """

    panels: Sequence[Panel]
    kernels: Sequence[Kernel]
    total: int
    panels_left_out: int
    fills: Mapping[str, str]
    seconds: float
    aside: Sequence[str]

    @property
    def origins(self) -> list[str]:
        """Where the values of its roofs come from, measured first."""
        given = {origin for panel in self.panels for roof in panel.roofs for origin in roof.bands}
        return [origin for origin in ("measured", "theoretical") if origin in given]


def chart(frames: Frames, limit: int = MAX_KERNELS) -> RooflineChart:
    """The chart of a Roofline: its ``limit`` largest kernels by time, all their precisions and levels, in MAX_PANELS.

    Panels whose kernels take next to no time are left out where there are others.
    """
    found, every, asked = kernels.kernels_of(frames), list(_series_of(frames)), getattr(frames, "asked", ())
    series = [one for one in every if asked or not one.side]
    aside = {one.precision for one in every} - {one.precision for one in series}
    longest = kernels.seconds_by_gpu(found.values())
    drawn, total = kernels.largest(found.values(), {one.kernel for one in series}, limit)
    matter = {kernel.kernel: kernel.matters for kernel in drawn}
    groups = grouped(((one.device, one.group), one) for one in series if one.kernel in matter)
    order = sorted(
        groups, key=lambda key: (-longest.get(key[0], 0.0), key[0], key[1] != "core", *style.precision_order(key[1]))
    )
    notable = [key for key in order if any(matter[one.kernel] for one in groups[key])] or order
    roofs, several = style.roof_rows(frames), len({device for device, _ in groups}) > 1
    panels = [_panel_of(roofs.get(key[0], []), *key, groups[key], several) for key in notable[:MAX_PANELS]]
    shown = {one.kernel for panel in panels for one in panel.series}
    kept = [kernel for kernel in drawn if kernel.kernel in shown]
    left_out = max(len(order) - len(panels or [()]), 0)
    if not panels:  # the roofs of the first GPU
        unit = style.default_unit(frames)
        known = [
            roof for roof in style.roofs_of(next(iter(roofs.values()), []), {MIXED}, unit) if not style.on_request(roof.level)
        ]
        panels = [Panel("", unit, (), known)]
    # The symbols of the widest precision of a group are filled wholly, those of the next not at all, others by halves.
    fills, present = dict[str, str](), grouped((one.group, one.precision) for members in groups.values() for one in members)
    for precisions in present.values():
        for index, precision in enumerate(sorted(set(precisions), key=style.precision_order)):
            fills.setdefault(precision, _FILLS[index % len(_FILLS)])
    return RooflineChart(panels, kept, total, left_out, fills, sum(longest.values()), sorted(aside, key=style.precision_order))


def _series_of(frames: Frames) -> Iterator[Series]:
    """All series that can stand on a log-log chart."""
    labels = kernels.kernel_labels(frames)
    for (report, _, kernel, *_), works in kernels.works_of(frames, _POINT).items():
        kept = []
        for points in works:
            drawable = [row for row in points if 0 < row["intensity"] < math.inf and 0 < row["performance"] < math.inf]
            if drawable:
                at, one = {row["level"]: row["intensity"] for row in drawable}, Series(**drawable[0])
                one.kernel, one.label = labels[report, kernel], clean(one.label)
                one.dots = [(level, at[level]) for level in style.level_order(at)]
                limits = ((row["intensity"] * row["bandwidth_roof"], row["level"]) for row in drawable)
                one.nearest = min((pair for pair in limits if pair[0] > 0), default=(0.0, ""))[1]
                one.compute = one.performance / one.compute_roof if one.compute_roof > 0 else math.nan
                kept.append(one)
        single = [one for one in kept if one.precision != MIXED]
        nearest = max((one.binding_fraction for one in single if not math.isnan(one.binding_fraction)), default=math.nan)
        most = defaultdict[str, float](float)
        for one in single:
            if one.compute > 0 and one.unit != "inst":  # kinds of instruction are looked for
                most[one.unit] = max(most[one.unit], one.compute)
        main = max((one for one in single if one.unit == "flop"), key=lambda one: one.performance, default=None)
        for one in kept:
            # The sum over pipes is as near to its roof as the nearest of them, but where pipes share what limits them.
            if one.precision != MIXED or not single or not one.binding_fraction <= _MORE * nearest:
                one.side = one.compute < _SIDE * most[one.unit]
                one.group = _group_of(main.precision if one.precision == MIXED and main else one.precision, one.unit)
                yield one


def _group_of(precision: str, unit: str) -> str:
    """The axes that a precision stands on: those of the cores that count FLOP, all tensor types of one unit, or its own."""
    if precision.startswith("tensor"):
        return "tensor" if unit == "flop" else f"tensor.{unit}"
    if unit == "flop":
        return "core"
    return unit if unit == "inst" and not style.apart(precision) else precision


def _panel_of(given: Sequence[style.RoofRow], device: str, group: str, series: Sequence[Series], several: bool) -> Panel:
    unit, precisions = series[0].unit, {one.precision for one in series}
    limited = {one.precision for one in series if not one.side} or precisions
    limited = limited - {MIXED} or limited
    roofs, titled = style.roofs_of(given, limited, unit), precisions
    if group == "core" and len(precisions) > 1:
        # Of what is by the way the roofs that don't stretch the chart.
        top = max((roof.value for roof in roofs if roof.kind == "compute"), default=0.0)
        aside = [
            roof for roof in style.roofs_of(given, precisions - {MIXED}, unit) if roof.kind == "compute" and roof not in roofs
        ]
        roofs += [roof for roof in style.tops(aside, ()) if roof.value <= (1 + style.WIDE) * top]
        titled = limited | {roof.precision for roof in roofs if roof.precision in precisions}
    if group == "core" and len(limited) > 1:  # no FMA, half rates: over several precisions they would be too many lines
        roofs = style.tops(roofs, {one.binds for one in series})
    names = [precision_label(one) for one in sorted(titled, key=style.precision_order)]
    if len(names) == 1 or group == "core":
        title = conjoined(names)
    elif group.startswith("tensor"):
        title = "Tensor" if group == "tensor" else "Tensor, integer"
    else:
        title = precision_label(EXECUTED) if group == EXECUTED else group.upper()
    title += f", {clean(device)}" if several else ""
    # A link to the host is a decade or more slower than the rest: without dots there it would only squeeze the chart.
    levels = {level for one in series for level, _ in one.dots}
    return Panel(title, unit, series, [roof for roof in roofs if roof.level in levels or not style.on_request(roof.level)])


# Axes and roofs as marks


def axes_of(unit: str) -> tuple[draw.Axis, draw.Axis]:
    name, of, performance = style.COUNTED[unit]
    words, _, bracket = name.partition(" [")
    across = draw.Axis(of, (name, f"{words.split()[-1].capitalize()} [{bracket}", f"[{bracket}"), prefix="none")
    upwards = f"Performance [{performance}{{unit}}]"
    return across, draw.Axis(f"{unit}/s", (upwards, upwards, upwards.partition(" ")[2]), prefix="name")


def plain_roofs(roofs: Iterable[tuple[str, str, float, str, str]], role: str = "roof") -> Iterator[draw.Roof]:
    """Roofs of one origin, of rows (kind, level, value, name, value as text), with their values where there is room.

    Compute roofs come first, then bandwidths from the outermost inwards.
    """
    found = sorted(roofs, key=lambda roof: (roof[0] != "compute", -roof[2] if roof[0] == "compute" else roof[2]))
    top, steepest = (max((roof[2] for roof in found if roof[0] == kind), default=math.inf) for kind in ("compute", "bandwidth"))
    for kind, level, value, name, text in found:
        hue, meets = level_style(level) if level else None, steepest if kind == "compute" else top
        labels = tuple(filter(None, (f"{name} {text}".strip(), name)))
        yield draw.Roof(role=role, labels=labels, hue=hue, kind=kind, value=value, meets=meets)


def _twins(roofs: Sequence[ChartRoof]) -> list[list[ChartRoof]]:
    """Roofs, highest first, those of practically the same value together."""
    groups: list[list[ChartRoof]] = []
    for roof in roofs:
        if groups and math.isclose(groups[-1][0].value, roof.value, rel_tol=_SAME):
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def roof_texts(roofs: Sequence[ChartRoof]) -> tuple[str, ...]:
    """Labels for roofs of the same value, from complete to terse."""
    first = roofs[0]
    names = list(dict.fromkeys(roof.label or roof.id for roof in roofs))
    names = [name for name in names if not any(name.startswith(f"{other}, ") for other in names)]  # a mode as fast as the rest
    name = ", ".join(names)
    name = shorten(name, 36) if len(name) <= 36 else f"{shorten(names[0], 24)} and {len(names) - 1} more"
    if first.kind == "wall":  # its label says where it stands
        return name, name.partition(":")[0]
    value = first.best.text(first.unit)
    both = (f"{name} {value} (theory {first.bands['theoretical'].text(first.unit)})",) if len(first.bands) == 2 else ()
    return (*both, f"{name} {value}", name)


def _roof_marks(panel: Panel, both: bool) -> Iterator[draw.Mark]:
    """Roofs of both origins, labelled once: compute roofs, the bandwidths from the outermost inwards, walls; ridge points.

    Bandwidth roofs end at the highest compute roof of their own origin, compute roofs begin at the highest bandwidth roof.
    ``both``: measured and theoretical ones are both in the picture, and drawn as such.
    """
    compute, bandwidth, walls = map(panel.of_kind, ("compute", "bandwidth", "wall"))
    for group in [*_twins(compute), *reversed(_twins(bandwidth)), *_twins(walls)]:
        labels, beside = roof_texts(group), tuple(value for roof in group for value in roof.values)
        for upon, roof in enumerate(group):
            for origin in ("theoretical", "measured"):
                if origin not in roof.bands:
                    continue
                band, others = roof.bands[origin], bandwidth if roof.kind == "compute" else compute
                same = [other.bands[origin].line for other in others if origin in other.bands]
                role = "wall" if roof.kind == "wall" else "theory" if origin == "theoretical" and both else "roof"
                yield draw.Roof(
                    role=f"{role}-upon" if upon and roof.kind == "bandwidth" else role, labels=labels, kind=roof.kind,
                    hue=level_style(roof.level) if roof.level else None, value=band.line, beside=beside,
                    meets=max(same or [other.value for other in others], default=math.inf),
                    band=(band.low, band.high) if band.wide else None,
                )  # fmt: skip
                labels = ()
    # Where bandwidth roofs meet the highest compute roof; the outermost with its machine balance.
    ridges = [(compute[0].value / group[0].value, group[0]) for group in _twins(bandwidth) if compute]
    for intensity, roof in ridges:
        hue, place = level_style(roof.level), (intensity, compute[0].value)
        yield draw.Point(role="ridge", hue=hue, x=place[0], y=place[1])
        if intensity == max(x for x, _ in ridges):
            text = f"ridge {format_value(intensity, style.COUNTED[panel.unit].intensity_unit, 3)}"
            yield draw.Text(role="ridge", labels=(text,), hue=hue, places=(place,))


# Sweeps and FMA mixes as marks


def _sweeps(panel: Panel) -> list[list[Series]]:
    found = grouped(((one.kernel, one.precision), one) for one in panel.series if one.step >= 0)
    return [sorted(steps, key=lambda one: one.step) for steps in found.values() if len(steps) > 1]


def _step_keys(panels: Sequence[Panel]) -> list[str]:
    """``nw1  264 us`` for each step of a sweep of one kernel, which tells the times where dots have no room for them."""
    found = [steps for panel in panels for steps in _sweeps(panel)]
    times = {one.step: f"{shorten(one.label, _STEP)}  {_time(one)}".rstrip() for steps in found for one in steps}
    return [text for _, text in sorted(times.items())] if len({steps[0].kernel for steps in found}) == 1 else []


def _time(one: Series) -> str:
    return format_value(one.seconds, "second", 3) if one.seconds > 0 else ""


def sweep_marks(panel: Panel, panels: Sequence[Panel]) -> Iterator[draw.Mark]:
    """Lines along each sweep, names and times of its steps."""
    groups, key = _sweeps(panel), STEPS if _step_keys(panels) else ""
    for steps in groups:
        levels = style.level_order(level for step in steps for level, _ in step.dots)
        for level in levels:
            places = tuple(at for step in steps if (at := step.at(level)))
            if len(places) > 1:
                yield draw.Line(role="trajectory", hue=level_style(level), places=places)
        levels.sort(key=lambda level: level != steps[-1].nearest)  # that which limits the last step first
        for one in reversed(steps) if len(groups) <= _SOME else ():  # the last step always
            last, name = one in (steps[0], steps[-1]), shorten(one.label, _STEP)
            if last or len(groups) <= _FEW:
                text = ", ".join(filter(None, (name, _time(one))))
                places = tuple(at for level in levels if (at := one.at(level)))
                yield draw.Text(role="step", labels=(text,), places=places, key=key, brief=name if last else "")


def mixes(panel: Panel) -> list[draw.Roof]:
    """The FMA-mix ceilings that limit kernels of a panel, from high to low; none if they are more than MAX_MIXES.

    None for a kernel that its memory limits to less, nor for a ceiling that a compute roof draws already (all fused, none
    fused).
    """
    drawn, bandwidth = [value for roof in panel.of_kind("compute") for value in roof.values], panel.of_kind("bandwidth")
    steepest = max((roof.value for roof in bandwidth), default=math.inf)
    highest = {roof.level: roof.best.high for roof in bandwidth}
    found: dict[float, float] = {}  # with the share of fused multiply-adds
    for one in sorted((one for one in panel.series if one.mix_roof > 0), key=lambda one: -one.mix_roof):
        limits = not any(one.mix_roof > x * highest.get(level, math.inf) for level, x in one.dots)
        known = any(math.isclose(value, one.mix_roof, rel_tol=_SAME) for value in (*drawn, *found))
        if limits and _SAME <= one.fma_share <= 1 - _SAME and not known:
            found[one.mix_roof] = one.fma_share
    roofs = []
    for value, share in found.items() if len(found) <= MAX_MIXES else ():
        name = f"FMA mix {50 * (1 + share):.3g} %"
        labels = (f"{name} {format_value(value, f'{panel.unit}/s', 3)}", name)
        roofs.append(draw.Roof(role="mix", labels=labels, kind="compute", value=value, meets=steepest))
    return roofs


# The picture


def picture(frames: Frames, *, top: int = MAX_KERNELS, size: str = "equal") -> draw.Chart:
    """Panels of the ``top`` largest kernels under their roofs, and bars of kernels without dots.

    ``size`` is "time" where the areas of dots are to be shares of the time; raises ValueError for an unknown one.
    """
    if size not in SIZES:
        raise ValueError(f"size {size!r} is not one of {', '.join(SIZES)}")
    data, absent, by_time = chart(frames, top), kernels.without_dots(frames), size == "time"
    dotted = any(panel.series for panel in data.panels)
    bars = kernels.per_kernel(absent) if kernels.tells(frames, absent) else []
    data = data._replace(panels=()) if bars and not dotted else data
    saving = sorted(data.kernels, key=lambda kernel: -at_stake(kernel.seconds, kernel.recoverable))
    panels = [_panel(panel, data, saving, by_time) for panel in data.panels]
    blocks: list[Sequence[draw.Block]] = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    notes = footnotes(frames, data)
    if shown := bars[: min(top, _BESIDE) if dotted else top]:
        blocks.append([_listing(shown, "Kernels without dots" if dotted else "Kernels by time")])
        notes += [kernels.LONGEST] if any(row.longest for row in shown) else []
    if len(shown) < len(bars):
        notes.append(f"Bars of the {len(shown)} longest of {len(bars)} kernels without dots.")
    title = captions.name_of(frames) if data.panels else "Utilisation"
    if title == "Roofline" and len(data.panels) == 1 and data.panels[0].title:
        title = f"{title}, {data.panels[0].title}"
    answers, told = kernels.answers_of(frames), getattr(frames, "told", ())
    return draw.Chart(
        title,
        (*told[:1], answers[0].sentences[len(told)]) if len(answers) == 1 else (),
        captions.subtitle(frames),
        blocks,
        _keys(frames, data, by_time) if data.panels else [],
        legend_names(data.kernels),
        notes,
        captions.explanation(frames) if data.panels and not dotted else "",
        inside=True,
    )


figure = figure_of(picture)
render_png, render_svg, render_pdf = pictures(figure)


def footnotes(frames: Frames, data: RooflineChart) -> list[str]:
    """Sentences below a chart, the weightiest first.

    Of notes on kernels and rows only those that make a number doubtful: where numbers come from is told in tables and data.
    Kernels whose tensor work is unknown bear a mark in pictures, and so does the sentence on them.
    """
    notes = [*captions.main_notes(frames, kernels.MARK), captions.drawn_note(data.kernels, data.total)]
    notes += captions.why_absent(frames, kernels.without_dots(frames))
    if data.panels_left_out:
        notes.append(f"{plural(data.panels_left_out, 'further panel')} left out: choose with --precision.")
    if data.aside:
        notes.append(
            f"Dominated by other work, left out: {conjoined([*map(precision_label, data.aside)])}; choose with --precision."
        )
    return [note for note in (*notes, captions.roof_note(frames), *captions.notes_of(frames, doubts=True)) if note]


def legend_names(drawn: Sequence[Kernel]) -> dict[str, str]:
    """What the legend says of each kernel: its name and share of the time, with its number where shapes are too few."""
    numbered = len(drawn) > len(MARKERS)
    return {
        kernel.kernel: f"{f'{number} ' if numbered else ''}{shorten(kernel.marked, _LONGEST)}"
        f"{f'  {percent(kernel.time_share)}' if kernel.time_share > 0 else ''}"
        for number, kernel in enumerate(drawn, 1)
    }


def _size(share: float) -> float:
    """Points across a symbol whose area is the share of the time, down to what can be seen."""
    return max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0)


def _keys(frames: Frames, data: RooflineChart, by_time: bool) -> list[draw.Key]:
    labels = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    dots = {level for panel in data.panels for one in panel.series for level, _ in one.dots}
    levels = style.level_order(dots | {roof.level for panel in data.panels for roof in panel.roofs if roof.level})
    found = [draw.Key(labels.get(level) or level_style(level).label, "dot", level_style(level)) for level in levels]
    several = {one for panel in data.panels if len(panel.precisions) > 1 for one in panel.precisions}
    fills = grouped((fill, precision_label(precision)) for precision, fill in data.fills.items() if precision in several)
    found += [draw.Key(" or ".join(names), "dot", fill=fill) for fill, names in fills.items()]
    for origin in data.origins:
        line = "theory" if len(data.origins) > 1 and origin == "theoretical" else "roof"
        found.append(draw.Key(f"{captions.empirical_name(frames) if origin == 'measured' else origin} roof", line))
    wide = any(band.wide for panel in data.panels for roof in panel.roofs for band in roof.bands.values())
    found += [draw.Key("range over launches", "band")] if wide else []
    found += [draw.Key(f"{percent(share)} of the time", "dot", size=_size(share)) for share in _EXAMPLES if by_time]
    return [*found, *(draw.Key(text, instead=STEPS) for text in _step_keys(data.panels))]


def _panel(panel: Panel, data: RooflineChart, saving: Sequence[Kernel], by_time: bool) -> draw.Panel:
    """Roofs, ridge points, sweeps, dots in the shape of their kernel, and the names of kernels.

    Those are named that could save most, in the panel of most of their work by share of a roof.
    """

    def by_verdict(one: Series) -> tuple[float, ...]:
        """Of a kernel its last step, its longest launch, and the precision nearest to its roof first."""
        seconds, share = (value if value > 0 else 0.0 for value in (one.seconds, one.compute))
        return one.side, -one.step, -seconds, -share, -one.performance

    def best(kernel: Kernel, among: Panel) -> tuple[float, ...]:
        return min((by_verdict(one) for one in among.series if one.kernel == kernel.kernel), default=(math.inf,))

    series = sorted(panel.series, key=by_verdict)
    marks = [*_roof_marks(panel, len(data.origins) > 1), *mixes(panel), *sweep_marks(panel, data.panels)]
    marks += _dots(series, data, by_time)
    for kernel in saving[:_DIRECT]:
        if min(data.panels, key=lambda each: best(kernel, each)) is panel:
            mine = [one for one in series if one.kernel == kernel.kernel]
            weight = kernel.time_share if kernel.time_share > 0 else 0.0
            more = f"{kernel.marked.removeprefix(kernel.kernel)}{f' {percent(weight)}' if weight else ''}"
            labels = tuple(f"{shorten(kernel.kernel, length)}{more}" for length in (_NAME, _BRIEF))
            main = [one for one in mine if one.precision == mine[0].precision]
            places = tuple((x, one.performance) for one in main for _, x in reversed(one.dots))
            marks.append(draw.Text(role="name", labels=labels, places=places, key=kernel.kernel, weight=weight))
    return draw.Panel(panel.title if len(data.panels) > 1 else "", *axes_of(panel.unit), marks, "roofline")


def _dots(series: Sequence[Series], data: RooflineChart, by_time: bool) -> Iterator[draw.Mark]:
    """Dots in the colour of their level and the fill of their precision; those of a series joined, but in a sweep.

    Axes reach to those that carry a verdict, of kernels that matter.
    """
    matter = {kernel.kernel for kernel in data.kernels if kernel.matters}
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
            )  # fmt: skip
        if len(one.dots) > 1 and one.step < 0:
            xs = [x for _, x in one.dots]
            yield draw.Line(role="joined", name=one.kernel, places=((min(xs), one.performance), (max(xs), one.performance)))


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
