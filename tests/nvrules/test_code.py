"""Rules on places of the code: what they see of it, the sentences of the source view, and the lines that ncu tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.report import Code, CodeFunction, Kernel, read_report
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.model.selection import Selection
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import RuleOutcome
from tests.analyses import source_made
from tests.analyses.source_launches import with_counts
from tests.factory import by_address, complete, kernel, report
from tests.made_up_code import FOLDER
from tests.nvrules.running import our_rules, outcomes

SMOOTH = Path(ncu_roofline.__file__).parent / "data" / "demo" / "smooth-made-up.ncu-repz"
BASE = 0x7000_0000
HOT_SPOTS, ARITHMETIC = "NcuRooflineHotSpots", "NcuRooflineArithmeticSpots"
TITLES = {
    "unfused": "Lines with unfused multiplies and adds",
    "fp64-by-accident": "Lines with FP64 in FP32 code",
    "conversion": "Lines with slow conversions",
    "address": "Loops with much integer arithmetic",
    "integer": "Lines with integer arithmetic",
}
ADVICE = [text for kind in TITLES for text in (load_findings().kinds[kind].advice, load_findings().kinds[kind].other) if text]
_V100, _A100 = "v100-ncu2022.2-full-1.ncu-rep", "a100-ncu2022.4-full-1.ncu-rep"


def of_rule(one: Kernel, rule: str = HOT_SPOTS) -> RuleOutcome:
    (outcome,) = (found for found in our_rules().run(one) if found.identifier == rule)
    assert outcome.status == "done", outcome
    return outcome


def spoken(one: Kernel) -> list[str]:
    return [" ".join(said.text.split(" ")[:3]) for said in of_rule(one).messages]


def by_view(path: Path, launch: int = 0) -> list[tuple[str, float, str, str]]:
    """Kind, share, message and advice of the findings of the source view."""
    columns = source_roofline(path, select=Selection(launch=((launch, launch),))).finding_columns
    return list(zip(*(columns[name].tolist() for name in ("finding", "share", "message", "advice")), strict=True))


@pytest.fixture
def real(real_reports: dict[str, Path]) -> Callable[[str], Path]:
    return lambda name: real_reports.get(name) or pytest.skip(f"no {name}")


def test_what_rules_see_of_the_code() -> None:
    with read_report(SMOOTH) as opened:
        one = opened.kernels[0]
        action, (addresses, _) = IAction(one), one.metrics.by_address("inst_executed")
        infos = [action.source_info(address) for address in addresses]
        assert ("smooth.cu", 13) in {(info.file_name().rpartition("/")[2], info.line()) for info in infos if info is not None}
        assert action.source_info(addresses[0] - 16) is None
        assert (action.source_info(0), action.sass_by_pc(0)) == (None, "")
        assert {"FFMA", "EXIT"} <= {action.sass_by_pc(address) for address in addresses}
        assert any(name.endswith("smooth.cu") and "__global__" in text for name, text in action.source_files().items())
        outcome = of_rule(one)
    advice = [said.text for said in outcome.messages if said.type == "optimization"]
    assert outcome.markers == 2 * len([text for said in advice for text in said.split(".cu:")[1:]])
    assert any("smooth.cu:16" in text for text in advice)


def test_code_that_is_not_there_or_damaged(tmp_path: Path) -> None:
    for code in (None, Code(), Code(cubin=b"\x7fELF and no more")):
        data = kernel(complete(), code=code, instances=by_address(BASE, inst_executed=[1, 2]))
        with read_report(report(tmp_path / "r.ncu-rep", replace(data, mangled_name="k"))) as opened:
            action = IAction(opened.kernels[0])
            assert (action.source_info(BASE), action.sass_by_pc(BASE), action.source_files()) == (None, "", {})


def test_inactive_lanes_of_a_line_are_told_alike_by_rule_and_view(tmp_path: Path) -> None:
    """A line, in no loop, that few lanes reach, of code compiled by us."""
    with read_report(SMOOTH) as opened:
        one = opened.kernels[0]
        addresses, infos = one.metrics.by_address("inst_executed")[0].tolist(), IAction(one)
        found = {address: infos.source_info(address) for address in addresses}
        mine = {address for address, info in found.items() if info is not None and info.line() == 13}
        executed = [(address, 100) for address in addresses]
        active = [(address, 800 if address in mine else 3200) for address in addresses]
        counts = {"inst_executed": executed, "thread_inst_executed": active}
        metrics = {**complete(), "launch__block_size": 256, **{name: sum(dict(one).values()) for name, one in counts.items()}}
        instances = {"launch__function_pcs": [(0, one.base_address())], **counts}
        data = replace(kernel(metrics, code=one.code, instances=instances), mangled_name=one.mangled_name)
    path = report(tmp_path / "few.ncu-rep", data)
    with read_report(path) as opened:
        outcome = of_rule(opened.kernels[0])
    (said,) = outcome.messages
    (message,) = (message for kind, _, message, _ in by_view(path) if kind == "divergence")
    share = as_percent(len(mine) / len(addresses))
    assert said.text.startswith(f"smooth.cu:13: 8.0 of 32 lanes are active in {share} of the kernel's warp instructions. Sort")
    assert message.partition(": ")[2] == said.text.partition(": ")[2].partition(" Sort")[0]
    assert outcome.markers == 2


def test_lines_are_those_that_ncu_tells_its_rules(real: Callable[[str], Path]) -> None:
    """What ncu-ui 2024.1 said when it ran this rule on these reports; 0xc10 has three rows, each inlined in the one before."""
    with read_report(real("rtx3090-ncu2023.1-full-1.ncu-rep")) as opened:
        one = opened.kernels[0]
        info = IAction(one).source_info((one.base_address() or 0) + 0xC10)
        assert info is not None
        assert (info.file_name().rpartition("/")[2], info.line()) == ("sortRowMajor.hxx", 101)
        assert spoken(one) == ["util.hxx:48: 27 %", "sortRowMajor.hxx:101: 13 %"]
    with read_report(real(_V100)) as opened:
        file = "miniWeather_mpi_openacc.F90"
        assert spoken(opened.kernels[0]) == [f"{file}:401 and 1", f"{file}:400: 55 %", f"{file}:400 and 1"]


@pytest.mark.parametrize("launch", [0, *(pytest.param(other, marks=pytest.mark.exhaustive) for other in (1, 2))])
def test_stalls_are_told_alike_by_rule_and_view(launch: int, real: Callable[[str], Path]) -> None:
    path = real("v100-ncu2022.2-full-2.ncu-rep")
    stalls = [(message, advice) for kind, _, message, advice in by_view(path, launch) if kind == "stall"]
    told = {re.findall(r" \(([a-z_]+)\)\. ", message)[0]: f"{message} {advice}" for message, advice in stalls}
    with read_report(path) as opened:
        texts = [said.text for said in of_rule(opened.kernels[launch]).messages if said.title.startswith("Warp stall")]
    both = [(text, reason) for text in texts for reason in told if f" ({reason})" in text]
    assert both
    assert all(told[reason].partition(f"({reason}). ")[2] in text for text, reason in both)


def test_shares_are_those_that_the_view_tells(real: Callable[[str], Path]) -> None:
    """Of called functions without lines (the slow path of divisions), of a line, and of inactive lanes without lines."""
    found = by_view(real(_V100), 2)
    with read_report(real(_V100)) as opened:
        one, title = opened.kernels[2], "Called functions without lines"
        (said,) = (said for said in of_rule(one).messages if said.title == title)
        assert title not in [other.title for other in of_rule(opened.kernels[0]).messages]
        told = re.findall(r"without source lines: [^:]+: (\S+ %) of the kernel's samples", said.text)
        assert told == [as_percent(share) for kind, share, *_ in found if kind == "called-library"]
        stall = next(text for kind, _, text, _ in found if kind == "stall")
        (place, share), *_ = re.findall(r"(\S+:\d+)\b.*?: (\S+ %) of", stall)
        assert spoken(one)[0] == f"{place}: {share}"
    shares = [as_percent(share) for kind, share, *_ in by_view(real(_A100)) if kind == "divergence"]
    with read_report(real(_A100)) as opened:
        (said,) = (said for said in of_rule(opened.kernels[0]).messages if said.title == "Lines with inactive lanes")
    assert re.findall(r"active in (\S+ %)", said.text) == shares
    assert len(shares) == 2


def arithmetic_of_rule(one: Kernel) -> dict[str, str]:
    """Title -> what the rule on arithmetic says, without advice."""
    texts = {}
    for said in of_rule(one, ARITHMETIC).messages:
        (advice,) = (f" {text}" for text in ADVICE if f" {text}" in said.text)
        texts[said.title] = said.text.replace(advice, "")
    return texts


def arithmetic_of_view(path: Path, launch: int = 0) -> dict[str, list[str]]:
    """Title of the rule -> what the view says, without the names of loops, which the rule does not number."""
    found: dict[str, list[str]] = {}
    for kind, _, message, _ in by_view(path, launch):
        if kind in TITLES:
            found.setdefault(TITLES[kind], []).append(re.sub(r" (in|of) loop \d+ \([^)]*\)", "", message))
    return found


def compiled(folder: Path, name: str) -> Path:
    """A report of a kernel of `arithmetic.cu` whose loops go round a hundred times."""
    cubin = (FOLDER / "arithmetic-sm80.cubin").read_bytes()
    _, counts = source_made.counts(Cubin(cubin).functions[name], 100)
    code = Code(cubin, (), (CodeFunction(name, BASE),))
    metrics = {**complete(), "smsp__pcsamp_sample_count": sum(counts["smsp__pcsamp_sample_count"])}
    launch = kernel(metrics, name, mangled_name=name, code=code, instances=by_address(BASE, **counts))
    return report(folder / f"{name}.ncu-rep", launch)


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("apart", "unfused", "7: FP32 multiplies and adds, none fused. 100 % of the"),
        ("accident", "fp64-by-accident", "18: FP64 arithmetic between conversions in a kernel whose work is FP32"),
        ("divided", "conversion", "28: conversions (I2F 50 %, F2I 50 %), as in integer divisions, are"),
        ("converted", "conversion", "39: conversions (F2I 100 %) are"),
    ],
)
def test_arithmetic_is_told_alike_by_rule_and_view(tmp_path: Path, name: str, title: str, said: str) -> None:
    path = compiled(tmp_path, name)
    with read_report(path) as opened:
        by_rule, outcome = arithmetic_of_rule(opened.kernels[0]), of_rule(opened.kernels[0], ARITHMETIC)
    assert {key: [text] for key, text in by_rule.items()} == arithmetic_of_view(path)
    assert by_rule[TITLES[title]].startswith(f"arithmetic.cu:{said}")
    assert outcome.markers == 2 * len(by_rule)  # of the instruction and of its line


def test_the_rule_on_arithmetic_says_no_more_than_the_view(real_reports: dict[str, Path]) -> None:
    """Shares and kinds on real reports; lines differ where code is inlined."""
    said = 0
    for path in with_counts(real_reports):
        with read_report(path) as opened:
            for launch, one in enumerate(opened.kernels[:4]):
                told = arithmetic_of_rule(one)
                view = arithmetic_of_view(path, launch) if told else {}
                for title, text in told.items():
                    said += 1
                    assert text.partition(": ")[2] in [other.partition(": ")[2] for other in view.get(title, ())]
    assert said == 5


def test_texts_of_instructions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As rules are told them; releases that tell none are told nothing."""
    with read_report(compiled(tmp_path, "apart")) as opened:
        action = IAction(opened.kernels[0])
        texts = {action.sass_by_pc(BASE + 16 * index) for index in range(40)}
        assert {"FMUL", "FADD", "@P BRA 0x700000f0", "EXIT", "BRA 0x700001f0", "HFMA2.MMA -RZ, RZ"} < texts
        monkeypatch.delattr(IAction, "sass_by_pc")
        assert of_rule(opened.kernels[0], ARITHMETIC).messages == ()


def test_of_large_code_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nsight Compute takes 0.15 ms for an instruction."""
    asked: list[int] = []
    monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address: str(asked.append(address) or ""))
    for executed, number in (([1] * 3000 + [0] * 3000, 3000), ([1] * 3001, 0)):
        asked.clear()
        metrics = {**complete(), "inst_executed": sum(executed)}
        outcomes(tmp_path, metrics, instances=by_address(BASE, inst_executed=executed))
        assert len(asked) == number


def test_jumps_in_all_directions_take_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The search for loops ends, and without them nothing is said."""
    for count, expected in ((100, True), (3000, False)):
        jumps = [f"@P0 BRA {BASE + 16 * (index * 7919 % count):#x}" for index in range(1, count)]
        at = {BASE + 16 * index: text for index, text in enumerate(["I2F R1, R2", *jumps])}
        monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address, at=at: at.get(address, ""))
        counts = {"inst_executed": [10_000, *[1] * (count - 1)], "thread_inst_executed_true": [3200] * count}
        metrics = {**complete(), **{name: sum(values) for name, values in counts.items()}}
        outcome = outcomes(tmp_path, metrics, instances=by_address(BASE, **counts))[ARITHMETIC]
        assert bool(outcome.messages) is expected
