"""The measured roofline of a machine as a figure: its roofs, beside them a table of how near they come to theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.drawing import Label, draw_axes, draw_label
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.base.forms import inside, number
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.bench.roofs import MachineRoof, MachineRoofs, device_name, machine_roofs
from ncu_roofline.bench.tables import value_text
from ncu_roofline.chips.palette import PLAIN, TENSOR
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.lettering import measurer, put_key, put_text, wrapped
from ncu_roofline.rendering.paper import DEFAULT
from ncu_roofline.rendering.picture import put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 388.0, 330.0  # points of what the roofs are drawn in; it is higher where its table is
_LEFT, _HEAD, _BELOW = 44.0, 38.0, 46.0  # points around it: for numbers, for the titles, for names and the key
_FAN = 22.0  # points from the ends of the roofs to their rows in the table
_CELL, _ROOF, _RIDGE, _NOTE = 6.3, 6.4, 5.6, 6.0  # font sizes
_ROW, _LINE, _GAP = 9.6, 8.6, 9.0  # points from row to row, from note to note, from column to column
_NOTE_LINES = 3  # of one kind
_NEAR = 0.25  # a label clears lines that are no further than this from its own
_DEEP = 7.0  # the lowest compute roof over the lowest place that is surely shown: room for the labels of bandwidth roofs
_SAME = 0.01  # roofs closer than this are one line on paper
_THEORY, _FLAWED, _TWIN = (0, (4, 2.5)), (0, (1, 2)), (0, (6, 6))
_PLACES = 4  # digits after the point, at most


def figure(content: Mapping[str, Any], theme: str = "light") -> Figure:
    """The picture as a matplotlib figure of its own, outside pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, roofs = THEMES[theme], machine_roofs(content)
    made = Figure(figsize=(10, 6), dpi=DEFAULT.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    measure = measurer()
    table = _table(roofs, _is_cpu(content), measure)
    view = _view(roofs)
    width = _LEFT + view.width + _FAN + table.width + 8
    notes = [line for kind in _notes(content, roofs) for line in wrapped([kind], _NOTE, width - 12, _NOTE_LINES, measure)]
    foot = _LINE * len(notes) + 6 + _BELOW
    height = foot + view.height + _HEAD
    made.set_size_inches(width / 72, height / 72)
    sheet = sheet_over(made, width, height)
    put_header(
        sheet,
        f"{'Published' if content.get('status') == PUBLISHED else 'Measured'} roofline: {device_name(content)}",
        _subtitle(content, roofs),
        colours,
        measure,
    )
    place = (_LEFT / width, foot / height, view.width / width, view.height / height)
    axes = made.add_axes(place, facecolor=colours.ground)
    draw_axes(axes, view, "flop" if all(roof.unit == "FLOP/s" for roof in roofs.compute) else "op", colours, measure)
    _draw_roofs(axes, roofs, view, colours)
    ridges = _draw_ridges(axes, roofs, view, colours)
    for label in _labels(roofs, view, ridges, measure):
        draw_label(axes, label, view, colours)
    _draw_table(sheet, table, roofs, view, foot, colours)
    _draw_key(sheet, foot - 36, roofs, colours, measure)
    for index, line in enumerate(notes):
        put_text(sheet, 6, 4 + _LINE * (len(notes) - 1 - index), line, _NOTE, colours.faint, va="bottom")
    return made


def _is_cpu(content: Mapping[str, Any]) -> bool:
    return bool(content["device"].get("kind") == "cpu")


def _subtitle(content: Mapping[str, Any], roofs: MachineRoofs) -> str:
    """What the file says of itself, and what the columns of the table mean."""
    status, drawn = clean(str(content.get("status") or "")), (*roofs.bandwidth, *roofs.compute)
    clock = "core clock" if _is_cpu(content) else "SM clock"
    told = {
        f"status: {shorten(status)}": status,
        "of peak: of the theory at the vendor's clock": any(roof.peak > 0 for roof in drawn),
        f"at clock: of the theory at the {clock} measured with it": any(roof.at_clock > 0 for roof in drawn),
        "pJ: power of the whole board over the rate": any(roof.power > 0 for roof in drawn),
    }
    text = "; ".join(part for part, known in told.items() if known)
    return f"{text[:1].upper()}{text[1:]}"


def _view(roofs: MachineRoofs) -> View:
    """Axes that show all roofs, peaks and ridge points; of bandwidths alone so much that they can be told apart."""

    def values(chosen: Iterable[MachineRoof]) -> list[float]:
        return [value for roof in chosen for value in (roof.value, roof.burst, roof.peak) if not math.isnan(value)]

    bandwidths = values(roofs.bandwidth)
    peaks = values(roofs.compute) or [10 * max(bandwidths)]
    below = [(min(peaks) / max(bandwidths), min(peaks) / _DEEP)] if bandwidths else []
    rows = len(roofs.bandwidth) + len(roofs.compute) + 4  # with the heads of the table and a gap
    return View(*layout.limits(below, peaks, bandwidths), _WIDTH, max(_HEIGHT, rows * _ROW))


def _top(roofs: MachineRoofs, view: View) -> float:
    """Where bandwidth roofs end."""
    return max((roof.value for roof in roofs.compute if not roof.flaw), default=view.y1 / 2)


def _steepest(roofs: MachineRoofs) -> float | None:
    """The bandwidth roof at which compute roofs begin."""
    return max((roof.value for roof in roofs.bandwidth if not roof.flaw), default=None)


def _colour(roof: MachineRoof, colours: Theme) -> str:
    if roof.level:
        return level_colour(roof.level, colours)
    hue = TENSOR if roof.is_tensor else PLAIN if roof.is_plain else None
    return colours.compute if hue is None else colours.of(hue)


def _draw_roofs(axes: Axes, roofs: MachineRoofs, view: View, colours: Theme) -> None:
    """Solid what is sustained, thin without FMA, dotted what was not accepted; light bursts, thin dashes for theory."""
    above = math.inf
    for roof in (*roofs.bandwidth, *roofs.compute):
        colour = _colour(roof, colours)
        if roof.burst > roof.value:
            _draw_line(axes, roofs, view, (roof, roof.burst), "burst", color=colour, lw=1.3, alpha=0.35, zorder=2.5)
        if not math.isnan(roof.peak):
            _draw_line(axes, roofs, view, (roof, roof.peak), "theory", color=colour, lw=0.6, ls=_THEORY, alpha=0.8, zorder=2)
        twin = not roof.is_plain and math.isclose(above, roof.value, rel_tol=_SAME)
        dashes: Any = _FLAWED if roof.flaw else _TWIN if twin else "-"
        thick = 0.9 if roof.is_plain or roof.flaw else 1.5
        height = 3.2 if roof.is_plain else 3.0  # a thin line upon a thick one is seen
        _draw_line(axes, roofs, view, (roof, roof.value), "roof", color=colour, lw=thick, ls=dashes, zorder=height)
        above = above if roof.is_plain or roof.flaw else roof.value


def _draw_line(axes: Axes, roofs: MachineRoofs, view: View, what: tuple[MachineRoof, float], role: str, **style: Any) -> None:
    roof, value = what
    if roof.level:
        ends = layout.diagonal(view, value, _top(roofs, view))
    else:
        span = layout.horizontal(view, value, _steepest(roofs))
        ends = ((span[0], value), (span[1], value)) if span else None
    if ends:
        xs, ys = zip(*ends, strict=True)
        axes.plot(xs, ys, gid=role, **style)


@dataclass(frozen=True)
class _Ridge:
    """Where a bandwidth roof meets a compute roof, in data values."""

    intensity: float
    performance: float
    level: str


def _draw_ridges(axes: Axes, roofs: MachineRoofs, view: View, colours: Theme) -> list[_Ridge]:
    """Rings at the ridge points of all roofs but those without FMA, which are returned, the outermost level's first."""
    found, above = [], math.inf
    peaks = []
    for roof in (one for one in roofs.compute if not one.flaw and not one.is_plain):
        if not math.isclose(above, roof.value, rel_tol=5 * _SAME):
            peaks.append(roof.value)
            above = roof.value
    for roof in sorted((one for one in roofs.bandwidth if not one.flaw), key=lambda one: one.value):
        found += [_Ridge(peak / roof.value, peak, roof.level) for peak in peaks if view.holds(peak / roof.value, peak)]
    for ridge in found:
        edge = level_colour(ridge.level, colours)
        axes.plot([ridge.intensity], [ridge.performance], "o", ms=3.2, mfc=colours.ground, mec=edge, mew=0.9, zorder=4)
    return found


def _labels(roofs: MachineRoofs, view: View, ridges: Sequence[_Ridge], measure: Measure) -> list[Label]:
    """Labels of the bandwidth roofs along them, and the intensities of the ridge points that have room."""
    obstacles, found = Obstacles(view), []
    top, steepest = _top(roofs, view), _steepest(roofs)
    for roof in roofs.bandwidth:
        if ends := layout.diagonal(view, roof.value, top):
            (ax, ay), (bx, by) = ends
            obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), 1.2)
    for roof in roofs.compute:
        if span := layout.horizontal(view, roof.value, steepest):
            y = view.y(roof.value)
            obstacles.add(layout.segment(view.x(span[0]), y, view.x(span[1]), y), 1.2)
    for ridge in ridges:
        obstacles.add(Box(view.x(ridge.intensity), view.y(ridge.performance), 4.2, 4.2), 1.0)
    lines = [value for roof in roofs.bandwidth for value in (roof.value, roof.burst, roof.peak)]
    for roof in reversed(roofs.bandwidth):
        for text in _bandwidth_texts(roof):
            near = [value for value in lines if abs(value / roof.value - 1) < _NEAR]
            box = obstacles.place(layout.along_diagonal(view, near, top, *measure(text, _ROOF)))
            if box:
                found.append(Label(text, box, _ROOF, "roof", roof.level))
                break
    for ridge in ridges:
        text = _digits(ridge.intensity)
        x, y = view.x(ridge.intensity), view.y(ridge.performance)
        around = layout.around(x, y, *measure(text, _RIDGE), 4.2, 1)
        places = [(box, price) for box, price in around if box.x > x and box.y < y]  # off both lines that meet
        if box := obstacles.place(places, margin=0.4, limit=1.1):
            found.append(Label(text, box, _RIDGE, "ridge", ridge.level))
    return found


