"""What data files say of chips, precisions and levels, whether they agree with each other, and with what others state."""

from __future__ import annotations

import ast
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from itertools import chain
from math import prod
from pathlib import Path
from string import Formatter

import pytest

import ncu_roofline
from ncu_roofline.chips import load_instructions, load_opcodes, load_spec, load_stalls, load_units, read_spec
from ncu_roofline.chips.fields import (
    ANY_MINOR,
    DATA,
    LAST,
    LAST_RELEASE,
    SpecError,
    expand,
    parse_capability,
    parse_release,
    ranges,
)
from ncu_roofline.chips.findings import of_library
from ncu_roofline.chips.formulas import board_rule, summed
from ncu_roofline.chips.opcodes import _File, _left, load_opcode_kinds, load_opcode_units
from ncu_roofline.chips.sass import load_sass
from ncu_roofline.chips.source_counters import ACCESSES, KINDS
from ncu_roofline.chips.spec import Level
from ncu_roofline.chips.tables import load_limits, load_sets
from ncu_roofline.formats.report import read_report
from ncu_roofline.model.extract import measure, spellings
from ncu_roofline.plugin.check.chips import libraries, passes
from tests.factory import A100, complete, kernel, report
from tests.facts.stated import FACTS, toml

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
    assert [p.id for p in SPEC.precisions[:3]] == ["fp64", "fp32", "fp16"]
    assert [level.id for level in SPEC.levels] == ["l1", "shared", "l2", "dram", "system"]
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
    assert list(SPEC.collect((8, 0), *CORE)) == [name for text in FACTS["collected"] for name in expand(text)]  # A100
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


SPEC = load_spec()
PRECISIONS, LEVELS = {one.id for one in SPEC.precisions}, {one.id for one in SPEC.levels}
WORDS = {word for word, _ in KINDS + ACCESSES} | {*FACTS["words"].split()}


def test_nothing_stands_twice() -> None:
    for words in (
        (one.compute_capability for one in SPEC.architectures),
        *((one.order for one in kind) for kind in (SPEC.precisions, SPEC.levels)),
        *((word for one in kind for word in (one.id, *one.aliases)) for kind in (SPEC.precisions, SPEC.levels)),
        (ceiling for level in SPEC.levels for ceiling in level.ceilings),
        (unit.id for unit in load_units().units),
        (kind.id for kind in load_instructions().kinds),
        (row["id"] for row in toml(DATA / "stalls.toml")["stalls"]),
        (row["id"] for row in toml(DATA / "plausible.toml")["quantity"]),
        chain.from_iterable(toml(DATA / "opcode_kinds.toml")["names"].values()),
    ):
        assert [word for word, count in Counter(words).items() if count > 1] == []


def test_bindings_and_families() -> None:
    chips = [architecture.compute_capability for architecture in SPEC.architectures]
    for item in (*SPEC.precisions, *SPEC.levels):
        assert bool(item.bindings) != getattr(item, "opcodes", False)
        for index, one in enumerate(item.bindings):
            assert any(one in SPEC.bindings(item, chip) for chip in chips), "of no chip that there is"
            assert one.note or (one.source == "binding" and not one.lower_bound), "must say what it leaves out"
            assert one.clock or not one.peak
            assert not one.lacking or (isinstance(item, Level) and one.source != "binding")
            assert set(one.includes) <= PRECISIONS
            for earlier in item.bindings[:index]:
                fewer = set(earlier.counters.counters()) <= set(one.counters.counters())
                together = any({earlier, one} <= {*SPEC.bindings(item, chip)} for chip in chips)
                assert not (fewer and together), f"{one.counters.text()} can never be chosen"
    for one in SPEC.precisions:
        assert {one.part_of, one.beside, *one.replacements} - {""} <= PRECISIONS - {one.id}
        assert one.part_of or not one.disjoint
    assert [one.kind for one in SPEC.precisions if one.standard] == ["tensor"]


