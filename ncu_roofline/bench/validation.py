"""Whether a run on hardware proves the benchmark: ceilings against what they must reach, profiles against promise and roof."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_roofline.base.forms import inside, known
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.settings import LIMITS, spread_of
from ncu_roofline.bench.theory import measured_clock, share_of, theory, units_of_device
from ncu_roofline.chips import load_spec

OK, FAIL, SKIP = "ok", "FAIL", "skip"
CEILINGS, PROFILES = "ceilings", "profiles"

LEAST = {
    "fp64.fma": 0.97,
    "fp64.nofma": 0.97,
    "fp32.fma": 0.97,
    "fp16.fma": 0.95,
    "bf16.fma": 0.95,
    "int32.mad": 0.90,
    "tensor.fp64.mma": 0.95,
    "tensor.fp16.mma": 0.90,
    "tensor.fp16.wgmma": 0.90,
    "tensor.bf16.wgmma": 0.90,
    "tensor.tf32.wgmma": 0.90,
    "tensor.fp8.wgmma": 0.90,
    "tensor.int8.wgmma": 0.90,
    "dram.read": 0.90,
    "dram.write": 0.85,
    "dram.copy": 0.85,
    "dram.triad": 0.85,
    "l2.read": 0.50,
    "l1.read": 0.95,
    "smem.read": 0.95,
}
"""Least share of the theory at the measured clock, for ceilings that must stand; not asked where the theory is uncertain."""
SESSIONS = 2


@dataclass(frozen=True)
class Target:
    """What a profiled ceiling is held to: the ``family`` whose section counts it, the memory ``level`` ("" for arithmetic).

    ``counters``: how far the count may be from the promise; ``opcodes``: it is only counted opcode by opcode.
    """

    family: str
    level: str = ""
    counters: float = 0.005
    opcodes: bool = False


PROFILED = {
    "fp64.fma": Target("fp64"),
    "fp64.nofma": Target("fp64"),
    "fp32.fma": Target("fp32"),
    "fp16.fma": Target("fp16"),
    "bf16.fma": Target("fp16", opcodes=True),
    "int32.mad": Target("fp32", opcodes=True),
    "tensor.fp16.wgmma": Target("tensor"),
    "tensor.bf16.wgmma": Target("tensor"),
    "tensor.tf32.wgmma": Target("tensor"),
    "tensor.fp8.wgmma": Target("tensor"),
    "tensor.int8.wgmma": Target("tensor"),
    "tensor.fp16.mma": Target("tensor"),
    "tensor.fp64.mma": Target("tensor"),
    "dram.read": Target("fp32", "dram", 0.02),
    "dram.copy": Target("fp32", "dram", 0.02),
    "dram.triad": Target("fp64", "dram", 0.02),
    "l2.read": Target("fp32", "l2", 0.01),
    "l1.read": Target("fp32", "l1", 0.01),
    "smem.read": Target("fp32", "shared", 0.01),
}
ON_ROOF = 0.03
"""How far a dot may be from its measured roof."""
OPCODES = ("sass__thread_inst_executed_true_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode_with_modifier_all")
"""Metrics that count opcode by opcode: threads with a true predicate, warps."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; ``state`` is ok, FAIL or skip, the last two with a ``reason``."""

    step: str
    name: str
    state: str
    value: float | None = None
    target: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Listed:
    """A row of the runner's list that applies to the GPU at hand; ``reason`` says why it is no ceiling there, "" if it is."""

    ceiling: str
    variant: str
    kernel: str
    reason: str


def rows_here(text: str, capability: str) -> list[Listed]:
    """The rows of what `list` printed for a compute capability ("9.0").  ValueError for what is no row."""
    rows = [
        row for row in map(json.loads, text.splitlines()) if not row.get("capabilities") or capability in row["capabilities"]
    ]
    return [Listed(row["ceiling"], row["variant"], str(row.get("kernel", "")), str(row.get("reason") or "")) for row in rows]


