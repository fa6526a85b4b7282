"""Ceilings files by themselves and beside each other: merged, compared, and all of it as tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import cleaned, inside, known, number
from ncu_roofline.base.texts import clean, plural, printable, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.bench.catalogue import Theory, clock_of, data_sheet
from ncu_roofline.bench.measuring import LIMITS, NOT_HERE, kept, median, variation
from ncu_roofline.chips import Gpu
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.formats import ceilings as form
from ncu_roofline.formats.ceilings import CPU, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.rendering.table import listing
from ncu_roofline.version import __version__

Entry = Mapping[str, Any]
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
SAME, FASTER, SLOWER = "same within spread", "faster", "slower"
NOT_COMPARABLE, UNKNOWN = "conditions not comparable", "spread unknown"
_UNITS = {"B/s": "byte/s", "FLOP/s": "flop/s", "OP/s": "op/s", "s": "second"}
_LIVE = (24, 14, 9, 9, 6, 5, 27)  # columns of a line, with spaces between them 100
_PER_CYCLE = "operations or bytes per SM (or core) and its cycle; of device memory bytes per memory cycle"


class File(NamedTuple):
    """A ceilings file: all that it says, and its roofs."""

    path: str
    content: Mapping[str, Any]
    ceilings: Ceilings

    @property
    def model(self) -> dict[str, Any]:
        """What GPUs must share to be merged: name, compute capability, number of SMs; CPUs their name and number of cores."""
        device = self.content["device"]
        return {key: device[key] for key in ("kind", "name", "cc", "sm_count", "cores") if key in device}

    @property
    def time(self) -> str:
        """When it was measured, ISO 8601."""
        return inside(self.content, "host", "time_utc") or ""

    @property
    def place(self) -> dict[str, Any]:
        """Which GPU it is; where it has no UUID, the file's name stands for it."""
        host, device = inside(self.content, "host", "name") or "", self.content["device"]
        uuid = device.get("uuid") or self.path
        return {"host": host, "index": device.get("index"), "uuid": uuid, "file": Path(self.path).name}


def open_file(path: str) -> File:
    """A ceilings file, as measured, merged or published.  Raises RooflineError for anything else."""
    content = form.read_document(path)
    return File(path, content, form.ceilings_of(path, content))


def merge(files: Sequence[File]) -> dict[str, Any]:
    """One document of the schema of the others, of GPUs of one model: each value is the median over the GPUs.

    Of two files of one GPU the later one counts.  Raises RooflineError for what is no measurement of one GPU, and for GPUs of
    several models.
    """
    by_gpu: dict[tuple[str, Any], File] = {}  # of each GPU, or CPU with a number of threads, the latest file
    warnings = []
    for file in files:
        if reason := _not_to_merge(file, files[0]):
            next_step = "Give the files that `ncu-roofline bench run` wrote on GPUs of one model."
            raise RooflineError("Cannot merge", file.path, reason, next_step)
        gpu = file.place["uuid"], file.content["device"].get("threads")
        late, early = file, by_gpu.get(gpu)
        if early is not None:
            late, early = (file, early) if file.time >= early.time else (early, file)
            warnings.append(f"{early.path} left out: {late.path} is a later file of the same GPU")
        by_gpu[gpu] = late
    newest = list(by_gpu.values())
    rows: dict[str, list[tuple[File, Entry]]] = {}
    for file in newest:
        for entry in file.content["ceilings"]:
            rows.setdefault(entry["id"], []).append((file, entry))
    ceilings, places = [_merged(entries, len(newest)) for entries in rows.values()], [file.place for file in newest]
    content = {
        "schema": form.SCHEMA,
        "schema_version": form.SCHEMA_VERSION,
        "status": form.MEASURED,
        "tool": {"name": "ncu-roofline", "version": __version__},
        "host": {"name": "", "names": sorted({one["host"] for one in places}), "time_utc": max(file.time for file in newest)},
        "device": {**newest[0].model, "uuid": "", "gpus": places},
        "ceilings": ceilings,
        "warnings": warnings,
    }
    for label, keys in CONDITIONS.items():
        values = {inside(file.content, *keys) for file in newest}
        if len(values - {None}) > 1:
            warnings.append(f"{label} differ: {', '.join(sorted(map(str, values - {None})))}")
        elif len(values) == 1 and values != {None}:
            place: Any = content
            for key in keys[:-1]:
                place = place.setdefault(key, {})
            place[keys[-1]] = values.pop()
    return content


