"""What the specification says of chips, precisions and levels, how it is read, what ncu collects, and published peaks."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, load_instructions, load_spec, read_spec
from ncu_roofline.chips.fields import DATA, SpecError, WeightedSum, expand, parse_capability
from ncu_roofline.chips.formulas import board_rule, summed
from ncu_roofline.formats.report import read_report
from ncu_roofline.model.extract import measure
from ncu_roofline.plugin.check.chips import libraries, passes
from tests.factory import A100, complete, kernel, report
from tests.facts.stated import FACTS

BAD = sorted((Path(__file__).parent / "bad").glob("*.toml"))
FOLDERS = {"architecture": "architectures", "precision": "precisions", "level": "levels"}
SPEC, STATED = load_spec(), FACTS["published"]
CAPABILITIES = [parse_capability(word) for word in FACTS["types"]]
CORE = (("fp64", "fp32", "fp16"), ("l1", "shared", "l2", "dram"))


def test_the_specification_as_it_is_read() -> None:
    assert load_spec() is SPEC
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC  # on the way to another process
    assert {a.compute_capability for a in SPEC.architectures} >= set(CAPABILITIES)
    assert SPEC.architecture((9, 0)).name == "Hopper"
    assert SPEC.architecture((6, 0)) is None
    assert [p.id for p in SPEC.precisions[:3]] == ["fp64", "fp32", "fp16"]
    assert [level.id for level in SPEC.levels] == ["l1", "shared", "l2", "dram", "system"]
    for unknown in (lambda: SPEC.precision("fp99"), lambda: SPEC.level("l9"), lambda: SPEC.collect((7, 0), ["fp99"], [])):
        with pytest.raises(KeyError):
            unknown()
    assert list(expand("a__b")) == ["a__b"]
    assert list(expand("a__{b,c}_d{,_e}")) == ["a__b_d", "a__b_d_e", "a__c_d", "a__c_d_e"]


def test_what_every_chip_counts() -> None:
    types = [p for p in SPEC.precisions if p.kind == "tensor" and not p.part_of]
    for chip, stated in FACTS["types"].items():
        capability = parse_capability(chip)
        for name in CORE[0]:
            assert SPEC.bindings(SPEC.precision(name), capability), name
        assert sorted(weight for _, weight in SPEC.bindings(SPEC.precision("fp16"), capability)[0].counters) == [2, 2, 4]
        for level in SPEC.levels:
            exact = [b for b in SPEC.bindings(level, capability) if b.source == "binding"]
            assert bool(exact) != (level.id in SPEC.architecture(capability).lacks), level.id
        assert {p.id.removeprefix("tensor.") for p in types if SPEC.bindings(p, capability)} == set(stated.split()), chip
    lacking = {a.compute_capability for a in SPEC.architectures if "dram" in a.lacks}
    assert lacking == {(7, 2), (8, 7), (11, 0), (12, 1)}  # systems on a chip
    best, *rest = SPEC.bindings(SPEC.precision("fp32"), (10, 0))  # packed
    weights = {name.split("_op_")[1].removesuffix("_pred_on"): weight for name, weight in best.counters}
    assert weights == {"fadd": 1, "fmul": 1, "ffma": 2, "fadd2": 2, "fmul2": 2, "ffma2": 4}
    assert (best.lower_bound, rest[-1].lower_bound, "packed" in rest[-1].note) == (False, True, True)
    assert not any(b.lower_bound for b in SPEC.bindings(SPEC.precision("fp32"), (12, 0)))


def test_weights_and_peaks_of_bindings() -> None:
    """512 per instruction is for Volta and DMMA of Ampere only; no dense work stands against a sparse peak."""
    users = {
        (p.id, capability)
        for p in SPEC.precisions
        for capability in CAPABILITIES
        for b in SPEC.bindings(p, capability)
        if any(weight == 512 for _, weight in b.counters)
    }
    assert users == {("tensor.fp16", (7, 0)), ("tensor.fp64", (8, 0))}
    for p in SPEC.precisions:
        plain = p.id.endswith((".sparse", "int1", "fp64"))
        for binding in p.bindings:
            for name in binding.peak.counters() if binding.peak else ():
                assert name.endswith("_sparsity_on") == (p.id.endswith(".sparse")), (p.id, name)
                # A metric without suffix has the peak of its sparse form on several chips.
                if binding.capabilities[0][0] >= (8, 0) and name.startswith("sm__ops_path") and not plain:
                    assert name.endswith(("_sparsity_off", "bmma_src_int1", "bgmma_src_int1")), (p.id, name)
    for capability in ((8, 0), (9, 0), (10, 0), (10, 3), (10, 7)):  # traffic between two halves of L2: a last resort
        for binding in SPEC.bindings(SPEC.level("l2"), capability):
            if set(binding.counters.counters()) & {"lts__t_bytes", "lts__t_sectors"}:
                assert (binding.source, "two L2 halves" in binding.note) == ("derived", True)


def test_summands_count_nothing_twice() -> None:
    plain = Binding(WeightedSum.of({"sm__a": 1}))
    total = Binding(WeightedSum.of({"sm__a": 1}), includes=("tensor.fp16.sparse",))
    names = ("fp32", "tensor.fp16", "tensor.fp16.mma", "tensor.fp16.sparse", "tensor.fp16.wgmma.sparse")
    assert SPEC.summands(dict.fromkeys(names, plain)) == ("fp32", "tensor.fp16", "tensor.fp16.sparse")
    assert SPEC.summands(dict.fromkeys(names, plain) | {"tensor.fp16": total}) == ("fp32", "tensor.fp16")


def test_the_nearest_older_chip_stands_in() -> None:
    for chip, nearest in FACTS["nearest"].items():
        found = SPEC.read_as(parse_capability(chip))
        assert found.compute_capability == parse_capability(nearest)
        assert SPEC.architecture(parse_capability(chip)) is None
        assert f"{chip} is not known to this version and was read with the counters of {nearest}" in found.caveat
        assert {**found.bandwidth} == {} == {one: one for one in found.boards}
        assert all(found.peak(roof, "NVIDIA GeForce RTX 9999") is None for p in SPEC.precisions for roof in p.roof_ids())
    assert [SPEC.read_as(capability) for capability in ((0, 0), (3, 5), (6, 0), (6, 2))] == [None] * 4  # before Volta
    assert all(SPEC.read_as(one.compute_capability) is one for one in SPEC.architectures)
    (rubin,) = (a for a in SPEC.architectures if a.caveat)  # only what nobody has seen is unproven
    assert (rubin.compute_capability, rubin.name, rubin.chips) == ((10, 7), "Rubin", ("GR100",))
    assert {**rubin.peaks, **rubin.bandwidth} == {}  # none is published per SM; no figure is invented


def test_what_is_collected() -> None:
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
    for capability in ((7, 0), (7, 5)):  # where the clock of DRAM costs a pass
        names = SPEC.collect(capability, *CORE)
        assert "dram__bytes.sum" in names
        assert not any(name.startswith("dram__cycles") for name in names)
    assert not any("fill" in name for name in SPEC.collect((8, 7), *CORE))
    assert "lts__d_sectors_fill_sysmem.sum" in SPEC.collect((8, 7), *CORE, lacking=True)
    assert SPEC.collect((7, 0), ["tensor.fp8"], ["l2"]) == SPEC.collect((7, 0), [], ["l2"])
    assert "l1tex__t_bytes.sum" in SPEC.collect((20, 0), *CORE)  # open ranges
    only = [p.id for p in SPEC.precisions if p.opcodes]  # no counter tells these
    assert only == ["bf16", "int32"]
    for architecture in SPEC.architectures:
        capability, levels = architecture.compute_capability, ("l1", "l2", "dram")
        found = load_instructions().collect(SPEC, capability, levels)
        assert len(set(found)) == len(found)
        assert {"gpu__time_duration.sum", "smsp__inst_executed.sum", "sm__inst_issued.sum.peak_sustained"} <= set(found)
        assert set(load_instructions().needs(SPEC, capability, levels)) <= set(found)
        assert not any(SPEC.bindings(SPEC.precision(name), capability) for name in only)
        assert SPEC.collect(capability, only, ["l2"]) == SPEC.collect(capability, [], ["l2"])
        if architecture.peak("int32") is not None:  # of a chip that nobody has seen no peak is claimed
            assert architecture.peak("int32") == 32 * load_instructions().issue_per_sm  # lanes of an issue
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    lists = [(chip, SPEC.collect(one.compute_capability, *CORE)) for one in SPEC.architectures for chip in one.chips]
    counted = {chip: (found.hardware, found.sass) for chip, names in lists if (found := passes(chip, names))}
    assert len(counted) > 10
    assert set(counted.values()) == {(1, 1)}  # two passes


def test_peaks_that_others_published() -> None:
    """Data sheets, and what recorded reports state."""
    for device, chip, sms, ghz, text in STATED["peaks"]:
        architecture, words = SPEC.architecture(parse_capability(chip)), text.split()
        for roof, teraflops in zip(words[::2], map(float, words[1::2]), strict=True):
            assert architecture.peak(roof, device) * sms * ghz / 1000 == pytest.approx(teraflops, rel=0.013), (device, roof)
    for chip, bits, ghz, gigabytes in STATED["memories"]:
        product, per = SPEC.architecture(parse_capability(chip)).bandwidth["dram"]
        assert (product * bits * ghz, per) == (pytest.approx(gigabytes, rel=0.001), "bus"), chip
    for chip, reported in STATED["reported"].items():
        for instruction, per_sm in reported.items():
            precision = {"dfma": "fp64", "ffma": "fp32", "hfma": "fp16"}[instruction]
            counter = f"sm__sass_thread_inst_executed_op_{instruction}_pred_on"
            for binding in SPEC.bindings(SPEC.precision(precision), parse_capability(chip)):
                peak = summed(binding.peak, {counter: per_sm}.__getitem__)
                assert peak == SPEC.architecture(parse_capability(chip)).peak(f"{precision}.fma"), (chip, precision)
    a100, h100 = SPEC.architecture((8, 0)), SPEC.architecture((9, 0))
    for name, (ampere, mma, wgmma) in STATED["tensor"].items():
        assert (a100.peak(f"tensor.{name}"), a100.peak(f"tensor.{name}.sparse")) == (ampere, 2 * ampere)
        assert h100.peak(f"tensor.{name}.mma") == pytest.approx(mma, abs=0.05)
        assert h100.peak(f"tensor.{name}.mma.sparse") == wgmma
        assert h100.peak(f"tensor.{name}.wgmma") == h100.peak(f"tensor.{name}") == wgmma
        assert h100.peak(f"tensor.{name}.wgmma.sparse") == h100.peak(f"tensor.{name}.sparse") == 2 * wgmma
    assert (a100.peak("tensor.fp64"), h100.peak("tensor.fp64")) == (128, 256)
    assert (a100.peak("bf16.fma"), a100.peak("bf16.nofma"), a100.peak("fp16.fma")) == (256, 128, 512)
    assert (h100.peak("tensor.int1.mma"), h100.peak("tensor.int1.wgmma")) == (pytest.approx(43690.7, abs=0.05), 65536)
    assert a100.bandwidth["l1"] == (pytest.approx(19500 / 1.41 / 108, rel=0.01), "sm")  # GB/s of 108 SMs
    assert (a100.bandwidth["l2"], "system" in a100.bandwidth) == ((5120 / 80, "slice"), False)


def test_boards_differ_and_unknown_peaks_are_absent() -> None:
    ampere, turing = SPEC.architecture((8, 6)), SPEC.architecture((7, 5))
    assert ampere.peak("tensor.tf32") == ampere.peak("tensor.tf32", "NVIDIA A10G") == 512
    assert ampere.peak("tensor.tf32", "NVIDIA GeForce RTX 3060") == 256
    assert board_rule(ampere.boards, "tensor.tf32", "NVIDIA GeForce RTX 3060").note
    assert board_rule(ampere.boards, "fp32.fma", "NVIDIA GeForce RTX 3060") is None
    assert turing.peak("tensor.fp16", "NVIDIA GeForce GTX 1660 Ti") is None
    assert turing.peak("fp16.fma", "NVIDIA GeForce GTX 1660 Ti") == 256
    for capability in ((7, 2), (8, 7), (11, 0), (12, 1)):
        assert SPEC.architecture(capability).peaks == {"int32": 128}  # the issue limit of any SM
    assert SPEC.architecture((10, 3)).peak("fp16.fma") is None


def test_wrong_files_are_refused_by_name_and_key(tmp_path: Path) -> None:
    for folder in FOLDERS.values():
        shutil.copytree(DATA / folder, tmp_path / folder)
    (tmp_path / "levels" / "README.md").write_text("not data", encoding="utf-8")
    assert read_spec(tmp_path) == SPEC
    for path in BAD:
        expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
        folder = FOLDERS[path.stem.partition("-")[0]]
        target = shutil.copy(path, tmp_path / folder / f"zz-{path.name}")
        with pytest.raises(SpecError) as caught:
            read_spec(tmp_path)
        assert expected in str(caught.value)
        assert f"{folder}/zz-{path.name}" in str(caught.value)
        assert isinstance(caught.value, (RooflineError, ValueError))
        Path(target).unlink()
    (tmp_path / "levels" / "zz.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match=r"levels/zz\.toml"):
        read_spec(tmp_path)


def test_a_chip_a_precision_and_a_level_are_one_file_each(tmp_path: Path) -> None:
    """Reports are read by them; what else has them the recipes of CONTRIBUTING.md show."""
    for folder in FOLDERS.values():
        shutil.copytree(DATA / folder, tmp_path / folder)
    shutil.copytree(Path(__file__).parent / "added", tmp_path, dirs_exist_ok=True)
    device = {"display_name": "NVIDIA X108", "compute_capability_major": 10, "compute_capability_minor": 8}
    named, more = (
        "smsp__sass_thread_inst_executed_op_{}_pred_on.sum".format,
        ("qadd", "qmul", "qfma", "fadd2", "fmul2", "ffma2"),
    )
    metrics = {**A100, **{f"device__attribute_{name}": value for name, value in device.items()}}
    metrics = {**complete(metrics), **{named(name): 10**8 for name in more}, "l3s__bytes.sum": 3 * 10**8}
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        m = measure(opened, "r", read_spec(tmp_path))
    found = {name: one.values[0] for name, one in {**m.work, **m.traffic}.items()}
    # Of packed instructions a thread's does two operations.
    expected = {"fp32": 8e8, "fp64": 1e9, "fp128": 4e8, "l1": 1e9, "l2": 5e8, "dram": 2.5e8, "l3": 3e8}
    assert {name: found[name] for name in expected} == expected
    assert m.bandwidth["l1"].values[0] == pytest.approx(108 * 128 * 1.41e9)
    assert m.compute["fp32.nofma"].values[0] == pytest.approx(108 * 128 * 1.41e9)