def absent(ceiling: str, listed: Sequence[Listed], device: Device) -> Check | None:
    """The check on a ceiling that the runner has no kernel for on this GPU: a skip where that is right; None if it has one."""
    rows = [row for row in listed if row.ceiling == ceiling]
    if any(not row.reason for row in rows):
        return None
    if rows:
        return Check(CEILINGS, ceiling, SKIP, reason=f"the runner lists it as {rows[0].reason} on this GPU")
    if theory(_kind(ceiling), units_of_device(device)) is None:
        reason = f"no kernel and no known peak on compute capability {device.capability_text}"
        return Check(CEILINGS, ceiling, SKIP, reason=reason)
    return Check(CEILINGS, ceiling, FAIL, reason="missing: the runner lists no kernel of it, and this GPU has a peak for it")


def judge_ceilings(content: Mapping[str, Any], device: Device, listed: Sequence[Listed], quick: bool) -> Iterator[Check]:
    """All checks on a ceilings file (its JSON) of a GPU."""
    if inside(content, "device", "uuid") != device.uuid:
        yield Check(
            CEILINGS, "the GPU of the file", FAIL, reason=f"it is {inside(content, 'device', 'uuid')}, not {device.uuid}"
        )
    entries = {entry["id"]: entry for entry in content["ceilings"]}
    for ceiling, least in LEAST.items():
        without = absent(ceiling, listed, device)
        if without is not None:
            yield without
        elif quick and "quick run" in _reasons(entries.get(ceiling, {})):
            yield Check(CEILINGS, ceiling, SKIP, reason="left out of a quick run")
        else:
            yield from _ceiling(ceiling, entries.get(ceiling), least, device, quick)
    others = [(name, entry) for name, entry in entries.items() if name not in LEAST]
    yield from (_other(name, entry) for name, entry in others if not _not_here(entry))
    for reason in dict.fromkeys(_reasons(entry) for _, entry in others if _not_here(entry)):
        names = [name for name, entry in others if _not_here(entry) and _reasons(entry) == reason]
        yield Check(CEILINGS, ", ".join(names), SKIP, reason=reason)


def _ceiling(name: str, entry: Mapping[str, Any] | None, least: float, device: Device, quick: bool) -> Iterator[Check]:
    if entry is None or known(entry.get("value")) is None:
        why = "no entry" if entry is None else f"no value ({_reasons(entry) or 'no reason given'})"
        yield Check(CEILINGS, name, FAIL, reason=f"missing: the file has {why}")
        return
    share, unknown, wrong = _of_theory(name, entry, least, device)
    wrong += [] if entry.get("accepted") is True else [f"not accepted: {_reasons(entry) or 'no reason given'}"]
    wrong += [] if inside(entry, "verified", "checksum") is True else ["its results were not verified (checksum)"]
    sessions, spread = known(entry.get("sessions")), known(entry.get("between_session_cv_per_cycle"))
    spread = known(entry.get("between_session_cv")) if spread is None else spread
    if not quick and (sessions is None or sessions < SESSIONS):
        wrong.append(f"{sessions or 0:g} sessions, not {SESSIONS} or more")
    limit = spread_of(_kind(name).domain, device.kind).between
    if not quick and (spread is None or spread > limit):
        told = "are not compared" if spread is None else f"differ by {spread:.2%}, more than {limit:.0%}"
        wrong.append(f"its sessions {told}")
    target = f"{least:g} ... {LIMITS.impossible:g} of theory"
    yield Check(CEILINGS, name, FAIL if wrong else OK, share, "" if unknown else target, "; ".join(wrong))
    if unknown:
        yield Check(CEILINGS, f"{name} / theory", SKIP, share, target, unknown)
    if quick:
        yield Check(CEILINGS, f"{name} sessions", SKIP, sessions, f">= {SESSIONS}", "a quick run has one session")


