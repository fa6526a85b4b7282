"""Ceilings files beside each other and by themselves: merged, compared, and verified."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import inside, known, number
from ncu_roofline.base.texts import printable
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import machine_balance
from ncu_roofline.bench.measuring import LIMITS, spread_of
from ncu_roofline.bench.statistics import kept, median, variation
from ncu_roofline.bench.telemetry import HARMFUL, names
from ncu_roofline.bench.theory import theory
from ncu_roofline.formats.ceilings import (
    CPU,
    GPU,
    MEASURE_AGAIN,
    MEASURED,
    PUBLISHED,
    SCHEMA,
    SCHEMA_VERSION,
    Ceilings,
    ceilings_of,
    energy_per_unit,
    is_roof,
    read_document,
)
from ncu_roofline.version import __version__

Entry = Mapping[str, Any]
CONDITIONS = {
    "data": ("settings", "data"),
    "drivers": ("device", "driver"),
    "power limits": ("device", "power_limit_w"),
    "ECC modes": ("device", "ecc", "current"),
    "CPU cores": ("device", "cores"),
    "CPU threads": ("device", "threads"),
    "compilers": ("tool", "build", "compiler"),
}
"""What makes the numbers of two files incomparable although the GPUs are the same, and where a file says it."""
_NEXT = "Give the files that `ncu-roofline bench run` wrote on GPUs of one model."


class File(NamedTuple):
    """A ceilings file: all that it says, and its roofs."""

    path: str
    content: Mapping[str, Any]
    ceilings: Ceilings

    @property
    def model(self) -> dict[str, Any]:
        """What GPUs must share to be merged: name, compute capability, number of SMs; CPUs their name and number of cores."""
        device = self.content["device"]
        return {key: device[key] for key in ("kind", "name", "cc", "sm_count", "cores") if key in device}

    @property
    def model_text(self) -> str:
        """The same for people."""
        model = self.model
        units = f"{model.get('cores')} cores" if model.get("kind") == CPU else f"{model.get('cc')}, {model.get('sm_count')} SMs"
        return f"{model['name']} ({units})"

    @property
    def time(self) -> str:
        """When it was measured, ISO 8601."""
        return inside(self.content, "host", "time_utc") or ""

    @property
    def place(self) -> dict[str, Any]:
        """Which GPU it is; where it has no UUID, the file's name stands for it."""
        host, device = inside(self.content, "host", "name") or "", self.content["device"]
        uuid = device.get("uuid") or self.path
        return {"host": host, "index": device.get("index"), "uuid": uuid, "file": Path(self.path).name}

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


def open_file(path: str) -> File:
    """A ceilings file, as measured, merged or published.  Raises RooflineError for anything else."""
    content = read_document(path)
    return File(path, content, ceilings_of(path, content))


# Merged


def merge(files: Sequence[File]) -> dict[str, Any]:
    """One document of the schema of the others, of GPUs of one model: each value is the median over the GPUs.

    Of two files of one GPU the later one counts.  Raises RooflineError for what is no measurement of one GPU, and for GPUs of
    several models.
    """
    for file in files:
        if file.ceilings.status == PUBLISHED:
            reason = "its figures were published, not measured"
        elif file.content["device"].get("gpus"):
            reason = "it is merged already"
        elif not file.ceilings.device:
            reason = "it does not say which GPU it was measured on"
        else:
            continue
        raise RooflineError("Cannot merge", file.path, reason, _NEXT)
    newest, warnings = _newest(files)
    first = newest[0]
    for other in newest[1:]:
        if other.model != first.model:
            reason = f"{other.model_text} is not {first.model_text} of {first.path}"
            raise RooflineError("Cannot merge", other.path, reason, _NEXT)
    rows: dict[str, list[tuple[File, Entry]]] = {}
    for file in newest:
        for entry in file.content["ceilings"]:
            rows.setdefault(entry["id"], []).append((file, entry))
    ceilings = [_merged(name, entries, len(newest)) for name, entries in rows.items()]
    slow: dict[str, list[str]] = {}
    for entry in ceilings:
        for gpu in entry.get("slow", []):
            slow.setdefault(f"{gpu['host']} GPU {gpu['index']} {gpu['uuid']}", []).append(entry["id"])
    places = [file.place for file in newest]
    content = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "status": MEASURED,
        "tool": {"name": "ncu-roofline", "version": __version__},
        "host": {"name": "", "names": sorted({one["host"] for one in places}), "time_utc": max(file.time for file in newest)},
        "device": {**first.model, "uuid": "", "gpus": places},
        "ceilings": ceilings,
        "derived": {"machine_balance": machine_balance(ceilings), "slow_gpus": slow},
        "warnings": warnings,
    }
    for label, keys in CONDITIONS.items():
        values = {inside(file.content, *keys) for file in newest}
        if len(values - {None}) > 1:
            warnings.append(f"{label} differ: {', '.join(sorted(map(str, values - {None})))}")
        elif len(values) == 1 and values != {None}:
            place: Any = content
            for key in keys[:-1]:
                place = place.setdefault(key, {})
            place[keys[-1]] = values.pop()
    return content


