"""Measured ceilings: the JSON that the micro-benchmarks write, read and checked.

Schema ``ert-ceilings`` version 1: ``device`` says which GPU, ``ceilings`` is a list of ``{"id", "value", "unit", ...}`` in SI
units.
A ceiling whose value is null (not on this part), that was not accepted, or whose code path is emulated, is no roof.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.facts import load_spec
from ncu_roofline.facts.fields import parse_capability

SCHEMA = "ert-ceilings"
SCHEMA_VERSION = 1
# Of files of other tools, which do not say on what they were measured.
UNKNOWN_CAPABILITY = (0, 0)

# Measured launch latencies, first choice first: back to back in a stream is how applications launch.
_LATENCIES = ("launch.stream", "launch.sync", "launch.graph")
_UNITS = ("B/s", "FLOP/s", "OP/s", "s")


@dataclass(frozen=True)
class Ceiling:
    """One measured ceiling: value in SI units, the SM clock it was measured at in Hz (NaN where unknown).

    ``spread`` is the relative standard deviation of its trials (NaN where unknown).
    """

    id: str
    value: float
    unit: str
    clock: float
    variant: str
    spread: float = math.nan


@dataclass(frozen=True)
class Ceilings:
    """The measured ceilings of one GPU."""

    path: str
    device: str
    uuid: str
    compute_capability: tuple[int, int]
    date: str
    by_id: Mapping[str, Ceiling]

    @property
    def provenance(self) -> str:
        """Which file, GPU and day the values come from, for people."""
        return ", ".join(part for part in (Path(self.path).name, self.device, self.date) if part)

    def applies_to(self, device: str, compute_capability: tuple[int, int]) -> bool:
        """Whether the ceilings were measured on this model of GPU; where they don't say on which, the user has to know."""
        if not self.device and self.compute_capability == UNKNOWN_CAPABILITY:
            return True
        return self.compute_capability == compute_capability and model_name(self.device) == model_name(device)

    def bandwidth(self, level: str) -> Ceiling | None:
        """The measured bandwidth roof (B/s) of a level: what it can deliver at best, by any of its ceilings."""
        names = next((one.ceilings for one in load_spec().levels if one.id == level), ())
        found = [self.by_id[name] for name in (*names, level) if name in self.by_id]
        return max(found, key=lambda ceiling: ceiling.value, default=None)

    def launch_latency(self) -> Ceiling | None:
        """What one launch costs at least (s): back to back in a stream, else with a wait, else in a graph."""
        return next((self.by_id[name] for name in _LATENCIES if name in self.by_id), None)

    def compute(self, roof: str) -> Ceiling | None:
        """The measured compute roof (FLOP/s or OP/s) of a roof id.

        A tensor roof without instruction family (``tensor.fp16``) is the best family measured.
        """
        if roof in self.by_id:
            return self.by_id[roof]
        if not roof.startswith("tensor.") or roof.count(".") != 1:
            return None
        found = [ceiling for name, ceiling in self.by_id.items() if name.startswith(roof + ".")]
        return max(found, key=lambda ceiling: ceiling.value, default=None)


def model_name(device: str) -> str:
    """The name under which ceilings and rules know a model of GPU."""
    words = device.replace("NVIDIA", "").replace("Tesla", "").split()
    return " ".join(words).lower()


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Read a measured-ceilings file.  Raises RooflineError for anything else, with the place in it."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        return _parse(str(path), document)
    except OSError as error:
        raise _error(path, error.strerror or str(error), "Give the JSON file that `ncu-roofline bench run` wrote.") from error
    except (ValueError, RecursionError) as error:
        raise _error(path, str(error), "Give the JSON file that `ncu-roofline bench run` wrote.") from error


def _error(path: str | PathLike[str], reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot read ceilings", path, reason, next_step)


def _parse(path: str, document: Any) -> Ceilings:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f'it is no ceilings file ("schema": "{SCHEMA}" is missing)')
    if document.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"its schema version is {document.get('schema_version')!r}, and this program knows {SCHEMA_VERSION}")
    device = document.get("device")
    entries = document.get("ceilings")
    if not isinstance(device, dict) or not isinstance(entries, list):
        raise ValueError('"device" must be an object and "ceilings" a list')
    parsed = [ceiling for position, entry in enumerate(entries) if (ceiling := _ceiling(position, entry)) is not None]
    if not parsed:
        raise ValueError("it holds no accepted ceiling")
    by_id = {ceiling.id: ceiling for ceiling in parsed}
    if len(by_id) < len(parsed):
        raise ValueError("it holds two accepted ceilings of one id")
    host = document.get("host")
    return Ceilings(
        path=path,
        device=str(device.get("name", "")),
        uuid=str(device.get("uuid", "")),
        compute_capability=_capability(device.get("cc")),
        date=str(host.get("time_utc", ""))[:10] if isinstance(host, dict) else "",
        by_id=by_id,
    )


def _capability(text: object) -> tuple[int, int]:
    found = parse_capability(str(text))
    if found is None:
        raise ValueError(f'"device.cc" must read like "9.0", not {text!r}')
    return found


def _units_of(ceiling: str) -> tuple[str, ...]:
    """Units that a ceiling may have, by its id."""
    if load_spec().level_of_ceiling(ceiling):
        return ("B/s",)
    head = ceiling.partition(".")[0]
    if head == "tensor":
        return ("FLOP/s", "OP/s")
    return (
        ("FLOP/s",)
        if any(precision.id == head and precision.unit == "flop" for precision in load_spec().precisions)
        else _UNITS
    )


def _ceiling(position: int, entry: Any) -> Ceiling | None:
    where = f'"ceilings"[{position}]'
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise ValueError(f'{where} must be an object with an "id"')
    reasons = entry.get("reasons") or []
    if not isinstance(reasons, list):
        raise ValueError(f"{where} ({entry['id']}): reasons must be a list, not {reasons!r}")
    if entry.get("value") is None or entry.get("accepted") is False or "emulated" in reasons:
        return None
    value = _number(entry["value"])
    if not value > 0:
        raise ValueError(f"{where} ({entry['id']}): value must be a positive number or null, not {_short(entry['value'])}")
    units = _units_of(entry["id"])
    if entry.get("unit") not in units:
        raise ValueError(f"{where} ({entry['id']}): unit must be {' or '.join(units)}, not {_short(entry.get('unit'))}")
    megahertz = _number(inside(entry, "clock", "sm_mhz_mean"))
    return Ceiling(
        id=entry["id"],
        value=value,
        unit=entry["unit"],
        clock=megahertz * 1e6 if megahertz > 0 else math.nan,
        variant=str(inside(entry, "variant", "kernel") or ""),
        spread=_number(entry.get("cv")),
    )


def inside(entry: Mapping[str, Any], name: str, key: str) -> Any:
    """``entry[name][key]`` of a document that may hold anything; None where there is no such thing."""
    inner = entry.get(name)
    return inner.get(key) if isinstance(inner, dict) else None


def _number(value: object) -> float:
    """``value`` if it is a finite number, else NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        number = float(value)
    except OverflowError:  # JSON has integers of any length
        return math.nan
    return number if math.isfinite(number) else math.nan


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}\N{HORIZONTAL ELLIPSIS}"