def _of_theory(name: str, entry: Mapping[str, Any], least: float, device: Device) -> tuple[float | None, str, list[str]]:
    """The share of theory at the measured clock, why it says nothing ("" if it does), and what is wrong with it."""
    kind, peak = _kind(name), theory(_kind(name), units_of_device(device))
    if peak is None:
        return None, f"no theory is known of {device.name}", []
    clock = measured_clock(kind, _hertz(entry, "sm_mhz_mean"), _hertz(entry, "mem_mhz"))
    # Without NVML nobody tells the memory clock; theory then stands at its highest, and memory clocks do not move under load.
    if clock is None and kind.domain == "sm":
        return None, "", ["its clock was not measured"]
    highest = device.memory_clock_max if kind.domain == "memory" else device.sm_clock_max
    per_cycle = known(entry.get("per_sm_and_cycle")) if kind.domain == "sm" else None
    share = share_of(peak, entry["value"], clock, per_cycle and per_cycle * device.sm_count) or 0.0
    if highest and clock and clock > highest * LIMITS.impossible:
        return share, "", [f"its clock, {clock / 1e6:.0f} MHz, is above the GPU's highest, {highest / 1e6:.0f} MHz"]
    # Two ways to the same rate: a value that is not what the trials did per cycle comes from nowhere.
    if per_cycle and clock and abs(entry["value"] / (per_cycle * device.sm_count * clock) - 1) > LIMITS.swing:
        return share, "", [f"{entry['value']:.4g} at {clock / 1e6:.0f} MHz is not {per_cycle:.4g} per SM and cycle"]
    if peak.uncertain:
        return share, "its theory is not a published figure", []
    if share > LIMITS.impossible:
        return share, "", [f"{share:.1%} of theory: the work is miscounted or the peak is wrong"]
    return share, "", [] if share >= least else [f"{share:.1%} of theory is too low"]


def _not_here(entry: Mapping[str, Any]) -> bool:
    absent = entry.get("verdict") in ("unsupported", "emulated") or any(
        word in _reasons(entry) for word in ("no kernel", "quick run")
    )
    return absent and entry.get("value") is None


def _other(name: str, entry: Mapping[str, Any]) -> Check:
    value = known(entry.get("value"))
    good = value is not None and entry.get("accepted") is True and inside(entry, "verified", "checksum") is not False
    return Check(CEILINGS, name, OK if good else FAIL, value, "accepted", "" if good else _reasons(entry) or "no reason given")


@dataclass(frozen=True)
class Promise:
    """What the runner says of a launch: kernel, operations or bytes, grid and block size, trips of the hot loop."""

    kernel: str
    work: float
    grid: int
    block: int
    trips: int


def read_promise(text: str, kernel: str) -> Promise:
    """The promise in what a `run` of one trial printed.  ValueError with the reason where there is none."""
    lines = [json.loads(line) for line in text.splitlines()]
    failed = next((line["error"] for line in lines if "error" in line), "")
    if failed:
        raise ValueError(f"the runner says: {failed}")
    trial: dict[str, Any] = next((line for line in lines if "trial" in line), {})
    done: dict[str, Any] = next((line for line in lines if line.get("done")), {})
    if trial.get("checksum_ok") is not True:
        raise ValueError("the runner measured no trial with a right result")
    if not all(known(value) for value in (trial.get("work"), *(done.get(key) for key in ("grid", "block", "trips")))):
        raise ValueError("the runner did not tell work, grid, block and trips")
    return Promise(kernel, float(trial["work"]), int(done["grid"]), int(done["block"]), int(done["trips"]))


@dataclass(frozen=True)
class Counted:
    """What a report says of a launch: operations or bytes, seconds, SM clock in Hz."""

    work: float
    seconds: float
    clock: float


