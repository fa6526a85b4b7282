"""Formulas of operators against PyTorch's own counter, on what its profiler records of the same calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses.run.need import MATRIX, NoFormulaError, load, need

torch: Any = pytest.importorskip("torch")
F = torch.nn.functional


def _of(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


CASES: dict[str, Callable[[], Any]] = {
    "mm": lambda: _of(6, 5) @ _of(5, 7),
    "mm of BF16": lambda: _of(6, 5).bfloat16() @ _of(5, 7).bfloat16(),
    "bmm": lambda: torch.bmm(_of(3, 6, 5), _of(3, 5, 7)),
    "baddbmm": lambda: torch.baddbmm(_of(3, 6, 7), _of(3, 6, 5), _of(3, 5, 7)),
    "linear": lambda: F.linear(_of(2, 4, 5), _of(7, 5), _of(7)),
    "conv1d": lambda: F.conv1d(_of(2, 4, 20), _of(6, 4, 3), _of(6), 2, 1),
    "conv2d": lambda: F.conv2d(_of(2, 4, 20, 21), _of(6, 4, 3, 5), _of(6), (2, 1), (1, 2)),
    "conv2d, dilated": lambda: F.conv2d(_of(2, 4, 20, 21), _of(8, 4, 3, 3), None, 1, 1, 2),
    "conv2d, weights alone need gradients": lambda: F.conv2d(torch.randn(2, 4, 20, 21), _of(8, 4, 3, 3)),
    "conv3d": lambda: F.conv3d(_of(1, 2, 8, 9, 10), _of(4, 2, 3, 3, 3)),
    "conv_transpose2d": lambda: F.conv_transpose2d(_of(2, 4, 10, 11), _of(4, 6, 3, 3), _of(6), 2, 1, 1),
    "MultiheadAttention": lambda: torch.nn.MultiheadAttention(16, 2)(_of(5, 2, 16), _of(5, 2, 16), _of(5, 2, 16))[0],
}


def needed(path: Path) -> Iterator[float]:
    """Operations of each matrix product and convolution that a trace has and that calls no other."""
    formulas = load()
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "cpu_op"]
    for event in events:
        recorded = (event["args"].get(name) for name in ("Input Dims", "Input type", "Concrete Inputs"))
        same, end = [one for one in events if one is not event and one["tid"] == event["tid"]], event["ts"] + event["dur"]
        inner = [formulas.get(one["name"]) for one in same if event["ts"] <= one["ts"] < end]
        try:
            found = need(formulas, event["name"], *recorded, ())
        except NoFormulaError:
            continue
        if found.kind == MATRIX and not any(one and one.kind == MATRIX for one in inner):
            yield found.flops


@pytest.mark.parametrize("case", CASES)
def test_formulas_agree_with_pytorch_s_own_counter(case: str, tmp_path: Path) -> None:
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        CASES[case]().sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        CASES[case]().sum().backward()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    assert sum(needed(tmp_path / "trace.json")) == counter.get_total_flops() > 0
