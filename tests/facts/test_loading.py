"""What the specification says, and how it is read."""

from __future__ import annotations

import pickle

import pytest

from ncu_roofline.chips import Binding, load_instructions, load_spec
from ncu_roofline.chips.fields import WeightedSum, expand

CAPABILITIES = (
    (7, 0),
    (7, 2),
    (7, 5),
    (8, 0),
    (8, 6),
    (8, 7),
    (8, 9),
    (9, 0),
    (10, 0),
    (10, 3),
    (10, 7),
    (11, 0),
    (12, 0),
    (12, 1),
)


def test_every_architecture_is_described() -> None:
    assert {a.compute_capability for a in load_spec().architectures} >= set(CAPABILITIES)
    assert load_spec().architecture((9, 0)).name == "Hopper"
    assert load_spec().architecture((6, 0)) is None


def test_loaded_once() -> None:
    assert load_spec() is load_spec()


def test_survives_the_way_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(load_spec())) == load_spec()


def test_display_order_and_unique_ids() -> None:
    spec = load_spec()
    assert [p.id for p in spec.precisions[:3]] == ["fp64", "fp32", "fp16"]
    assert [level.id for level in spec.levels] == ["l1", "shared", "l2", "dram", "system"]
    orders = [p.order for p in spec.precisions]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_chip_counts_the_core_precisions_and_levels(capability: tuple[int, int]) -> None:
    spec = load_spec()
    for name in ("fp64", "fp32", "fp16"):
        assert spec.bindings(spec.precision(name), capability), name
    for level in spec.levels:
        lacking = level.id in spec.architecture(capability).lacks
        exact = [b for b in spec.bindings(level, capability) if b.source == "binding"]
        assert bool(exact) != lacking, level.id


def test_systems_on_a_chip_lack_dram_counters() -> None:
    lacking = {a.compute_capability for a in load_spec().architectures if "dram" in a.lacks}
    assert lacking == {(7, 2), (8, 7), (11, 0), (12, 1)}


def test_tensor_precisions_by_chip() -> None:
    """Top-level tensor precisions, from the names that NVIDIA's metric library has for each chip."""
    spec = load_spec()
    found = {
        capability: {
            p.id.removeprefix("tensor.")
            for p in spec.precisions
            if p.kind == "tensor" and not p.part_of and spec.bindings(p, capability)
        }
        for capability in CAPABILITIES
    }
    ampere = {"fp64", "tf32", "bf16", "fp16", "int8", "int4", "int1"}
    assert found[7, 0] == {"fp16"}
    assert found[7, 2] == {"fp16", "int8"}
    assert found[7, 5] == {"fp16", "int8", "int4", "int1"}
    assert found[8, 0] == found[8, 6] == found[8, 7] == ampere
    assert found[8, 9] == ampere | {"fp8"}
    assert found[9, 0] == ampere - {"int4"} | {"fp8"}
    assert found[10, 0] == found[11, 0] == {"fp64", "tf32", "bf16", "fp16", "int8", "fp8fp6fp4", "fp4"}
    assert (
        found[10, 3]
        == found[10, 7]
        == found[12, 0]
        == found[12, 1]
        == {"fp64", "tf32", "bf16", "fp16", "int8", "fp8", "fp6fp4", "fp4"}
    )


def test_packed_fp32_counts_where_it_exists() -> None:
    spec = load_spec()
    best, *rest = spec.bindings(spec.precision("fp32"), (10, 0))
    weights = {name.split("_op_")[1]: weight for name, weight in best.counters}
    assert weights == {
        "fadd_pred_on": 1,
        "fmul_pred_on": 1,
        "ffma_pred_on": 2,
        "fadd2_pred_on": 2,
        "fmul2_pred_on": 2,
        "ffma2_pred_on": 4,
    }
    assert not best.lower_bound
    assert rest[-1].lower_bound
    assert "packed" in rest[-1].note
    assert not any(b.lower_bound for b in spec.bindings(spec.precision("fp32"), (12, 0)))


