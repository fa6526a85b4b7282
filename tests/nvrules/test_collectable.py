"""Advice asks for nothing that the release of the report can't collect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report import ReportData, RuleMessage, Session, read_report, write_report
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.annotate import Adviser
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, collectable, load_rules
from tests.cli.command import Command
from tests.factory import A100, H100, Metrics, kernel, timing

BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 50.0}
SECTION = "@section:HierarchicalTensorRooflineChart:HierarchicalTensorRooflineChart@"
OPCODES = "counts per opcode (section @section:SourceCounters:SourceCounters@)"
WHY = " Operations of tensor cores are counted from Nsight Compute 2023.3 on, not by 2022.3."


def report(path: Path, version: str, device: Metrics = A100) -> Path:
    write_report(path, ReportData((kernel({**device, **timing(), **BUSY}),), Session(ncu_version=version)), overwrite=True)
    return path


def said(run: Command, path: Path) -> dict[str, list[str]]:
    """Texts of our rules that ask for something, by rule."""
    document = json.loads(run("advise", path, "--json").out)
    asking = [one for one in document["findings"] + document["without_advice"] if "ollect" in one["text"]]
    return {rule: [one["text"] for one in asking if one["rule"] == rule] for rule in {one["rule"] for one in asking}}


@pytest.mark.parametrize("device", [A100, H100], ids=["A100", "H100"])
@pytest.mark.parametrize("version", ["2020.3.0.0", "2022.3.0.0", "2023.2.0.0"])
def test_old_releases_are_not_asked_for_tensor_operations(run: Command, tmp_path: Path, version: str, device: Metrics) -> None:
    found = said(run, report(tmp_path / "r.ncu-rep", version, device))
    texts = [text for rule in found.values() for text in rule]
    assert not any("ops_path" in text or "HierarchicalTensor" in text for text in texts)
    (tensor,) = found["NcuRooflineTensor"]
    assert "collect counts per opcode (section SourceCounters)." in tensor
    assert f"not by {version[:6]}." in tensor
    (double,) = found["NcuRooflineBoundDouble"]  # what the release can count is still asked for
    assert "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum" in double


@pytest.mark.parametrize("version", ["2023.3.0.0", "2025.2.0.0", "", "odd"])
def test_later_ones_are(run: Command, tmp_path: Path, version: str) -> None:
    found = said(run, report(tmp_path / "r.ncu-rep", version))
    assert "collect section HierarchicalTensorRooflineChart." in found["NcuRooflineTensor"][0]
    assert "sm__ops_path_tensor" in found["NcuRooflineBoundTensor"][0]


@pytest.mark.parametrize(
    ("identifier", "text", "changed"),
    [
        (
            "NcuRooflineBoundTensor",
            f"Collect sm__ops_path_tensor_src_fp64.sum, ..., (section {SECTION}) to see what binds this kernel.",
            f"Collect {OPCODES} to see what binds this kernel.{WHY}",
        ),
        (
            "NcuRooflineBoundDouble",
            "Collect a.sum, sm__ops_path_tensor_src_fp64.sum, (section @section:D:D@) to see it.",
            f"Collect a.sum, (section @section:D:D@), {OPCODES} to see it.{WHY}",
        ),
        ("NcuRooflineTensor", f"Busy: collect section {SECTION}.", f"Busy: collect {OPCODES}.{WHY}"),
        ("NcuRooflineTensor", f"Collect a.sum, b.sum to see x. See the {SECTION}.", None),
        ("Theirs", f"Collect section {SECTION}.", None),
    ],
)
def test_texts(identifier: str, text: str, changed: str | None) -> None:
    outcome = RuleOutcome(identifier, "", "", "", messages=(RuleMessage("none", text, "Title", 1),))
    (message,) = collectable(outcome, "2022.3.0.0").messages
    assert message == RuleMessage("none", changed or text, "Title", 1)
    assert collectable(outcome, "2023.3.0.0") is outcome


def test_before_opcodes_were_counted() -> None:
    outcome = RuleOutcome(
        "NcuRooflineTensor", "", "", "", messages=(RuleMessage("none", f"Now collect section {SECTION}.", ""),)
    )
    (message,) = collectable(outcome, "2019.5.1").messages
    assert message.text.startswith("Now collect a report with a later release. ")


def test_annotated_reports_say_the_same(tmp_path: Path) -> None:
    with read_report(report(tmp_path / "r.ncu-rep", "2022.3.0.0")) as opened:
        adviser = Adviser(load_rules([pack_folder("rules")]), opened.ncu_version, measurements_of(opened))
        results = adviser.advice(opened.kernels[0], set(), set())[0]
    texts = [message.text for result in results for message in result.messages]
    assert any("counts per opcode" in text for text in texts)
    assert not any("HierarchicalTensor" in text for text in texts)
