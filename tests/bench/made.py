"""Ceilings files as `bench run` writes them, made up: an H200 with a few ceilings, and what `files.toml` says."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.fakes import H200, read_toml

BASE = read_toml("document.toml")
RATES = {"dram.read": (4.35e12, "B/s"), "fp64.fma": (33e12, "FLOP/s"), "launch.stream": (4e5, "s")}


def entry(name: str, value: float | None, unit: str, **more: Any) -> dict[str, Any]:
    """An accepted ceiling whose interval is 0.03 % to both sides; what ``more`` says replaces."""
    known, kind = value or 0.0, {"B/s": "bandwidth", "s": "latency"}.get(unit, "compute")
    own = {"id": name, "kind": kind, "level": "dram" if name.startswith("dram") else None, "unit": unit, "value": value}
    own |= {"accepted": value is not None, "verdict": "ok" if value is not None else "emulated"}
    own["ci95"] = [known * (1 - 3e-4), known * (1 + 3e-4)]
    own["per_sm_and_cycle"] = known / (1.98e9 * 132) if name.startswith("fp") else None
    own["variants"] = [{"kernel": "best", "session": 1, "value": value, "values": [value] * 3, "sm_mhz": [1980.0] * 3}]
    return {**deepcopy(BASE["entry"]), **own, **more}


def document(number: int = 1, speed: float = 1.0, entries: list[dict[str, Any]] | None = None, **device: Any) -> dict[str, Any]:
    """The file of GPU ``number`` whose rates are ``speed`` times the usual ones, or with these entries."""
    if entries is None:
        rates = {name: (rate * speed, unit) for name, (rate, unit) in RATES.items()}
        entries = [entry(name, 1 / rate if unit == "s" else rate, unit) for name, (rate, unit) in rates.items()]
        entries.append(entry("tensor.fp8.mma", None, "FLOP/s", reasons=["emulated"]))
    made = {**deepcopy(BASE["document"]), "ceilings": entries}
    made["host"]["name"] = f"node{number // 4}"
    return {**made, "device": {**H200, "index": number % 4, "uuid": f"GPU-{number:08d}", "driver": "580.65", **device}}


def _absent(value: Any) -> Any:
    """A value of TOML, in which "-" stands for null."""
    if isinstance(value, dict):
        return {key: _absent(inner) for key, inner in value.items()}
    return None if value == "-" else [_absent(inner) for inner in value] if isinstance(value, list) else value


def changed(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The same with what a mapping changes in it; what it drops is left out; ceilings by their id, "all" of them."""
    for key, value in _absent(changes).items():
        if key == "drop":
            for name in value:
                del content[name]
        elif key == "ceilings":
            known = {one["id"]: one for one in content["ceilings"]}
            for name, change in value.items():
                for one in known.values() if name == "all" else [known[name]]:
                    one.update(change)
        elif isinstance(value, dict) and key in content:
            changed(content[key], value)
        else:
            content[key] = value
    return content


def content(name: str) -> dict[str, Any]:
    told = dict(CHANGES[name])
    return changed(document(told.pop("number", 1), told.pop("speed", 1.0)), told)


def write(name: str, path: Path) -> Path:
    path.write_text(json.dumps(content(name), indent=1), encoding="utf-8")
    return path


def _runner(path: Path) -> None:
    path.write_text("played by the tests", encoding="utf-8")
    path.chmod(0o755)


CHANGES = read_toml("files.toml")
FILES: dict[str, Callable[[Path], object]] = {name: partial(write, name) for name in CHANGES}
FILES["runner"] = _runner
