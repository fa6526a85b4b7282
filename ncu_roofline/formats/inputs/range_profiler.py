"""Counters per kernel in a trace of the PyTorch profiler: what CUPTI's range profiler counted, by the metric names of ncu.

Kineto writes them instead of kernels with times, in the order of launches; when and for how long the kernels ran it makes up.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from typing import Any

from ncu_roofline.base.texts import clean, plural
from ncu_roofline.formats.inputs.ncu_csv import function_of
from ncu_roofline.formats.inputs.tables import MAJOR, MINOR, MetricTable
from ncu_roofline.formats.inputs.text import damaged
from ncu_roofline.formats.report import Launch, Value
from ncu_roofline.formats.report.reader import DEVICE_PREFIX
from ncu_roofline.formats.traces import RANGE, events_of

_METRIC = re.compile(r"[a-z]\w*__\w+(?:\.\w+)*")
_AROUND = ("cpu_op", "user_annotation")
# Kineto learns names from the calls of cudaLaunchKernel alone, and counts kernels however they are launched.
_NAMED, _LAUNCH, _GRAPH = "cudaLaunchKernel", re.compile(r"cu(?:da)?Launch(?:Cooperative)?Kernel\w*"), "GraphLaunch"
_NAMELESS = re.compile(r"__missing__|\d*")  # a kernel that CUPTI has no name of, or one more than there are names
_WHOLE = "__profile__"  # all kernels of a run as one range
_NAME, _SMS = f"{DEVICE_PREFIX}display_name", f"{DEVICE_PREFIX}multiprocessor_count"
_TIME, _BYTES = "gpu__time_duration.sum", "dram__bytes.sum"


def read(path: str | os.PathLike[str]) -> MetricTable:
    """All its kernels, in the order of launches, with the operators around them as ranges where launches and kernels are as
    many.  Raises RooflineError.
    """
    import msgspec

    events, gpus, _, _ = events_of(os.fspath(path))
    ranges = sorted((one for one in events if one.cat == RANGE and one.ph == "X"), key=lambda one: one.ts or 0.0)
    if not ranges:
        raise damaged(path, "it has no counters of CUPTI's range profiler")
    columns: dict[str, list[Value | None]] = defaultdict(lambda: [None] * len(ranges))
    calls, devices, warnings, launches = _calls(events), {str(one.pid) for one in ranges}, [], []
    known = calls is not None and len(calls) == len(ranges) and len(devices) == 1
    named = calls is not None and all(call == _NAMED for call, _ in calls) and not any(one.name.isdigit() for one in ranges)
    for row, one in enumerate(ranges):
        around, name = calls[row][1] if known and calls else (), clean(one.name, None)
        if name == _WHOLE:
            launches.append(Launch("range", "range", "range"))
        elif not named or _NAMELESS.fullmatch(name):  # a name of its own: two of them need not be one kernel
            name = f"unnamed kernel {row}{f' of {around[-1]}' if around else ''}"
            launches.append(Launch("kernel", name, name, nvtx=around))
        else:
            launches.append(Launch("kernel", function_of(name), name, nvtx=around))
        try:
            counted = msgspec.json.decode(one.args, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise damaged(path, f"the counters of kernel {row} can't be read") from None
        for metric, number in counted.items():
            if _METRIC.fullmatch(metric) and type(number) in (int, float) and math.isfinite(number):
                columns[metric][row] = float(number)
        if gpu := gpus.get(one.pid) if isinstance(one.pid, int) else None:
            major, minor = gpu.compute_capability if any(gpu.compute_capability) else (None, None)
            said = {_NAME: gpu.name, _SMS: gpu.sm_count or None, MAJOR: major, MINOR: minor}
            for key, value in said.items():
                columns[key][row] = value
    if not known and launches[0].kind == "kernel":
        of = "several GPUs" if len(devices) > 1 else "CUDA graphs" if calls is None else plural(len(calls), "launch")
        warnings.append(f"{path} has {len(ranges)} counted kernels and {of}: which operator launched which is unknown.")
    if not named and launches[0].kind == "kernel":
        warnings.append(f"{path} has kernels whose names were not recorded: all are numbered.")
    lacks, lacking = "", [name for name in (_TIME, _BYTES) if name not in columns]
    if lacking:
        add = f"profiler_metrics=[..., {', '.join(map(repr, lacking))}], profiler_measure_per_kernel=True"
        what = " and ".join({_TIME: "times", _BYTES: "bytes of DRAM"}[name] for name in lacking)
        config = f"experimental_config=torch._C._profiler._ExperimentalConfig({add})"
        lacks = f"{path} has no {what}, without which there are no dots; profile with {config}, or with ncu."
    return MetricTable(str(path), "profiler-counters", launches, dict(columns), warnings=tuple(warnings), lacks=lacks)


def _calls(events: list[Any]) -> list[tuple[str, tuple[str, ...]]] | None:
    """Each call that launches a kernel, in order of time, with the annotations and operators around it, outermost first.

    None where graphs were launched: nobody knows how many kernels they have.
    """
    threads, found = defaultdict[str, list[Any]](list), list[tuple[float, str, tuple[str, ...]]]()
    for one in events:
        if one.ph == "X" and one.ts is not None and (one.cat in _AROUND or _LAUNCH.fullmatch(one.name)):
            threads[f"{one.pid} {one.tid}"].append(one)
        elif one.ph == "X" and _GRAPH in one.name:
            return None
    for mine in threads.values():
        stack: list[Any] = []
        for one in sorted(mine, key=lambda one: (one.ts, -(one.dur or 0.0))):
            while stack and stack[-1].ts + (stack[-1].dur or 0.0) <= one.ts:
                stack.pop()
            if one.cat in _AROUND:
                stack.append(one)
            else:
                found.append((one.ts, one.name, tuple(clean(outer.name) for outer in stack)))
    return [(name, around) for _, name, around in sorted(found, key=lambda call: call[0])]
