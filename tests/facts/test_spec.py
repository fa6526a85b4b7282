"""What the specification says of chips, precisions and levels, how it is read, and what it lets ncu collect."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, load_instructions, load_spec, read_spec
from ncu_roofline.chips.fields import SpecError, WeightedSum, expand
from ncu_roofline.plugin.check.chips import libraries, passes

DATA = Path(ncu_roofline.__file__).parent / "data"
BAD = sorted((Path(__file__).parent / "bad").glob("*.toml"))
FOLDERS = {"architecture": "architectures", "precision": "precisions", "level": "levels"}
KNOWN = "7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.3 10.7 11.0 12.0 12.1"
CAPABILITIES = [tuple(map(int, word.split("."))) for word in KNOWN.split()]
SPEC = load_spec()
NEWEST_10 = max(a.compute_capability for a in SPEC.architectures if a.compute_capability[0] == 10)
CORE = (("fp64", "fp32", "fp16"), ("l1", "shared", "l2", "dram"))


def test_the_specification_as_it_is_read() -> None:
    assert load_spec() is SPEC
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC  # on the way to another process
    assert {a.compute_capability for a in SPEC.architectures} >= set(CAPABILITIES)
    assert SPEC.architecture((9, 0)).name == "Hopper"
    assert SPEC.architecture((6, 0)) is None
    assert [p.id for p in SPEC.precisions[:3]] == ["fp64", "fp32", "fp16"]
    assert [level.id for level in SPEC.levels] == ["l1", "shared", "l2", "dram", "system"]
    with pytest.raises(KeyError):
        SPEC.precision("fp99")
    with pytest.raises(KeyError):
        SPEC.level("l9")


def test_braces() -> None:
    assert list(expand("a__b")) == ["a__b"]
    assert list(expand("a__{b,c}_d{,_e}")) == ["a__b_d", "a__b_d_e", "a__c_d", "a__c_d_e"]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_chip_counts_the_core_precisions_and_levels(capability: tuple[int, int]) -> None:
    for name in ("fp64", "fp32", "fp16"):
        assert SPEC.bindings(SPEC.precision(name), capability), name
    assert sorted(weight for _, weight in SPEC.bindings(SPEC.precision("fp16"), capability)[0].counters) == [2, 2, 4]
    for level in SPEC.levels:
        exact = [b for b in SPEC.bindings(level, capability) if b.source == "binding"]
        assert bool(exact) != (level.id in SPEC.architecture(capability).lacks), level.id


def test_systems_on_a_chip_lack_dram_counters() -> None:
    lacking = {a.compute_capability for a in SPEC.architectures if "dram" in a.lacks}
    assert lacking == {(7, 2), (8, 7), (11, 0), (12, 1)}


def test_tensor_precisions_by_chip() -> None:
    """Top-level tensor precisions, from the names that NVIDIA's metric library has for each chip."""
    types = [p for p in SPEC.precisions if p.kind == "tensor" and not p.part_of]
    found = {chip: {p.id.removeprefix("tensor.") for p in types if SPEC.bindings(p, chip)} for chip in CAPABILITIES}
    ampere = {"fp64", "tf32", "bf16", "fp16", "int8", "int4", "int1"}
    blackwell = {"fp64", "tf32", "bf16", "fp16", "int8"}
    assert found[7, 0] == {"fp16"}
    assert found[7, 2] == {"fp16", "int8"}
    assert found[7, 5] == {"fp16", "int8", "int4", "int1"}
    assert found[8, 0] == found[8, 6] == found[8, 7] == ampere
    assert found[8, 9] == ampere | {"fp8"}
    assert found[9, 0] == ampere - {"int4"} | {"fp8"}
    assert found[10, 0] == found[11, 0] == blackwell | {"fp8fp6fp4", "fp4"}
    assert found[10, 3] == found[10, 7] == found[12, 0] == found[12, 1] == blackwell | {"fp8", "fp6fp4", "fp4"}


