"""What holds beside single launches: filters, launches together, what is above a roof, which kernels come first."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

from ncu_roofline import roofline
from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.hierarchical.captions import above_note
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernels_of, ranked
from ncu_roofline.analyses.hierarchical.picture import figure
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.analyses.instruction import instruction_roofline
from ncu_roofline.analyses.time.frames import time_roofline
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import Roofline, Selection, measurements_of
from ncu_roofline.model.explanations import explain
from ncu_roofline.model.plausible import LEFT_OUT
from ncu_roofline.model.points import ABOVE
from ncu_roofline.model.selection import order
from ncu_roofline.plugin.nvrules.findings import findings
from tests.cli.command import Command
from tests.factory import A100, H100, NO_WORK, Metrics, complete, kernel, report, timing, traffic
from tests.instruction_factory import executed

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"


def of(path: Path, *metrics: Metrics, names: str = "", **options: Any) -> Roofline:
    """``names``: of the kernels, each with its number."""
    launches = [kernel(one, f"{names}{place}()" if names else "kernel()") for place, one in enumerate(metrics)]
    return roofline(report(path / "r.ncu-rep", *launches), **options)


def test_filters_and_options(tmp_path: Path) -> None:
    path = report(
        tmp_path / "r.ncu-rep",
        kernel(complete(seconds=1e-3), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=2e-3), "void second(int)", nvtx=("solve", "inner")),
        kernel(complete(seconds=3e-3), "void third(int)"),
    )

    def launches(**filters: Any) -> list[int]:
        return roofline(path, select=Selection(**filters)).kernels["launch"].tolist()

    assert launches(kernel="^void s") == launches(nvtx="inner") == [1]
    assert launches(launch=((0, 0), (2, 5))) == [0, 2]
    assert launches(top=2) == [1, 2]
    levels = roofline(path, select=Selection(levels=("dram",)))
    assert set(levels.points["level"]) == {"dram"}
    assert set(levels.roofs["level"]) == {"", "dram"}
    assert roofline(path, select=Selection(precisions=("fp32",))).points.empty
    wrong: dict[str, dict[str, Any]] = {
        "per launch": {"source": "embedded", "by": "kernel"},
        "sweeps": {"source": "embedded", "trajectory": "nvtx"},
        "source must be": {"source": "elsewhere"},
        "by must be": {"by": "x"},
        "clock must be": {"clock": "x"},
        "not a regular expression": {"trajectory": "nvtx:("},
    }
    for words, options in wrong.items():
        with pytest.raises(ValueError, match=words):
            roofline(path, **options)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("clock", ["profiled", "max"])
def test_attributes_that_no_gpu_has_are_missing(tmp_path: Path, clock: str) -> None:
    memory, slices = ("max_mem_frequency_khz", "global_memory_bus_width"), ("fbp_count", "num_l2s_per_fbp")
    for names in (("multiprocessor_count",), ("max_gpu_frequency_khz",), memory, slices):
        keys = [f"device__attribute_{name}" for name in names]
        missing = of(tmp_path, {k: v for k, v in complete().items() if k not in keys}, clock=clock)
        for value in (0, -5.0, float("inf")):
            wrong = of(tmp_path, {**complete(), **dict.fromkeys(keys, value)}, clock=clock)
            assert wrong.roofs.equals(missing.roofs)
            assert wrong.points.equals(missing.points)
            assert wrong.kernels.drop(columns="notes").equals(missing.kernels.drop(columns="notes"))
            assert (LEFT_OUT in wrong.kernels["notes"].iloc[0]) == (value != 0)


def busy(share: float, seconds: float = 1e-3, unit: str = "dram__cycles_active") -> Metrics:
    """A launch without work whose nearest limit is this full."""
    known = {f"{name}{ELAPSED}": 1.0 for name in ("lts__throughput", "l1tex__throughput", "dram__cycles_active")}
    return {**complete(seconds=seconds), **NO_WORK, **traffic(10**6, 10**4, 10**6), **known, f"{unit}{ELAPSED}": 100 * share}


def test_launches_together_have_the_verdict_of_most_of_the_time_and_the_headroom_of_all(tmp_path: Path) -> None:
    """70 % full of one thing and 80 % of another is not 60 % full of nothing; short launches say nothing."""
    found = of(tmp_path, busy(0.70, 3e-3, "sm__pipe_alu_cycles_active"), busy(0.80, 1e-3), by="kernel")
    row = found.kernels.iloc[0]
    assert row["headroom"] == pytest.approx(4 / (3 * 0.70 + 1 * 0.80))
    assert row["reason"].startswith("in 75 % of its time bound by its ALU pipe at 70 % of peak: 1.4x at its present traffic")
    first = text_table(found).splitlines()[0]
    assert first.startswith("1 kernel, 2 launches, 4 ms: headroom 1.4x at present traffic and instructions")
    found = of(tmp_path, busy(0.9, 1e-4), busy(0.2, 1e-5), busy(0.2, 1e-5), by="kernel")
    row = found.kernels.iloc[0]
    assert row["reason"].startswith("in 83 % of its time DRAM-bound at 90 % of its roof")
    assert "16.7 % of the time is in launches too short to judge." in " ".join(text_table(found).split())


def test_a_headroom_that_may_be_less_says_so_wherever_it_stands(tmp_path: Path) -> None:
    without = {name: value for name, value in complete().items() if not name.startswith("l1tex")}
    found = of(tmp_path, {**without, "dram__bytes.sum": 1_250_000_000}, by="kernel")
    assert found.kernels.iloc[0]["headroom_or_less"] == 1
    text = text_table(found)
    assert "headroom 1.2x or less at present traffic" in text
    assert "1.2x at its present traffic (or less: L1 was not collected)" in " ".join(text.split())
    assert " \N{LESS-THAN OR EQUAL TO}1.2x " in text


def test_a_kernel_is_the_same_beside_reports_of_other_gpus(tmp_path: Path) -> None:
    """A launch of which no operations were counted is no launch without any, whatever another GPU's tensor cores do."""
    counted, not_counted = {**complete(), **traffic()}, {**A100, **timing(), **traffic()}
    kinds = ("hmma_src_fp16_dst_fp16", "hmma_src_fp16_dst_fp32", "hgmma_src_fp16")
    tensor = {f"sm__ops_path_tensor_op_{kind}_sparsity_off.sum": 1e9 for kind in kinds}
    mine = report(tmp_path / "mine.ncu-rep", kernel(counted), kernel(not_counted))
    other = report(tmp_path / "other.ncu-rep", kernel({**complete(H100), **tensor}, "void other(int)"))
    alone, beside = (roofline(files, by="kernel").kernels.iloc[0] for files in ([mine], [mine, other]))
    assert alone["headroom_compute"] == beside["headroom_compute"] > 1


