"""The machine's side of the time-based roofline: peak, bandwidth, balance, and what one launch costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.model import Roofline


@dataclass(frozen=True)
class Latency:
    """What one launch costs in seconds (NaN: nobody measured it), and where the number comes from."""

    seconds: float
    origin: str


@dataclass(frozen=True)
class Latencies:
    """The launch latency of each GPU: given for all of them, or measured on the GPU's model."""

    given: float | None
    ceilings: tuple[Ceilings, ...]

    def of(self, device: str, compute_capability: str) -> Latency:
        """The latency of one GPU."""
        if self.given is not None:
            return Latency(self.given, "given")
        major, _, minor = compute_capability.partition(".")
        capability = (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)
        for file in self.ceilings:
            if file.applies_to(device, capability) and (measured := file.launch_latency()):
                return Latency(measured.value, f"measured: {measured.id} of {file.provenance}")
        return Latency(math.nan, "")


def machine_rows(roofline: Roofline, points: dict[str, Any], latencies: Latencies) -> list[dict[str, Any]]:
    """A row per GPU, precision that some of the ``points`` has, and level that the ordinary model has points at."""
    ordinary = roofline.point_columns
    found = dict.fromkeys(zip(points["device"], points["precision"], strict=True))
    rows = []
    for device, precision in found:
        mine = ordinary["device"] == device
        capability = str(ordinary["compute_capability"][mine][0])
        latency = latencies.of(device, capability)
        peaks = points["compute_roof"][(points["device"] == device) & (points["precision"] == precision)]
        peaks = peaks[np.isfinite(peaks)]
        peak, low, high = (float(one(peaks)) if len(peaks) else math.nan for one in (np.median, np.min, np.max))
        for level in dict.fromkeys(ordinary["level"][mine].tolist()):
            speeds = ordinary["bandwidth_roof"][mine & (ordinary["level"] == level)]
            speeds = speeds[np.isfinite(speeds)]
            bandwidth = float(np.median(speeds)) if len(speeds) else math.nan
            rows.append(
                {
                    "device": device,
                    "compute_capability": capability,
                    "precision": precision,
                    "level": level,
                    "peak": peak,
                    "peak_min": low,
                    "peak_max": high,
                    "peak_origin": _origin(roofline, device, "precision", precision) if len(peaks) else "",
                    "bandwidth": bandwidth,
                    "bandwidth_origin": _origin(roofline, device, "level", level) if len(speeds) else "",
                    "balance": peak / bandwidth if bandwidth > 0 else math.nan,
                    "latency": latency.seconds,
                    "latency_origin": latency.origin,
                    "overhead_work": latency.seconds * peak,
                    "overhead_traffic": latency.seconds * bandwidth,
                }
            )
    return rows


def _origin(roofline: Roofline, device: str, column: str, wanted: str) -> str:
    """Whether the roofs of a precision or level are measured; several answers for the sum over pipes."""
    roofs = roofline.roof_columns
    mine = roofs["device"] == device
    mine &= roofs["kind"] == "compute" if wanted == "mixed" else roofs[column] == wanted
    origins = set(roofs["origin"][mine].tolist())
    if wanted == "mixed" and len(origins) > 1:
        return "measured and theoretical"
    return next((origin for origin in ("measured", "theoretical") if origin in origins), "")