def _not_to_merge(file: File, first: File) -> str:
    if file.ceilings.status == PUBLISHED:
        return "its figures were published, not measured"
    if file.content["device"].get("gpus"):
        return "it is merged already"
    if not file.ceilings.device:
        return "it does not say which GPU it was measured on"
    texts = [", ".join(map(str, one.model.values())) for one in (file, first)]
    return f"{texts[0]} is not {texts[1]} of {first.path}" if file.model != first.model else ""


def _merged(entries: Sequence[tuple[File, Entry]], count: int) -> dict[str, Any]:
    stand = [(file, entry) for file, entry in entries if entry.get("value") is not None and entry.get("accepted") is not False]
    sample = (stand or entries)[0][1]
    head = {key: sample.get(key) for key in ("id", "kind", "level", "unit")}
    if not stand:
        reasons = list(dict.fromkeys(reason for _, entry in entries for reason in entry.get("reasons") or []))
        return {**head, "value": None, "accepted": False, "verdict": sample.get("verdict"), "reasons": reasons, "gpus": 0}
    values = [float(entry["value"]) for _, entry in stand]
    middle, higher = median(values), head["unit"] != "s"
    places = [{**file.place, "value": entry["value"]} for file, entry in stand]
    behind = [1 - place["value"] / middle if higher else place["value"] / middle - 1 for place in places]
    slow = [{**place, "behind": share} for place, share in zip(places, behind, strict=True) if share > LIMITS.slow_gpu]

    def middle_of(*keys: str) -> float | None:
        found = [float(value) for _, entry in stand if (value := inside(entry, *keys))]
        return median(found) if found else None

    entry = {**head, "value": middle, "min": min(values), "median": middle, "max": max(values)}
    entry |= {"spread": (max(values) - min(values)) / middle, "gpus": len(stand), "accepted": True}
    entry["verdict"] = sample.get("verdict", "ok")
    entry["reasons"] = [f"{len(stand)} of {count} GPUs"] if len(stand) < count else []
    entry |= {"clock": {"sm_mhz_mean": middle_of("clock", "sm_mhz_mean")}, "per_sm_and_cycle": middle_of("per_sm_and_cycle")}
    of_theory = {name: middle_of("theory", name) for name in ("at_measured_clock", "fraction")}
    entry["theory"] = {**of_theory, "uncertain": inside(sample, "theory", "uncertain")}
    entry |= {"variant": sample.get("variant"), "slow": sorted(slow, key=lambda gpu: -gpu["behind"])}
    return {**entry, "values": places}


def compare(a: File, b: File) -> dict[str, Any]:
    """What differs between A and B: conditions, and every ceiling that either has a value of, in the order of the files.

    "ratio" is B / A, "spread" that of both, "slowdown" how much worse B is (relative).
    """
    # Of several entries of a ceiling the accepted one counts; those that are no roof are compared as well.
    entries = [
        {entry["id"]: entry for entry in sorted(file.content["ceilings"], key=lambda one: one.get("accepted") is not False)}
        for file in (a, b)
    ]
    ids = dict.fromkeys(entry["id"] for file in (a, b) for entry in file.content["ceilings"])
    devices = [file.ceilings.device for file in (a, b)]
    differences = [] if devices[0] == devices[1] else [f"GPUs differ: A {devices[0]}, B {devices[1]}"]
    for label, keys in CONDITIONS.items():
        values = [inside(file.content, *keys) for file in (a, b)]
        if values[0] != values[1]:
            said = [f"{where} {'unknown' if value is None else value}" for where, value in zip("AB", values, strict=True)]
            differences.append(f"{label} differ: {', '.join(said)}")
    rows = [_row(name, {"A": (a, entries[0].get(name)), "B": (b, entries[1].get(name))}) for name in ids]
    found = [row for row in rows if row["a"] or row["b"]]
    return {"a": _called(a), "b": _called(b), "differences": differences, "ceilings": found}


def _called(file: File) -> str:
    return f"{printable(file.path)}, {about(file.content)}"


def over(comparison: Mapping[str, Any], threshold: float) -> list[dict[str, Any]]:
    """Accepted ceilings that are slower in B by more than ``threshold`` (relative), and by more than their spread."""
    rows = comparison["ceilings"]
    return [row for row in rows if row["outcome"] in (SLOWER, UNKNOWN) and (row["slowdown"] or 0) > threshold]