def judge_profile(
    ceiling: str, counted: Counted, promise: Promise, entry: Mapping[str, Any] | None, sms: int
) -> Iterator[Check]:
    """The checks on a profiled launch: its count against the promise, its dot against the measured roof (a ceiling's entry).

    Device memory is compared in bytes per second, all else per cycle of the SM clock, which differs between a launch under
    the profiler and a ceiling under the power cap.  ``sms``: multiprocessors of the GPU.
    """
    target, name = PROFILED[ceiling], f"{ceiling} counters / promise"
    share = counted.work / promise.work
    yield _near(name, share, target.counters, f"counted {counted.work:.6g}, promised {promise.work:.6g}")
    name = f"{ceiling} dot / measured roof"
    value, clock = known((entry or {}).get("value")), _hertz(entry or {}, "sm_mhz_mean")
    if entry is None or value is None or entry.get("accepted") is not True:
        yield Check(PROFILES, name, FAIL, None, f"1 +- {ON_ROOF:g}", "its ceiling does not stand")
        return
    rate = counted.work / counted.seconds
    if target.level == "dram":
        yield _near(name, rate / value, ON_ROOF, f"{rate:.4g} B/s, roof {value:.4g} B/s")
    elif clock is None or not counted.clock > 0:
        yield Check(PROFILES, name, FAIL, None, f"1 +- {ON_ROOF:g}", "the SM clock is unknown")
    else:
        roof = known(entry.get("per_sm_and_cycle"))
        roof = roof * sms if roof else value / clock
        reason = f"{rate / counted.clock:.6g} per cycle, roof {roof:.6g}"
        yield _near(name, rate / counted.clock / roof, ON_ROOF, reason)


def _near(name: str, share: float, tolerance: float, reason: str) -> Check:
    good = abs(share - 1) <= tolerance
    return Check(PROFILES, name, OK if good else FAIL, share, f"1 +- {tolerance:g}", "" if good else reason)


def read_counted(ceiling: str, report: Path, promise: Promise) -> Counted:
    """What a report says of the promised launch.  ValueError with the reason where it holds another, or no count of it."""
    from ncu_roofline.formats.report import read_report
    from ncu_roofline.model import roofline

    target = PROFILED[ceiling]
    with read_report(report) as opened:
        names = sorted({kernel.function_name for kernel in opened.kernels})
        if names != [promise.kernel]:
            raise ValueError(f"the report holds {', '.join(names) or 'no kernel'}, not {promise.kernel}")
        same = [
            index
            for index, kernel in enumerate(opened.kernels)
            if (kernel.launch.grid, kernel.launch.block) == ((promise.grid, 1, 1), (promise.block, 1, 1))
        ]
        if not same:
            raise ValueError(f"the report holds no launch of {promise.grid} blocks of {promise.block} threads")
        result = roofline(opened)
        kernels, row = result.kernel_columns, same[-1]
        work: Any
        precision = ceiling.rpartition(".")[0]
        if target.level:
            work = result.traffic.get(target.level)
        else:
            work = [_multiply_adds(kernel) for kernel in opened.kernels] if precision == "int32" else result.work.get(precision)
            if precision != "int32" and precision not in result.point_columns["precision"].tolist():
                raise ValueError(f"the report has no point of {precision}")
        if work is None:
            raise ValueError(f"the report does not count {target.level or precision}")
        found = Counted(*(float(column[row]) for column in (work, kernels["seconds"], kernels["clock_profiled"])))
    if not (found.work > 0 and found.seconds > 0):
        raise ValueError(f"the report counts {found.work:g} in {found.seconds:g} s")
    return found


def _multiply_adds(kernel: Any) -> float:
    # The counted INT32 operations have the loop's own additions among them; a multiply-add is promised as two.
    return 2.0 * sum(float(value) for opcode, value in kernel.metrics.instances(OPCODES[0]) if opcode == "IMAD")


def _kind(ceiling: str) -> CeilingKind:
    return CeilingKind(ceiling, "B/s" if load_spec().level_of_ceiling(ceiling) else "FLOP/s")


def _reasons(entry: Mapping[str, Any]) -> str:
    return "; ".join(map(str, entry.get("reasons") or []))


def _hertz(entry: Mapping[str, Any], key: str) -> float | None:
    value = known(inside(entry, "clock", key))
    return value * 1e6 if value else None
