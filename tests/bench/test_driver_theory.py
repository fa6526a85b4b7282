"""Peaks against what the vendors publish, and theory of devices at hand."""

from __future__ import annotations

import pytest

from ncu_roofline.base.errors import UsageError
from ncu_roofline.bench.catalogue import CeilingKind, Theory, data_sheet, kinds_of, select, table, theory
from ncu_roofline.bench.runner import Variant
from ncu_roofline.chips import Gpu, load_spec
from ncu_roofline.chips.spec import find_gpu, gpus, named
from tests.bench.fakes import H200, MIG, device, kind

COLUMNS = (
    "fp64.fma",
    "fp32.fma",
    "fp16.fma",
    "bf16.fma",
    "tensor.fp64.mma",
    "tensor.tf32",
    "tensor.fp16",
    "tensor.fp16_acc16",
    "tensor.int8",
    "tensor.fp8",
    "l1.read",
)
# TFLOP/s, TOP/s and TB/s as the vendors print them (white papers, data sheets), dense; "-" is not on the part.
PUBLISHED = {
    "V100 SXM2": "7.83 15.7 31.3 - - - 125 125 - - 15.7",
    "T4": "0.25 8.1 16.3 - - - 65 65 130 - 4.1",
    "A100 SXM 40GB": "9.75 19.5 78 39 19.5 156 312 312 624 - 19.5",
    "A100 SXM 80GB": "9.75 19.5 78 39 19.5 156 312 312 624 - 19.5",
    "RTX 3090": "0.56 35.6 35.6 35.6 - 35.6 71 142 285 - 17.8",
    "A40": "0.58 37.4 37.4 37.4 - 74.8 149.7 149.7 299.3 - 18.7",
    "RTX 4090": "1.29 82.6 82.6 82.6 - 82.6 165 330 661 330 41.3",
    "L40S": "1.43 91.6 91.6 91.6 - 181 362 362 724 724 45.8",
    "H100 PCIe": "25.6 51.2 102 102 51.2 378 756 756 1513 1513 25.6",
    "H100 SXM5": "33.5 66.9 134 134 66.9 495 989 989 1979 1979 33.5",
    "H200 SXM": "33.5 66.9 134 134 66.9 495 989 989 1979 1979 33.5",
    "B200": "37.2 74.4 74 74 37.2 1121 2243 2243 4486 4486 37.2",
    "RTX 5090": "1.64 104.8 104.8 104.8 - 105 210 419 838 419 52.4",
}
BUS_TIMES_CLOCK = {"V100 SXM2": 898, "A100 SXM 40GB": 1555, "A100 SXM 80GB": 2039, "H200 SXM": 4917, "B200": 7672}


@pytest.mark.parametrize("name", PUBLISHED)
def test_peaks_are_the_published_ones_to_the_printed_digit(name: str) -> None:
    peaks = table(next(gpu for gpu in gpus() if gpu.id == name))
    for column, printed in zip(COLUMNS, PUBLISHED[name].split(), strict=True):
        value = max((peak for key, peak in peaks.items() if key == column or key.startswith(column + ".")), default=None)
        if printed == "-":
            assert value is None, column
            continue
        unit_of_last_digit = 10.0 ** -len(printed.partition(".")[2])
        assert value is not None, column
        assert value / 1e12 == pytest.approx(float(printed), abs=0.6 * unit_of_last_digit), column


def test_the_table_covers_what_is_published() -> None:
    assert set(PUBLISHED) <= {gpu.id for gpu in gpus()}
    assert all(gpu.source for gpu in gpus())


@pytest.mark.parametrize("gpu", gpus(), ids=lambda gpu: gpu.id)
def test_memory_bandwidth_is_bus_times_clock(gpu: Gpu) -> None:
    from_clock = table(gpu)["dram.read"]
    assert from_clock == pytest.approx(BUS_TIMES_CLOCK.get(gpu.id, gpu.dram / 1e9) * 1e9, rel=3e-3)
    assert from_clock == pytest.approx(gpu.dram, rel=0.05)  # vendors round, B200's by 4 %


