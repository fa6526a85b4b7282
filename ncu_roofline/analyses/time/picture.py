"""The time view as a chart: complexity plane, time plane, and a 4D chart per precision, for each GPU.

Complexity plane, time plane and 4D chart are those of Wang et al. (2020), section II.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, ChartKernel, largest
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernel_labels
from ncu_roofline.analyses.hierarchical.style import bounds, level_style, precision_label, precision_order
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time.captions import TimeFrames, drawable
from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.base.units import UNITS, factor, format_value, percent
from ncu_roofline.rendering.chart import (
    Axis,
    Chart,
    Contours,
    Corner,
    Key,
    Line,
    Mark,
    Panel,
    Place,
    Point,
    Region,
    Roof,
    Text,
)
from ncu_roofline.rendering.chart_picture import chart_figure
from ncu_roofline.rendering.frames import records, rows, table
from ncu_roofline.rendering.picture import pictures
from ncu_roofline.rendering.style import MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
MOST_DEVICES = 3  # in one picture; a page has them all
_MOST = 4  # 4D charts of a GPU, half of that where there are several
_FACTORS = 12  # up to so many symbols the inefficiency is written at each
_STEPS = 3  # sweeps whose steps are all named; of more only the first and the last are
_DIFFER = 0.05  # peaks closer than this are one machine balance on paper


@dataclass(frozen=True)
class Drawn:
    """The symbols of one GPU, rows of the points with "traffic" and "work" as x and y of each plane; its machines by precision,
    the one with the most time first."""

    device: str
    symbols: Sequence[Row]
    machines: Sequence[Row]

    @property
    def unit(self) -> str:
        """What work counts here; FLOPs where some count operations."""
        return "op" if {row["unit"] for row in self.symbols} == {"op"} else "flop"


def drawn(frames: TimeFrames, limit: int = MAX_KERNELS) -> tuple[list[Drawn], tuple[ChartKernel, ...], int]:
    """What a picture can show: each GPU, the ``limit`` largest kernels by time, and how many kernels have symbols."""
    labels, found = kernel_labels(frames), dict[str, list[Row]]()
    for row in records(table(frames, "points")):
        if drawable((row["traffic"], row["work"])):
            places = {
                "complexity": (row["traffic"], row["work"]),
                "time": (row["bandwidth_seconds"], row["compute_seconds"]),
                # The bytes and operations that these times would do at the roofs: at the roofline those of the kernel.
                "at_roofs": (
                    row["bandwidth_seconds"] * row["bandwidth_roof"],
                    row["compute_seconds"] * row["compute_roof"],
                ),
            }
            row |= {"kernel": labels[row["report"], row["kernel"]], "label": clean(row["label"]), **places}
            found.setdefault(row["device"], []).append(row)
    names = {row["kernel"] for symbols in found.values() for row in symbols}
    kernels, total = largest(frames, "points", labels, names, limit)
    kept = {kernel.label for kernel in kernels}
    devices = []
    for device, every in found.items():
        symbols, seconds = [row for row in every if row["kernel"] in kept], defaultdict[str, float](float)
        for row in symbols:
            seconds[row["precision"]] += row["seconds"]
        machines = [
            row
            for row in records(table(frames, "machines"))
            if row["device"] == device and row["level"] == frames.level and row["precision"] in seconds
        ]
        machines.sort(key=lambda row: (-seconds[row["precision"]], precision_order(row["precision"])))
        if symbols:
            devices.append(Drawn(clean(device), symbols, machines))
    return devices, kernels, total


def chart(frames: TimeFrames, top: int = MAX_KERNELS, less: int = 0) -> Chart | None:
    """The time view; ``less``: so many 4D charts of each GPU fewer, then GPUs; None where nothing would be left."""
    devices, kernels, total = drawn(frames, top)
    device, left_out, devices = devices[0].device if len(devices) == 1 else "", devices[MOST_DEVICES:], devices[:MOST_DEVICES]
    most = _MOST if len(devices) == 1 else _MOST // 2
    if less > most:
        devices = devices[: most - less]
        if not devices:
            return None
    most = max(most - less, 0)
    roofs = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    level = roofs.get(frames.level) or level_style(frames.level).label
    panels: list[list[Panel]] = []
    for one in devices:
        title = f"Complexity, {one.device}" if len(devices) > 1 else "Complexity"
        panels.append([_complexity(one, title, level), _time(one, level)])
        panels.append([_both(one, machine, level) for machine in _balanced(one)[:most]])
    numbered = len(kernels) > len(MARKERS)
    names = {
        kernel.label: f"{f'{number} ' if numbered else ''}{shorten(kernel.label, 40)}"
        f"{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for number, kernel in enumerate(kernels, 1)
    }
    answers = answers_of(frames)
    lacking = dict.fromkeys(precision_label(row["precision"]) for one in devices for row in _balanced(one)[most:])
    return Chart(
        f"Time-based roofline{f', {device}' if device else ''}",
        answers[0].sentences[:1] if len(answers) == 1 else (),
        captions.subtitle(frames),
        [row for row in panels if row],
        _keys(devices, level),
        names,
        _notes(frames, devices, kernels, total, len(left_out), list(lacking)),
        "" if panels else time_captions.explanation(frames),
    )


def _keys(devices: Sequence[Drawn], level: str) -> list[Key]:
    every = [row for one in devices for row in one.symbols]
    present, sweeps = {row["bound"] for row in every}, any(row["step"] >= 0 for row in every)
    found = [Key(style.label, "dot", style) for bound, style in bounds().items() if bound in present]
    found += [Key("machine balance", "balance"), Key("launch overhead", "overhead", bounds()["overhead"])]
    found += [Key("steps of a sweep", "sweep")] if sweeps else []
    found += [Key(f"{level} traffic and operations", "dot")]
    found += [Key("bandwidth and compute time (upper and right axes)", "ring")]
    return [*found, Key("inefficiency: run time / time at the roofline", "gap")]


def _notes(
    frames: TimeFrames,
    devices: Sequence[Drawn],
    kernels: Sequence[ChartKernel],
    total: int,
    left_out: int,
    lacking: Sequence[str],
) -> list[str]:
    """Sentences below the charts, the weightiest first."""
    notes = time_captions.about(frames)
    if len(kernels) < total:
        share = sum(kernel.share for kernel in kernels if math.isfinite(kernel.share))
        part = f" ({percent(share)} of the time)"
        notes.append(f"The {len(kernels)} largest of {plural(total, 'kernel')} by time are drawn{part}.")
    notes += time_captions.absent_notes(frames)
    if left_out:
        notes.append(f"{plural(left_out, 'further GPU')} left out: render its reports apart.")
    for one in devices:
        for machine in one.machines:
            if machine["peak_max"] > (1 + _DIFFER) * machine["peak_min"]:
                unit = next((row["unit"] for row in one.symbols if row["precision"] == machine["precision"]), "flop")
                low, high, at = (format_value(machine[name], f"{unit}/s", 3) for name in ("peak_min", "peak_max", "peak"))
                where = f"{precision_label(machine['precision'])}{f' on {one.device}' if len(devices) > 1 else ''}"
                notes.append(f"{where}: the compute roof differs by kernel, {low} to {high}; axes and balance stand at {at}.")
    notes += [captions.roof_note(frames), *captions.kernel_notes(frames), *captions.row_notes(frames)]
    if lacking:
        notes.append(f"4D charts left out for lack of room: {', '.join(lacking)}; choose with --precision.")
    return [note for note in notes if note]


def _balanced(one: Drawn) -> list[Row]:
    """The machines whose peak and bandwidth are both known: those that a 4D chart can be drawn for."""
    return [machine for machine in one.machines if machine["balance"] > 0]


def _complexity(one: Drawn, title: str, level: str) -> Panel:
    """Bytes and operations; diagonals of equal intensity, machine balances, the box of the launch overhead."""
    single = [machine for machine in one.machines if machine["precision"] != "mixed"]  # the sum has a roof for each kernel
    marks = [*_balances(one, single or one.machines), *_overhead(one, one.machines[:1], "bandwidth", "peak")]
    marks += _symbols(one.symbols, "complexity", "dot")
    x, y = _axes(one, level)
    return Panel(title, x, y, [*marks, *_sweeps(one.symbols, "complexity"), *_corners()])


def _time(one: Drawn, level: str) -> Panel:
    """Bandwidth time and compute time on equal axes: isocurves of run time, the balance diagonal, the launch overhead."""
    symbols = [row for row in one.symbols if drawable(row["time"])]
    marks: list[Mark] = [Contours(role="contour", of="max", unit="second")]
    marks += [Roof(role="balance", labels=("compute time = bandwidth time",), kind="bandwidth", value=1.0)]
    marks += [*_overhead(one, one.machines[:1]), *_symbols(symbols, "time", "dot"), *_sweeps(symbols, "time"), *_corners()]
    x, y = Axis("second", (f"Bandwidth time ({level})", "Bandwidth time")), Axis("second", ("Compute time", "Compute", ""))
    return Panel("Time", x, y, marks, "square")


def _both(whole: Drawn, machine: Row, level: str) -> Panel:
    """The 4D chart of the symbols of one precision: complexity filled, time open, on axes that meet at the roofline."""
    symbols = [row for row in whole.symbols if row["precision"] == machine["precision"] and drawable(row["time"])]
    one = Drawn(whole.device, symbols, [machine])
    marks = [*_balances(one, [machine]), *_overhead(one, [machine], "bandwidth", "peak")]
    marks += [Line(role="gap", places=(row["complexity"], row["at_roofs"])) for row in symbols]
    marks += [*_symbols(symbols, "at_roofs", "ring"), *_symbols(symbols, "complexity", "dot")]
    marks += [*_sweeps(symbols, "complexity"), *_sweeps(symbols, "at_roofs", "sweep-time"), *_corners()]
    if len(symbols) <= _FACTORS:
        places = ((factor(row["inefficiency"]), row["at_roofs"]) for row in symbols)
        marks += [Text(role="factor", labels=(text,), places=(place,)) for text, place in places]
    upper = 1 / machine["bandwidth"], "second", f"Bandwidth time ({level})"
    right = 1 / machine["peak"], "second", "Compute time"
    return Panel(f"Complexity and time, {precision_label(machine['precision'])}", *_axes(one, level, upper, right), marks)


_Second = tuple[float, str, str] | None


def _axes(one: Drawn, level: str, upper: _Second = None, right: _Second = None) -> tuple[Axis, Axis]:
    traffic = f"{level} traffic [B]"
    work = " or ".join(dict.fromkeys(UNITS[row["unit"]].symbol for row in one.symbols))
    upwards = (f"Computational complexity [{work}]", f"Complexity [{work}]", f"[{work}]")
    return Axis("byte", (f"Bandwidth complexity: {traffic}", traffic), upper), Axis(one.unit, upwards, right)


def _balances(one: Drawn, machines: Sequence[Row]) -> list[Mark]:
    """Diagonals: round intensities, and the machine balance of each precision."""
    unit = f"{one.unit}/byte"
    kept: list[list[Row]] = []
    for machine in sorted((row for row in machines if row["balance"] > 0), key=lambda row: float(row["balance"])):
        if kept and math.isclose(kept[-1][0]["balance"], machine["balance"], rel_tol=_DIFFER):
            kept[-1].append(machine)
        else:
            kept.append([machine])
    found: list[Mark] = [Contours(role="contour", of="y/x", unit=unit)]
    for group in kept:
        names = ", ".join(precision_label(row["precision"]) for row in group)
        text = f"balance {format_value(group[0]['balance'], unit, 3)}"
        text = f"{text} ({names})" if len(kept) > 1 else f"machine {text}"
        found.append(Roof(role="balance", labels=(text,), kind="bandwidth", value=group[0]["balance"]))
    return found


def _overhead(one: Drawn, machines: Sequence[Row], *per_second: str) -> Iterator[Region]:
    """What fewest and most launches of a symbol hide: seconds on both axes, or what the machine does in them."""
    counts = [row["invocations"] for row in one.symbols]
    for machine in machines:
        for count in dict.fromkeys((min(counts), max(counts))) if counts and machine["latency"] > 0 else ():
            seconds = float(count * machine["latency"])
            x, y = (seconds * float(machine[name]) for name in per_second) if per_second else (seconds, seconds)
            if drawable((x, y)):
                hue, text = bounds()["overhead"], f"overhead of {plural(count, 'launch')}"
                yield Region(role="overhead", labels=(text,), hue=hue, x=x, y=y)


def _symbols(symbols: Sequence[Row], place: str, role: str) -> list[Mark]:
    """A shape for each symbol at one of its places, with the names of steps at dots."""
    found: list[Mark] = []
    for row in symbols:
        x, y = row[place]
        hue, name, seconds = bounds()[row["bound"]], row["kernel"], row["seconds"]
        found.append(Point(role=role, hue=hue, x=x, y=y, name=name, weight=seconds))
    if role == "dot":
        sweeps = _by_kernel(row for row in symbols if row["label"])
        for steps in sweeps:
            named = steps if len(sweeps) <= _STEPS else (steps[0], steps[-1])
            found += [Text(role="step", labels=(row["label"],), places=(row[place],)) for row in named]
    return found


def _by_kernel(symbols: Sequence[Row] | Iterator[Row]) -> list[list[Row]]:
    """The steps of each kernel that is swept, in order."""
    found: dict[str, list[Row]] = {}
    for row in symbols:
        if row["step"] >= 0:
            found.setdefault(row["kernel"], []).append(row)
    return [sorted(steps, key=lambda row: int(row["step"])) for steps in found.values()]


def _sweeps(symbols: Sequence[Row], place: str, role: str = "sweep") -> list[Mark]:
    """Lines through the steps of each kernel."""
    places: list[tuple[Place, ...]] = [
        tuple(row[place] for row in steps) for steps in _by_kernel(row for row in symbols if drawable(row[place]))
    ]
    return [Line(role=role, places=one) for one in places if len(one) > 1]


def _corners() -> list[Mark]:
    """Region names: compute-bound in the upper left, memory-bound in the lower right corner."""
    sides = (("compute", "upper left"), ("memory", "lower right"))
    return [Corner(role="corner", labels=(bounds()[side].label,), hue=bounds()[side], where=where) for side, where in sides]


def time_figure(
    frames: TimeFrames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = MAX_KERNELS,
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
) -> Figure:
    """The charts of the ``top`` largest kernels as a matplotlib figure; the paper as `chart_figure` takes it."""
    paper = {"width": width, "height": height, "font": font, "dpi": dpi, "preset": preset}
    return chart_figure(lambda less: chart(frames, top, less), title=title, theme=theme, **paper)  # type: ignore[arg-type]


render_png, render_svg, render_pdf = pictures(time_figure)
