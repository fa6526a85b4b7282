"""What is shown of made-up results in all forms, and what `show` prints of eight kinds of reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses import render, text_table
from ncu_roofline.cli import main
from ncu_roofline.formats.report import KernelData
from ncu_roofline.rendering.table import columns_wide
from tests import factory
from tests.factory import A100, NO_WORK, Metrics, complete, flops, kernel, opcodes, report, timing, traffic
from tests.golden import assert_golden
from tests.rendering.cases import CASES, HERE, made, shown
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
    for block in render(frames, "md").decode().split("\n\n"):
        assert not block.startswith("| ") or len({line.count("|") for line in block.splitlines()}) == 1


BUSY, ELAPSED = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "{}.avg.pct_of_peak_sustained_elapsed".format
BASIC = {  # what `--set basic` tells, and the place of its value
    ELAPSED("sm__throughput"): 0, ELAPSED("sm__issue_active"): 0, ELAPSED("gpu__dram_throughput"): 1,
    ELAPSED("dram__cycles_active"): 1, ELAPSED("lts__throughput"): 2, "launch__waves_per_multiprocessor": 4,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 3,
}  # fmt: skip
GIVEN = tomllib.loads((HERE / "show.toml").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("name", GIVEN)
def test_what_show_prints(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report(tmp_path / f"{name}.ncu-rep", *(one for row in GIVEN[name]["kernels"] for one in launches(**row)))
    for width in (60, 80, 120, 200):
        assert main(["show", str(path), "--width", str(width)]) == 0
        text = capsys.readouterr().out
        assert max(map(columns_wide, text.splitlines())) <= width
        assert str(tmp_path) not in text
        assert_golden(HERE / "golden" / "show" / f"{name}-{width}.txt", text)