def test_architectures_and_ranges() -> None:
    owners = {roof: precision for precision in SPEC.precisions for roof in precision.roof_ids()}
    for one in SPEC.architectures:
        roofs = {*one.peaks, *(roof for rule in one.boards for roof in (*rule.peaks, *rule.absent))}
        counted = {roof for roof, owner in owners.items() if owner.opcodes or SPEC.bindings(owner, one.compute_capability)}
        assert roofs <= counted
        assert {*one.lacks, *one.bandwidth} <= LEVELS
        assert {*one.left_out, *one.uncertain} <= LEVELS | PRECISIONS
        assert one.costly <= {binding.clock for level in SPEC.levels for binding in level.bindings}
        assert all(re.fullmatch("#[0-9A-F]{6}", hue) for item in (*SPEC.levels, *SPEC.precisions) for hue in item.color)
        for gpu in one.gpus:  # 51 TFLOP/s of an H100 PCIe are 51.2, 14 of a V100 PCIe 14.1, 8 TB/s of a B200 7.67 by its bus
            rate = gpu.sm_count * one.peaks["fp32.fma"] * gpu.core_clock
            assert rate == pytest.approx(gpu.fp32_tflops * 1e12, rel=0.02), gpu.id
            assert gpu.memory_clock * gpu.bus_bits / 4 == pytest.approx(gpu.dram, rel=0.05), gpu.id  # two words a cycle
    chips = {one.compute_capability for one in SPEC.architectures}
    majors = {(major, ANY_MINOR) for major, _ in chips}

    def stated(key: str, value: object) -> Iterable[object]:
        if isinstance(value, dict):
            for name, one in value.items():
                yield from [one] if name == key else stated(key, one)
        elif isinstance(value, list):
            yield from chain.from_iterable(stated(key, one) for one in value)

    for path in [*DATA.glob("precisions/*.toml"), *DATA.glob("levels/*.toml")]:
        for text in stated("capabilities", toml(path)):
            ends = [*chain.from_iterable(ranges(text))]
            assert ends == sorted(ends), path
            assert set(ends) <= chips | majors | {LAST}, path
        for table in stated("counters", toml(path)):
            names = [name for pattern in table for name in expand(pattern)]
            assert len(set(names)) == len(names) > 0, path
            assert all(re.fullmatch(r"[a-z][a-z0-9]*__[a-z][a-z0-9_]*", name) for name in names), path


def test_rows_of_opcodes() -> None:
    """They say what they need and no more, and can be reached."""
    table, rows = toml(DATA / "opcodes.toml"), load_opcodes().rows
    for index, (row, stated) in enumerate(zip(rows, table["rows"], strict=True)):
        needed, possible = ({*words.split()} for words in FACTS["keys"][row.does])
        assert needed <= stated.keys() <= needed | possible | {"opcodes", "does", "capabilities"}, stated
        assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+\*?(\|[A-Z0-9_]+\*?)*)*", text) for text in stated["opcodes"])
        assert not row.precision or row.precision in PRECISIONS
        assert (row.does == "products") == row.precision.startswith("tensor.")
        assert len(row.k) in ((1, 2) if row.family == "wgmma" else (0,))
        for name, modifiers in row.opcodes:
            for earlier in rows[:index]:
                hides = any(other == name and _left(modifiers, words) is not None for other, words in earlier.opcodes)
                within = all(any(a <= c and d <= b for a, b in earlier.capabilities) for c, d in row.capabilities)
                assert not (hides and within), f"{'.'.join((name, *modifiers))} can never fit, a row before it takes it"
    assert all(len(size) == 3 and "".join(map(str, size)) == digits for digits, size in table["shapes"].items())
    assert load_opcodes()._shapes["16x8x16"] == prod((16, 8, 16))
    assert _File.__annotations__.keys() == table.keys()
    kinds = load_opcode_kinds()
    assert [pair for pair in kinds.modifiers if pair[0] not in kinds.names or not pair[1]] == []
    assert "other" not in kinds.names.values()
    assert {row.unit for row in load_opcode_units().rows} <= {unit.id for unit in load_units().units}
    fields = [field for row in load_sass().modifiers for field in row.fields]
    assert [field for field in fields if len(field.words) != 1 << len(field.bits)] == []


