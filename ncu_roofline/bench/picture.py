"""The picture of a machine: of each level and kind of arithmetic the best ceiling of a file, beside them a table.

Output is deterministic: the same content and matplotlib give the same bytes.  Measuring goes without matplotlib and numpy, so
that they are imported where something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.bench.files import about, device_name, value_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import PLAIN, TENSOR
from ncu_roofline.formats.ceilings import PUBLISHED, Ceiling, ceiling_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ncu_roofline.rendering.chart import Hue

FORMATS = ("png", "svg", "pdf")
_WHAT = "Cannot draw the roofline of"
_MIXES = {"fma": "FMA", "nofma": "no FMA", "mad": "MAD"}
_PLAIN = ".nofma"
_LONGEST = 28  # characters of a name
_MOST = 40  # roofs of a kind
_AS_EXPECTED = ("emulated", "unsupported")  # verdicts on what a chip does not have
_PANEL = 441.0  # points of what the roofs are drawn in, with its margins
_NEAR = 0.25  # a label clears lines that are no further than this from its own
_DEEP = 7.0  # the lowest compute roof over the lowest place that is surely shown: room for the labels of bandwidth roofs
_SAME = 0.01  # roofs closer than this are one line on paper


def render(content: Mapping[str, Any], suffix: str, theme: str = "light") -> bytes:
    """The picture of what a ceilings file holds as a png, svg or pdf.

    Raises RooflineError where no bandwidth or compute ceiling was accepted, or the packages that draw are missing.
    """
    try:
        from ncu_roofline.rendering.picture import saved

        return saved(lambda: figure(content, theme), suffix)
    except ImportError as error:
        reason = f"the packages that draw can't be imported ({error})"
        next_step = "Install them with pip install matplotlib numpy, then draw with `ncu-roofline bench draw`."
        raise RooflineError(_WHAT, device_name(content), reason, next_step) from error


class MachineRoofs(NamedTuple):
    """``bandwidth`` and ``compute`` roofs, highest first; ``others``: texts on ceilings that are none of them."""

    bandwidth: tuple[Ceiling, ...]
    compute: tuple[Ceiling, ...]
    others: tuple[str, ...]


def machine_roofs(content: Mapping[str, Any]) -> MachineRoofs:
    """The roofs that the content of a ceilings file has: of each level, precision and tensor type one.

    That is an accepted one, one that the model takes for this level, the highest.
    """
    levels = {level.id: level for level in load_spec().levels}
    found = [ceiling_of(entry, content["device"]) for entry in content["ceilings"]]
    groups: dict[str, list[Ceiling]] = {}
    for roof in found:
        level = _level(roof)
        is_link = level in levels and levels[level].domain == "link"
        computes = roof.unit in ("FLOP/s", "OP/s") and not {"div", "sparse"} & {*roof.id.split(".")[1:]}
        name = level if level else ".".join(roof.id.split(".")[:2]) if computes else ""
        if name and not is_link and roof.value > 0:
            groups.setdefault(name, []).append(roof)
    best = []
    for name, group in groups.items():
        names = levels[name].ceilings if name in levels else ()
        best.append(max(group, key=lambda roof: (not roof.flaw, roof.id in names, roof.value)))
    best.sort(key=lambda roof: -roof.value)
    bandwidth, compute = (tuple(roof for roof in best if bool(roof.level) == way)[:_MOST] for way in (True, False))
    chosen, others = {id(roof) for roof in (*bandwidth, *compute)}, []
    for roof in found:
        value = f" {value_text(roof.value, roof.unit, 3)}" if roof.value > 0 else ""
        if id(roof) not in chosen and (value or roof.flaw not in _AS_EXPECTED):
            others.append(f"{_name(roof.id)}{value}{f' ({_name(roof.flaw)})' if roof.flaw else ''}")
    return MachineRoofs(bandwidth, compute, tuple(others))


def _level(roof: Ceiling) -> str:
    """The model's level of memory of a bandwidth, "" of others."""
    return (load_spec().level_of_ceiling(roof.id) or roof.level) if roof.level else ""