def test_half_counts_packed_lanes() -> None:
    spec = load_spec()
    for capability in CAPABILITIES:
        best = spec.bindings(spec.precision("fp16"), capability)[0]
        assert sorted(weight for _, weight in best.counters) == [2, 2, 4]


def test_512_per_instruction_is_for_volta_and_dmma_of_ampere_only() -> None:
    spec = load_spec()
    users = {
        (p.id, capability)
        for p in spec.precisions
        for capability in CAPABILITIES
        for b in spec.bindings(p, capability)
        if any(weight == 512 for _, weight in b.counters)
    }
    assert users == {("tensor.fp16", (7, 0)), ("tensor.fp64", (8, 0))}


def test_no_dense_work_against_a_sparse_peak() -> None:
    """A metric without suffix has the peak of its sparse form on several chips; only sparse precisions may use such."""
    spec = load_spec()
    for p in spec.precisions:
        for binding in p.bindings:
            for name in binding.peak.counters() if binding.peak else ():
                assert name.endswith("_sparsity_on") == (p.id.endswith(".sparse")), (p.id, name)
                if (
                    binding.capabilities[0][0] >= (8, 0)
                    and name.startswith("sm__ops_path")
                    and not p.id.endswith((".sparse", "int1", "fp64"))
                ):
                    assert name.endswith(("_sparsity_off", "bmma_src_int1", "bgmma_src_int1")), (p.id, name)


def test_fabric_traffic_is_a_last_resort() -> None:
    spec = load_spec()
    for capability in ((8, 0), (9, 0), (10, 0), (10, 3), (10, 7)):
        for binding in spec.bindings(spec.level("l2"), capability):
            if set(binding.counters.counters()) & {"lts__t_bytes", "lts__t_sectors"}:
                assert binding.source == "derived"
                assert "two L2 halves" in binding.note


def test_summands_count_nothing_twice() -> None:
    spec = load_spec()
    plain = Binding(WeightedSum.of({"sm__a": 1}))
    total = Binding(WeightedSum.of({"sm__a": 1}), includes=("tensor.fp16.sparse",))
    names = ("fp32", "tensor.fp16", "tensor.fp16.mma", "tensor.fp16.sparse", "tensor.fp16.wgmma.sparse")
    assert spec.summands(dict.fromkeys(names, plain)) == ("fp32", "tensor.fp16", "tensor.fp16.sparse")
    assert spec.summands(dict.fromkeys(names, plain) | {"tensor.fp16": total}) == ("fp32", "tensor.fp16")


def test_opcodes_only_precisions_are_never_collected() -> None:
    spec = load_spec()
    only = [p.id for p in spec.precisions if p.opcodes]
    assert only == ["bf16", "int32"]
    for architecture in spec.architectures:
        capability = architecture.compute_capability
        assert not any(spec.bindings(spec.precision(name), capability) for name in only)
        assert spec.collect(capability, only, ["l2"]) == spec.collect(capability, [], ["l2"])
        if architecture.peak("int32") is not None:  # of a chip that nobody has seen no peak is claimed
            assert architecture.peak("int32") == 32 * load_instructions().issue_per_sm  # lanes of an issue
    a100 = spec.architecture((8, 0))
    assert (a100.peak("bf16.fma"), a100.peak("bf16.nofma"), a100.peak("fp16.fma")) == (256, 128, 512)


def test_unknown_ids() -> None:
    with pytest.raises(KeyError):
        load_spec().precision("fp99")
    with pytest.raises(KeyError):
        load_spec().level("l9")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a__b", ["a__b"]),
        ("a__{b,c}", ["a__b", "a__c"]),
        ("a__{b,c}_d{,_e}", ["a__b_d", "a__b_d_e", "a__c_d", "a__c_d_e"]),
    ],
)
def test_braces(pattern: str, names: list[str]) -> None:
    assert list(expand(pattern)) == names
