"""The time view as a chart: complexity plane, time plane, and a 4D chart per precision, for each GPU.

Complexity plane, time plane and 4D chart are those of Wang et al. (2020), section II.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import MATTERS, answers_of, kernel_labels, kernels_of, largest
from ncu_roofline.analyses.hierarchical.picture import MAX_KERNELS, legend_names
from ncu_roofline.analyses.hierarchical.style import bounds, level_style, precision_label, precision_order
from ncu_roofline.analyses.time import text as words
from ncu_roofline.analyses.time.frames import TimeRoofline
from ncu_roofline.analyses.time.text import drawable
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import UNITS, factor, format_value
from ncu_roofline.rendering.chart import Axis, Chart, Contours, Key, Line, Mark, Panel, Point, Region, Roof, Text
from ncu_roofline.rendering.frames import records, rows, table
from ncu_roofline.rendering.picture import figure_of, pictures

Row = dict[str, Any]
MOST_DEVICES = 3  # in one picture; a page has them all
_MOST = 4  # 4D charts of a GPU, half of that where there are several
_FACTORS = 12  # up to so many symbols the inefficiency is written at each
_STEPS = 3  # sweeps whose steps are all named; of more only the first and the last are
_DIFFER = 0.05  # peaks closer than this are one machine balance on paper


class _Drawn(NamedTuple):
    """The symbols of one GPU, rows of the points with their places in each plane; its machines by precision, the one with the
    most time first; the unit of work, FLOPs where some count operations; what the memory level is called."""

    device: str
    symbols: Sequence[Row]
    machines: Sequence[Row]
    unit: str
    level: str

    @property
    def balanced(self) -> list[Row]:
        return [row for row in self.machines if row["balance"] > 0]

    @property
    def charted(self) -> list[Row]:
        """Machines with a 4D chart: of precisions that take some of the time."""
        spent = [(one["precision"], one["seconds"]) for one in self.symbols]
        least = MATTERS * sum(seconds for _, seconds in spent)
        return [row for row in self.balanced if not sum(part for name, part in spent if name == row["precision"]) < least]


def chart(frames: TimeRoofline, *, top: int = MAX_KERNELS) -> Chart:
    """The planes of the ``top`` largest kernels on each GPU, and a 4D chart for each precision of most time."""
    labels, found = kernel_labels(frames), dict[str, list[Row]]()
    for row in records(table(frames, "points")):
        if drawable(row["traffic"], row["work"]):
            times = row["bandwidth_seconds"], row["compute_seconds"]
            # The bytes and operations that these times would do at the roofs: at the roofline those of the kernel.
            at_roofs = times[0] * row["bandwidth_roof"], times[1] * row["compute_roof"]
            places = {"complexity": (row["traffic"], row["work"]), "time": times, "at_roofs": at_roofs}
            row |= {"kernel": labels[row["report"], row["kernel"]], "label": clean(row["label"]), **places}
            found.setdefault(row["device"], []).append(row)
    kernels, total = largest(kernels_of(frames).values(), {row["kernel"] for each in found.values() for row in each}, top)
    roofs = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    level = roofs.get(frames.level) or level_style(frames.level).label
    kept, devices = {kernel.kernel for kernel in kernels}, list[_Drawn]()
    for device, every in found.items():
        symbols, seconds = [row for row in every if row["kernel"] in kept], defaultdict[str, float](float)
        for row in symbols:
            seconds[row["precision"]] += row["seconds"]
        of_device = [row for row in records(table(frames, "machines")) if row["device"] == device]
        machines = [row for row in of_device if row["level"] == frames.level and row["precision"] in seconds]
        machines.sort(key=lambda row: (-seconds[row["precision"]], precision_order(row["precision"])))
        unit = "op" if {row["unit"] for row in symbols} == {"op"} else "flop"
        devices += [_Drawn(clean(device), symbols, machines, unit, level)] if symbols else []
    left_out, several = devices[MOST_DEVICES:], len(devices) > 1
    most, devices = _MOST // 2 if several else _MOST, devices[:MOST_DEVICES]
    panels: list[list[Panel]] = []
    for one in devices:
        panels.append([_complexity(one, f"Complexity, {one.device}" if len(devices) > 1 else "Complexity"), _time(one)])
        panels.append([_both(one, machine) for machine in one.charted[:most]])
    answers = answers_of(frames)
    shown = {machine["precision"] for one in devices for machine in one.charted[:most]}
    lacking = {row["precision"]: None for one in devices for row in one.balanced if row["precision"] not in shown}
    notes = [*words.about(frames), captions.drawn_note(kernels, total), *words.absent_notes(frames)]
    notes += [f"{plural(len(left_out), 'further GPU')} left out: render its reports apart."] if left_out else []
    notes += [captions.roof_note(frames), *captions.notes_of(frames)]
    notes += [f"4D charts left out: {', '.join(map(precision_label, lacking))}; choose with --precision."] if lacking else []
    drawn = [row for one in devices for row in one.symbols]
    return Chart(
        f"Time-based roofline{f', {devices[0].device}' if devices and not several else ''}",
        answers[0].sentences[:1] if len(answers) == 1 else (),
        captions.subtitle(frames),
        [row for row in panels if row],
        [
            *(Key(look.label, "dot", look) for bound, look in bounds().items() if any(row["bound"] == bound for row in drawn)),
            Key("machine balance", "balance"),
            Key("launch overhead", "overhead", bounds()["overhead"]),
            *([Key("steps of a sweep", "sweep")] if any(row["step"] >= 0 for row in drawn) else []),
            Key(f"{level} traffic and operations", "dot"),
            Key("bandwidth and compute time (upper and right axes)", "ring"),
            Key("inefficiency: run time / time at the roofline", "gap"),
        ],
        legend_names(kernels),
        [note for note in notes if note],
        "" if panels else words.explanation(frames),
    )


def _complexity(one: _Drawn, title: str, upper: Any = None, right: Any = None, *marks: Mark) -> Panel:
    """Bytes and operations; diagonals of equal intensity, machine balances, the box of the launch overhead."""
    traffic, symbols = f"{one.level} traffic [B]", one.symbols
    work = " or ".join(dict.fromkeys(UNITS[row["unit"]].symbol for row in symbols))
    x = Axis("byte", (f"Bandwidth complexity: {traffic}", traffic), upper)
    y = Axis(one.unit, (f"Computational complexity [{work}]", f"Complexity [{work}]", f"[{work}]"), right)
    single = [machine for machine in one.machines if machine["precision"] != "mixed"]  # the sum has a roof for each kernel
    unit, kept = f"{one.unit}/byte", list[list[Row]]()
    for machine in sorted((row for row in single or one.machines if row["balance"] > 0), key=lambda row: float(row["balance"])):
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
    found += [*_overhead(one, "bandwidth", "peak"), *marks, *_symbols(symbols, "complexity", "dot")]
    return Panel(title, x, y, [*found, *_sweeps(symbols, "complexity"), *_corners()])


def _time(one: _Drawn) -> Panel:
    """Bandwidth time and compute time on equal axes: isocurves of run time, the balance diagonal, the launch overhead."""
    symbols = [row for row in one.symbols if drawable(*row["time"])]
    marks: list[Mark] = [Contours(role="contour", of="max", unit="second")]
    marks += [Roof(role="balance", labels=("compute time = bandwidth time",), kind="bandwidth", value=1.0)]
    marks += [*_overhead(one), *_symbols(symbols, "time", "dot"), *_sweeps(symbols, "time"), *_corners()]
    x, y = Axis("second", (f"Bandwidth time ({one.level})", "Bandwidth time")), Axis("second", ("Compute time", "Compute", ""))
    return Panel("Time", x, y, marks, "square")


def _both(whole: _Drawn, machine: Row) -> Panel:
    """The 4D chart of the symbols of one precision: complexity filled, time open, on axes that meet at the roofline."""
    symbols = [row for row in whole.symbols if row["precision"] == machine["precision"] and drawable(*row["time"])]
    marks: list[Mark] = [Line(role="gap", places=(row["complexity"], row["at_roofs"])) for row in symbols]
    marks += [*_symbols(symbols, "at_roofs", "ring"), *_sweeps(symbols, "at_roofs", "sweep-time")]
    for row in symbols if len(symbols) <= _FACTORS else ():
        marks.append(Text(role="factor", labels=(factor(row["inefficiency"]),), places=(row["at_roofs"],)))
    upper = 1 / machine["bandwidth"], "second", f"Bandwidth time ({whole.level})"
    right = 1 / machine["peak"], "second", "Compute time"
    one = whole._replace(symbols=symbols, machines=[machine])
    return _complexity(one, f"Complexity and time, {precision_label(machine['precision'])}", upper, right, *marks)


def _overhead(one: _Drawn, *per_second: str) -> Iterator[Region]:
    """What fewest and most launches of a symbol hide: seconds on both axes, or what the machine does in them."""
    counts = [row["invocations"] for row in one.symbols]
    for machine in one.machines[:1]:
        for count in dict.fromkeys((min(counts), max(counts))) if counts and machine["latency"] > 0 else ():
            seconds = float(count * machine["latency"])
            x, y = (seconds * float(machine[name]) for name in per_second) if per_second else (seconds, seconds)
            if drawable(x, y):
                label = f"overhead of {plural(count, 'launch')}"
                yield Region(role="overhead", labels=(label,), hue=bounds()["overhead"], x=x, y=y)


def _symbols(symbols: Sequence[Row], place: str, role: str) -> Iterator[Mark]:
    """A shape for each symbol at one of its places, with the names of steps at dots."""
    for row in symbols:
        (x, y), hue = row[place], bounds()[row["bound"]]
        yield Point(role=role, hue=hue, x=x, y=y, name=row["kernel"], weight=row["seconds"])
    sweeps = _by_kernel(row for row in symbols if row["label"]) if role == "dot" else []
    for steps in sweeps:
        for row in steps if len(sweeps) <= _STEPS else (steps[0], steps[-1]):
            yield Text(role="step", labels=(row["label"],), places=(row[place],))


def _by_kernel(symbols: Iterator[Row]) -> list[list[Row]]:
    found = grouped((row["kernel"], row) for row in symbols if row["step"] >= 0)
    return [sorted(steps, key=lambda row: int(row["step"])) for steps in found.values()]


def _sweeps(symbols: Sequence[Row], place: str, role: str = "sweep") -> list[Mark]:
    sweeps = _by_kernel(row for row in symbols if drawable(*row[place]))
    return [Line(role=role, places=tuple(row[place] for row in steps)) for steps in sweeps if len(steps) > 1]


def _corners() -> list[Mark]:
    """Region names: compute-bound in the upper left, memory-bound in the lower right corner."""
    sides = (("compute", (0.0, math.inf)), ("memory", (math.inf, 0.0)))
    return [Text(role="corner", labels=(bounds()[side].label,), hue=bounds()[side], places=(at,)) for side, at in sides]


time_figure = figure_of(chart)
render_png, render_svg, render_pdf = pictures(time_figure)
