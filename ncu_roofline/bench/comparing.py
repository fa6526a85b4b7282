"""Two ceilings files beside each other: two GPUs, two drivers, or a node and the median of its cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ncu_roofline.base.forms import known, number
from ncu_roofline.base.texts import printable
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.merging import CONDITIONS, valued_at
from ncu_roofline.bench.statistics import kept, variation
from ncu_roofline.bench.tables import value_text
from ncu_roofline.bench.theory import clock_of
from ncu_roofline.formats.ceilings import PUBLISHED, Ceilings, ceilings_of, energy_per_unit, read_document
from ncu_roofline.rendering.table import listing

SAME, FASTER, SLOWER = "same within spread", "faster", "slower"
NOT_COMPARABLE, UNKNOWN = "conditions not comparable", "spread unknown"
_PER_CYCLE = "operations or bytes per SM (or core) and its cycle; of device memory bytes per memory cycle"


@dataclass(frozen=True)
class Side:
    """One file: what was measured, and all that it says."""

    path: str
    ceilings: Ceilings
    content: Mapping[str, Any]

    @cached_property
    def entries(self) -> dict[str, Mapping[str, Any]]:
        """Its ceilings by id, those that are no roof as well; of several entries the one that counts."""
        rows = self.content["ceilings"]
        return {entry["id"]: entry for entry in sorted(rows, key=lambda entry: entry.get("accepted") is not False)}

    @property
    def about(self) -> str:
        """Which GPU, driver and day, for people."""
        gpus, ceilings = self.content["device"].get("gpus"), self.ceilings
        parts = (
            printable(self.path),
            ceilings.device,
            f"{len(gpus)} GPUs" if gpus else "",
            f"driver {ceilings.driver}" if ceilings.driver else "",
            ceilings.date,
            PUBLISHED if ceilings.status == PUBLISHED else "",
        )
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Reading:
    """A ceiling of one side in SI units; None where the file does not say.

    ``spread``: relative half width of the 95 % interval, or the variation between sessions (between the GPUs of a merged file,
    outliers left out) where that is more; unknown of a single session.  ``clock`` (Hz) is the one that the ceiling runs at.
    ``per_cycle``: operations or bytes per SM and cycle, of device memory per memory cycle.  ``energy_per_unit``: J per
    operation or byte.
    """

    value: float
    accepted: bool
    spread: float | None
    clock: float | None
    per_cycle: float | None
    power: float | None
    energy_per_unit: float | None


@dataclass(frozen=True)
class Row:
    """A ceiling on both sides; ``ratio`` is B / A, ``spread`` that of both, ``slowdown`` how much worse B is (relative)."""

    ceiling: str
    unit: str
    a: Reading | None
    b: Reading | None
    ratio: float | None
    spread: float | None
    slowdown: float | None
    outcome: str


@dataclass(frozen=True)
class Comparison:
    """What differs between A and B: rows in the order of the files, and conditions that are not the same."""

    a: Side
    b: Side
    rows: tuple[Row, ...]
    differences: tuple[str, ...]

    def over(self, threshold: float) -> list[Row]:
        """Accepted ceilings that are slower in B by more than ``threshold`` (relative), and by more than their spread."""
        return [row for row in self.rows if row.outcome in (SLOWER, UNKNOWN) and (row.slowdown or 0) > threshold]

    def as_dict(self) -> dict[str, Any]:
        """As plain values in SI units."""
        return {
            "a": self.a.about,
            "b": self.b.about,
            "differences": list(self.differences),
            "ceilings": [asdict(row) for row in self.rows],
        }


def read_side(path: str) -> Side:
    """A ceilings file, as measured, merged or published.  Raises RooflineError for anything else."""
    content = read_document(path)
    return Side(path, ceilings_of(path, content), content)


def compare(a: Side, b: Side) -> Comparison:
    """Every ceiling that either side has a value of, and conditions in which they differ or which one does not say."""
    ids = dict.fromkeys(entry["id"] for side in (a, b) for entry in side.content["ceilings"])
    rows = tuple(row for name in ids if (row := _row(name, a, b)) is not None)
    differences = (
        [] if a.ceilings.device == b.ceilings.device else [f"GPUs differ: A {a.ceilings.device}, B {b.ceilings.device}"]
    )
    for label, keys in CONDITIONS.items():
        values = [valued_at(side.content, keys) for side in (a, b)]
        if values[0] != values[1]:
            said = [f"{where} {'unknown' if value is None else value}" for where, value in zip("AB", values, strict=True)]
            differences.append(f"{label} differ: {', '.join(said)}")
    return Comparison(a, b, rows, tuple(differences))


def _row(name: str, a: Side, b: Side) -> Row | None:
    of_a, of_b = _reading(name, a), _reading(name, b)
    unit = str((a.entries.get(name) or b.entries[name]).get("unit"))
    if of_a is None and of_b is None:
        return None
    if of_a is None or of_b is None:
        lacking, where = (b, "A") if of_a else (a, "B")
        entry = lacking.entries.get(name) or {}
        why = "; ".join(reason for reason in entry.get("reasons") or [entry.get("verdict")] if reason)
        return Row(name, unit, of_a, of_b, None, None, None, f"only in {where}{f' ({why})' if why else ''}")
    ratio = of_b.value / of_a.value
    slowdown = 1 - ratio if CeilingKind(name, unit).higher_is_better else ratio - 1
    spread = None if of_a.spread is None or of_b.spread is None else math.hypot(of_a.spread, of_b.spread)
    refused = [where for where, reading in (("A", of_a), ("B", of_b)) if not reading.accepted]
    if refused:
        outcome = f"not accepted in {' and '.join(refused)}"
    elif PUBLISHED in (a.ceilings.status, b.ceilings.status):
        outcome = NOT_COMPARABLE
    elif spread is None:
        outcome = UNKNOWN
    else:
        outcome = SAME if abs(slowdown) <= spread else SLOWER if slowdown > 0 else FASTER
    return Row(name, unit, of_a, of_b, ratio, spread, slowdown, outcome)


def _reading(name: str, side: Side) -> Reading | None:
    entry, device = side.entries.get(name), side.content["device"]
    if entry is None or entry.get("value") is None:
        return None
    value, kind = number(entry["value"]), CeilingKind(name, str(entry.get("unit")))
    clock, per_cycle = clock_of(entry, kind), None
    if clock:
        units = known(device.get("sm_count") or device.get("cores")) if kind.domain == "sm" else 1.0
        per_cycle = known(entry.get("per_sm_and_cycle")) or (value / (clock * units) if units else None)
    return Reading(
        value=value,
        accepted=name in side.ceilings.by_id,
        spread=_spread(entry, value),
        clock=clock,
        per_cycle=per_cycle,
        power=known(entry.get("power_w")),
        energy_per_unit=energy_per_unit(entry),
    )


def _spread(entry: Mapping[str, Any], value: float) -> float | None:
    gpus = entry.get("values")
    if gpus is not None:
        values = [found for one in gpus if (found := number(one.get("value"))) > 0]
        return variation(kept(values)) if len(values) > 1 else None
    if entry.get("sessions") == 1:  # the next one may differ by more than its trials do
        return None
    ends = [number(end) for end in entry.get("ci95") or []]
    spreads = [(ends[1] - ends[0]) / 2 / value if len(ends) == 2 else math.nan, number(entry.get("between_session_cv"))]
    return max((one for one in spreads if not math.isnan(one)), default=None)


def as_text(one: Comparison, threshold: float | None = None) -> str:
    """The table of a comparison, with what differs and what is over the threshold."""
    shown = [_cells(row) for row in one.rows]
    lines = [f"A: {one.a.about}", f"B: {one.b.about}", "", *listing(shown)] if shown else ["no ceiling has a value"]
    lines += ["", f"spread: that of A and B together; cycle: {_PER_CYCLE}."]
    if one.differences:
        lines += ["", "Conditions:", *(f"  {text}" for text in one.differences)]
    if threshold is not None:
        found = [f"  {row.ceiling}: {row.slowdown:.1%}" for row in one.over(threshold)]
        limit = f"by more than {threshold * 100:g} %"
        lines += ["", f"Slower {limit}:", *found] if found else ["", f"Nothing is slower {limit}."]
    return "\n".join(lines)


def _cells(row: Row) -> dict[str, str]:
    def pair(name: str, factor: float, form: str) -> str:
        """Both values of something, "-" where neither side has it."""
        values = [getattr(side, name) if side else None for side in (row.a, row.b)]
        texts = ["-" if value is None else f"{value * factor:{form}}" for value in values]
        return "-" if texts == ["-", "-"] else " / ".join(texts)

    energies = pair("energy_per_unit", 1e12, ".3g")
    return {
        "ceiling": row.ceiling,
        "A": value_text(row.a.value if row.a else None, row.unit),
        "B": value_text(row.b.value if row.b else None, row.unit),
        "B/A": "-" if row.ratio is None else f"{row.ratio:.3f}",
        "spread": "-" if row.spread is None else f"{row.spread:.2%}",
        "outcome": row.outcome,
        "MHz": pair("clock", 1e-6, ".0f"),
        "per cycle": pair("per_cycle", 1.0, ".4g"),
        "W": pair("power", 1.0, ".0f"),
        "energy": f"{energies} pJ/{row.unit.removesuffix('/s')}" if energies != "-" else "-",
    }
