"""A ceilings file taken apart into the runs that it was made of, so that today's rules can judge them anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncu_roofline.bench.campaign import Outcome
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, document
from ncu_roofline.bench.measuring import Record, judge
from ncu_roofline.bench.settings import Settings
from ncu_roofline.bench.telemetry import REASONS, Observed


def rejudged(content: Mapping[str, Any]) -> dict[str, Any]:
    """The file that today's rules make of the trials in ``content``; the warm-up's clock is taken to be the GPU's highest."""
    device = parse_device({**content["device"], "uuid": content["device"].get("uuid") or "not told"})
    settings = Settings(**content["settings"])
    outcomes = [_outcome(entry, device) for entry in content["ceilings"]]
    made = document(device, outcomes, settings, Origin(content["tool"]["build"], _identity(content["device"]), ""))
    return {**made, "tool": content["tool"], "host": content["host"]}


def _identity(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in facts.items() if key != "mig"}, "mig_enabled": facts["mig"]["enabled"]}


def _outcome(entry: Mapping[str, Any], device: Device) -> Outcome:
    kind = CeilingKind(entry["id"], entry["unit"])
    if entry["value"] is None:
        return Outcome(kind, absent=entry["reasons"][0])
    variant = entry["variant"]["kernel"]
    records = [_record(entry, kind, run, device) for run in entry["variants"]]
    own = tuple(record for record in records if record.variant == variant and record.role == "session")
    others = tuple(record for record in records if record.variant != variant)
    burst = next((record for record in records if record.role == "burst"), None)
    notes = tuple(reason for reason in entry["reasons"] if reason.startswith("out of time"))
    return Outcome(kind, variant, own, others, burst, "", notes)


def _record(entry: Mapping[str, Any], kind: CeilingKind, run: Mapping[str, Any], device: Device) -> Record:
    observed = _observed(entry)
    clocks = [megahertz * 1e6 for megahertz in run["sm_mhz"]]
    rejections, notes = judge(kind, run["values"], clocks, observed, device.sm_clock_max, True, device.kind)
    work = next(iter(entry["work"].values()))
    return Record(
        ceiling=kind.id,
        variant=run["kernel"],
        role=run["role"],
        session=run["session"],
        unit=kind.unit,
        values=run["values"],
        seconds=[work / value if kind.higher_is_better else work * value for value in run["values"]],
        clocks=clocks,
        work=work,
        attempts=run["attempts"],
        verified=entry["verified"]["checksum"],
        rejections=rejections,
        notes=notes,
        launch={key: value for key, value in entry["variant"].items() if key != "kernel"},
        observed=vars(observed),
    )


def _observed(entry: Mapping[str, Any]) -> Observed:
    """What the file kept of the telemetry: one figure for all runs of a ceiling."""
    throttle = entry["throttle"]
    return Observed(
        memory_clock=entry["clock"]["mem_mhz"] and entry["clock"]["mem_mhz"] * 1e6,
        power=entry["power_w"],
        temperature=entry["temp_c"]["gpu"],
        memory_temperature=entry["temp_c"]["mem"],
        reasons=sum(bit for bit, name in REASONS.items() if name in throttle["reasons"]),
        duty=entry["duty"],
    )