def _newest(files: Sequence[File]) -> tuple[list[File], list[str]]:
    """Of each GPU, or CPU with a number of threads, the latest file; and what is left out."""
    by_gpu: dict[tuple[str, Any], File] = {}
    warnings = []
    for file in files:
        gpu = file.place["uuid"], file.content["device"].get("threads")
        late, early = file, by_gpu.get(gpu)
        if early is not None:
            late, early = (file, early) if file.time >= early.time else (early, file)
            warnings.append(f"{early.path} left out: {late.path} is a later file of the same GPU")
        by_gpu[gpu] = late
    return list(by_gpu.values()), warnings


def _merged(name: str, entries: Sequence[tuple[File, Entry]], count: int) -> dict[str, Any]:
    stand = [(file, entry) for file, entry in entries if entry.get("value") is not None and entry.get("accepted") is not False]
    sample = (stand or entries)[0][1]
    head = {key: sample.get(key) for key in ("id", "kind", "level", "unit")}
    if not stand:
        reasons = list(dict.fromkeys(reason for _, entry in entries for reason in entry.get("reasons") or []))
        return {**head, "value": None, "accepted": False, "verdict": sample.get("verdict"), "reasons": reasons, "gpus": 0}
    values = [float(entry["value"]) for _, entry in stand]
    middle, higher = median(values), CeilingKind(name, str(head["unit"])).higher_is_better
    places = [{**file.place, "value": entry["value"]} for file, entry in stand]
    behind = [1 - place["value"] / middle if higher else place["value"] / middle - 1 for place in places]
    slow = [{**place, "behind": share} for place, share in zip(places, behind, strict=True) if share > LIMITS.slow_gpu]

    def middle_of(*keys: str) -> float | None:
        found = [float(value) for _, entry in stand if (value := inside(entry, *keys))]
        return median(found) if found else None

    return {
        **head,
        "value": middle,
        "min": min(values),
        "median": middle,
        "max": max(values),
        "spread": (max(values) - min(values)) / middle,
        "gpus": len(stand),
        "accepted": True,
        "verdict": sample.get("verdict", "ok"),
        "reasons": [f"{len(stand)} of {count} GPUs"] if len(stand) < count else [],
        "clock": {"sm_mhz_mean": middle_of("clock", "sm_mhz_mean")},
        "per_sm_and_cycle": middle_of("per_sm_and_cycle"),
        "theory": {
            "at_measured_clock": middle_of("theory", "at_measured_clock"),
            "fraction": middle_of("theory", "fraction"),
            "uncertain": inside(sample, "theory", "uncertain"),
        },
        "variant": sample.get("variant"),
        "slow": sorted(slow, key=lambda gpu: -gpu["behind"]),
        "values": places,
    }


# Compared

SAME, FASTER, SLOWER = "same within spread", "faster", "slower"
NOT_COMPARABLE, UNKNOWN = "conditions not comparable", "spread unknown"


def compare(a: File, b: File) -> dict[str, Any]:
    """What differs between A and B: conditions, and every ceiling that either has a value of, in the order of the files.

    "ratio" is B / A, "spread" that of both, "slowdown" how much worse B is (relative).
    """
    # Of several entries of a ceiling the accepted one counts; those that are no roof are compared as well.
    entries = [
        {entry["id"]: entry for entry in sorted(file.content["ceilings"], key=lambda one: one.get("accepted") is not False)}
        for file in (a, b)
    ]
    ids = dict.fromkeys(entry["id"] for file in (a, b) for entry in file.content["ceilings"])
    differences = (
        [] if a.ceilings.device == b.ceilings.device else [f"GPUs differ: A {a.ceilings.device}, B {b.ceilings.device}"]
    )
    for label, keys in CONDITIONS.items():
        values = [inside(file.content, *keys) for file in (a, b)]
        if values[0] != values[1]:
            said = [f"{where} {'unknown' if value is None else value}" for where, value in zip("AB", values, strict=True)]
            differences.append(f"{label} differ: {', '.join(said)}")
    rows = [_row(name, {"A": (a, entries[0].get(name)), "B": (b, entries[1].get(name))}) for name in ids]
    found = [row for row in rows if row["a"] or row["b"]]
    return {"a": a.about, "b": b.about, "differences": differences, "ceilings": found}