def _row(name: str, sides: Mapping[str, tuple[File, Entry | None]]) -> dict[str, Any]:
    unit = str(next(entry for _, entry in sides.values() if entry).get("unit"))
    a, b = (_reading(Ceiling(name, unit=unit), *side) for side in sides.values())
    row: dict[str, Any] = {"ceiling": name, "unit": unit, "a": a, "b": b, "ratio": None, "spread": None, "slowdown": None}
    if a is None or b is None:
        where, lacking = ("B", "A") if a is None else ("A", "B")
        entry = sides[lacking][1] or {}
        why = "; ".join(reason for reason in entry.get("reasons") or [entry.get("verdict")] if reason)
        return {**row, "outcome": f"only in {where}{f' ({why})' if why else ''}"}
    ratio = b["value"] / a["value"]
    slowdown = ratio - 1 if unit == "s" else 1 - ratio
    spread = None if a["spread"] is None or b["spread"] is None else math.hypot(a["spread"], b["spread"])
    refused = [where for where, reading in (("A", a), ("B", b)) if not reading["accepted"]]
    if refused:
        outcome = f"not accepted in {' and '.join(refused)}"
    elif PUBLISHED in [file.ceilings.status for file, _ in sides.values()]:
        outcome = NOT_COMPARABLE
    elif spread is None:
        outcome = UNKNOWN
    else:
        outcome = SAME if abs(slowdown) <= spread else SLOWER if slowdown > 0 else FASTER
    return {**row, "ratio": ratio, "spread": spread, "slowdown": slowdown, "outcome": outcome}


def _reading(kind: Ceiling, file: File, entry: Entry | None) -> dict[str, Any] | None:
    """A ceiling of one side in SI units; None for what the file does not say.

    "clock" (Hz) is the one that the ceiling runs at.  "per_cycle": operations or bytes per SM and cycle, of device memory per
    memory cycle.  "energy_per_unit": J per operation or byte.  "spread": relative half width of the 95 % interval, or the
    variation between sessions where that is more; of one session unknown, as the next may differ by more than its trials do;
    of a merged file the variation between its GPUs, outliers left out.
    """
    if entry is None or entry.get("value") is None:
        return None
    value, device = number(entry["value"]), file.content["device"]
    clock, per_cycle, spread = clock_of(kind, entry), None, None
    if clock:
        units = known(device.get("sm_count") or device.get("cores")) if kind.domain == "sm" else 1.0
        per_cycle = known(entry.get("per_sm_and_cycle")) or (value / (clock * units) if units else None)
    if entry.get("values") is not None:
        values = [found for one in entry["values"] if (found := number(one.get("value"))) > 0]
        spread = variation(kept(values)) if len(values) > 1 else None
    elif entry.get("sessions") != 1:
        ends = [number(end) for end in entry.get("ci95") or []]
        spreads = [(ends[1] - ends[0]) / 2 / value if len(ends) == 2 else math.nan, number(entry.get("between_session_cv"))]
        spread = max((one for one in spreads if not math.isnan(one)), default=None)
    reading: dict[str, Any] = {"value": value, "accepted": kind.id in file.ceilings.by_id, "spread": spread, "clock": clock}
    power, energy = known(entry.get("power_w")), form.energy_per_unit(entry)
    return {**reading, "per_cycle": per_cycle, "power": power, "energy_per_unit": energy}


def value_text(value: float | None, unit: str, digits: int = 4) -> str:
    """A value with its unit; "-" for none."""
    return "-" if value is None else format_value(value, _UNITS.get(unit, "ratio"), digits)


def device_name(content: Mapping[str, Any]) -> str:
    """What a ceilings file calls its machine, for people."""
    return shorten(clean(str(content["device"].get("name") or "")), 60) or "a machine without a name"


