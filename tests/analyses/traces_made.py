"""Traces of runs that never were, as PyTorch's profiler writes them."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

TRACES = Path(os.environ.get("NCU_ROOFLINE_TRACES", Path(__file__).parents[3] / "shared" / "data" / "traces"))
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
BF16 = "c10::BFloat16"
Events = list[dict[str, Any]]


def real(name: str) -> Path:
    """A real trace."""
    path = TRACES / name
    if not path.exists():
        pytest.skip("no collection of real traces (set NCU_ROOFLINE_TRACES)")
    return path


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args}


def call(name: str, at: float, kernel: float, shapes: Any = None, types: Any = None, values: Any = None, **more: Any) -> Events:
    """An operator at a time (us) that launches a kernel of some us, which runs right after it; ``more`` about the kernel."""
    asked = {"Input Dims": shapes, "Input type": types, "Concrete Inputs": values, "Input Strides": more.pop("strides", None)}
    launched, called = more.pop("launched", "cudaLaunchKernel"), more.pop("called", f"kernel_of_{name}")
    start, number = more.pop("start", at + 20), int(at)
    size = {"correlation": number, "device": 0, "grid": [4, 1, 1], "block": [64, 1, 1]}
    return [
        event("cpu_op", name, at, 10, **{key: value for key, value in asked.items() if value is not None}),
        event("cuda_runtime", launched, at + 2, 3, correlation=number),
        event("kernel", called, start, kernel, tid=70, **{**size, **more}),
    ]


def document(*events: Events, gpus: Any = (H100,)) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": list(gpus), "traceEvents": [one for group in events for one in group]}


def write(path: Path, content: Any) -> Path:
    """A trace in a file, compressed where its name says so."""
    data = json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


MM = call("aten::mm", 1000, 100, [[4096, 4096], [4096, 4096]], [BF16, BF16])
SOFTMAX = call("aten::_softmax", 2000, 400, [[64, 1024, 1024], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "False"])
LATE = [event("kernel", "graph_kernel", 3000, 50, tid=70, correlation=999, device=0)]
COPY = call("aten::copy_", 4000, 20, [[4096], [4096], []], [BF16, BF16, "Scalar"])  # bytes, and no operations
HOSTILE = call("<script>alert(1)</script> $x^$ {unit}", 5000, 30)
NAMED = {"MM": MM, "SOFTMAX": SOFTMAX, "LATE": LATE, "COPY": COPY, "HOSTILE": HOSTILE}


def given(calls: Any = (), ranges: Any = (), use: Any = (), gpus: Any = (H100,)) -> dict[str, Any]:
    """A trace in the words of TOML.

    ``calls``: tables with op, at, us, and of `call` (types as words, "bf16" short); ``use``: names of those above;
    ``ranges``: kind, name, from, length[, thread][, args].
    """
    events = [NAMED[name] for name in use]
    events += [[event(*one[:-1], **one[-1]) if isinstance(one[-1], dict) else event(*one)] for one in ranges]
    for one in calls:
        rest = {**one}
        types = [{"bf16": BF16, "-": ""}.get(word, word) for word in rest.pop("types", "").split()] or None
        events.append(call(rest.pop("op"), rest.pop("at"), rest.pop("us"), types=types, **rest))
    return document(*events, gpus=gpus)
