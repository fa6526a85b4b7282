"""The code in real reports: names and work of instructions against nvdisasm and against the counts by opcode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sass.cubin import Cubin, Function
from ncu_roofline.formats.sass.instructions import SIZE, control_flow, decode
from ncu_roofline.plugin.machine.machine import disassemble
from tests.analyses.source_launches import with_counts
from tests.sass.oracle import nvdisasm
from tests.sass.test_instructions import check

pytestmark = pytest.mark.reports
OLDEST = (7, 5)
"""That nvdisasm 13 knows."""
REPORTS = [
    "a100-ncu2020.3-full-1", "a100-ncu2021.2-custom-sections-1", "a100-ncu2021.2-full-1", "a100-ncu2022.4-full-1",
    "a40-ncu2022.1-full-1", "a40-ncu2022.4-full-1", "rtx3090-ncu2023.1-full-1",
]  # fmt: skip


def kernels(path: Path) -> Iterator[tuple[Kernel, Cubin]]:
    """The launches whose code the report has."""
    cubins: dict[bytes, Cubin] = {}
    with read_report(path) as report:
        for kernel in report.kernels:
            if kernel.code and kernel.code.cubin:
                data = kernel.code.cubin
                yield kernel, cubins.get(data) or cubins.setdefault(data, Cubin(data))


def functions(path: Path) -> Mapping[bytes, tuple[Cubin, Function]]:
    """The functions that were launched, each code once."""
    found = {}
    for kernel, cubin in kernels(path):
        if function := cubin.functions.get(kernel.mangled_name):
            found[function.code] = cubin, function
    return found


@pytest.mark.parametrize("name", REPORTS)
def test_instructions_are_those_of_nvdisasm(real_reports: dict[str, Path], name: str) -> None:
    tool, path, compared = nvdisasm(), real_reports.get(f"{name}.ncu-rep"), 0
    if path is None:
        pytest.skip("this report is not in the collection")
    for cubin, function in functions(path).values():
        assert cubin.capability
        assert cubin.capability >= OLDEST
        [texts] = disassemble([function.code], cubin.capability, tool)
        instructions = decode(function.code, cubin.capability)
        assert sorted(texts) == [one.offset for one in instructions] == list(range(0, len(function.code), SIZE))
        for one in instructions:
            check(one, texts[one.offset], cubin.capability, len(function.code))
        flow = control_flow(instructions, cubin.jump_tables(function.name))
        starts = {block.start for block in flow.blocks}
        assert {one.target for one in instructions if one.flow == "branch" and one.target is not None} <= starts
        compared += len(instructions)
    assert compared > 100


@pytest.mark.parametrize("name", [*REPORTS, "v100-ncu2022.2-full-1", "v100-ncu2022.2-full-2"])
def test_counts_by_address_are_counts_by_opcode(real_reports: dict[str, Path], name: str) -> None:
    """Both are of one pass, so they are the same to the last warp where all counted code is in the cubin."""
    path, compared = real_reports.get(f"{name}.ncu-rep"), 0
    if path is None:
        pytest.skip("this report is not in the collection")
    assert path in with_counts(real_reports)
    for kernel, cubin in kernels(path):
        metrics, metric = kernel.metrics, "sass__inst_executed_per_opcode"
        base, function = kernel.base_address(), cubin.functions.get(kernel.mangled_name)
        if not metrics.has_name("inst_executed") or not metrics.has_name(metric) or base is None or function is None:
            continue
        addresses, values = metrics.by_address("inst_executed")
        if any(not base <= one < base + len(function.code) for one in addresses):
            continue  # functions that it calls were counted, too
        instructions = decode(function.code, cubin.capability)
        ours: Counter[str] = Counter()
        for address, value in zip(addresses, values, strict=True):
            ours[instructions[(address - base) // SIZE].name] += int(value)
        theirs = {str(opcode): int(count) for opcode, count in metrics.instances(metric) if count}
        if not ours or not theirs:
            continue
        assert +ours == theirs, f"{path.name} {kernel.mangled_name}"
        compared += 1
    assert compared