def test_packed_fp32_counts_where_it_exists() -> None:
    best, *rest = SPEC.bindings(SPEC.precision("fp32"), (10, 0))
    weights = {name.split("_op_")[1].removesuffix("_pred_on"): weight for name, weight in best.counters}
    assert weights == {"fadd": 1, "fmul": 1, "ffma": 2, "fadd2": 2, "fmul2": 2, "ffma2": 4}
    assert not best.lower_bound
    assert rest[-1].lower_bound
    assert "packed" in rest[-1].note
    assert not any(b.lower_bound for b in SPEC.bindings(SPEC.precision("fp32"), (12, 0)))


def test_512_per_instruction_is_for_volta_and_dmma_of_ampere_only() -> None:
    users = {
        (p.id, capability)
        for p in SPEC.precisions
        for capability in CAPABILITIES
        for b in SPEC.bindings(p, capability)
        if any(weight == 512 for _, weight in b.counters)
    }
    assert users == {("tensor.fp16", (7, 0)), ("tensor.fp64", (8, 0))}


def test_no_dense_work_against_a_sparse_peak() -> None:
    """A metric without suffix has the peak of its sparse form on several chips; only sparse precisions may use such."""
    for p in SPEC.precisions:
        plain = p.id.endswith((".sparse", "int1", "fp64"))
        for binding in p.bindings:
            for name in binding.peak.counters() if binding.peak else ():
                assert name.endswith("_sparsity_on") == (p.id.endswith(".sparse")), (p.id, name)
                if binding.capabilities[0][0] >= (8, 0) and name.startswith("sm__ops_path") and not plain:
                    assert name.endswith(("_sparsity_off", "bmma_src_int1", "bgmma_src_int1")), (p.id, name)


def test_fabric_traffic_is_a_last_resort() -> None:
    for capability in ((8, 0), (9, 0), (10, 0), (10, 3), (10, 7)):
        for binding in SPEC.bindings(SPEC.level("l2"), capability):
            if set(binding.counters.counters()) & {"lts__t_bytes", "lts__t_sectors"}:
                assert binding.source == "derived"
                assert "two L2 halves" in binding.note


def test_summands_count_nothing_twice() -> None:
    plain = Binding(WeightedSum.of({"sm__a": 1}))
    total = Binding(WeightedSum.of({"sm__a": 1}), includes=("tensor.fp16.sparse",))
    names = ("fp32", "tensor.fp16", "tensor.fp16.mma", "tensor.fp16.sparse", "tensor.fp16.wgmma.sparse")
    assert SPEC.summands(dict.fromkeys(names, plain)) == ("fp32", "tensor.fp16", "tensor.fp16.sparse")
    assert SPEC.summands(dict.fromkeys(names, plain) | {"tensor.fp16": total}) == ("fp32", "tensor.fp16")


def test_opcodes_only_precisions_are_never_collected() -> None:
    only = [p.id for p in SPEC.precisions if p.opcodes]
    assert only == ["bf16", "int32"]
    for architecture in SPEC.architectures:
        capability = architecture.compute_capability
        assert not any(SPEC.bindings(SPEC.precision(name), capability) for name in only)
        assert SPEC.collect(capability, only, ["l2"]) == SPEC.collect(capability, [], ["l2"])
        if architecture.peak("int32") is not None:  # of a chip that nobody has seen no peak is claimed
            assert architecture.peak("int32") == 32 * load_instructions().issue_per_sm  # lanes of an issue
    a100 = SPEC.architecture((8, 0))
    assert (a100.peak("bf16.fma"), a100.peak("bf16.nofma"), a100.peak("fp16.fma")) == (256, 128, 512)


# A chip that came after this version -> the nearest older one; systems on a chip stand for no other.
NEAREST = {
    (7, 3): (7, 0),
    (8, 8): (8, 6),
    (9, 9): (9, 0),
    (10, 9): NEWEST_10,
    (11, 5): NEWEST_10,
    (12, 2): (12, 0),
    (13, 0): (12, 0),
    (99, 9): (12, 0),
}


