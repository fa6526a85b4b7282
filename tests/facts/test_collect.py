"""Lists for ``ncu --metrics``."""

from __future__ import annotations

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.plugin.check.chips import libraries, passes

CORE = (("fp64", "fp32", "fp16"), ("l1", "shared", "l2", "dram"))


def test_core_list_of_an_a100() -> None:
    patched = [f"smsp__sass_thread_inst_executed_op_{k}{op}_pred_on.sum" for k in "dfh" for op in ("add", "mul", "fma")]
    assert load_spec().collect((8, 0), *CORE) == (
        "gpu__time_duration.sum",
        *(f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "l1tex", "lts", "dram")),
        *patched,
        "l1tex__t_bytes.sum",
        "smsp__sass_data_bytes_mem_shared.sum",
        "lts__t_sectors_srcunit_tex.sum",
        "dram__bytes.sum",
        *(f"sm__sass_thread_inst_executed_op_{k}fma_pred_on.sum.peak_sustained" for k in "dfh"),
        "lts__t_sectors_srcunit_tex.sum.peak_sustained",
        "dram__bytes.sum.peak_sustained",
    )


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)])
def test_no_dram_clock_where_it_costs_a_pass(capability: tuple[int, int]) -> None:
    names = load_spec().collect(capability, *CORE)
    assert "dram__bytes.sum" in names
    assert not any(name.startswith("dram__cycles") for name in names)


def test_lacking_levels_only_on_request() -> None:
    spec = load_spec()
    assert not any("fill" in name for name in spec.collect((8, 7), *CORE))
    assert "lts__d_sectors_fill_sysmem.sum" in spec.collect((8, 7), *CORE, lacking=True)


def test_what_the_chip_does_not_have_is_left_out() -> None:
    spec = load_spec()
    assert spec.collect((7, 0), ["tensor.fp8"], ["l2"]) == spec.collect((7, 0), [], ["l2"])
    with pytest.raises(KeyError):
        spec.collect((7, 0), ["fp99"], [])


def test_unknown_chip_gets_what_open_ranges_say() -> None:
    assert "l1tex__t_bytes.sum" in load_spec().collect((20, 0), *CORE)


@pytest.mark.parametrize("architecture", load_spec().architectures, ids=lambda a: a.chips[0])
def test_core_list_costs_two_passes(architecture) -> None:  # type: ignore[no-untyped-def]
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    names = load_spec().collect(architecture.compute_capability, *CORE)
    counted = [found for chip in architecture.chips if (found := passes(chip, names))]
    if not counted:
        pytest.skip(f"no libnvperf_host here schedules {architecture.name}")
    assert {(one.hardware, one.sass) for one in counted} == {(1, 1)}
