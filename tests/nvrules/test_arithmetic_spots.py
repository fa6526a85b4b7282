"""The rule on arithmetic: the places and sentences of the source view, from the text of instructions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.formats.report import Code, CodeFunction, Kernel, read_report
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.model.selection import Selection
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import RuleOutcome
from tests.analyses import source_made
from tests.analyses.source_launches import with_counts
from tests.factory import Metrics, by_address, complete, kernel, report
from tests.made_up_code import FOLDER
from tests.nvrules.running import our_rules, outcomes

RULE = "NcuRoofline" + "ArithmeticSpots"
BASE = 0x7000_0000
ISSUED, WAITED = "smsp__pcsamp_warps_issue_stalled_selected", "smsp__pcsamp_warps_issue_stalled_long_scoreboard"
SAMPLES = "smsp__pcsamp_sample_count"
TITLES = {
    "unfused": "Lines with multiplications and additions apart",
    "fp64-by-accident": "Lines with FP64 among FP32",
    "conversion": "Lines with slow conversions",
    "address": "Loops with much integer arithmetic",
    "integer": "Lines with integer arithmetic",
}
ADVICE = [
    text
    for kind in ("unfused", "fp64-by-accident", "conversion", "address", "integer")
    for text in (load_findings().kinds[kind].advice, load_findings().kinds[kind].other)
    if text
]


def of_rule(one: Kernel) -> RuleOutcome:
    (outcome,) = (found for found in our_rules().run(one) if found.identifier == RULE)
    assert outcome.status == "done", outcome
    return outcome


def told_by_rule(one: Kernel) -> dict[str, str]:
    """Title -> what is said, without advice."""
    texts = {}
    for said in of_rule(one).messages:
        text = said.text
        for advice in ADVICE:
            text = text.replace(f" {advice}", "")
        assert text != said.text
        texts[said.title] = text
    return texts


def told_by_view(path: Path, launch: int = 0) -> dict[str, list[str]]:
    """Title of the rule -> what is said, without the names of loops, which the rule does not number."""
    columns = source_roofline(path, select=Selection(launch=((launch, launch),))).finding_columns
    found: dict[str, list[str]] = {}
    for kind, message in zip(columns["finding"].tolist(), columns["message"].tolist(), strict=True):
        if kind in TITLES:
            found.setdefault(TITLES[kind], []).append(re.sub(r" (in|of) loop \d+ \([^)]*\)", "", message))
    return found


def compiled(path: Path, name: str, **extra: object) -> Path:
    """A report of a kernel of `arithmetic.cu` whose loops go round a hundred times."""
    cubin = (FOLDER / "arithmetic-sm80.cubin").read_bytes()
    _, counts = source_made.counts(Cubin(cubin).functions[name], 100)
    launch = kernel(
        {**complete(), "smsp__pcsamp_sample_count": sum(counts[SAMPLES])},
        name,
        mangled_name=name,
        code=Code(cubin, (), (CodeFunction(name, BASE),)),
        instances={**by_address(BASE, **counts), **extra},
    )
    return report(path / f"{name}.ncu-rep", launch)


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("apart", "unfused", "arithmetic.cu:7: multiplications and additions in FP32 and no fused ones. 100 % of the"),
        (
            "accident",
            "fp64-by-accident",
            "arithmetic.cu:18: FP64 arithmetic between conversions in a kernel whose work is FP32",
        ),
        (
            "divided",
            "conversion",
            "arithmetic.cu:28: conversions (I2F 50 %, F2I 50 %), as divisions of integers make them, are",
        ),
        ("converted", "conversion", "arithmetic.cu:39: conversions (F2I 100 %) are"),
    ],
)
def test_rule_and_view_say_the_same_of_the_same_line(tmp_path: Path, name: str, title: str, said: str) -> None:
    path = compiled(tmp_path, name)
    with read_report(path) as opened:
        by_rule, outcome = told_by_rule(opened.kernels[0]), of_rule(opened.kernels[0])
    assert {key: [text] for key, text in by_rule.items()} == told_by_view(path)
    assert by_rule[TITLES[title]].startswith(said)
    assert all(message.type == "optimization" for message in outcome.messages)
    assert outcome.markers == 2 * len(by_rule)  # of the instruction and of its line


def spots(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    texts: Sequence[str],
    beside: Metrics | None = None,
    lines: Sequence[int] = (),
    **counts: Sequence[float],
) -> dict[str, str]:
    """Title -> what the rule says of instructions with these texts, each executed a hundred times with all lanes."""
    count = len(texts)
    known = {"inst_executed": [100] * count, "thread_inst_executed_true": [3200] * count, **counts}
    at = {BASE + 16 * index: text for index, text in enumerate(texts)}
    monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address: at.get(address, ""))
    if lines:
        infos = {BASE + 16 * index: Line(line) for index, line in enumerate(lines)}
        monkeypatch.setattr(IAction, "source_info", lambda _, address: infos.get(address))
    metrics: Metrics = {**complete(), **{name: sum(values) for name, values in known.items()}, **(beside or {})}
    outcome = outcomes(folder, metrics, instances=by_address(BASE, **known))[RULE]
    assert outcome.status == "done", outcome
    return {said.title: said.text for said in outcome.messages}


class Line:
    """What the rule asks of a line."""

    def __init__(self, number: int) -> None:
        self._number = number

    def line(self) -> int:
        """Its number."""
        return self._number

    def file_name(self) -> str:
        """Its file."""
        return "/src/k.cu"


# As Nsight Compute spells them.
LOOP = (
    "      FMUL R8, R2, R7",
    "@!P1  FADD.FTZ R9, R8, R9",
    "      HFMA2.MMA R3, -RZ, RZ, 0, 0",
    "@!P0  BRA P1, 0x70000000",
    "      EXIT",
)
UNFUSED = TITLES["unfused"]


def test_code_without_lines_is_named_by_its_offsets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (text,) = spots(monkeypatch, tmp_path, LOOP).values()
    assert text.startswith("Offset 0x10: multiplications and additions in FP32 and no fused ones. 100 % of the kernel's op")
    found = spots(monkeypatch, tmp_path, ["F2I R1, R2", "I2F R1, R1", "LDG.E R3, [R2]"])
    assert found[TITLES["conversion"]].startswith("Offset 0x0 to 0x10: conversions (F2I 50 %, I2F 50 %) are 67 % of")


@pytest.mark.parametrize(
    "texts",
    [
        ("FMUL R8, R2, R7", "DADD R8, R8, R9"),
        ("FMUL R8, R2, R7", "FADD R9, R8, R9", "FFMA R1, R2, R3, R4"),
        ("FMUL R8, R2, R7", "BRA 0x70000020", "FADD R9, R8, R9"),  # of two blocks
        ("HMUL2 R8, R2, R7", "HADD2.F32 R9, -RZ, R8.H0_H0"),  # a conversion
        ("FMUL R8, R2, R7", "FADD R9, R8, R9", "FMULTIPLY R1, R2, R3"),  # nobody knows how much work there is
        ("FMUL R8, R2, R7", "FADD R9, R8, R9", "HMMA.16816.F32 R1, R2, R3, R4"),
        ("FMUL R8, R2, R7", "FADD R9, R8, R9", "op 0x1a3"),
        ("FMUL R8, R2, R7", "FADD R9, R8, R9", "BRX R4 -0x70000000"),  # loops that nobody knows
    ],
)
def test_what_is_not_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: Sequence[str]) -> None:
    assert spots(monkeypatch, tmp_path, texts) == {}


@pytest.mark.parametrize("count", [3201, 10**6])
def test_more_threads_than_there_are_tell_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int) -> None:
    assert spots(monkeypatch, tmp_path, LOOP, thread_inst_executed_true=[3200, 3200, 3200, 3200, count]) == {}


def test_where_warps_wait_in_the_loop_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The instructions behind the loop are not part of it, those before a jump back to its beginning are."""
    for waited, said in (([0, 600, 0, 0, 0], False), ([0, 400, 0, 0, 600], True)):
        counts = {ISSUED: [500, 0, 0, 0, 0], WAITED: waited, SAMPLES: [500 + waited[0], *waited[1:]]}
        assert bool(spots(monkeypatch, tmp_path, LOOP, **counts)) is said
        del counts[SAMPLES]  # then the reasons together
        assert bool(spots(monkeypatch, tmp_path, LOOP, **counts)) is said