def test_the_nearest_older_chip_stands_in() -> None:
    for capability, nearest in NEAREST.items():
        found = SPEC.read_as(capability)
        assert found is not None
        assert found.compute_capability == nearest
        assert SPEC.read_as(capability) == found
        assert SPEC.architecture(capability) is None
        names = [".".join(map(str, each)) for each in (capability, nearest)]
        assert "{} is not known to this version and was read with the counters of {}".format(*names) in found.caveat
        assert not found.boards
        assert all(found.peak(roof, "NVIDIA GeForce RTX 9999") is None for p in SPEC.precisions for roof in p.roof_ids())
        assert not found.bandwidth
    for capability in ((0, 0), (3, 5), (6, 0), (6, 2)):  # before Volta
        assert SPEC.read_as(capability) is None
        assert SPEC.read_as(capability) is None
    assert all(SPEC.read_as(one.compute_capability) is one for one in SPEC.architectures)


def test_only_what_nobody_has_seen_is_unproven() -> None:
    unproven = {a.compute_capability: a for a in SPEC.architectures if a.caveat}
    assert set(unproven) == {(10, 7)}
    rubin = unproven[10, 7]
    assert (rubin.name, rubin.chips) == ("Rubin", ("GR100",))
    assert not rubin.peaks  # none is published per SM; no figure is invented
    assert not rubin.bandwidth


def test_core_list_of_an_a100() -> None:
    patched = [f"smsp__sass_thread_inst_executed_op_{k}{op}_pred_on.sum" for k in "dfh" for op in ("add", "mul", "fma")]
    assert SPEC.collect((8, 0), *CORE) == (
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


def test_what_is_collected_of_other_chips() -> None:
    for capability in ((7, 0), (7, 5)):  # where the clock of DRAM costs a pass
        names = SPEC.collect(capability, *CORE)
        assert "dram__bytes.sum" in names
        assert not any(name.startswith("dram__cycles") for name in names)
    assert not any("fill" in name for name in SPEC.collect((8, 7), *CORE))
    assert "lts__d_sectors_fill_sysmem.sum" in SPEC.collect((8, 7), *CORE, lacking=True)
    assert SPEC.collect((7, 0), ["tensor.fp8"], ["l2"]) == SPEC.collect((7, 0), [], ["l2"])
    with pytest.raises(KeyError):
        SPEC.collect((7, 0), ["fp99"], [])
    assert "l1tex__t_bytes.sum" in SPEC.collect((20, 0), *CORE)  # open ranges
    for architecture in SPEC.architectures:
        capability, levels = architecture.compute_capability, ("l1", "l2", "dram")
        found = load_instructions().collect(SPEC, capability, levels)
        assert len(set(found)) == len(found)
        assert {"gpu__time_duration.sum", "smsp__inst_executed.sum", "sm__inst_issued.sum.peak_sustained"} <= set(found)
        assert set(load_instructions().needs(SPEC, capability, levels)) <= set(found)


def test_core_list_costs_two_passes() -> None:
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    lists = [(chip, SPEC.collect(one.compute_capability, *CORE)) for one in SPEC.architectures for chip in one.chips]
    counted = {chip: (found.hardware, found.sass) for chip, names in lists if (found := passes(chip, names))}
    assert len(counted) > 10
    assert {chip: each for chip, each in counted.items() if each != (1, 1)} == {}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in FOLDERS.values():
        shutil.copytree(DATA / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_wrong_file_is_refused_by_its_name_and_key(path: Path, data: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    folder = FOLDERS[path.stem.partition("-")[0]]
    shutil.copy(path, data / folder / f"zz-{path.name}")
    with pytest.raises(SpecError) as caught:
        read_spec(data)
    assert expected in str(caught.value)
    assert f"{folder}/zz-{path.name}" in str(caught.value)
    assert isinstance(caught.value, RooflineError)
    assert isinstance(caught.value, ValueError)


def test_what_is_no_data_file(data: Path) -> None:
    (data / "levels" / "README.md").write_text("not data", encoding="utf-8")
    assert read_spec(data) == SPEC
    (data / "levels" / "zz.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match=r"levels/zz\.toml"):
        read_spec(data)
