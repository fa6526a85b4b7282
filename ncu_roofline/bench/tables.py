"""Ceilings as text tables, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncu_roofline.base.forms import cleaned, inside
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.bench.theory import data_sheet
from ncu_roofline.chips import Gpu
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.rendering.table import listing

_LIVE = (24, 14, 9, 7, 6, 5, 29)  # columns of a line, with spaces between them 100
_UNITS = {"B/s": "byte/s", "FLOP/s": "flop/s", "OP/s": "op/s", "s": "second"}


def value_text(value: float | None, unit: str, digits: int = 4) -> str:
    """A value with its unit; "-" for none."""
    return "-" if value is None else format_value(value, _UNITS.get(unit, "ratio"), digits)


def measured(content: Mapping[str, Any]) -> str:
    """The table of a ceilings file, as measured or merged, with its head and warnings, without what a terminal would obey."""
    content = cleaned(content)
    merged = bool(content["device"].get("gpus"))
    rows = [_merged_row(entry) if merged else _row(entry) for entry in content["ceilings"]]
    lines = [_head(content), "", *listing(rows)]
    said = [
        e for e in content["ceilings"] if e["reasons"] and e.get("verdict") not in ("unsupported", "emulated", "not measured")
    ]
    notes = [f"{entry['id']}: {'; '.join(entry['reasons'])}" for entry in said]
    slow = [
        f"{gpu['host']} GPU {gpu['index']} ({gpu['uuid']}): {entry['id']} {gpu['behind']:.1%} behind the median"
        for entry in content["ceilings"]
        for gpu in entry.get("slow", [])
    ]
    for title, texts in (("Slow GPUs", slow), ("Reasons", notes), ("Warnings", content.get("warnings") or [])):
        if texts:
            lines += ["", f"{title}:", *(f"  {text}" for text in texts)]
    return "\n".join(lines)


def live_header() -> str:
    """What stands over the lines of `live_line`."""
    return _live("ceiling", "value", "of theory", "spread", "MHz", "W", "verdict")


def live_line(entry: Mapping[str, Any]) -> str:
    """A finished ceiling (an entry of a ceilings file) on one line of 100 columns, without anything a terminal would obey.

    ``of theory`` is at the measured clock, ``spread`` the relative standard deviation of the trials.
    """
    value = entry["value"]
    return _live(
        entry["id"],
        value_text(value, entry["unit"]),
        _percent(inside(entry, "theory", "fraction"), 1),
        _percent(entry.get("cv") if value is not None else None, 2),
        _whole(inside(entry, "clock", "sm_mhz_mean")),
        _whole(entry.get("power_w")),
        str(entry.get("verdict") or ""),  # its reasons stand below the table at the end
    )


def _live(*cells: str) -> str:
    first, *numbers, last = (shorten(clean(cell), width) for cell, width in zip(cells, _LIVE, strict=True))
    padded = (f"{text:>{width}}" for text, width in zip(numbers, _LIVE[1:-1], strict=True))
    return " ".join([f"{first:<{_LIVE[0]}}", *padded, last]).rstrip()


def _head(content: Mapping[str, Any]) -> str:
    device, host = content["device"], content.get("host") or {}
    gpus = device.get("gpus")
    if gpus:
        return f"{device['name']}: {len(gpus)} GPUs on {len({gpu['host'] for gpu in gpus})} hosts"
    known = device.get("cc") or f"{device.get('threads')} threads on {device.get('cores')} cores"
    parts = [f"{device['name']} ({known})", device.get("uuid"), host.get("name"), host.get("time_utc")]
    driver = device.get("driver")
    return ", ".join(str(part) for part in [*parts, f"driver {driver}" if driver else ""] if part)


def _row(entry: Mapping[str, Any]) -> dict[str, str]:
    value, (low, high) = entry["value"], entry.get("ci95") or (None, None)
    return {
        "ceiling": entry["id"],
        "value": value_text(value, entry["unit"]),
        "+-": _percent((high - low) / 2 / value if value and low is not None and high is not None else None, 2),
        "sessions": _percent(entry.get("between_session_cv") if value is not None else None, 2),
        "of theory": _percent(inside(entry, "theory", "fraction"), 1),
        "vendor clock": _percent(inside(entry, "theory", "fraction_vendor_clock"), 1),
        "MHz": _whole(inside(entry, "clock", "sm_mhz_mean")),
        "W": _whole(entry.get("power_w")),
        "C": _whole(inside(entry, "temp_c", "gpu")),
        "variant": str((entry.get("variant") or {}).get("kernel", "-")),
        "verdict": str(entry.get("verdict", "")),
    }


def _merged_row(entry: Mapping[str, Any]) -> dict[str, str]:
    unit = entry["unit"]
    return {
        "ceiling": entry["id"],
        "min": value_text(entry.get("min"), unit),
        "median": value_text(entry.get("value"), unit),
        "max": value_text(entry.get("max"), unit),
        "spread": _percent(entry.get("spread"), 1),
        "GPUs": str(entry.get("gpus", "-")),
        "slow": str(len(entry.get("slow", []))) if entry.get("slow") else "-",
    }


def _percent(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def theory_table(gpus: Sequence[tuple[Gpu, Mapping[str, float]]]) -> str:
    """Data-sheet peaks of GPUs: Tera-operations per second, L1 in TB/s, memory in GB/s; sources below."""
    rows = [_theory_row(gpu, peaks) for gpu, peaks in gpus]
    notes = [
        "",
        "TFLOP/s and TOP/s, dense; L1 (shared memory is the same) in TB/s.",
        "Memory in GB/s: as the vendor prints it, and what bus width and clock give.",
        "T-: tensor cores, FP32 accumulators (T-FP16/16: FP16 accumulators). Peaks: units per SM x SMs x the vendor's clock.",
        "",
        "Sources:",
        *(f"  {gpu.id}: {gpu.source}" for gpu, _ in gpus),
    ]
    return "\n".join([*listing(rows), *notes])


def _theory_row(gpu: Gpu, peaks: Mapping[str, float]) -> dict[str, str]:
    mhz = f"{gpu.core_clock / 1e6:.0f}"
    if gpu.tensor_clock != gpu.core_clock:
        mhz += f"/{gpu.tensor_clock / 1e6:.0f}"
    row = {"GPU": gpu.id, "cc": capability_text(gpu.compute_capability), "SMs": str(gpu.sm_count), "MHz": mhz}
    # A tensor type's column has the figure of its fastest instructions.
    kinds = [(kind.id, *kind.id.split(".")) for kind in data_sheet()]
    shown = {name: head.upper() for name, head, *rest in kinds if rest == ["fma"]}
    tensor = [rest[0] for _, head, *rest in kinds if head == "tensor" and rest[1] == "mma"]
    shown |= {f"tensor.{of}": "T-" + of.upper().replace("_ACC", "/") for of in tensor}
    for name, label in {**shown, "l1.read": "L1"}.items():
        value = best(peaks, name)
        row[label] = "-" if value is None else f"{value / 1e12:.4g}"
    row["memory"] = f"{gpu.dram / 1e9:.0f}"
    row["bus x clock"] = f"{peaks['dram.read'] / 1e9:.0f}" if "dram.read" in peaks else "-"
    return row


def best(peaks: Mapping[str, float], name: str) -> float | None:
    """The peak of a ceiling, or the highest of its instruction families."""
    return max((value for key, value in peaks.items() if key == name or key.startswith(name + ".")), default=None)
