"""Peaks against what the vendors publish, theory of devices at hand, and what follows from the id of a ceiling."""

from __future__ import annotations

import pytest

from ncu_roofline.base.errors import UsageError
from ncu_roofline.bench.catalogue import CeilingKind, data_sheet, kinds_of, select, table, theory
from ncu_roofline.bench.runner import Variant
from ncu_roofline.chips import Gpu, load_spec
from ncu_roofline.chips.spec import find_gpu, gpus
from tests.bench.fakes import H200, device, facts, kind, read_toml

TOLD = read_toml("theory.toml")
PUBLISHED = TOLD["published"]
COLUMNS = PUBLISHED.pop("columns").split()


@pytest.mark.parametrize("gpu", gpus(), ids=lambda gpu: gpu.id)
def test_peaks_are_the_published_ones_to_the_printed_digit(gpu: Gpu) -> None:
    peaks = table(gpu)
    for column, printed in zip(COLUMNS, PUBLISHED.get(gpu.id, "").split(), strict=gpu.id in PUBLISHED):
        value = max((peak for key, peak in peaks.items() if key == column or key.startswith(column + ".")), default=None)
        assert (value is None) == (printed == "-"), column
        if value is not None:
            last_digit = 10.0 ** -len(printed.partition(".")[2])
            assert value / 1e12 == pytest.approx(float(printed), abs=0.6 * last_digit), column
    assert peaks["dram.read"] == pytest.approx(TOLD["bus"].get(gpu.id, gpu.dram / 1e9) * 1e9, rel=3e-3)
    assert peaks["dram.read"] == pytest.approx(gpu.dram, rel=0.05)  # vendors round, B200's by 4 %
    assert gpu.source
    assert PUBLISHED.keys() <= {one.id for one in gpus()}


def test_gpus_are_found_by_the_drivers_name() -> None:
    found = {name: find_gpu(name, count or None) for name, (count, _) in TOLD["names"].items()}
    assert {name: gpu.id if gpu else "" for name, gpu in found.items()} == {
        name: gpu for name, (_, gpu) in TOLD["names"].items()
    }


@pytest.mark.parametrize("of", ["", *TOLD["peaks_of"]])
def test_theory_of_devices(of: str) -> None:
    changes = dict(TOLD["peaks_of"].get(of, {}))
    peaks = {name: changes.pop(name) for name in list(changes) if "." in name} if of else TOLD["peaks"]
    own = device(facts(changes.pop("like", "H200"), **changes))
    for name, wanted in peaks.items():
        link = wanted.pop("link", None)
        found = theory(kind(name), own, link and tuple(link))
        assert (found is None) == (wanted == {}), name
        if found:
            assert found.per_cycle == pytest.approx(wanted.get("per_cycle", found.per_cycle)), name
            assert found.vendor_clock == pytest.approx(wanted.get("clock", found.vendor_clock / 1e6) * 1e6), name
            assert found.uncertain == wanted.get("uncertain", False), name
            assert found.slow.startswith(wanted.get("slow", "")), name
            assert bool(found.slow) == ("slow" in wanted), name
            assert (found.at(None), found.at(1.5e9)) == (found.value, found.per_cycle * 1.5e9)


def test_the_data_sheet_has_each_ceiling_once_and_each_board_a_peak_on_it() -> None:
    found = data_sheet()
    assert len({one.id for one in found}) == len(found)
    assert {one.id: one.unit for one in found} == {one.id: kind(one.id).unit for one in found}
    few = {"dram.read", "l1.read", "fp64.fma", "int32.mad", "tensor.fp16_acc16.wgmma", "tensor.fp64.mma"}
    assert few <= {one.id for one in found}
    assert not any(one.id.startswith(("host", "launch")) or one.id.endswith(".div") for one in found)
    for architecture in (one for one in load_spec().architectures if one.bandwidth):
        own = device(H200, cc="{}.{}".format(*architecture.compute_capability), name="?")
        assert any(theory(one, own) for one in found if one.kind == "compute"), architecture.name


def test_what_an_id_and_a_unit_say() -> None:
    found = {name: kind(name) for name in TOLD["ids"]}
    assert {name: [one.about, one.domain, one.quick, one.level] for name, one in found.items()} == TOLD["ids"]
    units = [CeilingKind("x.y", unit) for unit in ("B/s", "s", "OP/s")]
    assert [(one.kind, one.higher_is_better) for one in units] == [("bandwidth", True), ("latency", False), ("compute", True)]


def test_selection_by_beginnings() -> None:
    def listed(*ceilings: str) -> tuple[CeilingKind, ...]:
        return kinds_of([Variant(one, variant, kind(one).unit, (), "") for one in ceilings for variant in "ab"])

    ordered = [one.id for one in listed("launch.sync", "host.h2d", "dram.read", "fp64.fma")]
    assert ordered == ["dram.read", "fp64.fma", "launch.sync", "host.h2d"]
    kinds = listed("dram.read", "dram.copy", "fp64.fma", "fp64.div", "tensor.fp16.mma", "tensor.fp16_acc16.mma")
    for words, skip, chosen in (
        (["dram"], [], ["dram.read", "dram.copy"]),
        (["fp64.fma"], [], ["fp64.fma"]),
        (["tensor.fp16"], [], ["tensor.fp16.mma"]),
        ([], ["tensor", "dram"], ["fp64.fma", "fp64.div"]),
    ):
        assert [one.id for one in select(kinds, words, skip)] == chosen
    for words, skip in ((["nothing"], []), ([], ["nothing"]), (["dram"], ["dram"])):
        with pytest.raises(UsageError):
            select(kinds, words, skip)