def over(comparison: Mapping[str, Any], threshold: float) -> list[dict[str, Any]]:
    """Accepted ceilings that are slower in B by more than ``threshold`` (relative), and by more than their spread."""
    rows = comparison["ceilings"]
    return [row for row in rows if row["outcome"] in (SLOWER, UNKNOWN) and (row["slowdown"] or 0) > threshold]


def _row(name: str, sides: Mapping[str, tuple[File, Entry | None]]) -> dict[str, Any]:
    readings = {where: _reading(name, *side) for where, side in sides.items()}
    unit = str(next(entry for _, entry in sides.values() if entry).get("unit"))
    a, b = readings["A"], readings["B"]
    row: dict[str, Any] = {"ceiling": name, "unit": unit, "a": a, "b": b, "ratio": None, "spread": None, "slowdown": None}
    if a is None or b is None:
        where, lacking = ("B", "A") if a is None else ("A", "B")
        entry = sides[lacking][1] or {}
        why = "; ".join(reason for reason in entry.get("reasons") or [entry.get("verdict")] if reason)
        return {**row, "outcome": f"only in {where}{f' ({why})' if why else ''}"}
    ratio = b["value"] / a["value"]
    slowdown = 1 - ratio if CeilingKind(name, unit).higher_is_better else ratio - 1
    spread = None if a["spread"] is None or b["spread"] is None else math.hypot(a["spread"], b["spread"])
    refused = [where for where, reading in readings.items() if reading and not reading["accepted"]]
    if refused:
        outcome = f"not accepted in {' and '.join(refused)}"
    elif PUBLISHED in [file.ceilings.status for file, _ in sides.values()]:
        outcome = NOT_COMPARABLE
    elif spread is None:
        outcome = UNKNOWN
    else:
        outcome = SAME if abs(slowdown) <= spread else SLOWER if slowdown > 0 else FASTER
    return {**row, "ratio": ratio, "spread": spread, "slowdown": slowdown, "outcome": outcome}


def _reading(name: str, file: File, entry: Entry | None) -> dict[str, Any] | None:
    """A ceiling of one side in SI units; None for what the file does not say.

    "clock" (Hz) is the one that the ceiling runs at.  "per_cycle": operations or bytes per SM and cycle, of device memory per
    memory cycle.  "energy_per_unit": J per operation or byte.
    """
    if entry is None or entry.get("value") is None:
        return None
    value, kind, device = number(entry["value"]), CeilingKind(name, str(entry.get("unit"))), file.content["device"]
    clock, per_cycle = kind.clock_of(entry), None
    if clock:
        units = known(device.get("sm_count") or device.get("cores")) if kind.domain == "sm" else 1.0
        per_cycle = known(entry.get("per_sm_and_cycle")) or (value / (clock * units) if units else None)
    return {
        "value": value,
        "accepted": name in file.ceilings.by_id,
        "spread": _spread(entry, value),
        "clock": clock,
        "per_cycle": per_cycle,
        "power": known(entry.get("power_w")),
        "energy_per_unit": energy_per_unit(entry),
    }


def _spread(entry: Entry, value: float) -> float | None:
    """Relative half width of the 95 % interval, or the variation between sessions where that is more; unknown of one session.

    Of a merged file the variation between its GPUs, outliers left out.
    """
    gpus = entry.get("values")
    if gpus is not None:
        values = [found for one in gpus if (found := number(one.get("value"))) > 0]
        return variation(kept(values)) if len(values) > 1 else None
    if entry.get("sessions") == 1:  # the next one may differ by more than its trials do
        return None
    ends = [number(end) for end in entry.get("ci95") or []]
    spreads = [(ends[1] - ends[0]) / 2 / value if len(ends) == 2 else math.nan, number(entry.get("between_session_cv"))]
    return max((one for one in spreads if not math.isnan(one)), default=None)


