"""Ceilings of several GPUs of one model, from nodes or MPI ranks, in one file: median, range, and which GPUs are slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.forms import inside
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.document import machine_balance
from ncu_roofline.bench.settings import LIMITS
from ncu_roofline.bench.statistics import median
from ncu_roofline.formats.ceilings import CPU, MEASURED, PUBLISHED, SCHEMA, SCHEMA_VERSION, ceilings_of, read_document
from ncu_roofline.version import __version__

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

_MODEL = ("kind", "name", "cc", "sm_count", "cores")
_NEXT = "Give the files that `ncu-roofline bench run` wrote on GPUs of one model."


@dataclass(frozen=True)
class Source:
    """One file to merge."""

    path: str
    content: Mapping[str, Any]

    @property
    def model(self) -> dict[str, Any]:
        """What GPUs must share: name, compute capability, number of SMs; CPUs their name and number of cores."""
        device = self.content["device"]
        return {key: device[key] for key in _MODEL if key in device}

    @property
    def time(self) -> str:
        """When it was measured, ISO 8601."""
        return inside(self.content, "host", "time_utc") or ""

    def place(self) -> dict[str, Any]:
        """Which GPU it is; where it has no UUID, the file's name stands for it."""
        host, device = inside(self.content, "host", "name") or "", self.content["device"]
        uuid = device.get("uuid") or self.path
        return {"host": host, "index": device.get("index"), "uuid": uuid, "file": Path(self.path).name}


def read_source(path: str) -> Source:
    """A ceilings file as it stands.  Raises RooflineError for anything else."""
    content = read_document(path)
    found = ceilings_of(path, content)
    if found.status == PUBLISHED:
        raise RooflineError("Cannot merge", path, "its figures were published, not measured", _NEXT)
    if content["device"].get("gpus"):
        raise RooflineError("Cannot merge", path, "it is merged already", _NEXT)
    if not found.device:
        raise RooflineError("Cannot merge", path, "it does not say which GPU it was measured on", _NEXT)
    return Source(path, content)


def merge(sources: Sequence[Source]) -> dict[str, Any]:
    """One document of the schema of the others: each value is the median over the GPUs.

    Of two files of one GPU the later one counts.  Raises RooflineError for GPUs of several models.
    """
    newest, warnings = _newest(sources)
    first = newest[0]
    for other in newest[1:]:
        if other.model != first.model:
            reason = f"{_model(other)} is not {_model(first)} of {first.path}"
            raise RooflineError("Cannot merge", other.path, reason, _NEXT)
    rows: dict[str, list[tuple[Source, Mapping[str, Any]]]] = {}
    for source in newest:
        for entry in source.content["ceilings"]:
            rows.setdefault(entry["id"], []).append((source, entry))
    ceilings = [_ceiling(name, entries, len(newest)) for name, entries in rows.items()]
    accepted = {entry["id"]: entry["value"] for entry in ceilings if entry["accepted"]}
    slow: dict[str, list[str]] = {}
    for entry in ceilings:
        for gpu in entry.get("slow", []):
            slow.setdefault(f"{gpu['host']} GPU {gpu['index']} {gpu['uuid']}", []).append(entry["id"])
    content = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "status": MEASURED,
        "tool": {"name": "ncu-roofline", "version": __version__},
        "host": {"name": "", "names": sorted({s.place()["host"] for s in newest}), "time_utc": max(s.time for s in newest)},
        "device": {**first.model, "uuid": "", "gpus": [source.place() for source in newest]},
        "ceilings": ceilings,
        "derived": {"machine_balance": machine_balance(accepted), "slow_gpus": slow},
        "warnings": warnings,
    }
    for label, keys in CONDITIONS.items():
        values = {valued_at(source.content, keys) for source in newest}
        if len(values - {None}) > 1:
            warnings.append(f"{label} differ: {', '.join(sorted(map(str, values - {None})))}")
        elif len(values) == 1 and values != {None}:
            place: Any = content
            for key in keys[:-1]:
                place = place.setdefault(key, {})
            place[keys[-1]] = values.pop()
    return content


def _newest(sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
    """Of each GPU, or CPU with a number of threads, the latest file; and what is left out."""
    by_gpu: dict[tuple[str, Any], Source] = {}
    warnings = []
    for source in sources:
        gpu = source.place()["uuid"], source.content["device"].get("threads")
        late, early = source, by_gpu.get(gpu)
        if early is not None:
            late, early = (source, early) if source.time >= early.time else (early, source)
            warnings.append(f"{early.path} left out: {late.path} is a later file of the same GPU")
        by_gpu[gpu] = late
    return list(by_gpu.values()), warnings


def valued_at(content: Any, keys: Sequence[str]) -> Any:
    """What stands in nested objects under these keys; None where there is no such thing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _ceiling(name: str, entries: Sequence[tuple[Source, Mapping[str, Any]]], count: int) -> dict[str, Any]:
    stand = [
        (source, entry) for source, entry in entries if entry.get("value") is not None and entry.get("accepted") is not False
    ]
    sample = (stand or entries)[0][1]
    head = {key: sample.get(key) for key in ("id", "kind", "level", "unit")}
    if not stand:
        reasons = list(dict.fromkeys(reason for _, entry in entries for reason in entry.get("reasons") or []))
        return {**head, "value": None, "accepted": False, "verdict": sample.get("verdict"), "reasons": reasons, "gpus": 0}
    values = [float(entry["value"]) for _, entry in stand]
    middle, least, most = median(values), min(values), max(values)
    higher = CeilingKind(name, str(head["unit"])).higher_is_better
    places = [{**source.place(), "value": entry["value"]} for source, entry in stand]
    behind = [1 - place["value"] / middle if higher else place["value"] / middle - 1 for place in places]
    slow = [{**place, "behind": share} for place, share in zip(places, behind, strict=True) if share > LIMITS.slow_gpu]

    def middle_of(*keys: str) -> float | None:
        found = [float(value) for _, entry in stand if (value := valued_at(entry, keys))]
        return median(found) if found else None

    return {
        **head,
        "value": middle,
        "min": least,
        "median": middle,
        "max": most,
        "spread": (most - least) / middle,
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


def _model(source: Source) -> str:
    model = source.model
    units = f"{model.get('cores')} cores" if model.get("kind") == CPU else f"{model.get('cc')}, {model.get('sm_count')} SMs"
    return f"{model['name']} ({units})"
