"""The measured roofline of a machine as a chart: of each level and kind of arithmetic the best ceiling, beside them a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.analyses.hierarchical.picture import axes_of
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.base.records import inside, number
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.bench.tables import device_name, value_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.palette import PLAIN, TENSOR
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.rendering.chart import Chart, Hue, Key, Mark, Panel, Point, Roof, Table, Text
from ncu_roofline.rendering.paper import Pen
from ncu_roofline.rendering.picture import chart_figure, table_widths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIXES = {"fma": "FMA", "nofma": "no FMA", "mad": "MAD"}
_LONGEST, _LEVEL = 28, 12  # characters of a name, and of a level's
_MOST = 40  # roofs of a kind
_AS_EXPECTED = ("emulated", "unsupported")  # verdicts on what a chip does not have


class MachineRoof(NamedTuple):
    """A roof in B/s, FLOP/s or OP/s; ``level`` is "" for arithmetic, NaN stands for what the file does not say.

    ``value`` is what the machine sustains, ``burst`` what it reaches for a moment, ``peak`` the theory at the vendor's clock.
    ``at_clock``: share of the theory at the ``clock`` (Hz) measured with it.  ``power`` in W.  ``flaw`` is the verdict on a
    ceiling that was not accepted, "" of others.
    """

    id: str
    label: str
    level: str
    value: float
    unit: str
    peak: float
    at_clock: float
    clock: float
    burst: float
    power: float
    flaw: str

    @property
    def of_peak(self) -> float:
        """Share of the theory at the vendor's clock."""
        return self.value / self.peak

    @property
    def energy(self) -> float:
        """Joules per operation or byte: the power of the whole board over the rate."""
        return self.power / self.value

    @property
    def is_tensor(self) -> bool:
        """Whether tensor cores give it."""
        return self.id.startswith("tensor.")

    @property
    def is_plain(self) -> bool:
        """Whether it is reached without multiply-adds."""
        return self.id.endswith(".nofma")

    @property
    def text(self) -> str:
        """The value with its unit."""
        return value_text(self.value, self.unit, 3)


class MachineRoofs(NamedTuple):
    """``bandwidth`` and ``compute`` roofs, highest first; beside them lines on ceilings that are none of them."""

    bandwidth: tuple[MachineRoof, ...]
    compute: tuple[MachineRoof, ...]
    others: tuple[str, ...]
    refused: tuple[str, ...]
    unmeasured: tuple[str, ...]

    @property
    def standing(self) -> tuple[MachineRoof, ...]:
        """Those that were accepted."""
        return tuple(roof for roof in (*self.bandwidth, *self.compute) if not roof.flaw)


def machine_roofs(content: Mapping[str, Any]) -> MachineRoofs:
    """The roofs that the content of a ceilings file has."""
    found = [_roof(entry) for entry in content["ceilings"]]
    groups: dict[str, list[MachineRoof]] = {}
    for roof in found:
        if (name := _group(roof)) and roof.value > 0:
            groups.setdefault(name, []).append(roof)
    best = sorted(map(_best, groups.values()), key=lambda roof: -roof.value)
    bandwidth, compute = [roof for roof in best if roof.level][:_MOST], [roof for roof in best if not roof.level][:_MOST]
    chosen = {id(roof) for roof in (*bandwidth, *compute)}
    left = [(_name(roof.id), roof) for roof in found if id(roof) not in chosen]
    valued = [(f"{name} {roof.text}", roof.flaw) for name, roof in left if roof.value > 0]
    missing = [(name, roof.flaw) for name, roof in left if math.isnan(roof.value) and roof.flaw not in _AS_EXPECTED]
    return MachineRoofs(
        bandwidth=tuple(bandwidth),
        compute=tuple(compute),
        others=tuple(text for text, flaw in valued if not flaw),
        refused=tuple(f"{text} ({flaw})" for text, flaw in valued if flaw),
        unmeasured=tuple(f"{name} ({flaw or 'no value'})" for name, flaw in missing),
    )


def _group(roof: MachineRoof) -> str:
    """The roof that a ceiling is a candidate for; "" for latencies, the host link and divisions."""
    if roof.level:
        return "" if any(one.id == roof.level and one.domain == "link" for one in load_spec().levels) else roof.level
    if roof.unit not in ("FLOP/s", "OP/s") or roof.id.endswith(".div"):
        return ""
    return ".".join(roof.id.split(".")[:2])