@pytest.mark.parametrize(
    ("name", "sm_count", "expected"),
    [
        ("NVIDIA H200", 132, "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", 132, "H100 SXM5"),
        ("NVIDIA H100 PCIe", 114, "H100 PCIe"),
        ("Tesla V100-SXM2-32GB", 80, "V100 SXM2"),
        ("Tesla V100-PCIE-16GB", 80, "V100 PCIe"),
        ("NVIDIA A100-SXM4-40GB", 108, "A100 SXM 40GB"),
        ("NVIDIA GeForce RTX 4090", 128, "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", 114, None),
        ("NVIDIA GeForce RTX 3090 Ti", 84, None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, None),
        ("NVIDIA L40S", 142, "L40S"),
        ("NVIDIA L40", 142, None),
        ("NVIDIA GH200 480GB", 132, None),
        ("NVIDIA RTX A4000", 48, None),
        ("", None, None),
    ],
)
def test_gpus_are_found_by_the_drivers_name(name: str, sm_count: int | None, expected: str | None) -> None:
    found = find_gpu(name, sm_count)
    assert (found.id if found else None) == expected


def test_named() -> None:
    found = {gpu.id for gpu in named("h100")}
    assert found >= {"H100 PCIe", "H100 SXM5"}
    assert all("H100" in name for name in found)


def _theory(ceiling: str, facts: dict[str, object], link: tuple[int, int] | None = None) -> Theory | None:
    return theory(kind(ceiling), device(facts), link)


def test_theory_at_the_measured_clock() -> None:
    found = _theory("tensor.fp16.wgmma", H200)
    assert found is not None
    assert found.value == pytest.approx(989.4e12, rel=1e-3)  # the vendor's figure stands at 1830 MHz
    assert found.at(1.5e9) == pytest.approx(4096 * 132 * 1.5e9)
    memory = _theory("dram.read", H200)
    assert memory is not None
    assert memory.at(None) == pytest.approx(4917e9, rel=1e-3)


def test_mma_on_hopper_is_measured_against_its_own_roof() -> None:
    found = _theory("tensor.fp16.mma", H200)
    assert found is not None
    assert found.per_cycle == pytest.approx(4096 * 2 / 3 * 132)
    assert found.slow == ""


def test_mma_where_tcgen05_is_the_roof_says_why_it_is_slow() -> None:
    found = _theory("tensor.bf16.mma", {**H200, "name": "NVIDIA B200", "cc": "10.0", "sm_count": 148})
    assert found is not None
    assert "tcgen05" in found.slow


@pytest.mark.parametrize("ceiling", ["tensor.fp16.tcgen05", "fp64.div", "launch.sync", "tensor.fp4.tcgen05", "l2.read"])
def test_no_theory(ceiling: str) -> None:
    assert _theory(ceiling, H200) is None


def test_geforce_boards_halve_fp32_accumulation() -> None:
    geforce = {**H200, "name": "NVIDIA GeForce RTX 4090", "cc": "8.9", "sm_count": 128}
    half, full = _theory("tensor.fp16.mma", geforce), _theory("tensor.fp16_acc16.mma", geforce)
    assert half is not None
    assert full is not None
    assert full.value == 2 * half.value


def test_a_mig_instance_has_units_but_no_memory_theory() -> None:
    compute = _theory("fp64.fma", MIG)
    assert compute is not None
    assert compute.value == pytest.approx(16 * 128 * 1.98e9)
    assert _theory("dram.read", MIG) is None
    assert _theory("host.h2d", MIG, (5, 16)) is None
    assert device(MIG).gpu is None


def test_host_link() -> None:
    one, both = _theory("host.h2d", H200, (5, 16)), _theory("host.bidir", H200, (5, 16))
    assert one is not None
    assert both is not None
    assert one.value == pytest.approx(63.0e9, rel=1e-3)
    assert both.value == 2 * one.value
    assert one.uncertain
    assert _theory("host.h2d", H200) is None
    assert _theory("host.h2d", {**H200, "name": "NVIDIA GH200 480GB"}, (5, 16)) is None


