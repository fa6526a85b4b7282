"""Traces of the PyTorch profiler with counters: a real one, and one of times."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.traces import has_counters, read_trace
from ncu_roofline.model import roofline
from tests.analyses.test_run import H100, MM, TRACES, document, event
from tests.cli.command import Command

COUNTER = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def test_only_counters_without_times_are_no_run(tmp_path: Path, run: Command) -> None:
    path, times = tmp_path / "counters.pt.trace.json.gz", tmp_path / "times.json"
    ranges = [event("cuda_profiler_range", "gemm", 0, 1000, tid=0, **{COUNTER.format("ffma"): 1e6})]
    path.write_bytes(gzip.compress(json.dumps(document(ranges, gpus=[H100])).encode()))
    times.write_text(json.dumps(document(MM)))
    assert [has_counters(path), has_counters(times)] == [True, False]
    with pytest.raises(RooflineError, match="in the place of a report"):
        read_trace(path)
    assert "1 kernel: the run time is not known" in run("show", str(path)).out
    assert "aten::mm" in run("show", str(times)).out
    assert run("show", str(path), str(times)).code == 2


def test_a_real_trace(run: Command) -> None:
    path = TRACES / "alexnet-a100-counters.pt.trace.json.gz"
    if not path.exists():
        pytest.skip("real traces are not here")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    mine = [one["args"] for one in events if one.get("cat") == "cuda_profiler_range"]
    table = open_input(path)
    assert isinstance(table, MetricTable)
    assert len(table) == len(mine) == 77
    found = roofline(table)
    for kind, precision, lanes in (("f", "fp32", 1), ("h", "fp16", 2), ("d", "fp64", 1)):
        add, mul, fma = (sum(one[COUNTER.format(kind + of)] for one in mine) for of in ("add", "mul", "fma"))
        assert found.work[precision].sum() == pytest.approx(lanes * (add + mul + 2 * fma), rel=1e-12)
    linear = found.kernels.query("kernel.str.contains('sgemm_32x32') and nvtx.str.contains('aten::addmm')")
    assert len(linear) == 6
    assert table.rows[1].nvtx[-1] == "aten::cudnn_convolution"
    assert "16 kernels, 77 launches" in run("show", str(path)).out