def test_the_instruction_roofline_and_the_rule_on_access_patterns() -> None:
    spec = load_instructions()
    assert spec.kinds[0].id == "inst"
    assert all(bool(kind.level) == bool(kind.transactions) for kind in spec.kinds)
    assert {wall.kind for wall in spec.walls} <= {kind.id for kind in spec.kinds}
    ways = (way for kind in spec.kinds for way in (*kind.instructions, *kind.transactions))
    known = {counter for way in ways for counter in way.counters.counters()}
    rules = resources.files("ncu_roofline.plugin.generate") / "templates" / "rules"
    text = (rules / "access_pattern.py.j2").read_text(encoding="utf-8")
    (pairs,) = re.findall(r"COUNTERS = \((.*?)\n\)", text, re.DOTALL)
    named = {name.format("ld") for name in re.findall(r'"([a-z_0-9{}]+)"', pairs)}
    for prefix in ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "smsp__sass_inst_executed_op_shared_"):
        assert prefix in text
        named |= {f"{prefix}ld", f"{prefix}st"}
    assert len(named) >= 6
    assert named <= known


def test_why_warps_wait_is_said_in_sentences_of_what_is_known() -> None:
    for name, stall in load_stalls().items():
        assert name.islower()
        assert not stall.waits.endswith("."), name
        assert f"{stall}".isascii(), name
        assert stall.unit.count("{}") == bool(stall.unit)
        for one in (*stall.cause, *stall.advice):
            assert re.fullmatch(r"[A-Z].*\.", one.text), name
            assert {*one.where, *one.unless} <= WORDS
            for _, field, _, _ in Formatter().parse(one.text):
                assert field is None or {*FACTS["filled"][field].split()} & {*one.where}, (name, one.text)
    assert {name for name, stall in load_stalls().items() if not stall.advice} == {"selected", "not_selected", "misc"}


def test_sets_bounds_and_headers_as_stated() -> None:
    for release, sections, name in FACTS["tables"]["sets"]:
        found = load_sets().made(parse_release(release), iter(sections.split()))
        assert (found.name if found else "") == name, (release, sections)
    for one in load_sets().sets:
        assert set(one.work) <= {"tensor", *PRECISIONS}
        assert set(one.traffic) <= LEVELS
    for release in ((2020, 1), (2021, 3), (2023, 1), (2024, 3), (2025, 4), (2026, 3), LAST_RELEASE):
        names = [one.name for one in load_sets().of(release)]
        assert len(set(names)) == len(names)
        assert {"basic", "detailed", "full"} <= set(names)
    limits, bounds = load_limits(), FACTS["bounds"]
    assert {name: found.id if (found := limits.bound(name)) else "" for name in bounds} == bounds
    assert limits.bound("lts__t_bytes" + "x" * 1000 + ".sum") is None
    assert limits.slices == 960
    bindings = [one for owner in (*SPEC.precisions, *SPEC.levels) for one in owner.bindings]
    read = spellings([one.counters for one in bindings], [one.peak for one in bindings if one.peak])
    unbound = [name for name in {*read, *load_units().metrics()} if limits.bound(name) is None]
    assert unbound == [], "a row of data/plausible.toml must bound these metrics"
    assert [path for path in FACTS["tables"]["of_libraries"] if not of_library(path)] == []
    assert [path for path in FACTS["tables"]["of_the_kernel"] if of_library(path)] == []


def test_ids_stand_once() -> None:
    """Ids, colours and sections of levels and precisions stand in the data files; modules ask the specification for them."""
    facts = {name for one in SPEC.precisions for name in (one.id, *one.roof_ids())} | {*SPEC.sections.values()}
    facts |= {text for level in SPEC.levels for text in (level.id, *level.color)}
    facts |= {kind.id for kind in load_instructions().kinds if kind.level}
    root, found = Path(ncu_roofline.__file__).parent, {}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if place.parts[0] != "chips" else ()
        named = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)} & facts
        if named:
            found[place.as_posix()] = sorted(named)
    assert found == FACTS["copies"]
