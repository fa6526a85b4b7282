"""A ceilings file taken apart into the runs that it was made of, so that today's rules can judge them anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, document
from ncu_roofline.bench.measuring import Outcome, Record, Settings, judge
from ncu_roofline.bench.telemetry import REASONS
from tests.bench.fakes import HERE

FOLDER = HERE / "measured_h100"
MEASURED, PROMISES = (json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in ("ceilings", "promises"))


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
    runs = [run for run in entry["variants"] if run["role"] == "session" and run["kernel"] == variant]
    records = [_record(entry, kind, run, device, first=run is runs[0]) for run in entry["variants"]]
    own = tuple(record for record in records if record.variant == variant and record.role == "session")
    others = tuple(record for record in records if record.variant != variant)
    burst = next((record for record in records if record.role == "burst"), None)
    notes = tuple(reason for reason in entry["reasons"] if reason.startswith("out of time"))
    return Outcome(kind, own, others, burst, "", notes)


def _record(entry: Mapping[str, Any], kind: CeilingKind, run: Mapping[str, Any], device: Device, first: bool) -> Record:
    """One run; what the file keeps of all runs together goes to the ``first``.

    Work and time of a launch are those of the last session: that file kept no others.
    """
    observed = _observed(entry)
    clocks = [megahertz * 1e6 for megahertz in run["sm_mhz"]]
    rejections, notes = judge(kind, run["values"], clocks, observed, device.sm_clock_max, True, device.kind)
    seconds = entry["burst"]["seconds"] if run["role"] == "burst" and entry["burst"] else entry["seconds_median"]
    return Record(
        kind=kind,
        variant=run["kernel"],
        role=run["role"],
        session=run["session"],
        values=run["values"],
        seconds=[seconds] * len(run["values"]),
        clocks=clocks,
        work=next(iter(entry["work"].values())),
        discarded=entry["discarded"] if first else 0,
        verified=entry["verified"]["checksum"],
        rejections=rejections,
        notes=notes,
        launch={key: value for key, value in entry["variant"].items() if key != "kernel"},
        observed=observed,
    )


def _observed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the file kept of the telemetry: means of all runs of a ceiling."""
    throttle = entry["throttle"]
    return {
        "memory_clock": entry["clock"]["mem_mhz"] and entry["clock"]["mem_mhz"] * 1e6,
        "power": entry["power_w"],
        "temperature": entry["temp_c"]["gpu"],
        "memory_temperature": entry["temp_c"]["mem"],
        "reasons": sum(bit for bit, name in REASONS.items() if name in throttle["reasons"]),
    }