def test_loops_are_natural_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Behind the end of the code stands what is jumped to from the loop and back into it: the loop has both, and not EXIT."""
    texts = (*LOOP, "FADD R1, R1, R2", "BRA 0x70000020")
    texts = (texts[0], "@P2 BRA 0x70000050", *texts[2:])
    counts = {ISSUED: [500, 0, 0, 0, 0, 0, 0], WAITED: [0, 0, 0, 0, 900, 0, 0], SAMPLES: [500, 0, 0, 0, 900, 0, 0]}
    lines = [1, 2, 3, 3, 4, 1, 2]
    assert spots(monkeypatch, tmp_path, ("I2F R1, R2", *texts[1:]), lines=lines, **counts)
    counts[WAITED], counts[SAMPLES] = [0, 0, 0, 0, 0, 900, 0], [500, 0, 0, 0, 0, 900, 0]
    assert not spots(monkeypatch, tmp_path, ("I2F R1, R2", *texts[1:]), lines=lines, **counts)


def test_integer_arithmetic_is_of_loops_of_floating_point_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = ("IMAD R1, R2, R3, R4", "IADD3 R1, R1, 0x1, RZ", "FFMA R9, R8, R7, R9", "@P0 BRA 0x70000000", "EXIT")
    found = spots(monkeypatch, tmp_path, texts, lines=[5, 6, 7, 5, 8])
    assert found[TITLES["address"]].startswith(
        "k.cu:5 and 1 more line: 50 % of the loop's own warp instructions (loops inside left out) are integer arithmetic, "
        "as indices and addresses need it "
        "(IMAD 50 %, IADD3 50 %): 40 % of the kernel's. Move what"
    )
    for others in (
        ("IMAD.MOV.U32 R1, RZ, RZ, R4", *texts[1:]),
        (*texts[:2], "LDG.E R1, [R2]", *texts[3:]),
        (*texts[:3], "NOP", "EXIT"),
    ):
        assert spots(monkeypatch, tmp_path, others, lines=[5, 6, 7, 5, 8]) == {}


def test_conversions_beside_fp64_are_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = ["F2F.F64.F32 R2, R1", "DMUL R2, R2, R4", "F2F.F32.F64 R1, R2", *["FFMA R9, R8, R7, R9"] * 3]
    assert set(spots(monkeypatch, tmp_path, texts, lines=[5, 5, 5, 6, 7, 8])) == {TITLES["fp64-by-accident"]}
    texts[3:] = ["DFMA R4, R4, R4, R4"] * 3  # FP64 is meant, and its conversions are told as such
    assert set(spots(monkeypatch, tmp_path, texts, lines=[5, 5, 5, 6, 7, 8])) == {TITLES["conversion"]}


def test_fp64_apart_is_told_beside_more_fp32_without_conversions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = ["FMUL R1, R1, R2", "FADD R1, R1, R2", *["FMUL R1, R1, R2"] * 2, "DMUL R2, R2, R4", "DADD R2, R2, R4"]
    found = spots(monkeypatch, tmp_path, texts, lines=[5, 5, 6, 6, 7, 7])
    assert set(found) == {TITLES["unfused"]}
    assert "k.cu:7: multiplications and additions in FP64" in found[TITLES["unfused"]]


def test_releases_that_tell_no_instructions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with read_report(compiled(tmp_path, "apart")) as opened:
        assert of_rule(opened.kernels[0]).messages
        monkeypatch.delattr(IAction, "sass_by_pc")
        assert of_rule(opened.kernels[0]).messages == ()


@pytest.mark.parametrize(
    ("opcodes", "asked"),
    [
        ([("FFMA", 900), ("FADD.FTZ", 50), ("FMUL", 50)], False),
        ([("FFMA", 90), ("FADD.FTZ", 450), ("FMUL", 460)], True),
        ([("FFMA", 900), ("I2F.RP", 100)], True),
        ([("FFMA", 980), ("I2F.RP", 20)], False),
        ([("FFMA", 980), ("DMUL", 10), ("F2F.F64.F32", 10)], True),
        ([("FFMA", 900), ("IMAD.WIDE", 100)], True),
    ],
)
def test_instructions_are_asked_for_where_counts_by_opcode_leave_something(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opcodes: list[tuple[str, float]], asked: bool
) -> None:
    names = (
        f"sass__{what}_executed{true}_per_opcode_with_modifier_all" for what, true in (("thread_inst", "_true"), ("inst", ""))
    )
    instances = {**by_address(BASE, inst_executed=[100]), **dict.fromkeys(names, opcodes)}
    calls: list[int] = []
    monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address: str(calls.append(address) or ""))
    metrics = {**complete(), "inst_executed": 100, **dict.fromkeys(set(instances) - {"launch__function_pcs"}, 1000)}
    assert outcomes(tmp_path, metrics, instances=instances)[RULE].messages == ()
    assert bool(calls) is asked


def test_of_large_code_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nsight Compute takes 0.15 ms for an instruction."""
    calls: list[int] = []
    monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address: str(calls.append(address) or ""))
    for executed, number in (([1] * 3000 + [0] * 3000, 3000), ([1] * 3001, 0)):
        calls.clear()
        metrics = {**complete(), "inst_executed": sum(executed)}
        outcomes(tmp_path, metrics, instances=by_address(BASE, inst_executed=executed))
        assert len(calls) == number


