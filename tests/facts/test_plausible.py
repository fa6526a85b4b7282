"""The data file of what metrics can be: what it says of names, and which mistakes it refuses."""

from __future__ import annotations

import pytest

from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.tables import load_limits
from ncu_roofline.model.extract import spellings


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("gpu__time_duration.sum", "time"),
        ("sm__cycles_elapsed.avg.per_second", "clock"),
        ("dram__cycles_elapsed.avg.per_second", "memory-clock"),
        ("sm__cycles_elapsed.max", "count"),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", "count"),
        ("sm__inst_executed.sum", "count"),
        ("sm__ops_path_tensor_src_fp16.sum.per_second", "count"),
        ("lts__t_sectors_srcunit_tex_lookup_miss.sum", "difference"),
        ("lts__t_sectors.sum", "count"),
        ("dram__bytes.sum", "count"),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "count"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "percentage"),
    ],
)
def test_metrics_have_their_bounds(name: str, bound: str) -> None:
    found = load_limits().bound(name)
    assert found is not None
    assert found.id == bound


@pytest.mark.parametrize(
    "name",
    [
        "device__attribute_display_name",
        "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed",  # text
        "derived__mine_bytes.sum",
        "someone__bytes.sum",
        "my_metric",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "lts__t_bytes" + "x" * 1000 + ".sum",
    ],
)
def test_others_stay_as_they_are(name: str) -> None:
    assert load_limits().bound(name) is None


def test_everything_that_the_model_reads_has_a_bound() -> None:
    spec = load_spec()
    bindings = [one for owner in (*spec.precisions, *spec.levels) for one in owner.bindings]
    names = spellings([one.counters for one in bindings], [one.peak for one in bindings if one.peak]) | {
        *load_units().metrics()
    }
    assert [name for name in names if load_limits().bound(name) is None] == []