@pytest.mark.parametrize(("chip", "words"), [((10, 7), "10.7 is unproven"), ((13, 0), "read with the counters of 12.0")])
def test_chips_that_nobody_has_proven(tmp_path: Path, chip: tuple[int, int], words: str) -> None:
    device = {
        **A100,
        **dict(zip((f"device__attribute_compute_capability_{one}" for one in ("major", "minor")), chip, strict=True)),
    }
    metrics = {**complete(device), "smsp__inst_executed.sum": 1e6}
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        drawn = instruction_roofline(measurements_of(opened, instructions=True))
    assert drawn.kernels["status"].tolist() == ["ok"]
    assert words in drawn.kernels["notes"].iloc[0]
    metrics = {name: value for name, value in metrics.items() if not name.startswith("dram__")}
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        found = explain(opened, measurements_of(opened))
    assert "dram" in found.missing
    assert any(words in note for note in found.notes)
    assert all(words in one.notes for one in (*found.precisions, *found.levels) if one.launches)
    assert "dram__bytes.sum" in found.command
    old = report(tmp_path / "r.ncu-rep", kernel({**complete(), "device__attribute_compute_capability_major": 6}))
    with read_report(old) as opened:
        found = explain(opened, measurements_of(opened))
    assert "compute capability 6.0 is not known to this version" in found.notes
    assert found.command == ""


