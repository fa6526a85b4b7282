"""Ceilings as text, for people: tables of a file, of two files, of data sheets, and lines while they are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncu_roofline.base.records import cleaned, inside
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.bench.files import over
from ncu_roofline.bench.theory import data_sheet
from ncu_roofline.chips import Gpu
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.rendering.table import listing

_LIVE = (24, 14, 9, 7, 6, 5, 29)  # columns of a line, with spaces between them 100
_UNITS = {"B/s": "byte/s", "FLOP/s": "flop/s", "OP/s": "op/s", "s": "second"}
_NOT_HERE = ("unsupported", "emulated", "not measured")
_PER_CYCLE = "operations or bytes per SM (or core) and its cycle; of device memory bytes per memory cycle"


def value_text(value: float | None, unit: str, digits: int = 4) -> str:
    """A value with its unit; "-" for none."""
    return "-" if value is None else format_value(value, _UNITS.get(unit, "ratio"), digits)


def device_name(content: Mapping[str, Any]) -> str:
    """What a ceilings file calls its machine, for people."""
    return shorten(clean(str(content["device"].get("name") or "")), 60) or "a machine without a name"


def _as(form: str, value: float | None) -> str:
    return "-" if value is None else f"{value:{form}}"


def measured(content: Mapping[str, Any]) -> str:
    """The table of a ceilings file, as measured or merged, with its head and warnings, without what a terminal would obey."""
    content = cleaned(content)
    row = _merged_row if content["device"].get("gpus") else _row
    entries = content["ceilings"]
    slow = [
        f"{gpu['host']} GPU {gpu['index']} ({gpu['uuid']}): {entry['id']} {gpu['behind']:.1%} behind the median"
        for entry in entries
        for gpu in entry.get("slow", [])
    ]
    said = [entry for entry in entries if entry["reasons"] and entry.get("verdict") not in _NOT_HERE]
    notes = [f"{entry['id']}: {'; '.join(entry['reasons'])}" for entry in said]
    lines = [_head(content), "", *listing([row(entry) for entry in entries])]
    for title, texts in (("Slow GPUs", slow), ("Reasons", notes), ("Warnings", content.get("warnings") or [])):
        if texts:
            lines += ["", f"{title}:", *(f"  {text}" for text in texts)]
    return "\n".join(lines)


def _head(content: Mapping[str, Any]) -> str:
    device, host = content["device"], content.get("host") or {}
    gpus, driver = device.get("gpus"), device.get("driver")
    if gpus:
        return f"{device['name']}: {len(gpus)} GPUs on {len({gpu['host'] for gpu in gpus})} hosts"
    known = device.get("cc") or f"{device.get('threads')} threads on {device.get('cores')} cores"
    parts = [f"{device['name']} ({known})", device.get("uuid"), host.get("name"), host.get("time_utc")]
    return ", ".join(str(part) for part in [*parts, f"driver {driver}" if driver else ""] if part)


def _row(entry: Mapping[str, Any]) -> dict[str, str]:
    value, (low, high) = entry["value"], entry.get("ci95") or (None, None)
    return {
        "ceiling": entry["id"],
        "value": value_text(value, entry["unit"]),
        "+-": _as(".2%", (high - low) / 2 / value if value and low is not None and high is not None else None),
        "sessions": _as(".2%", entry.get("between_session_cv") if value is not None else None),
        "of theory": _as(".1%", inside(entry, "theory", "fraction")),
        "vendor clock": _as(".1%", inside(entry, "theory", "fraction_vendor_clock")),
        "MHz": _as(".0f", inside(entry, "clock", "sm_mhz_mean")),
        "W": _as(".0f", entry.get("power_w")),
        "C": _as(".0f", inside(entry, "temp_c", "gpu")),
        "variant": str((entry.get("variant") or {}).get("kernel", "-")),
        "verdict": str(entry.get("verdict", "")),
    }


def _merged_row(entry: Mapping[str, Any]) -> dict[str, str]:
    values = {"min": "min", "median": "value", "max": "max"}
    return {
        "ceiling": entry["id"],
        **{label: value_text(entry.get(key), entry["unit"]) for label, key in values.items()},
        "spread": _as(".1%", entry.get("spread")),
        "GPUs": str(entry.get("gpus", "-")),
        "slow": str(len(entry.get("slow", [])) or "-"),
    }


def live_header() -> str:
    """What stands over the lines of `live_line`."""
    return _live("ceiling", "value", "of theory", "spread", "MHz", "W", "verdict")


def live_line(entry: Mapping[str, Any]) -> str:
    """A finished ceiling (an entry of a ceilings file) on one line of 100 columns, without anything a terminal would obey.

    ``of theory`` is at the measured clock, ``spread`` the relative standard deviation of the trials.
    """
    row = _row(entry)
    spread = _as(".2%", entry.get("cv") if entry["value"] is not None else None)
    verdict = str(entry.get("verdict") or "")  # its reasons stand below the table at the end
    return _live(row["ceiling"], row["value"], row["of theory"], spread, row["MHz"], row["W"], verdict)


def _live(*cells: str) -> str:
    first, *numbers, last = (shorten(clean(cell), width) for cell, width in zip(cells, _LIVE, strict=True))
    padded = (f"{text:>{width}}" for text, width in zip(numbers, _LIVE[1:-1], strict=True))
    return " ".join([f"{first:<{_LIVE[0]}}", *padded, last]).rstrip()


def compared(found: Mapping[str, Any], threshold: float | None = None) -> str:
    """The table of a comparison of two files, with what differs and what is over the threshold."""
    rows = [_compared_row(row) for row in found["ceilings"]]
    lines = [f"A: {found['a']}", f"B: {found['b']}", "", *listing(rows)] if rows else ["no ceiling has a value"]
    lines += ["", f"spread: that of A and B together; cycle: {_PER_CYCLE}."]
    if found["differences"]:
        lines += ["", "Conditions:", *(f"  {text}" for text in found["differences"])]
    if threshold is not None:
        slower = [f"  {row['ceiling']}: {row['slowdown']:.1%}" for row in over(found, threshold)]
        limit = f"by more than {threshold * 100:g} %"
        lines += ["", f"Slower {limit}:", *slower] if slower else ["", f"Nothing is slower {limit}."]
    return "\n".join(lines)


def _compared_row(row: Mapping[str, Any]) -> dict[str, str]:
    def pair(name: str, factor: float, form: str) -> str:
        """Both values of something, "-" where neither side has it."""
        values = [side and side[name] for side in (row["a"], row["b"])]
        texts = [_as(form, None if value is None else value * factor) for value in values]
        return "-" if texts == ["-", "-"] else " / ".join(texts)

    energies = pair("energy_per_unit", 1e12, ".3g")
    values = {label: value_text(side and side["value"], row["unit"]) for label, side in (("A", row["a"]), ("B", row["b"]))}
    return {
        "ceiling": row["ceiling"],
        **values,
        "B/A": _as(".3f", row["ratio"]),
        "spread": _as(".2%", row["spread"]),
        "outcome": row["outcome"],
        "MHz": pair("clock", 1e-6, ".0f"),
        "per cycle": pair("per_cycle", 1.0, ".4g"),
        "W": pair("power", 1.0, ".0f"),
        "energy": f"{energies} pJ/{row['unit'].removesuffix('/s')}" if energies != "-" else "-",
    }


def theory_table(gpus: Sequence[tuple[Gpu, Mapping[str, float]]]) -> str:
    """Data-sheet peaks of GPUs: Tera-operations per second, L1 in TB/s, memory in GB/s; sources below."""
    notes = [
        "",
        "TFLOP/s and TOP/s, dense; L1 (shared memory is the same) in TB/s.",
        "Memory in GB/s: as the vendor prints it, and what bus width and clock give.",
        "T-: tensor cores, FP32 accumulators (T-FP16/16: FP16 accumulators). Peaks: units per SM x SMs x the vendor's clock.",
        "",
        "Sources:",
        *(f"  {gpu.id}: {gpu.source}" for gpu, _ in gpus),
    ]
    return "\n".join([*listing([_theory_row(gpu, peaks) for gpu, peaks in gpus]), *notes])


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