def looks(roof: Ceiling) -> tuple[str, Hue | None]:
    """What a roof is called, and its hue."""
    from ncu_roofline.analyses.hierarchical.style import level_style, precision_label

    level, (head, _, mix) = _level(roof), roof.id.partition(".")
    if level:
        known = any(one.id == level for one in load_spec().levels)
        return _name(level_style(level).label if known else shorten(clean(level.upper()), 12)), level_style(level)
    label = f"{head.upper()} {_MIXES[mix]}" if mix in _MIXES else precision_label(roof.id).replace("_ACC", " acc")
    return _name(label), TENSOR if head == "tensor" else PLAIN if mix == "nofma" else None


def energy(roof: Ceiling) -> float:
    """Joules per operation or byte, the power of the whole board over the rate; NaN where it is not known."""
    return roof.power / roof.value if roof.value > 0 else math.nan


def _name(text: str) -> str:
    return shorten(clean(text), _LONGEST)


def figure(content: Mapping[str, Any], theme: str = "light") -> Figure:
    """The picture as a matplotlib figure of its own, outside pyplot.  Raises RooflineError where no roof stands."""
    from ncu_roofline.analyses.hierarchical.picture import axes_of
    from ncu_roofline.rendering.chart import Chart, Key, Panel
    from ncu_roofline.rendering.paper import Pen
    from ncu_roofline.rendering.picture import chart_figure, table_widths

    roofs = machine_roofs(content)
    if all(roof.flaw for roof in (*roofs.bandwidth, *roofs.compute)):
        reason = "no ceiling of a memory level or of arithmetic was accepted"
        raise RooflineError(_WHAT, device_name(content), reason, "See the reasons in the ceilings file.")
    drawn, bandwidths, peaks = (*roofs.bandwidth, *roofs.compute), *([one.value for one in each] for each in roofs[:2])
    status, is_cpu = shorten(clean(str(content.get("status") or ""))), content["device"].get("kind") == "cpu"
    clock, operation = "core" if is_cpu else "SM", "flop" if all(roof.unit == "FLOP/s" for roof in roofs.compute) else "op"
    has_peaks, bursts = any(roof.peak > 0 for roof in drawn), any(roof.burst > roof.value for roof in drawn)
    limits = any(roof.limit > 0 for roof in drawn)
    subtitle = {
        f"status: {status}": status,
        "of peak: of the theory at the vendor's clock": has_peaks,
        f"at clock: of the theory at the {clock} clock measured with it": any(roof.share > 0 for roof in drawn),
        "energy (pJ): power of the whole board over the rate": any(energy(roof) > 0 for roof in drawn),
    }
    text = "; ".join(part for part, there in subtitle.items() if there)
    # Places that the axes reach to; of bandwidths alone so much that they can be told apart.
    seen: tuple[tuple[float, float], ...] = ()
    if bandwidths:
        low = min(peaks or [10 * max(bandwidths)])
        seen = ((low / max(bandwidths), low / _DEEP), *(() if peaks else ((low / min(bandwidths), low),)))
    keys = (
        ("measured, sustained: it judges" if bursts or limits else "measured", "roof", True),
        ("burst", "burst", bursts),
        ("at the power limit", "limit", limits),
        ("without FMA", "plain", any(roof.id.endswith(_PLAIN) for roof in drawn)),
        ("theory at the vendor's clock", "peak", has_peaks),
        ("not accepted", "flawed", any(roof.flaw for roof in drawn)),
        (f"ridge point, {operation.upper()}/B", "ridge", bool(bandwidths and peaks)),
    )
    notes = [f"{about(content)}."]
    if roofs.others:
        notes.append(f"Not drawn: {', '.join(roofs.others)}.")
    if warnings := content.get("warnings"):
        notes.append(f"Warnings: {'; '.join(clean(str(text)) for text in warnings)}.")
    table = _table(roofs, operation.upper())
    beside = sum(table_widths(table, Pen()))
    panel = Panel("", *axes_of(operation), _marks(roofs), "roofline", weight=_PANEL, seen=seen)
    title = f"{'Published' if content.get('status') == PUBLISHED else 'Measured'} roofline: {device_name(content)}"
    shown, panels = [Key(name, role) for name, role, there in keys if there], [[panel, replace(table, weight=beside)]]
    chart = Chart(title, (), text[:1].upper() + text[1:], panels, shown, {}, notes, note_lines=12)
    return chart_figure(chart, theme=theme, width=(_PANEL + beside) / 72)


