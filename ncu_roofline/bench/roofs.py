"""The roofs of a machine, from its ceilings file: of each memory level and of each kind of arithmetic the best ceiling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.base.records import inside, number
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.bench.tables import value_text
from ncu_roofline.chips import load_spec

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


def device_name(content: Mapping[str, Any]) -> str:
    """What a ceilings file calls its machine, for people."""
    return shorten(clean(str(content["device"].get("name") or "")), 60) or "a machine without a name"


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