@pytest.mark.reports
def test_a_kernel_that_was_made_faster(real_reports: dict[str, Path]) -> None:
    """miniWeather before and after it divides less often: 1.78 times as fast, where 1.4x was left at its instructions."""
    before, after = (roofline(real_reports[f"v100-ncu2022.2-full-{one}.ncu-rep"]).kernels.set_index("kernel") for one in (1, 2))
    name = "compute_tendencies_x_279_gpu"
    faster = before["seconds"][name] / after["seconds"][name]
    assert faster == pytest.approx(1.78, abs=0.005)
    assert before["headroom"][name] < faster < before["headroom_compute"][name]
    assert before["reason"][name].endswith("1.4x at its present instructions, 1.9x to the FP64 FMA roof")


HIGH = 2_000_000_000  # bytes in a millisecond, where DRAM gives 1.5552e9


def test_the_sentence_on_all_that_is_above(tmp_path: Path) -> None:
    below = of(tmp_path, complete())
    assert not any(ABOVE in note for note in (*below.points["notes"], *below.kernels["notes"]))
    assert above_note(below) == ""
    without_points = of(tmp_path, {**A100, **timing(), "dram__bytes.sum": HIGH}, names="k")
    assert above_note(without_points).startswith("1 kernel stands above a roof. k0: 128.6 % of the 1.56 TB/s of DRAM")
    many = of(tmp_path, *({**complete(), "dram__bytes.sum": HIGH + i * 10**8} for i in range(12)), complete(), names="k")
    assert above_note(many).startswith("12 dots stand above a roof. The highest is k11, FP64: ")
    for made in (figure(many), time_figure(time_roofline(many))):
        caption = " ".join(text.get_text() for text in made.findobj(Text))
        assert re.search("12 (dots|kernels) stand above a roof.*possible if", caption)


def test_every_view_and_format_explains(tmp_path: Path, run: Command) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), **executed(10**6), "dram__bytes.sum": HIGH}))
    for output, view in ((o, v) for o in ("text", "json", "html") for v in ("roofline", "time", "instruction")):
        target = tmp_path / f"{view}.{output}"
        assert run("render", file, "--view", view, "--format", output, "-o", target).code == 0
        shown = re.sub(r"<[^>]*>|\s+", " ", target.read_text(encoding="utf-8"))
        # Rows of times: what is above a roof there is faster than it.
        times = (output, view) == ("json", "time")
        assert re.search("faster than its roof allows" if times else r"128\.6 % of the .*, possible if ", shown), output


BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}


def slow(seconds: float, share: float, **more: float) -> Metrics:
    """A kernel of so many seconds that uses a share of the bandwidth of DRAM."""
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds), **more}


@pytest.mark.parametrize("full", [0.97, 1.0])
def test_tables_pages_and_advice_rank_alike(tmp_path: Path, full: float) -> None:
    """A kernel of 11 us of unknown gain is behind one of 10 s that has next to nothing to gain."""
    metrics = {"little": slow(11e-6, 0.3, **BUSY), "long": slow(10.0, full), "half": slow(0.5, 0.2), "less": slow(5e-6, 0.1)}
    path = report(tmp_path / "r.ncu-rep", *(kernel(one, f"void {name}(int)") for name, one in metrics.items()))
    expected, rows = ["half", "long", "little", "less"], roofline(path, by="kernel")
    assert [one.kernel for one in ranked(kernels_of(rows).values())] == expected
    assert [row["kernel"] for row in kernels_table(rows).rows] == expected
    assert [one.name for one in findings((), measurements_of([path])).kernels] == expected
    (text,) = re.findall('<script[^>]*type="application/json"[^>]*>(.*?)</script>', render(rows, "html").decode(), re.DOTALL)
    assert [rows.kernels["kernel"][place] for place in json.loads(text)["order"]] == expected
    given = [("A", 10.0, 0.01), ("A", 11e-6, math.nan), ("A", 0.4, math.nan), ("A", math.nan, math.nan), ("B", 1e-3, 0.5e-3)]
    for kernels in itertools.permutations(given):
        assert [kernels[place][1] for place in order(kernels)][:4] == [0.4, 10.0, 1e-3, 11e-6]
    (answer,) = answers_of(rows)
    assert [said.partition(":")[0] for said in answer.sentences[1:]] == expected[: len(answer.sentences) - 1]