def _best(roofs: list[MachineRoof]) -> MachineRoof:
    """An accepted one, one that the model takes for this level, the highest."""
    names = next((level.ceilings for level in load_spec().levels if level.id == roofs[0].level), ())
    return max(roofs, key=lambda roof: (not roof.flaw, roof.id in names, roof.value))


def _roof(entry: Mapping[str, Any]) -> MachineRoof:
    name, unit, spec = entry["id"], str(entry.get("unit")), load_spec()
    level = (spec.level_of_ceiling(name) or name.partition(".")[0]) if unit == "B/s" else ""
    head, _, mix = name.partition(".")
    if level:
        known = any(one.id == level for one in spec.levels)
        label = level_style(level).label if known else shorten(clean(level.upper()), _LEVEL)
    else:
        label = f"{head.upper()} {_MIXES[mix]}" if mix in _MIXES else precision_label(name).replace("_ACC", " acc")
    refused = entry.get("accepted") is False
    return MachineRoof(
        id=name,
        label=_name(label),
        level=level,
        value=number(entry.get("value")),
        unit=unit,
        peak=number(inside(entry, "theory", "value")) or math.nan,
        at_clock=number(inside(entry, "theory", "fraction")) or math.nan,
        clock=(number(inside(entry, "clock", "sm_mhz_mean")) or math.nan) * 1e6,
        burst=number(inside(entry, "burst", "value")) or math.nan,
        power=number(entry.get("power_w")) or math.nan,
        flaw=_name(str(entry.get("verdict") or "not accepted")) if refused else "",
    )


def _name(text: str) -> str:
    return shorten(clean(text), _LONGEST)


_PANEL = 441.0  # points of what the roofs are drawn in, with its margins
_NEAR = 0.25  # a label clears lines that are no further than this from its own
_DEEP = 7.0  # the lowest compute roof over the lowest place that is surely shown: room for the labels of bandwidth roofs
_SAME = 0.01  # roofs closer than this are one line on paper
_PLACES = 4  # digits after the point, at most
_NOTE_LINES = 12


def figure(content: Mapping[str, Any], theme: str = "light") -> Figure:
    """The picture as a matplotlib figure of its own, outside pyplot."""
    roofs = machine_roofs(content)
    table = _table(roofs, _is_cpu(content))
    beside = sum(table_widths(table, Pen()))
    unit = "flop" if all(roof.unit == "FLOP/s" for roof in roofs.compute) else "op"
    panel = Panel("", *axes_of(unit), list(_marks(roofs)), "roofline", weight=_PANEL, seen=_seen(roofs))
    chart = Chart(
        f"{'Published' if content.get('status') == PUBLISHED else 'Measured'} roofline: {device_name(content)}",
        (),
        _subtitle(content, roofs),
        [[panel, replace(table, weight=beside)]],
        _keys(roofs),
        {},
        _notes(content, roofs),
        note_lines=_NOTE_LINES,
    )
    return chart_figure(lambda less: None if less else chart, theme=theme, width=(_PANEL + beside) / 72)


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


def _seen(roofs: MachineRoofs) -> tuple[tuple[float, float], ...]:
    """Places that the axes reach to; of bandwidths alone so much that they can be told apart."""
    bandwidths, peaks = ([roof.value for roof in each] for each in (roofs.bandwidth, roofs.compute))
    if not bandwidths:
        return ()
    low = min(peaks or [10 * max(bandwidths)])
    found = ((low / max(bandwidths), low / _DEEP),)
    return found if peaks else (*found, (low / min(bandwidths), low))


def _hue(roof: MachineRoof) -> Hue | None:
    return level_style(roof.level) if roof.level else TENSOR if roof.is_tensor else PLAIN if roof.is_plain else None


