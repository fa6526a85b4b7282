"""What reports say: of the writer, of traps met in real files, each as the smallest file that has it, and of damaged ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Code, CodeFunction, FocusMetric, ImportedFile, RuleMessage, RuleResult, metrics
from ncu_roofline.formats.report.framing import message
from tests.golden import assert_golden
from tests.report.damaged import DAMAGED
from tests.report.factory import DEVICE, block, encoded, file_of, from_text, saxpy, write
from tests.report.transcript import transcript

GOLDEN = Path(__file__).with_name("golden")
FOCUS = (FocusMetric("dram__bytes.sum", 1.5, "high", "why"), FocusMetric("a", severity="77"))
SAID = (RuleMessage("warning", "text", "title", 3, 12.5, "global", FOCUS), RuleMessage("ok", "fine"))
RULE = RuleResult("MyRule", "My rule", "MySection", (*SAID, RuleMessage("optimization", "do"), RuleMessage("99", "later")))
CODE = Code(
    cubin=b"\x7fELF" + bytes(range(20)),
    files=(ImportedFile("/home/u/a.cu", "__global__ void saxpy() {}\n"), ImportedFile("empty.h", "")),
    functions=(CodeFunction("_Z5saxpyv", 0x7F31_0000_0100, 7), CodeFunction("helper", 0x7F31_0000_1100)),
)
ODD = {"big": 2**64, "negative": -3, "largest": 2**64 - 1, "nan": math.nan, "infinite": -math.inf, "yes": True}
COUNTS = {"only__instances": [(1, 2.5), (None, 3)], "dram__bytes.sum": [("FADD", "x")], "none": []}
H100 = {**DEVICE, "device__attribute_device_index": 1, "device__attribute_display_name": "NVIDIA H100"}
del H100["device__attribute_compute_capability_major"]
KERNELS = [
    saxpy(0, instances=COUNTS, nvtx=("a", "b")),
    saxpy(1, sections=(b"\x0a\x01A", b"\x0a\x01B"), rule_results=(RULE,), clock_locked=True, code=CODE),
    saxpy(2, metrics=ODD, code=replace(CODE)),
    saxpy(3, metrics={}, code=Code(functions=CODE.functions[1:])),
]
ALL = {"nvtx": ("r",), "sections": (b"\x0a\x01A",), "rule_results": (RULE,), "clock_locked": False}
WRITTEN: dict[str, bytes] = {
    "kernels": encoded(KERNELS),
    "nothing": encoded([]),
    "several devices": encoded([saxpy(metrics=metrics) for metrics in (DEVICE, H100, DEVICE, {})]),
    **{kind: encoded([saxpy(kind=kind, **ALL)]) for kind in ("kernel", "range", "cmdlist", "graph")},
    "a name without end": file_of(block([message("KernelHead")(demangled=b"a" * 1_000_001).SerializeToString()], kernels=1)),
}


@pytest.mark.parametrize("name", ["written", "damaged"])
def test_what_a_report_says(tmp_path: Path, name: str) -> None:
    def broken(change: Callable[[bytes], bytes]) -> bytes:
        return change(encoded([saxpy(0, code=CODE), saxpy(1), saxpy(2)]))

    assert RULE.speedup == 12.5
    cases = WRITTEN if name == "written" else {name: broken(change) for name, change in DAMAGED.items()}
    said = [f"=== {case}\n{transcript(write(tmp_path, data))}\n" for case, data in cases.items()]
    assert_golden(GOLDEN / f"{name}.txt", "".join(said))


def test_what_small_reports_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that begin with ">" are the report; those behind, what is read of it."""
    monkeypatch.setattr(metrics, "_MOST_ENTRIES", 100)
    found = ""
    for case in (GOLDEN / "traps.txt").read_text("utf-8").removeprefix("=== ").split("\n=== "):
        name, *lines = case.splitlines()
        given = list(takewhile(lambda line: line.startswith("> "), lines))
        said = transcript(write(tmp_path, from_text(line[2:] for line in given)))
        found += "\n".join([f"=== {name}", *given, said, ""])
    assert_golden(GOLDEN / "traps.txt", found)
