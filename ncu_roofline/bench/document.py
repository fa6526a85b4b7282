"""The ceilings file as `bench run` writes it: schema ``ert-ceilings`` version 1, see `ncu_roofline.formats.ceilings`."""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.records import known
from ncu_roofline.base.texts import plural
from ncu_roofline.base.units import percent
from ncu_roofline.bench import measuring
from ncu_roofline.bench.catalogue import Theory, as_json, theory
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.measuring import LIMITS, NOT_HERE, Measured, Record, Settings, median, variation
from ncu_roofline.bench.telemetry import names, scaled
from ncu_roofline.formats.ceilings import SCHEMA, SCHEMA_VERSION
from ncu_roofline.version import __version__

_TEMPERATURES = {"temperature": "gpu", "memory_temperature": "mem"}
_SETTINGS = ("trials", "sessions", "min_time", "data", "seed", "quick")


class Origin(NamedTuple):
    """Where measurements come from: the program's build, the driver's facts, why the driver could not be asked ("": it was)."""

    build: Mapping[str, Any]
    identity: Mapping[str, Any]
    telemetry: str


def document(device: Device, wanted: Sequence[Measured], settings: Settings, origin: Origin) -> dict[str, Any]:
    """The whole file as plain values."""
    link = link_of(origin.identity)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    time_utc = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    host = {"name": platform.node(), "cpu": next(models, platform.processor()), "kernel": platform.release()}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ncu-roofline", "version": __version__, "build": dict(origin.build)},
        "host": {**host, "time_utc": time_utc},
        "device": _describe(device, origin.identity),
        "settings": {name: getattr(settings, name) for name in _SETTINGS},
        "ceilings": [ceiling(one, device, link) for one in wanted],
        "warnings": _warnings(device, settings, origin),
    }


