"""The ceilings file: schema ``ert-ceilings`` version 1, as `ncu_roofline.formats.ceilings` reads it."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.forms import known
from ncu_roofline.bench.campaign import Outcome
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.measuring import Record
from ncu_roofline.bench.settings import Settings, spread_of
from ncu_roofline.bench.statistics import Summary, kept, largest_variation, median, summarise, variation
from ncu_roofline.bench.telemetry import names
from ncu_roofline.bench.theory import as_json, measured_clock, share_of, theory, units_of_device
from ncu_roofline.bench.verdict import Verdict, judge_value, machine_balance, standing, without_value
from ncu_roofline.formats.ceilings import CPU, GPU, MEASURED, SCHEMA, SCHEMA_VERSION
from ncu_roofline.version import __version__

# How the clock of the cores is measured: in the kernel itself, or right after it by a chain of additions, one per cycle.
_CLOCK_METHODS = {GPU: "clock64/globaltimer", CPU: "dependent additions"}


@dataclass(frozen=True)
class Origin:
    """Where measurements come from: the program's build, the driver's facts, whether the driver could be asked."""

    build: Mapping[str, Any]
    identity: Mapping[str, Any]
    telemetry: str


def document(device: Device, outcomes: Sequence[Outcome], settings: Settings, origin: Origin) -> dict[str, Any]:
    """The whole file as plain values."""
    link = link_of(origin.identity)
    ceilings = [ceiling(outcome, device, settings, link) for outcome in outcomes]
    accepted = {entry["id"]: entry["value"] for entry in ceilings if entry["accepted"]}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ncu-roofline", "version": __version__, "build": dict(origin.build)},
        "host": host(),
        "device": describe(device, origin.identity),
        "settings": settings.key(),
        "ceilings": ceilings,
        "derived": {"machine_balance": machine_balance(accepted)},
        "warnings": _warnings(device, settings, origin),
    }


def as_text(content: Mapping[str, Any]) -> str:
    """The file's text; not-a-number never gets into it."""
    return json.dumps(_finite(content), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value


def ceiling(outcome: Outcome, device: Device, settings: Settings, link: tuple[int, int] | None) -> dict[str, Any]:
    """One entry of "ceilings"."""
    kind, used = outcome.kind, standing(outcome)
    head = {"id": kind.id, "kind": kind.kind, "level": kind.level or None, "unit": kind.unit}
    if not used:
        verdict = without_value(outcome)
        empty: dict[str, Any] = {"value": None, "accepted": False, "verdict": verdict.word, "reasons": list(verdict.reasons)}
        peak = theory(kind, units_of_device(device, link))
        return {**head, **empty, "theory": as_json(peak, None, None, None), "variants": _variants(outcome)}
    summary = summarise([record.values for record in used])
    clocks = [clock for record in used for clock in record.clocks]
    observed_link = max((tuple(r.observed["link"]) for r in used if r.observed.get("link")), default=None)
    peak = theory(kind, units_of_device(device, observed_link or link))
    memory = _observed(used, "memory_clock", median)
    clock = measured_clock(kind, median(clocks) if clocks else None, memory)
    per_cycle = _per_cycle(used, device) if kind.domain == "sm" else None
    share = share_of(peak, summary.value, clock, per_cycle and per_cycle * device.sm_count)
    verdict = judge_value(outcome, share, peak)
    return {
        **head,
        **_numbers(summary),
        "accepted": verdict.accepted,
        "verdict": verdict.word,
        "reasons": list(verdict.reasons),
        **_circumstances(used, clocks, memory, device),
        "per_sm_and_cycle": per_cycle,
        **_spread_per_cycle(used if kind.domain == "sm" else []),
        "burst": _burst(outcome, device),
        "theory": as_json(peak, clock, summary.value, share),
        "data": settings.data,
        "variants": _variants(outcome),
    }


def _numbers(summary: Summary) -> dict[str, Any]:
    return {
        "value": summary.value,
        "ci95": list(summary.interval),
        "min": summary.lowest,
        "max": summary.highest,
        "p05": summary.p05,
        "p95": summary.p95,
        "cv": known(summary.cv),
        "trials": summary.trials,
        "sessions": summary.sessions,
        "between_session_cv": known(summary.between),
        "outliers": summary.outliers,
    }


def _circumstances(used: Sequence[Record], clocks: Sequence[float], memory: float | None, device: Device) -> dict[str, Any]:
    last, reasons, power = used[-1], 0, _observed(used, "power", median)
    for record in used:
        reasons |= int(record.observed.get("reasons") or 0)
    verified = [record.verified for record in used if record.verified is not None]
    work = "bytes" if last.unit == "B/s" else "launches" if last.unit == "s" else "operations"
    return {
        "variant": {"kernel": last.variant, **{key: value for key, value in last.launch.items() if value != ""}},
        "work": {work: last.work},
        "seconds_median": median(last.seconds),
        "attempts": max(record.attempts for record in used),
        "discarded": sum(record.discarded for record in used),
        "clock": {
            "sm_mhz_mean": sum(clocks) / len(clocks) / 1e6 if clocks else None,
            "sm_mhz_min": min(clocks) / 1e6 if clocks else None,
            "mem_mhz": memory / 1e6 if memory else None,
            "mem_mhz_max": device.memory_clock_max / 1e6 or None,
            "method": _CLOCK_METHODS[device.kind] if clocks else None,
        },
        "power_w": power,
        "energy_per_unit_j": None if power is None else power * median(last.seconds) / last.work,
        "energy_j": _observed(used, "energy", sum),
        "duty": _observed(used, "duty", median),
        "temp_c": {"gpu": _observed(used, "temperature", max), "mem": _observed(used, "memory_temperature", max)},
        "throttle": {
            "reasons": names(reasons),
            "power_us": _scaled(_observed(used, "power_violation", sum), 1e6),
            "thermal_us": _scaled(_observed(used, "thermal_violation", sum), 1e6),
        },
        "verified": {"checksum": all(verified) if verified else None},
    }


def _burst(outcome: Outcome, device: Device) -> dict[str, Any] | None:
    """What a kernel of a few milliseconds reaches after a rest, where the power limit lowers the clock of longer ones."""
    record = outcome.burst
    if record is None or not record.values or record.verified is False:
        return None
    if record.value <= max((session.value for session in outcome.sessions if session.values), default=0.0):
        return None  # the limit did not lower it after all
    return {
        "value": record.value,
        "seconds": median(record.seconds),
        "trials": len(record.values),
        "cv": known(variation(kept(record.values))),
        "sm_mhz": median(record.clocks) / 1e6 if record.clocks else None,
        "per_sm_and_cycle": _per_cycle([record], device),
        "power_w": record.observed.get("power"),
    }


def _observed(used: Sequence[Record], key: str, combine: Any) -> float | None:
    values = [record.observed[key] for record in used if record.observed.get(key) is not None]
    return float(combine(values)) if values else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _per_cycle(used: Sequence[Record], device: Device) -> float | None:
    """Work per SM and cycle: the median over the trials, each by its own clock."""
    ratios = [ratio for record in used for ratio in record.per_cycle]
    return median(ratios) / device.sm_count if ratios and device.sm_count else None


def _spread_per_cycle(used: Sequence[Record]) -> dict[str, float | None]:
    """Variation per cycle within and between sessions: what a clock that the power limit moves leaves of it."""
    ratios = [record.per_cycle for record in used if record.per_cycle]
    return {
        "cv_per_cycle": known(largest_variation(ratios)),
        "between_session_cv_per_cycle": known(variation([median(each) for each in ratios])),
    }


def _variants(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "kernel": record.variant,
            "role": record.role,
            "session": record.session,
            "value": record.value if record.values else None,
            "attempts": record.attempts,
            "work": record.work or None,
            "power_w": record.observed.get("power"),
            "rejections": [*record.rejections, *([record.failure] if record.failure else [])],
            "values": record.values,
            "sm_mhz": [clock / 1e6 for clock in record.clocks],
        }
        for record in (*outcome.sessions, *outcome.others, *([outcome.burst] if outcome.burst else []))
    ]