def test_jumps_in_all_directions_take_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The search for loops ends, and without them nothing is said."""
    for count, said in ((100, True), (3000, False)):
        texts = ["I2F R1, R2", *(f"@P0 BRA {BASE + 16 * (index * 7919 % count):#x}" for index in range(1, count))]
        counts = [10_000, *[1] * (count - 1)]
        assert bool(spots(monkeypatch, tmp_path, texts, inst_executed=counts)) is said


def test_what_rules_are_told_of_instructions(tmp_path: Path) -> None:
    with read_report(compiled(tmp_path, "apart")) as opened:
        action = IAction(opened.kernels[0])
        texts = [action.sass_by_pc(BASE + 16 * index) for index in range(40)]
    assert {"FMUL", "FADD", "@P BRA 0x700000f0", "EXIT", "BRA 0x700001f0", "HFMA2.MMA -RZ, RZ"} < set(texts)


def test_the_rule_says_no_more_than_the_view(real_reports: dict[str, Path]) -> None:
    """Shares and kinds on real reports; lines differ where code is inlined."""
    said = 0
    for path in with_counts(real_reports):
        with read_report(path) as opened:
            for launch, one in enumerate(opened.kernels[:4]):
                told = told_by_rule(one)
                by_view = told_by_view(path, launch) if told else {}
                for title, text in told.items():
                    said += 1
                    assert text.partition(": ")[2] in [other.partition(": ")[2] for other in by_view.get(title, ())]
    assert said == 5
