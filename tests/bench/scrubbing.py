"""A ceilings file without names of hosts, GPUs and files, as the registry keeps it; and judged anew by today's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.measuring import Measured, Record, Settings, judge
from ncu_roofline.bench.telemetry import REASONS
from ncu_roofline.formats import ceilings as form
from ncu_roofline.formats.ceilings import Ceiling
from tests.bench.fakes import HERE

# What tells one GPU, machine or file from others.
_TELLING = ("uuid", "serial", "pci_bus_id", "index", "gpus", "values", "slow", "file", "path", "hostname")
_READ = {name: (HERE / "measured_h100" / f"{name}.json").read_text(encoding="utf-8") for name in ("ceilings", "promises")}
MEASURED, PROMISES = map(json.loads, _READ.values())


def scrubbed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same document of `bench run` or `bench merge` without names, with "status" measured.

    Raises RooflineError if a name that was taken out stands elsewhere, in a warning for instance.
    """
    host, result = content.get("host") or {}, {key: content[key] for key in ("schema", "schema_version")}
    result |= {"status": form.MEASURED, **{key: _without(value) for key, value in content.items() if key not in result}}
    result["host"] = {key: host[key] for key in ("cpu", "container", "time_utc") if key in host}
    result["device"]["uuid"] = ""
    if name := next((name for name in sorted(set(_names(content))) if name in as_text(result)), ""):
        reason = f"{name!r} is the name of a machine or GPU, and stands in it where it can't be taken out"
        raise RooflineError("Cannot publish", "ceilings", reason, "Take it out by hand.")
    return result


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):  # a variant's "values" are its trials; a merged ceiling's are GPUs by name
        trials = isinstance(value.get("values"), list) and not any(isinstance(one, Mapping) for one in value["values"])
        return {key: _without(inner) for key, inner in value.items() if key not in _TELLING or (key == "values" and trials)}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def _names(content: Mapping[str, Any]) -> Iterator[str]:
    host, device = content.get("host") or {}, content.get("device") or {}
    places = [device, *(device.get("gpus") or [])]
    found = [host.get("name"), *(host.get("names") or []), *(place.get("host") for place in places)]
    found += [place.get(key) for place in places for key in ("uuid", "serial", "pci_bus_id")]
    yield from (name for name in found if isinstance(name, str) and name)


def rejudged(content: Mapping[str, Any]) -> dict[str, Any]:
    """The file that today's rules make of the trials in ``content``; the warm-up's clock is taken to be the GPU's highest."""
    facts = content["device"]
    device = parse_device({**facts, "uuid": facts.get("uuid") or "not told"})
    outcomes = [_outcome(entry, device) for entry in content["ceilings"]]
    identity = {**{key: value for key, value in facts.items() if key != "mig"}, "mig_enabled": facts["mig"]["enabled"]}
    made = document(device, outcomes, Settings(**content["settings"]), Origin(content["tool"]["build"], identity, ""))
    return {**made, "tool": content["tool"], "host": content["host"]}


def _outcome(entry: Mapping[str, Any], device: Device) -> Measured:
    kind = Ceiling(entry["id"], unit=entry["unit"])
    if entry["value"] is None:
        return Measured(kind, absent=entry["reasons"][0])
    variant = entry["variant"]["kernel"]
    records = [_record(entry, kind, run, device) for run in entry["variants"]]
    first = next(at for at, one in enumerate(records) if one.variant == variant and one.role == "session")
    records[first] = replace(records[first], discarded=entry["discarded"])
    late = tuple(text for text in entry["reasons"] if text.startswith("out of time"))
    return Measured(kind, (variant,), "", records, late)


def _record(entry: Mapping[str, Any], kind: Ceiling, run: Mapping[str, Any], device: Device) -> Record:
    """One run; the last session's work and time go to all, trials that the file counts as discarded to the first."""
    throttle, clocks = entry["throttle"]["reasons"], [megahertz * 1e6 for megahertz in run["sm_mhz"]]
    observed = {"memory_clock": entry["clock"]["mem_mhz"] and entry["clock"]["mem_mhz"] * 1e6, "power": entry["power_w"]}
    observed |= {"temperature": entry["temp_c"]["gpu"], "memory_temperature": entry["temp_c"]["mem"]}
    observed["reasons"] = sum(bit for bit, name in REASONS.items() if name in throttle)
    judged = judge(kind, run["values"], clocks, observed, device.sm_clock_max, True, device.kind)
    seconds = entry["burst"]["seconds"] if run["role"] == "burst" and entry["burst"] else entry["seconds_median"]
    launch = {key: value for key, value in entry["variant"].items() if key != "kernel"}
    trials = (run["values"], [seconds] * len(run["values"]), clocks, next(iter(entry["work"].values())))
    told = {"rejections": judged[0], "notes": judged[1], "launch": launch, "observed": observed}
    return Record(kind, run["kernel"], run["role"], run["session"], *trials, verified=entry["verified"]["checksum"], **told)
