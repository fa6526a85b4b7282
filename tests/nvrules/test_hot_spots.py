"""The rule on hot spots: places, shares and markers; and what rules see of the code of a kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.report import Code, Kernel, read_report
from ncu_roofline.model.selection import Selection
from ncu_roofline.plugin.nvrules.interface import IAction, ISourceInfo
from ncu_roofline.plugin.nvrules.runner import RuleOutcome
from tests.factory import V100, Metrics, by_address, complete, kernel, report, traffic
from tests.nvrules.running import our_rules, outcomes

SMOOTH = Path(ncu_roofline.__file__).parent / "data" / "demo" / "smooth-made-up.ncu-repz"
BASE = 0x7000_0000
RULE = "NcuRoofline" + "HotSpots"
STALLED = "smsp__pcsamp_warps_issue_stalled_"
SECTORS = "memory_l2_theoretical_sectors_global"
WAVEFRONTS = "memory_l1_wavefronts_shared"
BLOCK = "launch__block_size"
OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"
ACTIVE, THREADS = "thread_inst_executed", "thread_inst_executed_true"
REASON = re.compile(r" \(([a-z_]+)\)\. ")
LOCAL = "memory_l2_theoretical_sectors_local"
L1_FULL: Metrics = {"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 90.0}


def hot_spots(
    folder: Path, beside: Metrics | None = None, opcodes: Sequence[str] = (), **counts: Sequence[float]
) -> RuleOutcome:
    """What the rule says of instructions with these counts, without code; each of the ``opcodes`` was executed 100 times."""
    instances: dict[str, Any] = by_address(BASE, **counts)
    if opcodes:
        counts[OPCODES] = [100.0] * len(opcodes)
        instances[OPCODES] = [(opcode, 100) for opcode in opcodes]
    metrics: Metrics = {**complete(), **{name: sum(values) for name, values in counts.items()}, **(beside or {})}
    outcome = outcomes(folder, metrics, instances=instances)[RULE]
    assert outcome.status == "done", outcome
    return outcome


def test_nothing_is_said_without_counts_by_instruction(tmp_path: Path) -> None:
    assert outcomes(tmp_path, complete())[RULE].messages == ()


def l1_full(sectors: int) -> Metrics:
    """Beside other counts: so many sectors asked of L1, which limits the kernel at 90 %."""
    return {**traffic(32 * sectors, 100, 100), **L1_FULL}


def test_excess_sectors(tmp_path: Path) -> None:
    counts = {"inst_executed": [100, 100, 100], SECTORS: [3200, 400, 0], f"{SECTORS}_ideal": [400, 400, 0]}
    outcome = hot_spots(tmp_path, l1_full(5600), **counts)
    (said,) = outcome.messages
    assert (said.type, said.title) == ("optimization", "Lines that ask for too many sectors")
    assert said.text == (
        "Offset 0x0: 4.0 of the 32 bytes of a sector are needed. These accesses make 89 % of the kernel's traffic of global "
        f"memory at L1; of all that traffic 78 % would be saved. {load_findings().kinds['excess'].advice}"
    )
    assert (said.speedup, said.speedup_type) == (pytest.approx(50 * 0.9), "global")  # half of all that L1 is asked for
    assert [(focus.name, focus.value) for focus in said.focus] == [(SECTORS, 3600)]
    assert outcome.markers == 1  # the instruction; it has no line


def test_what_does_not_limit_the_kernel_is_a_note(tmp_path: Path) -> None:
    """Without a number, nor a mark in the source."""
    counts = {
        "inst_executed": [100, 100],
        SECTORS: [3200, 400],
        f"{SECTORS}_ideal": [400, 400],
        WAVEFRONTS: [400, 100],
        f"{WAVEFRONTS}_ideal": [100, 100],
        LOCAL: [0, 3000],
    }
    dram: Metrics = traffic(2 * 10**9, 10**7, 14 * 10**8)
    waits = {f"{STALLED}barrier": [0, 300], f"{STALLED}selected": [700, 0]}
    for beside, verdict in (({}, "latency"), (dram, "memory: DRAM")):
        outcome = hot_spots(tmp_path, beside, **counts, **(waits if beside else {}))
        assert len(outcome.messages) == (4 if beside else 3)
        assert {(said.type, said.speedup) for said in outcome.messages} == {("ok", None)}
        assert all(
            said.text.endswith(f" As far as is known it is not what limits the kernel (verdict: {verdict}).")
            for said in outcome.messages
        )
        assert outcome.markers == 0


def test_gaps_between_few_lanes_are_no_scattered_addresses(tmp_path: Path) -> None:
    """16 lanes of 8 bytes: up to 8 sectors for a warp are those that a whole one takes."""
    counts = {"inst_executed": [100, 100], THREADS: [1600, 3200], SECTORS: [1200, 0], f"{SECTORS}_ideal": [400, 0]}
    scattered, gaps = hot_spots(tmp_path, l1_full(1200), **counts).messages
    assert "of all that traffic 33 % would be saved." in scattered.text
    assert gaps.text.startswith("Offset 0x0: 10.7 of the 32 bytes of a sector are needed, as 16.0 of 32 lanes take part: whole")
    assert "gaps are up to 33 % of all that traffic. Sort or compact work" in gaps.text
    (only,) = hot_spots(tmp_path, l1_full(600), **{**counts, SECTORS: [600, 0]}).messages
    assert only.title == "Lines that ask for parts of sectors"


def test_bank_conflicts(tmp_path: Path) -> None:
    full = {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed": 70.0}
    counts = {"inst_executed": [100, 100], WAVEFRONTS: [400, 100], f"{WAVEFRONTS}_ideal": [100, 100]}
    (said,) = hot_spots(tmp_path, full, **counts).messages
    assert said.text.startswith("Offset 0x0: 4-way bank conflicts: these accesses to shared memory take 4 times the wavefronts")
    assert "and 60 % of all would be saved. Pad rows" in said.text
    assert said.speedup == pytest.approx(60 * 0.7)


def test_spills(tmp_path: Path) -> None:
    counts = {"inst_executed": [100, 100], LOCAL: [0, 300], SECTORS: [100, 0]}
    (said,) = hot_spots(tmp_path, l1_full(400), **counts).messages
    assert (said.type, said.title) == ("optimization", "Lines that use local memory")
    assert said.text.startswith(
        "Offset 0x10: loads and stores of local memory are 75 % of the bytes that the kernel asks of L1: "
    )
    assert " at run time. See what ptxas says" in said.text
    assert said.speedup == pytest.approx(75 * 0.9)
    assert [(focus.name, focus.value) for focus in said.focus] == [(LOCAL, 300)]


def test_inactive_lanes_of_instructions_that_follow_each_other(tmp_path: Path) -> None:
    """Those that are executed equally often are one place; that at 0x40 was not, others have most of their lanes."""
    executed, active = [100, 100, 100, 200, 0, 200, 200, 300], [3200, 800, 2560, 1600, 0, 1600, 3200, 3840]
    outcome = hot_spots(tmp_path, {BLOCK: 256}, inst_executed=executed, thread_inst_executed=active)
    (said,) = outcome.messages
    assert (said.type, said.title) == ("optimization", "Lines with inactive lanes")
    assert said.text.startswith(
        "Offset 0x50 to 0x60: 12.0 of 32 lanes are active in 33 % of the kernel's warp instructions. "
        "Offset 0x70: 12.8 of 32 lanes are active in 25 % of the kernel's warp instructions. "
        "Offset 0x30: 8.0 of 32 lanes are active in 17 % of the kernel's warp instructions. Sort or compact work so that"
    )
    assert [(focus.name, focus.value) for focus in said.focus] == [("thread_inst_executed", sum(active))]
    assert outcome.markers == 3


def test_inactive_lanes_where_only_true_predicates_were_counted(tmp_path: Path) -> None:
    """Of instructions that are executed equally often, that with most lanes tells how many are active at least."""
    executed, true = [100, 200, 200, 100], [3200, 1600, 0, 3200]
    (said,) = hot_spots(tmp_path, {BLOCK: 256}, inst_executed=executed, **{THREADS: true}).messages
    assert said.text.startswith(
        "Offset 0x10 to 0x20: 8.0 of 32 lanes work (their predicate is true; which are active was not counted by instruction) "
        "in 67 % of the"
    )
    assert [(focus.name, focus.value) for focus in said.focus] == [(THREADS, sum(true))]


def test_functions_end_what_follows_each_other(tmp_path: Path) -> None:
    counts = by_address(BASE, inst_executed=[100] * 4, thread_inst_executed=[800] * 4)
    instances = {**counts, "launch__function_pcs": [(0, BASE), (1, BASE + 32)]}
    metrics = {**complete(), BLOCK: 256, "inst_executed": 400, "thread_inst_executed": 3200}
    (said,) = outcomes(tmp_path, metrics, instances=instances)[RULE].messages
    assert said.text.startswith(
        "Offset 0x0 to 0x10 of the function at 0x70000000: 8.0 of 32 lanes are active in 50 % of the kernel's warp "
        "instructions. Offset 0x0 to 0x10 of the function at 0x70000020: 8.0 of 32 lanes are active in 50 % of"
    )


def test_blocks_that_are_no_whole_warps(tmp_path: Path) -> None:
    """Of blocks of 40 threads warps begin with 20 lanes; 14 of them are fewer than three quarters."""
    counts = {"inst_executed": [100, 100], "thread_inst_executed": [2000, 1400]}
    whole, place = hot_spots(tmp_path, {BLOCK: 40}, **counts).messages
    assert (whole.type, whole.text) == (
        "optimization",
        "Warps begin with 20.0 of 32 lanes: the blocks of this launch are no whole warps. Use blocks of a multiple of 32 "
        "threads.",
    )
    assert place.text.startswith("Offset 0x10: 14.0 of 32 lanes are active in 50 % of")


def test_inactive_lanes_of_a_line_are_told_alike_by_rule_and_view(tmp_path: Path) -> None:
    """A line, in no loop, that few lanes reach, of code compiled by us."""
    with read_report(SMOOTH) as opened:
        one = opened.kernels[0]
        addresses, infos = one.metrics.by_address("inst_executed")[0].tolist(), IAction(one)
        found = {address: infos.source_info(address) for address in addresses}
        mine = {address for address, info in found.items() if info is not None and info.line() == 13}
        counts = {
            "inst_executed": [(address, 100) for address in addresses],
            "thread_inst_executed": [(address, 800 if address in mine else 3200) for address in addresses],
        }
        instances = {"launch__function_pcs": [(0, one.base_address())], **counts}
        metrics = {**complete(), BLOCK: 256, **{name: sum(dict(values).values()) for name, values in counts.items()}}
        data = replace(kernel(metrics, code=one.code, instances=instances), mangled_name=one.mangled_name)  # type: ignore[arg-type]
    path = report(tmp_path / "few.ncu-rep", data)
    with read_report(path) as opened:
        (outcome,) = (found for found in our_rules().run(opened.kernels[0]) if found.identifier == RULE)
    (said,) = outcome.messages
    columns = source_roofline(path).finding_columns
    (message,) = (text for text, kind in zip(columns["message"], columns["finding"], strict=True) if kind == "divergence")
    share = as_percent(len(mine) / len(addresses))
    assert said.text.startswith(f"smooth.cu:13: 8.0 of 32 lanes are active in {share} of the kernel's warp instructions. Sort")
    assert message.partition(": ")[2] == said.text.partition(": ")[2].partition(" Sort")[0]
    assert outcome.markers == 2


def test_what_helps_is_what_the_chip_has(tmp_path: Path) -> None:
    counts = {f"{STALLED}long_scoreboard": [0, 300], f"{STALLED}selected": [700, 0]}
    rates: Metrics = {"l1tex__t_sector_hit_rate.pct": 94.5, "lts__t_sector_hit_rate.pct": 100.1}
    (new,) = hot_spots(tmp_path, rates, ["LDS.64", "FFMA"], **counts).messages
    (old,) = hot_spots(tmp_path, {**V100}, ["LDS.64", "FFMA"], **counts).messages
    (without,) = hot_spots(tmp_path, opcodes=["LDG.E", "FFMA"], **counts).messages
    assert ["cp.async" in one.text for one in (new, old, without)] == [True, False, False]
    assert "The kernel's hit rates: 94 % in L1, 100 % in L2." in new.text
    assert "hit rates" not in old.text


@pytest.mark.parametrize(
    "counts",
    [
        {"inst_executed": [10**6], SECTORS: [3200], f"{SECTORS}_ideal": [400]},  # little beside all instructions
        {"inst_executed": [100], SECTORS: [3200]},  # what is needed is not known
        {"inst_executed": [100], SECTORS: [410], f"{SECTORS}_ideal": [400]},  # 2 %
        {"inst_executed": [10**6], LOCAL: [3200], SECTORS: [400]},
        {"inst_executed": [100], LOCAL: [2], SECTORS: [400]},
        {"inst_executed": [100], SECTORS: [0], f"{SECTORS}_ideal": [0]},
        {"inst_executed": [100], f"{STALLED}long_scoreboard": [100]},  # few samples
        {"inst_executed": [100, 0], f"{STALLED}long_scoreboard": [90, 0], f"{STALLED}selected": [0, 910]},
        {"inst_executed": [100, 0], f"{STALLED}wait": [150, 0], f"{STALLED}selected": [0, 850]},
        {"inst_executed": [100], f"{STALLED}not_selected": [1000]},
        {"inst_executed": [100], "thread_inst_executed": [2400]},  # three quarters
        {"inst_executed": [9700, 300], "thread_inst_executed": [9700 * 32, 1600]},  # lanes of half of 3 %
        {"inst_executed": [100, 100], "thread_inst_executed": [3201, 800]},  # more lanes than there are
        {"inst_executed": [100, 100], "thread_inst_executed_true": [800, 3200]},  # predicates that are false are in it
        {"inst_executed": [0], "thread_inst_executed": [0]},
    ],
)
def test_what_is_no_hot_spot(tmp_path: Path, counts: dict[str, Sequence[float]]) -> None:
    assert hot_spots(tmp_path, {BLOCK: 256}, **counts).messages == ()


def test_nothing_is_said_of_lanes_where_the_size_of_blocks_is_not_known(tmp_path: Path) -> None:
    assert hot_spots(tmp_path, inst_executed=[100], thread_inst_executed=[800]).messages == ()


@pytest.mark.parametrize(
    ("reason", "opcodes", "beside", "said", "unsaid"),
    [
        ("lg_throttle", ["STG.E.128"], {}, "Put independent arithmetic between them.", "pills|16 bytes|neighbouring"),
        ("lg_throttle", ["STG.E"], {}, "up to 16 bytes at once", "pills|neighbouring"),
        ("short_scoreboard", ["S2R"], {}, "reads of threadIdx and blockIdx, which answer", "special functions:|bank conflicts"),
        ("drain", ["STG.E"], {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 96}, "DRAM is at 96 %", "neighbouring"),
    ],
)
def test_what_the_counts_show_decides_what_is_said(
    reason: str, opcodes: list[str], beside: Metrics, said: str, unsaid: str, tmp_path: Path
) -> None:
    counts = {f"{STALLED}{reason}": [0, 300], f"{STALLED}selected": [700, 0]}
    (message,) = hot_spots(tmp_path, beside, opcodes, **counts).messages
    assert said in message.text
    assert not re.search(unsaid, message.text)


@pytest.mark.parametrize("launch", [0, 1, 2])
def test_stalls_are_told_alike_by_rule_and_view(launch: int, real_reports: dict[str, Path]) -> None:
    """Causes and advice come from one place, and from the same counts."""
    path = real_reports.get("v100-ncu2022.2-full-2.ncu-rep")
    if path is None:
        pytest.skip("other reports")
    columns = source_roofline(path, select=Selection(launch=((launch, launch),))).finding_columns
    rows = zip(columns["finding"], columns["message"], columns["advice"], strict=True)
    told = {REASON.findall(message)[0]: f"{message} {advice}" for kind, message, advice in rows if kind == "stall"}
    with read_report(path) as opened:
        (outcome,) = (found for found in our_rules().run(opened.kernels[launch]) if found.identifier == RULE)
    texts = [said.text for said in outcome.messages if said.title.startswith("Where warps wait")]
    both = [(text, reason) for text in texts for reason in told if f" ({reason})" in text]
    assert both
    for text, reason in both:
        assert told[reason].partition(f"({reason}). ")[2] in text


def test_called_functions_without_lines(real_reports: dict[str, Path]) -> None:
    """The slow path of divisions and a power, with the shares that the view tells, which knows their names."""
    path = real_reports.get("v100-ncu2022.2-full-1.ncu-rep")
    if path is None:
        pytest.skip("other reports")
    columns = source_roofline(path, select=Selection(launch=((2, 2),))).finding_columns
    shares = [share for share, kind in zip(columns["share"], columns["finding"], strict=True) if kind == "called-library"]
    with read_report(path) as opened:
        (outcome,) = (found for found in our_rules().run(opened.kernels[2]) if found.identifier == RULE)
        (other,) = (found for found in our_rules().run(opened.kernels[0]) if found.identifier == RULE)
    (said,) = (said for said in outcome.messages if said.title == "Called functions without lines")
    told = re.findall(r"without source lines: [^:]+: (\S+ %) of the kernel's samples", said.text)
    assert told == [as_percent(share) for share in shares]
    assert "Called functions without lines" not in [said.title for said in other.messages]


def test_where_warps_wait(tmp_path: Path) -> None:
    (said,) = hot_spots(tmp_path, **{f"{STALLED}barrier": [0, 300], f"{STALLED}selected": [700, 0]}).messages
    assert said.title == "Where warps wait: barrier"
    assert said.text.startswith(
        "Offset 0x10: in 30 % of the kernel's samples warps wait here at a barrier for the other warps of the block (barrier). "
        "Usual where warps of a block arrive at different times"
    )


def test_warps_wait_for_one_unit_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the view has it: a fifth of the samples in all, and a tenth at a place for one unit."""
    texts = ["IMMA.16832.S8.S8", "@P LOP3.LUT", "MUFU.RCP", "IADD3"]
    monkeypatch.setattr(IAction, "sass_by_pc", lambda _, address: texts[(address - BASE) // 16])
    waits = {f"{STALLED}math_pipe_throttle": [150, 120, 40, 0], f"{STALLED}selected": [0, 0, 0, 690]}
    (said,) = hot_spots(tmp_path, **waits).messages
    assert said.text.startswith(
        "Offset 0x0: in 15 % of the kernel's samples warps wait here since the tensor pipe is busy (math_pipe_throttle). "
        "Offset 0x10: in 12 % of the kernel's samples warps wait here since the ALU pipe is busy (math_pipe_throttle). Where "
        "warps mostly wait so,"
    )
    waits[f"{STALLED}selected"][3] = 1690  # 15 % of all
    assert not hot_spots(tmp_path, **waits).messages


def test_places_that_wait_for_one_reason_are_one_message(tmp_path: Path) -> None:
    """Causes and advice, which are those of the reason, are told once; each place has its mark."""
    waits = {f"{STALLED}barrier": [200, 300, 120], f"{STALLED}long_scoreboard": [0, 0, 250], f"{STALLED}selected": [130, 0, 0]}
    outcome = hot_spots(tmp_path, **waits)
    barrier, loads = outcome.messages
    assert [said.title for said in outcome.messages] == ["Where warps wait: barrier", "Where warps wait: long_scoreboard"]
    assert barrier.text.startswith(
        "Offset 0x10: in 30 % of the kernel's samples warps wait here at a barrier for the other warps of the block (barrier). "
        "Offset 0x0: in 20 % of the kernel's samples warps wait here at a barrier for the other warps of the block (barrier). "
        "Usual where warps of a block"
    )
    assert barrier.text.count("Balance the work between barriers") == 1
    assert loads.text.startswith("Offset 0x20: in 25 % of")
    assert outcome.markers == 3


def test_lines_of_the_kernels_own_files_stand_before_those_of_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rules get one line of an instruction, not those that it is inlined at."""
    lines = [("/usr/local/cuda/include/crt/mma.hpp", 123), ("/src/gemm.cu", 45), ("/src/gemm.cu", 50)]
    monkeypatch.setattr(IAction, "source_info", lambda _, address: ISourceInfo(*lines[(address - BASE) // 16]))
    counts = {SECTORS: [3200, 1600, 800], f"{SECTORS}_ideal": [400, 400, 400], f"{STALLED}barrier": [300, 250, 0]}
    sectors, waiting = hot_spots(
        tmp_path, l1_full(5600), inst_executed=[100, 100, 100], **{**counts, f"{STALLED}selected": [0, 0, 450]}
    ).messages
    assert re.findall(r"(\S+:\d+): .*? traffic (\S+ %) would", sectors.text) == [
        ("gemm.cu:45", "21 %"),
        ("gemm.cu:50", "7.1 %"),
        ("mma.hpp:123", "50 %"),
    ]
    assert waiting.text.startswith("gemm.cu:45: in 25 % of the kernel's samples warps wait here at a barrier")
    assert "(barrier). mma.hpp:123: in 30 % of" in waiting.text


def test_lines_of_a_report_with_code() -> None:
    with read_report(SMOOTH) as opened:
        (one,) = opened.kernels[:1]
        (outcome,) = (found for found in our_rules().run(one) if found.identifier == RULE)
    advice = [said.text for said in outcome.messages if said.type == "optimization"]
    assert outcome.markers == 2 * len([text for said in advice for text in said.split(".cu:")[1:]])
    assert any("smooth.cu:16" in said.text for said in outcome.messages)


def test_what_rules_see_of_the_code() -> None:
    with read_report(SMOOTH) as opened:
        one = opened.kernels[0]
        action, (addresses, _) = IAction(one), one.metrics.by_address("inst_executed")
        infos = [action.source_info(address) for address in addresses]
        lines = {(info.file_name().rpartition("/")[2], info.line()) for info in infos if info is not None}
        assert ("smooth.cu", 13) in lines
        assert action.source_info(addresses[0] - 16) is None
        assert (action.source_info(0), action.sass_by_pc(0)) == (None, "")
        opcodes = [action.sass_by_pc(address) for address in addresses]
        assert {"FFMA", "EXIT"} <= set(opcodes)
        assert any(name.endswith("smooth.cu") and "__global__" in text for name, text in action.source_files().items())


def test_lines_are_those_that_ncu_tells_its_rules(real_reports: dict[str, Path]) -> None:
    """What ncu-ui 2024.1 said when it ran this rule on these reports; 0xc10 has three rows, each inlined in the one before."""
    if not {"rtx3090-ncu2023.1-full-1.ncu-rep", "v100-ncu2022.2-full-1.ncu-rep"} <= real_reports.keys():
        pytest.skip("other reports")
    with read_report(real_reports["rtx3090-ncu2023.1-full-1.ncu-rep"]) as opened:
        one = opened.kernels[0]
        info = IAction(one).source_info((one.base_address() or 0) + 0xC10)
        assert info is not None
        assert (info.file_name().rpartition("/")[2], info.line()) == ("sortRowMajor.hxx", 101)
        assert spoken(one) == ["util.hxx:48: in 27 %", "sortRowMajor.hxx:101: in 13 %"]
    with read_report(real_reports["v100-ncu2022.2-full-1.ncu-rep"]) as opened:
        file = "miniWeather_mpi_openacc.F90"
        assert spoken(opened.kernels[0]) == [f"{file}:401 and 1", f"{file}:400: in 55 %", f"{file}:400 and 1 more"]


def test_a_place_with_a_share_of_its_own_is_told_alike_by_rule_and_view(real_reports: dict[str, Path]) -> None:
    """Lines that nothing is inlined into, and that hold all that is told."""
    path = real_reports.get("v100-ncu2022.2-full-1.ncu-rep")
    if path is None:
        pytest.skip("other reports")
    frames = source_roofline(path, select=Selection(launch=((2, 2),)))
    stalls = frames.finding_columns["message"][frames.finding_columns["finding"] == "stall"]
    (place, share), *_ = re.findall(r"(\S+:\d+)\b.*?: in (\S+ %) of", stalls[0])
    with read_report(path) as opened:
        assert spoken(opened.kernels[2])[0] == f"{place}: in {share}"


def test_inactive_lanes_have_the_share_that_the_view_tells(real_reports: dict[str, Path]) -> None:
    """Code without lines: what the view takes loop by loop follows each other."""
    path = real_reports.get("a100-ncu2022.4-full-1.ncu-rep")
    if path is None:
        pytest.skip("other reports")
    columns = source_roofline(path, select=Selection(launch=((0, 0),))).finding_columns
    shares = [share for share, kind in zip(columns["share"], columns["finding"], strict=True) if kind == "divergence"]
    with read_report(path) as opened:
        (outcome,) = (found for found in our_rules().run(opened.kernels[0]) if found.identifier == RULE)
    (said,) = (said for said in outcome.messages if said.title == "Lines with inactive lanes")
    assert len(shares) == 2
    assert re.findall(r"active in (\S+ %)", said.text) == [as_percent(share) for share in shares]


def spoken(one: Kernel) -> list[str]:
    """How the messages of the rule begin."""
    (outcome,) = (found for found in our_rules().run(one) if found.identifier == RULE)
    return [
        " ".join(said.text.split(" ")[: 4 if said.title.startswith("Where warps wait") else 3]) for said in outcome.messages
    ]


@pytest.mark.parametrize("code", [None, Code(), Code(cubin=b"\x7fELF and no more")])
def test_code_that_is_not_there_or_damaged(tmp_path: Path, code: Code | None) -> None:
    data = kernel(complete(), code=code, instances=by_address(BASE, inst_executed=[1, 2]))
    with read_report(report(tmp_path / "r.ncu-rep", replace(data, mangled_name="k"))) as opened:
        action = IAction(opened.kernels[0])
        assert (action.source_info(BASE), action.sass_by_pc(BASE), action.source_files()) == (None, "", {})