def test_unknown_capabilities_and_ceilings_have_no_theory() -> None:
    assert _theory("fp64.fma", {**H200, "cc": "99.0"}) is None
    assert theory(CeilingKind("new.thing", "B/s"), device()) is None


def test_the_data_sheet_has_each_ceiling_once_and_in_the_units_of_the_runner() -> None:
    found = data_sheet()
    assert len({one.id for one in found}) == len(found)
    assert {one.id: one.unit for one in found} == {one.id: kind(one.id).unit for one in found}
    assert {"dram.read", "l1.read", "fp64.fma", "int32.mad", "tensor.fp16_acc16.wgmma", "tensor.fp64.mma"} <= {
        o.id for o in found
    }
    assert not any(one.id.startswith(("host", "launch")) or one.id.endswith(".div") for one in found)


def test_architectures_of_boards_have_peaks_on_the_data_sheet() -> None:
    for architecture in (one for one in load_spec().architectures if one.bandwidth):
        major, minor = architecture.compute_capability
        own = device({**H200, "cc": f"{major}.{minor}", "name": "?"})
        assert any(theory(one, own) for one in data_sheet() if one.kind == "compute"), architecture.name


# What a ceiling is follows from its id


@pytest.mark.parametrize(
    ("ceiling", "about", "domain", "quick", "level"),
    [
        ("dram.read", "device memory, loads", "memory", True, "dram"),
        ("dram.triad", "device memory, two loads and a store per multiply-add", "memory", False, "dram"),
        ("l3.read", "L3 cache, loads", "sm", True, "l3"),
        ("host.bidir", "host link, both ways at once", "link", False, "host"),
        ("launch.graph", "kernel launch, as node of a graph", "", False, ""),
        ("fp64.fma", "FP64, multiply-adds", "sm", True, ""),
        ("tensor.fp16_acc16.wgmma", "tensor cores, FP16 with FP16, WGMMA", "sm", False, ""),
        ("int32.mad", "INT32, integer multiply-adds", "sm", True, ""),
    ],
)
def test_what_an_id_says(ceiling: str, about: str, domain: str, quick: bool, level: str) -> None:
    found = kind(ceiling)
    assert (found.about, found.domain, found.quick, found.level) == (about, domain, quick, level)


@pytest.mark.parametrize(
    ("unit", "name", "higher"), [("B/s", "bandwidth", True), ("s", "latency", False), ("OP/s", "compute", True)]
)
def test_what_a_unit_says(unit: str, name: str, higher: bool) -> None:
    found = CeilingKind("x.y", unit)
    assert (found.kind, found.higher_is_better) == (name, higher)


def _listed(*ceilings: str) -> tuple[CeilingKind, ...]:
    return kinds_of([Variant(one, variant, kind(one).unit, (), "") for one in ceilings for variant in "ab"])


def test_the_programs_list_is_the_catalogue_links_and_launches_last() -> None:
    listed = _listed("launch.sync", "host.h2d", "dram.read", "fp64.fma")
    assert [one.id for one in listed] == ["dram.read", "fp64.fma", "launch.sync", "host.h2d"]


def test_selection_by_beginnings() -> None:
    kinds = _listed("dram.read", "dram.copy", "fp64.fma", "fp64.div", "tensor.fp16.mma", "tensor.fp16_acc16.mma")
    assert [one.id for one in select(kinds, ["dram"])] == ["dram.read", "dram.copy"]
    assert [one.id for one in select(kinds, ["fp64.fma"])] == ["fp64.fma"]
    assert [one.id for one in select(kinds, ["tensor.fp16"])] == ["tensor.fp16.mma"]
    assert [one.id for one in select(kinds, skip=["tensor", "dram"])] == ["fp64.fma", "fp64.div"]
    for only, skip in ((["nothing"], []), ([], ["nothing"]), (["dram"], ["dram"])):
        with pytest.raises(UsageError):
            select(kinds, only, skip)