def about(content: Mapping[str, Any]) -> str:
    """On what, when and how a ceilings file was measured, for people."""
    device, gpus, limit = content["device"], content["device"].get("gpus"), number(content["device"].get("power_limit_w"))
    kinds = ("sm_mhz_min", "sm_mhz_mean")
    clocks = [mhz for entry in content["ceilings"] for kind in kinds if (mhz := number(inside(entry, "clock", kind))) > 0]
    ends = dict.fromkeys(f"{mhz:.0f}" for mhz in (min(clocks), max(clocks))) if clocks else {}
    data = inside(content, "settings", "data")
    facts = (
        device_name(content),
        PUBLISHED if content.get("status") == PUBLISHED else "",
        f"compute capability {device['cc']}" if device.get("cc") else "",
        f"{device['threads']} threads on {device.get('cores')} cores" if device.get("threads") else "",
        f"medians of {plural(len(gpus), 'GPU')} on {plural(len({gpu.get('host') for gpu in gpus}), 'host')}" if gpus else "",
        f"{device['sm_count']} SMs" if device.get("sm_count") else "",
        f"{'core' if device.get('kind') == CPU else 'SM'} clock {' to '.join(ends)} MHz" if ends else "",
        f"power limit {limit:.0f} W" if limit > 0 else "",
        f"driver {device['driver']}" if device.get("driver") else "",
        str(inside(content, "host", "time_utc") or "")[:10],
        f"{data} data" if data else "",
    )
    return ", ".join(shorten(clean(fact), 80) for fact in facts if fact)


def _as(template: str, value: float | None) -> str:
    return "-" if value is None else percent(value) if template == "%" else f"{value:{template}}"


def measured(content: Mapping[str, Any]) -> str:
    """The table of a ceilings file, as measured or merged, with its head and warnings, without what a terminal would obey."""
    content = cleaned(content)
    device, host, entries = content["device"], content.get("host") or {}, content["ceilings"]
    head = ", ".join(filter(None, (about(content), device.get("uuid"), host.get("name"))))
    if device.get("gpus"):
        rows = []
        for entry in entries:
            ends = {label: value_text(entry.get(label), entry["unit"]) for label in ("min", "median", "max")}
            spread, slow = _as("%", entry.get("spread")), str(len(entry.get("slow", [])) or "-")
            rows.append({"ceiling": entry["id"], **ends, "spread": spread, "GPUs": str(entry.get("gpus", "-")), "slow": slow})
    else:
        rows = [_measured_row(entry) for entry in entries]
    behind = [
        f"{gpu['host']} GPU {gpu['index']} ({gpu['uuid']}): {entry['id']} {percent(gpu['behind'])} behind the median"
        for entry in entries
        for gpu in entry.get("slow", [])
    ]
    tried = [entry for entry in entries if entry["reasons"] and entry.get("verdict") not in NOT_HERE]
    said = [(entry["id"], "; ".join(entry["reasons"])) for entry in tried]
    late = dict.fromkeys(text for _, text in said if text.startswith("not measured"))
    notes = [f"{name}: {text}" for name, text in said if text not in late]
    notes += [f"{text}: {', '.join(name for name, own in said if own == text)}" for text in late]
    lines = [head, "", *listing(rows)]
    regimes = {entry["id"]: form.ceiling_of(entry, device).regimes for entry in entries}
    beside = [f"{name}: {text}" for name, text in regimes.items() if text]
    told = {"Slow GPUs": behind, "Power limit": beside, "Reasons": notes, "Warnings": content.get("warnings") or []}
    for title, texts in told.items():
        if texts:
            lines += ["", f"{title}:", *(f"  {text}" for text in texts)]
    return "\n".join(lines)


def _measured_row(entry: Entry) -> dict[str, str]:
    value = entry["value"]
    cvs = [entry.get(name) if value is not None else None for name in ("cv", "between_session_cv")]
    row = {"ceiling": entry["id"], "value": value_text(value, entry["unit"])}
    row |= {"variation": _as("%", cvs[0]), "of sessions": _as("%", cvs[1])}
    row["of theory"] = _as("%", inside(entry, "theory", "fraction"))
    row["vendor clock"] = _as("%", inside(entry, "theory", "fraction_vendor_clock"))
    row |= {"MHz": _as(".0f", inside(entry, "clock", "sm_mhz_mean")), "W": _as(".0f", entry.get("power_w"))}
    row |= {"C": _as(".0f", inside(entry, "temp_c", "gpu")), "variant": str((entry.get("variant") or {}).get("kernel", "-"))}
    return {**row, "verdict": str(entry.get("verdict") or "")}


def live_line(entry: Entry | None) -> str:
    """A finished ceiling (an entry of a ceilings file) on one line of 100 columns, without anything a terminal would obey.

    ``of theory`` is at the measured clock, ``variation`` the relative standard deviation of the trials; reasons stand below the
    table at the end.  None: what stands over such lines.
    """
    names = ("ceiling", "value", "of theory", "variation", "MHz", "W", "verdict")
    row = dict(zip(names, names, strict=True)) if entry is None else _measured_row(entry)
    first, *numbers, last = (shorten(clean(row[name]), width) for name, width in zip(names, _LIVE, strict=True))
    padded = (f"{text:>{width}}" for text, width in zip(numbers, _LIVE[1:-1], strict=True))
    return " ".join([f"{first:<{_LIVE[0]}}", *padded, last]).rstrip()