def _bandwidth_texts(roof: MachineRoof) -> list[str]:
    """From complete to terse."""
    short = f"{roof.label} {roof.text}{f', not accepted ({roof.flaw})' if roof.flaw else ''}"
    share = "" if math.isnan(roof.of_peak) else f", {_share(roof.of_peak)} of peak"
    return [f"{short}, {shorten(clean(roof.id), 24)}{share}", short]


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}".replace("%", " %")


def _whole(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"


def _digits(value: float) -> str:
    """Three digits, as a column has them: 4.00, 37.9, 561, 1240."""
    if math.isnan(value):
        return "-"
    return f"{value:.{min(max(2 - math.floor(math.log10(value)), 0), _PLACES)}f}"


@dataclass(frozen=True)
class _Column:
    """A column of the table, its width in points: header and cells of the compute roofs, below them of the bandwidth roofs."""

    header: str
    upper: Sequence[str]
    second: str
    lower: Sequence[str]
    width: float


@dataclass(frozen=True)
class _Table:
    columns: Sequence[_Column]

    @property
    def width(self) -> float:
        return sum(column.width for column in self.columns) + _GAP * (len(self.columns) - 1)


def _table(roofs: MachineRoofs, is_cpu: bool, measure: Measure) -> _Table:
    """What is known of each roof; columns of which nothing is known are left out."""
    clock = "MHz" if is_cpu else "SM MHz"
    facts: list[tuple[str, str, Callable[[MachineRoof], str]]] = [
        ("arithmetic", "memory", _row_name),
        ("measured", "measured", lambda roof: value_text(roof.value, roof.unit, 3)),
        ("burst", "burst", lambda roof: "-" if math.isnan(roof.burst) else value_text(roof.burst, roof.unit, 3)),
        ("of peak", "of peak", lambda roof: _share(roof.of_peak)),
        ("at clock", "at clock", lambda roof: _share(roof.at_clock)),
        (clock, clock, lambda roof: _whole(roof.clock / 1e6)),
        ("W", "W", lambda roof: _whole(roof.power)),
        (f"pJ/{_operation(roofs)}", "pJ/B", lambda roof: _digits(roof.energy * 1e12)),
    ]
    columns = [
        _column(head, [tell(roof) for roof in roofs.compute], second, [tell(roof) for roof in roofs.bandwidth], measure)
        for head, second, tell in facts
    ]
    for level in reversed([roof for roof in roofs.bandwidth if not roof.flaw]):
        cells = ["-" if roof.flaw else _digits(roof.value / level.value) for roof in roofs.compute]
        columns.append(_column(f"ridge {level.label}", cells, "", [""] * len(roofs.bandwidth), measure))
    return _Table([column for column in columns if {*column.upper, *column.lower} - {"-", ""}])


def _row_name(roof: MachineRoof) -> str:
    name = f"{roof.label} ({shorten(clean(roof.id), 20)})" if roof.level else roof.label
    return shorten(f"{name}, {roof.flaw}" if roof.flaw else name)


def _operation(roofs: MachineRoofs) -> str:
    return "FLOP" if all(roof.unit == "FLOP/s" for roof in roofs.compute) else "OP"


def _column(header: str, upper: Sequence[str], second: str, lower: Sequence[str], measure: Measure) -> _Column:
    return _Column(header, upper, second, lower, max(measure(text, _CELL)[0] for text in (header, second, *upper, *lower)))


def _draw_table(sheet: Axes, table: _Table, roofs: MachineRoofs, view: View, foot: float, colours: Theme) -> None:
    """Rows of compute roofs beside their lines, which lead to them, and below those of the bandwidth roofs."""
    edge = _LEFT + view.width
    lower = [foot + 2 + _ROW * index for index in reversed(range(len(roofs.bandwidth)))]
    low = foot + _ROW * (len(roofs.bandwidth) + 2) if roofs.bandwidth else foot + 2
    ends = [foot + min(max(view.y(roof.value), 0.0), view.height) for roof in roofs.compute]
    upper = layout.spread(ends, _ROW, low, foot + view.height - _ROW)
    for roof, end, y in zip(roofs.compute, ends, upper, strict=True):
        xs = edge + 1, edge + 6, edge + _FAN - 6, edge + _FAN - 2
        sheet.plot(xs, (end, end, y, y), lw=0.5, color=_colour(roof, colours), gid="leader")
    x = edge + _FAN
    for index, column in enumerate(table.columns):
        at, side = (x, "left") if index == 0 else (x + column.width, "right")
        for heads, rows, cells, ys in (
            (column.header, roofs.compute, column.upper, upper),
            (column.second, roofs.bandwidth, column.lower, lower),
        ):
            if rows:
                put_text(sheet, at, ys[0] + _ROW, heads, _CELL, colours.faint, ha=side, va="center_baseline")
            for roof, cell, y in zip(rows, cells, ys, strict=True):
                colour = _colour(roof, colours) if index == 0 else colours.text
                put_text(sheet, at, y, cell, _CELL, colour, ha=side, va="center_baseline")
        x += column.width + _GAP


def _draw_key(sheet: Axes, y: float, roofs: MachineRoofs, colours: Theme, measure: Measure) -> None:
    """What the lines mean, of those that are there."""
    drawn, x = (*roofs.bandwidth, *roofs.compute), 10.0
    bursts = any(roof.burst > roof.value for roof in drawn)
    plain = colours.of(PLAIN)
    kinds: tuple[tuple[str, bool, dict[str, Any]], ...] = (
        ("measured, sustained" if bursts else "measured", True, {"lw": 1.5}),
        ("burst", bursts, {"lw": 1.3, "alpha": 0.35}),
        ("without FMA", any(roof.is_plain for roof in drawn), {"lw": 0.9, "color": plain}),
        ("theory at the vendor's clock", any(roof.peak > 0 for roof in drawn), {"lw": 0.6, "ls": _THEORY}),
        ("not accepted", any(roof.flaw for roof in drawn), {"lw": 0.9, "ls": _FLAWED}),
    )
    for name, there, style in kinds:
        if there:
            sheet.plot([x - 2, x + 14], [y, y], **{"color": colours.compute, **style})
            x = put_key(sheet, x + 18, y, name, colours, measure)
    if roofs.bandwidth and roofs.compute:
        sheet.plot([x], [y], "o", ms=3.2, mfc=colours.ground, mec=colours.faint, mew=0.9)
        put_key(sheet, x + 6, y, f"ridge point, {_operation(roofs)}/B", colours, measure)


def _notes(content: Mapping[str, Any], roofs: MachineRoofs) -> list[str]:
    """Lines below the picture: on what and how it was measured, and what is not drawn."""
    found = [_facts(content)]
    lists = (("Also measured", roofs.others), ("Not drawn", roofs.refused), ("Not measured", roofs.unmeasured))
    found += [f"{title}: {', '.join(texts)}." for title, texts in lists if texts]
    warnings = content.get("warnings")
    if isinstance(warnings, list) and warnings:
        found.append(f"Warnings: {'; '.join(clean(str(text)) for text in warnings)}.")
    return found


def _facts(content: Mapping[str, Any]) -> str:
    device, is_cpu = content["device"], _is_cpu(content)
    gpus = device.get("gpus")
    limit = number(device.get("power_limit_w"))
    tool, date = inside(content, "tool", "version"), str(inside(content, "host", "time_utc") or "")[:10]
    data = inside(content, "settings", "data")
    facts = (
        device_name(content),
        f"compute capability {device['cc']}" if device.get("cc") else "",
        f"medians of {len(gpus)} GPUs" if isinstance(gpus, list) else "",
        f"{device['sm_count']} SMs" if device.get("sm_count") else "",
        _clocks(content, "core clock" if is_cpu else "SM clock"),
        f"power limit {limit:.0f} W" if limit > 0 else "",
        f"driver {device['driver']}" if device.get("driver") else "",
        date,
        f"{data} data" if data else "",
        f"ncu-roofline {tool}" if tool else "",
    )
    return ", ".join(shorten(clean(fact), 80) for fact in facts if fact)


def _clocks(content: Mapping[str, Any], name: str) -> str:
    """The range of clocks that the ceilings were measured at."""
    kinds = ("sm_mhz_min", "sm_mhz_mean")
    found = [mhz for entry in content["ceilings"] for kind in kinds if (mhz := number(inside(entry, "clock", kind))) > 0]
    return f"{name} {' to '.join(dict.fromkeys(f'{mhz:.0f}' for mhz in (min(found), max(found))))} MHz" if found else ""