# Verified

_SAME = 1e-3


class Finding(NamedTuple):
    """Something about a file: "error" (it can't be believed) or "note" (it should be known); ``ceiling`` "" for the file."""

    severity: str
    ceiling: str
    text: str


def verify(path: str) -> list[Finding]:
    """What there is to say about a file: its form, the theory recomputed, the spread, what was held back.

    No "error" means that it can be used.  Raises RooflineError if it is none.
    """
    content = read_document(path)
    found = [Finding("note", "", text) for text in content.get("warnings") or []]
    kind = CPU if content["device"].get("kind") == CPU else GPU
    try:  # published files name no GPU
        device: Device | None = parse_device({**content["device"], "uuid": content["device"].get("uuid") or "not told"})
    except (ValueError, TypeError):
        device = None
    device = device if device and device.sm_count else None
    if device is None and kind == GPU and not content["device"].get("gpus"):
        found.append(Finding("note", "", "the device is not described well enough to recompute its theory"))
    for entry in content["ceilings"]:
        if entry.get("value") is not None:
            found += [Finding(severity, entry["id"], text) for severity, text in _verified(entry, device, kind)]
    if not any(map(is_roof, content["ceilings"])):
        found += [Finding("note", e["id"], f"no value: {_reasons(e)}") for e in content["ceilings"] if e.get("value") is None]
        found.append(Finding("error", "", f"no ceiling was accepted. {MEASURE_AGAIN}"))
    return found


def _reasons(entry: Entry) -> str:
    return "; ".join(entry.get("reasons") or ["no reason given"])


def _verified(entry: Entry, device: Device | None, kind_of_device: str) -> list[tuple[str, str]]:
    kind, accepted = CeilingKind(entry["id"], str(entry.get("unit"))), entry.get("accepted") is not False
    found = []
    if entry.get("cv") is not None:
        value, interval = number(entry["value"]), entry.get("ci95")
        if not interval or len(interval) != 2 or not number(interval[0]) <= value <= number(interval[1]):
            found.append(("error", "the value lies outside its confidence interval"))
        per_cycle, limit = number(entry.get("cv_per_cycle")), spread_of(kind.domain, kind_of_device)
        cv, between = number(entry["cv"]) if math.isnan(per_cycle) else per_cycle, number(entry.get("between_session_cv"))
        if accepted and not cv <= limit.within:
            found.append(("error", f"accepted with {cv:.1%} variation, more than {limit.within:.0%}"))
        if between > limit.between:
            found.append(("note", f"sessions differ by {between:.1%}"))
    if device is not None:
        found += [("error", text) for text in _against_theory(entry, kind, device, accepted)]
    if not accepted:
        return [*found, ("note", f"not accepted: {_reasons(entry)}")]
    held = set(inside(entry, "throttle", "reasons") or []) & set(names(HARMFUL))
    if held:
        found.append(("error", f"accepted although the GPU was held back: {', '.join(sorted(held))}"))
    if inside(entry, "verified", "checksum") is False:
        found.append(("error", "accepted although its result is wrong"))
    return found


def _against_theory(entry: Entry, kind: CeilingKind, device: Device, accepted: bool) -> list[str]:
    peak = theory(kind, device) if kind.domain != "link" else None
    if peak is None:
        return []
    expected = peak.at(kind.clock_of(entry))
    share = number(entry.get("per_sm_and_cycle")) * device.sm_count / peak.per_cycle
    fraction = high = low = number(entry["value"]) / expected
    # By each trial's own clock, where it is known: a value over the mean clock may be off by as much as the clock swings.
    if not math.isnan(share):
        high, low = max(share, fraction - LIMITS.swing), min(share, fraction + LIMITS.swing)
    stated = number(inside(entry, "theory", "at_measured_clock"))
    found = []
    # The file's theory stands at the median clock, this one at the mean.
    if abs(stated / expected - 1) > LIMITS.impossible - 1:
        found.append(f"its theory {stated:.4g} is not {expected:.4g}, what {peak.formula} gives")
    if accepted and high > LIMITS.impossible + _SAME and not peak.uncertain:
        found.append(f"accepted at {fraction:.1%} of theory at the measured clock")
    if accepted and low < LIMITS.low - _SAME and not entry.get("reasons"):
        found.append(f"{fraction:.1%} of theory at the measured clock, and no reason given")
    return found