def compared(found: Mapping[str, Any], threshold: float | None = None) -> str:
    """The table of a comparison of two files, with what differs and what is over the threshold."""

    def pair(row: Mapping[str, Any], name: str, factor: float, template: str) -> str:
        texts = [
            _as(template, side[name] * factor if side and side[name] is not None else None) for side in (row["a"], row["b"])
        ]
        return "-" if texts == ["-", "-"] else " / ".join(texts)

    rows = []
    for row in found["ceilings"]:
        energies, unit = pair(row, "energy_per_unit", 1e12, ".3g"), row["unit"]
        values = {side.upper(): value_text(row[side] and row[side]["value"], unit) for side in ("a", "b")}
        cells = {"ceiling": row["ceiling"], **values, "B/A": _as(".3f", row["ratio"]), "spread": _as("%", row["spread"])}
        cells |= {"outcome": row["outcome"], "MHz": pair(row, "clock", 1e-6, ".0f")}
        cells |= {"per cycle": pair(row, "per_cycle", 1.0, ".4g"), "W": pair(row, "power", 1.0, ".0f")}
        rows.append({**cells, "energy": f"{energies} pJ/{unit.removesuffix('/s')}" if energies != "-" else "-"})
    lines = [f"A: {found['a']}", f"B: {found['b']}", "", *listing(rows)] if rows else ["no ceiling has a value"]
    lines += ["", f"spread: that of A and B together; cycle: {_PER_CYCLE}."]
    if found["differences"]:
        lines += ["", "Conditions:", *(f"  {text}" for text in found["differences"])]
    if threshold is not None:
        slower = [f"  {row['ceiling']}: {percent(row['slowdown'])}" for row in over(found, threshold)]
        limit = f"by more than {threshold * 100:g} %"
        lines += ["", f"Slower {limit}:", *slower] if slower else ["", f"Nothing is slower {limit}."]
    return "\n".join(lines)


def theory_table(gpus: Sequence[tuple[Gpu, Mapping[str, Theory]]]) -> str:
    """Peaks of GPUs: Tera-operations per second, L1 in TB/s, memory in GB/s; sources below."""
    # A tensor type's column has the figure of its fastest instructions.
    kinds = [(kind.id, *kind.id.split(".")) for kind in data_sheet()]
    shown = {name: head.upper() for name, head, *rest in kinds if rest == ["fma"]}
    tensor = [rest[0] for _, head, *rest in kinds if head == "tensor" and rest[1] == "mma"]
    shown |= {f"tensor.{of}": "T-" + of.upper().replace("_ACC", "/") for of in tensor}
    rows = []
    for gpu, peaks in gpus:
        clocks = dict.fromkeys(f"{clock / 1e6:.0f}" for clock in (gpu.core_clock, gpu.tensor_clock))
        row = {"GPU": gpu.id, "cc": capability_text(gpu.compute_capability), "SMs": str(gpu.sm_count), "MHz": "/".join(clocks)}
        for name, label in {**shown, "l1.read": "L1"}.items():
            own = (peak for key, peak in peaks.items() if key == name or key.startswith(name + "."))
            value, uncertain = max(((peak.value, peak.uncertain) for peak in own), default=(None, False))
            row[label] = "~" * uncertain + _as(".4g", value and value / 1e12)
        bus = f"{peaks['dram.read'].value / 1e9:.0f}" if "dram.read" in peaks else "-"
        rows.append({**row, "memory": f"{gpu.dram / 1e9:.0f}", "bus x clock": bus})
    notes = (
        "TFLOP/s and TOP/s, dense (~: on no data sheet; a measurement above disproves it); L1, as shared memory, in TB/s.",
        "Memory in GB/s: as the vendor prints it, and what bus width and clock give.",
        "T-: tensor cores, FP32 accumulators (T-FP16/16: FP16 accumulators). Peaks: units per SM x SMs x the vendor's clock.",
    )
    return "\n".join([*listing(rows), "", *notes, "", "Sources:", *(f"  {gpu.id}: {gpu.source}" for gpu, _ in gpus)])
