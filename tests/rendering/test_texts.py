"""What is shown of made-up results in all forms, and what `show` prints of eight kinds of reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses import render, text_table
from ncu_roofline.cli import main
from ncu_roofline.formats.report import KernelData
from ncu_roofline.rendering.table import columns_wide
from tests import factory
from tests.factory import A100, NO_WORK, V100, Metrics, complete, flops, kernel, opcodes, report, timing, traffic
from tests.golden import assert_golden
from tests.inputs.ncu_tables import SUMS, text_of, wide
from tests.rendering.cases import CASES, DEMO, HERE, made, shown
from tests.rendering.frames import tomllib


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "show" in case])
def test_what_is_shown(name: str, tmp_path: Path) -> None:
    """As the file says; no line is longer than the terminal or holds what it obeys, and no cell of Markdown is lost."""
    frames = made(name, tmp_path)
    text = "".join(f"== {how}\n{shown(frames, how).rstrip()}\n\n" for how in CASES[name]["show"])
    assert_golden(HERE / "golden" / "cases" / f"{name}.txt", text.replace(f"{tmp_path}/", ""))
    for width in (60, 81, 120, 200):
        lines = text_table(frames, width=width).splitlines()
        assert [line for line in lines if columns_wide(line) > width or not line.isprintable()] == []
    coloured = text_table(frames, color=True, width=100)
    assert re.sub("\33\\[\\d+m", "", coloured) == text_table(frames, width=100)
    assert text_table(frames, ascii_only=True).isascii()
    tables = [block for block in render(frames, "md").decode().split("\n\n") if block.startswith("| ")]
    for table in map(str.splitlines, tables):
        assert len({line.count("|") for line in table}) == 1


ELAPSED = "{}.avg.pct_of_peak_sustained_elapsed"
BASIC = {  # what `--set basic` tells, and the place of its value
    ELAPSED.format("sm__throughput"): 0,
    ELAPSED.format("sm__issue_active"): 0,
    ELAPSED.format("lts__throughput"): 2,
    ELAPSED.format("gpu__dram_throughput"): 1,
    ELAPSED.format("dram__cycles_active"): 1,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 3,
    "launch__waves_per_multiprocessor": 4,
}
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
GIVEN = tomllib.loads((HERE / "show.toml").read_text(encoding="utf-8"))
KINDS = {case.get("kind", name): (name, case["kernels"]) for name, case in GIVEN.items()}
SMOOTH = "void smooth_kernel<Box<double>, 3>(level_type, int, int, double, double)"
NORM = "void max_abs_kernel<double>(level_type, int, double *)"


def launches(name: str, seconds: float = 1e-3, chip: str = "A100", times: int = 1, **about: Any) -> list[KernelData]:
    """The launches of a row of show.toml."""
    metrics: Metrics = complete(getattr(factory, chip), seconds)
    if "counted" in about:
        metrics = {**A100, **timing(seconds), **NO_WORK, **traffic(*about["counted"]), **flops("f", mul=about.get("fp32", 0))}
    if "basic" in about:
        shares: Metrics = {name: about["basic"][place] for name, place in BASIC.items()} if about["basic"] else {}
        metrics = {**A100, **timing(seconds), **shares}
        metrics |= {"sm__maximum_warps_per_active_cycle_pct": 62.5} if shares else {}
    metrics |= {BUSY: about["busy"]} if "busy" in about else {}
    more = {"instances": opcodes(**about["opcodes"])} if "opcodes" in about else {}
    return [kernel(metrics, name, **more)] * times


def gpus(folder: Path) -> list[object]:
    """One application on two GPUs, two reports of each."""
    for place, (gpu, seconds) in enumerate(((V100, 2.2e-3), (A100, 1e-3))):
        for step in (1, 2):
            (folder / f"node{step}").mkdir(exist_ok=True)
            half = complete(gpu, seconds / 2 * step)
            report(folder / f"node{step}" / f"run{place}.ncu-rep", kernel(complete(gpu, seconds), SMOOTH), kernel(half, NORM))
    return [folder]


def csv(folder: Path) -> list[object]:
    """What `ncu --csv --page raw` printed."""
    (folder / "axpy.csv").write_text(text_of(wide(SUMS, SUMS)))
    return [folder / "axpy.csv"]


INPUTS: dict[str, Callable[[Path], list[object]]] = {
    "sweep": lambda _: [DEMO / "gpp-v100.ncu-rep", "--label", "nvtx"], "gpus": gpus, "csv": csv,
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *INPUTS])
def test_golden_texts(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if kind in KINDS:
        name, rows = KINDS[kind]
        inputs: list[object] = [report(tmp_path / f"{name}.ncu-rep", *(one for row in rows for one in launches(**row)))]
    else:
        inputs = INPUTS[kind](tmp_path)
    for width in (60, 80, 120, 200):
        assert main(["show", *map(str, inputs), "--width", str(width)]) == 0
        text = capsys.readouterr().out
        assert max(map(columns_wide, text.splitlines())) <= width
        assert str(tmp_path) not in text
        assert_golden(HERE / "golden" / "show" / f"{kind}-{width}.txt", text)
