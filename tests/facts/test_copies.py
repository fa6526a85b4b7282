"""Ids, colours and sections of levels and precisions stand in the data files; modules ask the specification for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ncu_roofline
from ncu_roofline.chips import load_instructions, load_spec

ROOT = Path(ncu_roofline.__file__).parent
SPEC = load_spec()
PRECISIONS = {name for one in SPEC.precisions for name in (one.id, *one.roof_ids())}
LEVELS = {text for level in SPEC.levels for text in (level.id, *level.color)}
KINDS = {kind.id for kind in load_instructions().kinds if kind.level}
FACTS = LEVELS | PRECISIONS | KINDS | {*SPEC.sections.values()}
# What names one on purpose, and why; whole files where they are such a table.
ON_PURPOSE = {
    # Words of other programs, and what they mean.
    "formats/inputs/likwid.py": {"l2", "dram"},
    "formats/inputs/intel.py": {"l1", "l2", "dram", "fp32", "fp64", "fp64.fma", "fp64.nofma", "fp32.fma", "fp32.nofma"},
    "formats/inputs/nvprof.py": {"l1", "shared", "l2", "dram", "system", "fp64", "fp32", "fp16"},
    "formats/inputs/roof_files.py": {
        "l1",
        "l2",
        "dram",
        "fp64",
    },  # ERT: L1 is L2 on a GPU, double precision
    "analyses/hierarchical/text.py": {"l1", "shared", "l2", "dram", "system"},
    "formats/sectionfile/classify.py": {"l1", "shared", "l2", "dram", "system", "fp64", "fp32", "fp16", "tensor.fp64"},
    "formats/wire.py": {"int32"},  # a type of protobuf
    "plugin/generate/rules.py": {"fp64", "fp32"},  # the precisions that its findings are about
    # Hardware units, whose names begin counters.
    "plugin/generate/lowering.py": {"dram"},
    # What instructions of one kind do beyond what the specification says of them.
    "model/extract.py": {"shared", "dram"},  # wavefronts and asynchronous copies; a unit
    "model/work.py": {"fp16", "fp32", "bf16"},  # accumulators; HFMA2 loads constants, HADD2 converts, and both count BF16
    "plugin/generate/sections.py": {"inst.global_ld"},  # the kind whose walls the section has room for
    # What --help shows, which reads no data files.
    "cli/check.py": {"fp16"},
    "cli/source.py": {"int32"},
    # The columns of a public frame, fixed when it is imported.
    "model/columns.py": {"l1", "shared", "l2", "dram", "system"},
    "analyses/source/frames.py": {"shared", "fp64", "fp32", "fp16", "bf16", "int32"},
    "analyses/source/totals.py": {"shared"},
    "analyses/source/text.py": {"shared"},
    "analyses/source/build.py": {"fp64", "fp32"},
    # What types of operators of a trace are computed in.
    "analyses/run/frames.py": {"tensor.fp64"},
    "analyses/run/need.py": {
        *("fp64", "fp32", "tensor.fp64", "tensor.tf32", "tensor.bf16", "tensor.fp16", "tensor.fp8", "tensor.int8"),
    },
    # Words of the benchmark's ids for people, and the roofs of the names of its kernels.
    "bench/catalogue.py": {"l1", "l2", "dram", "fp64", "fp16", "tensor.fp16.acc16", "tensor.fp16.acc32", "tensor.fp8fp6fp4"},
    "bench/campaign.py": {"fp32.fma"},  # warms the GPU up
}


def constants(path: Path) -> Iterator[str]:
    """Texts in the code of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_ids_stand_once() -> None:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        named = FACTS.intersection(constants(path)) if place.parts[0] != "chips" else set()
        if named:
            found[place.as_posix()] = named
    assert found == ON_PURPOSE