def describe(device: Device, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The "device" of a file: the runner's facts, the driver's beside them; a CPU has no "cc" and no "mig"."""
    facts = {key: value for key, value in device.facts.items() if key not in ("error", "mig")}
    if device.kind == CPU:
        return {**facts, **identity}
    enabled = bool(identity.get("mig_enabled")) or device.is_mig
    own = {key: value for key, value in identity.items() if key != "mig_enabled" and (value is not None or key not in facts)}
    mig = {
        "enabled": enabled,
        "profile": device.name.partition(" MIG ")[2] or None if device.is_mig else None,
        "sm_fraction": None if device.is_mig else 1.0,
    }
    return {**facts, **own, "cc": device.capability_text, "mig": mig}


def host() -> dict[str, Any]:
    """The "host" of a file."""
    return {
        "name": platform.node(),
        "cpu": _processor(),
        "kernel": platform.release(),
        "container": _container(),
        "time_utc": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _processor() -> str:
    try:
        lines: Iterable[str] = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.processor())


def _container() -> str | None:
    if os.environ.get("APPTAINER_NAME") or os.environ.get("SINGULARITY_NAME"):
        return "apptainer"
    marks = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}
    return next((name for path, name in marks.items() if os.path.exists(path)), None)


def link_of(identity: Mapping[str, Any]) -> tuple[int, int] | None:
    """PCI Express generation and lanes that the driver calls the most; None where it does not tell."""
    link = identity.get("pcie") or {}
    generation, lanes = link.get("gen_max"), link.get("width_max")
    return (generation, lanes) if generation and lanes else None


def _warnings(device: Device, settings: Settings, origin: Origin) -> list[str]:
    found = []
    if device.kind == CPU:
        found.append("no theory: a CPU does not tell how many multiply-adds and loads its cores start per cycle")
    if origin.telemetry:
        found.append(f"no power, temperature and throttle reasons: {origin.telemetry}")
    others = origin.identity.get("other_processes")
    if others:
        found.append(f"{others} other processes used this GPU")
    ecc = origin.identity.get("ecc")
    if ecc and ecc["current"] != ecc["pending"]:
        found.append("ECC changes at the next reboot: measure again then")
    if device.is_mig:
        found.append("a MIG instance: its share of memory bandwidth, L2 and power is not known, other instances may disturb it")
    if settings.data == "zeros":
        found.append("measured on zeros, which flatters: less power, higher clocks")
    return found


def summary_line(content: Mapping[str, Any]) -> str:
    """How many ceilings stand and how many do not, for people."""
    entries = content["ceilings"]
    accepted = sum(entry["accepted"] for entry in entries)
    refused = [entry["id"] for entry in entries if not entry["accepted"] and entry["value"] is not None]
    failed = [entry["id"] for entry in entries if entry["verdict"] == "failed"]
    device = content["device"].get("kind", GPU)
    wide = [
        e["id"]
        for e in entries
        if e["accepted"] and (e["between_session_cv"] or 0) > spread_of(CeilingKind(e["id"], e["unit"]).domain, device).between
    ]
    parts = [f"{accepted} ceilings"]
    for label, ids in (("not accepted", refused), ("failed", failed), ("spread between sessions", wide)):
        if ids:
            parts.append(f"{label}: {', '.join(ids)}")
    return "; ".join(parts)


__all__ = ["Origin", "Verdict", "as_text", "ceiling", "describe", "document", "host", "link_of", "summary_line"]


# Of the machine that a GPU sits in, what its numbers depend on.
_HOST = ("cpu", "container", "time_utc")
# Names of one GPU, machine or file among others; of merged files also the lists of them.
_TELLING = ("uuid", "serial", "pci_bus_id", "index", "gpus", "values", "slow", "slow_gpus", "file", "path", "hostname")


def scrubbed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same document of `bench run` or `bench merge` without names of hosts, GPUs and files, with "status" measured.

    Raises RooflineError if a name that was taken out stands elsewhere, in a warning for instance.
    """
    host = content.get("host") or {}
    result = {key: content[key] for key in ("schema", "schema_version")}
    result |= {"status": MEASURED, **{key: _without(value) for key, value in content.items() if key not in result}}
    result["host"] = {key: host[key] for key in _HOST if key in host}
    result["device"]["uuid"] = ""
    text = as_text(result)
    for name in sorted(set(_names(content))):
        if name in text:
            reason = f"{name!r} is the name of a machine or GPU, and stands in it where it can't be taken out"
            raise RooflineError("Cannot publish", "ceilings", reason, "Take it out by hand.")
    return result


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        # A variant's "values" are its trials; a merged ceiling's are GPUs by name.
        return {key: _without(inner) for key, inner in value.items() if key not in _TELLING or _is_trials(key, inner)}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def _is_trials(key: str, value: Any) -> bool:
    return key == "values" and isinstance(value, list) and not any(isinstance(one, Mapping) for one in value)


def _names(content: Mapping[str, Any]) -> Iterator[str]:
    """Names of hosts and GPUs that a document holds."""
    host, device = content.get("host") or {}, content.get("device") or {}
    places = [device, *(device.get("gpus") or [])]
    found = [host.get("name"), *(host.get("names") or []), *(place.get("host") for place in places)]
    found += [place.get(key) for place in places for key in ("uuid", "serial", "pci_bus_id")]
    yield from (name for name in found if isinstance(name, str) and name)