def as_text(content: Mapping[str, Any]) -> str:
    """The file's text; not-a-number never gets into it."""

    def finite(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {str(key): finite(inner) for key, inner in value.items()}
        return [finite(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(finite(content), indent=1, allow_nan=False) + "\n"


def ceiling(measured: Measured, device: Device, link: tuple[int, int] | None) -> dict[str, Any]:
    """One entry of "ceilings", made of the sessions that stand, else of all with values.

    Value, clock, power and work are those of the better session, the others are spread.
    """
    kind, sessions = measured.kind, measured.sessions
    used = [record for record in sessions if record.stands] or [record for record in sessions if record.values]
    head = {"id": kind.id, "kind": kind.kind, "level": kind.level or None, "unit": kind.unit}
    runs = {"variants": [_run(record) for record in measured.runs]}
    if not used:
        word = reason = measured.absent or next((record.failure for record in sessions if record.failure), "not measured")
        if reason.startswith("not measured"):
            word = "not measured"
        elif reason not in NOT_HERE:
            word, reason = "failed", f"the benchmark failed: {reason}"
        empty: dict[str, Any] = {"value": None, "accepted": False, "verdict": word, "reasons": [reason]}
        return {**head, **empty, "theory": as_json(theory(kind, device, link), None, None, None), **runs}

    numbers, best, seen = measuring.summarise(used), measuring.best_of(used), [record.observed for record in used]
    clocks, memory, power = best.clocks, best.observed.get("memory_clock"), best.observed.get("power")
    links = [tuple(one["link"]) for one in seen if one.get("link")]
    peak = theory(kind, device, max(links, default=link))
    clock = {"sm": median(clocks) if clocks else None, "memory": memory}.get(kind.domain)
    cycles = [record.per_cycle for record in used if record.per_cycle and kind.domain == "sm"]
    per_cycle = _per_cycle(best, device) if kind.domain == "sm" else None
    share = None
    if peak:  # by each trial's own clock, where it is known: under a power limit the clock swings from trial to trial
        share = per_cycle * device.sm_count / peak.per_cycle if per_cycle else numbers["value"] / peak.at(clock)
    word, accepted, reasons = _judged(measured, used, share, peak)
    verified = [record.verified for record in used if record.verified is not None]
    told = {key: max((one[key] for one in seen if one.get(key) is not None), default=None) for key in _TEMPERATURES}
    megahertz = [clock / 1e6 for clock in clocks]
    entry = {**head, **numbers, "accepted": accepted, "verdict": word, "reasons": reasons}
    entry["variant"] = {"kernel": best.variant, **{key: value for key, value in best.launch.items() if value != ""}}
    entry["work"] = {{"B/s": "bytes", "s": "launches"}.get(kind.unit, "operations"): best.work}
    entry |= {"seconds_median": median(best.seconds), "discarded": sum(record.discarded for record in used)}
    mean, least = (statistics.fmean(megahertz), min(megahertz)) if clocks else (None, None)
    entry["clock"] = {"sm_mhz_mean": mean, "sm_mhz_min": least, "mem_mhz": scaled(memory, 1e-6)}
    entry |= {"power_w": power, "energy_per_unit_j": scaled(power, median(best.seconds) / best.work)}
    entry["temp_c"] = {name: told[key] for key, name in _TEMPERATURES.items()}
    entry["throttle"] = {"reasons": names(reduce(or_, (int(one.get("reasons") or 0) for one in seen)))}
    entry |= {"verified": {"checksum": all(verified) if verified else None}, "per_sm_and_cycle": per_cycle}
    # Variation per cycle within and between sessions: what a clock that the power limit moves leaves of it.
    entry["cv_per_cycle"] = known(measuring.largest_variation(cycles))
    entry["between_session_cv_per_cycle"] = known(variation([median(each) for each in cycles]))
    # "value" is what it sustains, and judges; what a kernel of a few milliseconds reaches after a rest, where the limit has
    # lowered the clock of longer ones; and what is left when the limit's control has settled.
    entry["burst"] = _beside([one for one in measured.of("burst") if one.value > numbers["value"]], device)
    entry["power_limit"] = _beside([one for one in measured.of("limit") if one.capped], device)
    return {**entry, "theory": as_json(peak, clock, numbers["value"], share), **runs}


def _run(record: Record) -> dict[str, Any]:
    """One run as the file keeps it, with its trials."""
    found = {"kernel": record.variant, "role": record.role, "session": record.session, "value": known(record.value)}
    found |= {"work": record.work or None, "power_w": record.observed.get("power")}
    found["rejections"] = [*record.rejections, *([record.failure] if record.failure else [])]
    return {**found, "values": record.values, "sm_mhz": [clock / 1e6 for clock in record.clocks]}


def _judged(one: Measured, used: Sequence[Record], share: float | None, peak: Theory | None) -> tuple[str, bool, list[str]]:
    """The verdict on a value by its runs and its ``share`` of the theory at the measured clock, whether it stands, and why.

    ok, low, high, impossible, unstable, disturbed, throttled or wrong.
    """
    rejections = list(dict.fromkeys(reason for record in used for reason in record.rejections))
    reasons = [*rejections, *one.notes, *dict.fromkeys(note for record in used for note in record.notes)]
    sessions = one.sessions
    failures = [record.failure for record in sessions if record.failure]
    dropped = sum(bool(record.values) for record in sessions) - len(used)
    causes = dict.fromkeys(reason for record in sessions for reason in record.rejections)
    for count, what, why in ((dropped, "left out", causes), (len(failures), "failed", dict.fromkeys(failures))):
        if count:
            reasons.append(f"{count} of {len(sessions)} sessions {what}: {'; '.join(why)}")
    word, accepted = rejections[0].partition(":")[0].partition(" ")[0] if rejections else "ok", not rejections
    if peak is None or share is None or LIMITS.low <= share <= LIMITS.impossible:
        return word, accepted, reasons
    if share < LIMITS.low:
        against, why_so = "low", peak.slow or "no reason is known"
    elif peak.uncertain:
        against, why_so = "high", "the peak is not a published figure, and this disproves it"
    else:
        against, why_so = "impossible", "the work is miscounted or the peak is wrong"
        word, accepted = "ok", False
    reasons.append(f"{percent(share)} of theory at the measured clock: {why_so}")
    return against if word == "ok" else word, accepted, reasons


def _per_cycle(record: Record, device: Device) -> float | None:
    """Work per SM and cycle: the median over the trials, each by its own clock."""
    return median(record.per_cycle) / device.sm_count if record.per_cycle and device.sm_count else None


def _beside(records: Sequence[Record], device: Device) -> dict[str, Any] | None:
    """What trials of another length than those of the sessions gave; None where there are none."""
    record = next((one for one in records if one.values and one.verified is not False), None)
    if record is None:
        return None
    found: dict[str, Any] = {"value": record.value, "seconds": median(record.seconds), "trials": len(record.values)}
    found |= {"cv": known(measuring.largest_variation([record.values])), "per_sm_and_cycle": _per_cycle(record, device)}
    clock = median(record.clocks) / 1e6 if record.clocks else None
    return {**found, "sm_mhz": clock, "power_w": record.observed.get("power")}


def _describe(device: Device, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The "device" of a file: the runner's facts, the driver's beside them; a CPU has no "cc" and no "mig"."""
    facts = {key: value for key, value in device.facts.items() if key not in ("error", "mig")}
    if device.is_cpu:
        return {**facts, **identity}
    own = {key: value for key, value in identity.items() if key != "mig_enabled" and (value is not None or key not in facts)}
    mig = {
        "enabled": bool(identity.get("mig_enabled")) or device.is_mig,
        "profile": device.name.partition(" MIG ")[2] or None if device.is_mig else None,
        "sm_fraction": None if device.is_mig else 1.0,
    }
    return {**facts, **own, "cc": device.capability_text, "mig": mig}


def link_of(identity: Mapping[str, Any]) -> tuple[int, int] | None:
    """PCI Express generation and lanes that the driver calls the most; None where it does not tell."""
    link = identity.get("pcie") or {}
    generation, lanes = link.get("gen_max"), link.get("width_max")
    return (generation, lanes) if generation and lanes else None


def _warnings(device: Device, settings: Settings, origin: Origin) -> list[str]:
    others, ecc = origin.identity.get("other_processes"), origin.identity.get("ecc") or {}
    told = (
        (device.is_cpu, "no theory: a CPU does not tell how many multiply-adds and loads its cores start per cycle"),
        (origin.telemetry, f"no power, temperature and throttle reasons: {origin.telemetry}"),
        (others, f"{others} other processes used this GPU"),
        (ecc.get("current") != ecc.get("pending"), "ECC changes at the next reboot: measure again then"),
        (device.is_mig, "a MIG instance: its share of memory, L2 and power is not known, other instances may disturb it"),
        (settings.data == "zeros", "measured on zeros, which flatters: less power, higher clocks"),
    )
    return [text for applies, text in told if applies]


def summary_line(content: Mapping[str, Any]) -> str:
    """How many ceilings stand and which do not although they were tried, for people."""
    entries = content["ceilings"]
    bad = [e["id"] for e in entries if not e["accepted"] and (e["value"] is not None or e["verdict"] == "failed")]
    stand = plural(sum(entry["accepted"] for entry in entries), "ceiling")
    return f"{stand}; not accepted: {', '.join(bad)}" if bad else stand