def _marks(roofs: MachineRoofs) -> Iterator[Mark]:
    """Solid what is sustained, thin without FMA, dotted what was not accepted; light bursts, thin dashes for theory."""
    top = max((roof.value for roof in roofs.compute if not roof.flaw), default=math.inf)
    steepest = max((roof.value for roof in roofs.bandwidth if not roof.flaw), default=math.inf)
    lines = [value for roof in roofs.bandwidth for value in (roof.value, roof.burst, roof.peak)]
    above = math.inf
    for roof in (*reversed(roofs.bandwidth), *roofs.compute):
        kind, meets = ("bandwidth", top) if roof.level else ("compute", steepest)
        twin = not roof.is_plain and math.isclose(above, roof.value, rel_tol=_SAME)
        role = "flawed" if roof.flaw else "plain" if roof.is_plain else "roof-upon" if twin else "roof"
        drawn = [("burst", roof.burst)] if roof.burst > roof.value else []
        drawn += [("peak", roof.peak)] if roof.peak > 0 else []
        near = tuple(value for value in lines if abs(value / roof.value - 1) < _NEAR)
        for name, value in (*drawn, (role, roof.value)):
            labels = (_text(roof),) if roof.level and name == role else ()
            yield Roof(role=name, labels=labels, hue=_hue(roof), kind=kind, value=value, meets=meets, beside=near)
        above = above if roof.is_plain or roof.flaw else roof.value
    yield from _ridges(roofs)


def _ridges(roofs: MachineRoofs) -> Iterator[Mark]:
    """Where bandwidth roofs meet compute roofs, but for those without FMA, with their intensities; the outermost first."""
    peaks: list[float] = []
    for roof in (roof for roof in roofs.compute if not roof.flaw and not roof.is_plain):
        if not peaks or not math.isclose(peaks[-1], roof.value, rel_tol=5 * _SAME):
            peaks.append(roof.value)
    for roof in sorted((roof for roof in roofs.bandwidth if not roof.flaw), key=lambda roof: roof.value):
        for peak in peaks:
            x, hue = peak / roof.value, level_style(roof.level)
            yield Point(role="ridge", hue=hue, x=x, y=peak)
            yield Text(role="ridge", labels=(_digits(x),), hue=hue, places=((x, peak),))


def _text(roof: MachineRoof) -> str:
    """Label of a bandwidth roof."""
    share = "" if math.isnan(roof.of_peak) else f", {_share(roof.of_peak)} of peak"
    return (
        f"{roof.label} {roof.text}{f', not accepted ({roof.flaw})' if roof.flaw else ''}, {shorten(clean(roof.id), 24)}{share}"
    )


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}".replace("%", " %")


def _whole(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"


def _digits(value: float) -> str:
    """Three digits, as a column has them: 4.00, 37.9, 561, 1240."""
    if math.isnan(value):
        return "-"
    return f"{value:.{min(max(2 - math.floor(math.log10(value)), 0), _PLACES)}f}"


def _table(roofs: MachineRoofs, is_cpu: bool) -> Table:
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
        (head, [tell(roof) for roof in roofs.compute], second, [tell(roof) for roof in roofs.bandwidth])
        for head, second, tell in facts
    ]
    for level in reversed([roof for roof in roofs.bandwidth if not roof.flaw]):
        cells = ["-" if roof.flaw else _digits(roof.value / level.value) for roof in roofs.compute]
        columns.append((f"ridge {level.label}", cells, "", [""] * len(roofs.bandwidth)))
    known = [column for column in columns if {*column[1], *column[3]} - {"-", ""}]
    hues = [_hue(roof) for roof in (*roofs.compute, *roofs.bandwidth)]
    return Table(known, [roof.value for roof in roofs.compute], hues)


def _row_name(roof: MachineRoof) -> str:
    name = f"{roof.label} ({shorten(clean(roof.id), 20)})" if roof.level else roof.label
    return shorten(f"{name}, {roof.flaw}" if roof.flaw else name)


def _operation(roofs: MachineRoofs) -> str:
    return "FLOP" if all(roof.unit == "FLOP/s" for roof in roofs.compute) else "OP"


def _keys(roofs: MachineRoofs) -> list[Key]:
    """What the lines mean, of those that are there."""
    drawn = (*roofs.bandwidth, *roofs.compute)
    bursts = any(roof.burst > roof.value for roof in drawn)
    kinds = (
        ("measured, sustained" if bursts else "measured", "roof", True),
        ("burst", "burst", bursts),
        ("without FMA", "plain", any(roof.is_plain for roof in drawn)),
        ("theory at the vendor's clock", "peak", any(roof.peak > 0 for roof in drawn)),
        ("not accepted", "flawed", any(roof.flaw for roof in drawn)),
        (f"ridge point, {_operation(roofs)}/B", "ridge", bool(roofs.bandwidth and roofs.compute)),
    )
    return [Key(name, role) for name, role, there in kinds if there]


def _notes(content: Mapping[str, Any], roofs: MachineRoofs) -> list[str]:
    """Lines below the picture: on what and how it was measured, and what is not drawn."""
    found = [f"{_facts(content)}."]
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