def _marks(roofs: MachineRoofs) -> list[Any]:
    """Solid what is sustained, thin without FMA, dotted what was not accepted; light bursts, lighter dots for what is
    left at the power limit, thin dashes for theory.

    Where bandwidth roofs meet compute roofs with FMA, their ridge points with their intensities, the outermost first.
    """
    from ncu_roofline.rendering.chart import Mark, Point, Roof, Text

    marks: list[Mark] = []
    standing = [[roof for roof in each if not roof.flaw] for each in roofs[:2]]
    steepest, top = (max((roof.value for roof in each), default=math.inf) for each in standing)
    lines = [value for roof in roofs.bandwidth for value in (roof.value, roof.peak)]
    above = math.inf
    for roof in (*reversed(roofs.bandwidth), *roofs.compute):
        kind, meets = ("bandwidth", top) if roof.level else ("compute", steepest)
        twin = not roof.id.endswith(_PLAIN) and math.isclose(above, roof.value, rel_tol=_SAME)
        role = "flawed" if roof.flaw else "plain" if roof.id.endswith(_PLAIN) else "roof-upon" if twin else "roof"
        above = above if roof.id.endswith(_PLAIN) or roof.flaw else roof.value
        near = tuple(value for value in lines if abs(value / roof.value - 1) < _NEAR)
        share = "" if math.isnan(roof.peak) else f", {_share(roof.value / roof.peak)} of peak"
        flaw = f", not accepted ({_name(roof.flaw)})" if roof.flaw else ""
        called, hue = looks(roof)
        label = f"{called} {value_text(roof.value, roof.unit, 3)}{flaw}, {shorten(clean(roof.id), 24)}{share}"
        for name, value, there in (
            ("burst", roof.burst, roof.burst > roof.value),
            ("limit", roof.limit, roof.limit > 0),
            ("peak", roof.peak, roof.peak > 0),
            (role, roof.value, True),
        ):
            if there:
                labels = (label,) if roof.level and name == role else ()
                marks.append(Roof(role=name, labels=labels, hue=hue, kind=kind, value=value, meets=meets, beside=near))
    peaks: list[float] = []
    for roof in standing[1]:
        if not roof.id.endswith(_PLAIN) and not (peaks and math.isclose(peaks[-1], roof.value, rel_tol=5 * _SAME)):
            peaks.append(roof.value)
    for roof in reversed(standing[0]):
        for peak in peaks:
            x, hue = peak / roof.value, looks(roof)[1]
            marks.append(Point(role="ridge", hue=hue, x=x, y=peak))
            marks.append(Text(role="ridge", labels=(_digits(x),), hue=hue, places=((x, peak),)))
    return marks


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}".replace("%", " %")


def _digits(value: float) -> str:
    """Three digits, as a column has them: 4.00, 37.9, 561, 1240."""
    return "-" if math.isnan(value) else f"{value:.{min(max(2 - math.floor(math.log10(value)), 0), 4)}f}"


def _table(roofs: MachineRoofs, operation: str) -> Any:
    """What is known of each roof; columns of which nothing is known are left out."""
    from ncu_roofline.rendering.chart import Table

    def cells(roof: Ceiling) -> tuple[str, ...]:
        name = f"{looks(roof)[0]} ({shorten(clean(roof.id), 20)})" if roof.level else looks(roof)[0]
        values = (roof.value, roof.burst, roof.limit)
        rates = ("-" if math.isnan(value) else value_text(value, roof.unit, 3) for value in values)
        name = shorten(f"{name}, {_name(roof.flaw)}" if roof.flaw else name)
        return (name, *rates, _share(roof.value / roof.peak), _share(roof.share), _digits(energy(roof) * 1e12))

    heads = ("arithmetic", "measured", "burst", "at limit", "of peak", "at clock", f"pJ/{operation}")
    upper, lower = ([cells(roof) for roof in each] for each in (roofs.compute, roofs.bandwidth))
    columns = [
        (head, [row[place] for row in upper], {0: "memory", 6: "pJ/B"}.get(place, head), [row[place] for row in lower])
        for place, head in enumerate(heads)
    ]
    known = [column for column in columns if {*column[1], *column[3]} - {"-"}]
    return Table(known, [roof.value for roof in roofs.compute], [looks(roof)[1] for roof in (*roofs.compute, *roofs.bandwidth)])
