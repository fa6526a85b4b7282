"""Annotated copies with measured ceilings: charts, metrics and advice hold a launch against the same roofs, as `show` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import roofline
from ncu_roofline.plugin.nvrules.runner import plain_text
from tests.annotate.helpers import OWN, added, annotated
from tests.annotate.test_annotation import ceilings
from tests.cli.command import Command
from tests.factory import complete, kernel, report

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "ncu_roofline" / "data" / "demo"
MEASURED = ROOT / "tests" / "bench" / "measured_h100" / "ceilings.json"


def check(source: Path, target: Path, given: Ceilings | None) -> int:
    """Every precision that has a chart: its share is the model's, as is the verdict, which is told first."""
    annotated(source, target, [given] if given else [])
    result, placed = roofline(source, given), 0
    points = result.points[result.points.binds != ""].drop_duplicates(["launch", "precision"])
    reasons = dict(zip(result.kernels.launch, result.kernels.reason, strict=True))
    with read_report(target) as opened:
        for row in points.itertuples():
            one = opened.kernels[row.launch]
            name = f"rl__attained_{row.precision.replace('.', '_')}.pct"
            if name not in one.metrics:
                continue  # a mix has no chart
            assert one.metrics[name] == pytest.approx(100 * row.binding_fraction)
            verdict = added(one).rules[0]
            assert verdict.identifier == f"{OWN}Verdict"
            assert verdict.messages[0].text.lower().startswith(reasons[row.launch].lower())
            placed += 1
    return placed


@pytest.mark.reports
@pytest.mark.sampled("bench.fp64.fma-True", "gsrb-True", "gsrb-False", "bench.tensor.tf32.wgmma-True")
@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize(
    "name", ["bench.fp64.fma", "bench.fp64.nofma", "bench.tensor.tf32.wgmma", "gpp-nw1", "gpp-nw6", "gsrb", "lecture-c"]
)
def test_reports_of_an_h100(name: str, measured: bool, h100_reports: Path, tmp_path: Path) -> None:
    given = read_ceilings(MEASURED) if measured else None
    assert check(h100_reports / f"{name}.ncu-rep", tmp_path / "out.ncu-rep", given) >= 1


def test_the_sample(tmp_path: Path) -> None:
    given = read_ceilings(DEMO / "gpp-v100-ceilings.json")
    assert check(DEMO / "gpp-v100.ncu-rep", tmp_path / "out.ncu-rep", given) == 6


def test_advice_of_both_commands_is_the_same(run: Command, tmp_path: Path) -> None:
    """`advise` and `annotate`, with the same ceilings."""
    words = (DEMO / "gpp-v100.ncu-rep", "--ceilings", DEMO / "gpp-v100-ceilings.json")
    advised = json.loads(run("advise", *words, "--all-findings", "--json").out)
    assert run("annotate", *words, "-o", tmp_path / "out.ncu-rep").code == 0
    texts = {one["text"] for one in advised["findings"] + advised["without_advice"]}
    with read_report(tmp_path / "out.ncu-rep") as opened:
        said = [message for one in opened.kernels for rule in added(one).rules for message in rule.messages]
    plain = {plain_text(message.text) for message in said}
    assert any("(measured)" in text for text in plain)
    assert plain <= texts


def test_what_went_unused_is_told_in_one_line(run: Command, tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    path = Path(ceilings(tmp_path, fp64_fma=8e12, fp32_fma=16e12, dram_read=1.2e12, smem_read=1e13).path)
    second = path.with_name("second.json")
    second.write_bytes(path.read_bytes())
    outcome = run("annotate", source, "-o", target, "--ceilings", path, "--ceilings", second)
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("  ceilings")]
    name = "NVIDIA A100-SXM4-40GB"
    assert line.split(maxsplit=1)[1] == (f"not used: second.json, {name} (other ceilings stand for the GPUs of the report)")
    path = Path(ceilings(tmp_path, fp64_fma=8e12, dram_read=1.2e12).path)
    assert "not used" not in run("annotate", source, "-o", target, "--force", "--ceilings", path).out
