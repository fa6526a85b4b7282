"""Advice asks for nothing that the release of the report can't collect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.annotate import Adviser
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, collectable
from tests.cli.command import Command
from tests.factory import A100, H100, Metrics, kernel, report, timing
from tests.nvrules.running import our_rules

BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 50.0}
SECTION = "@section:HierarchicalTensorRooflineChart:HierarchicalTensorRooflineChart@"
OPCODES = "counts per opcode (section @section:SourceCounters:SourceCounters@)"
WHY = " Operations of tensor cores are counted from Nsight Compute 2023.3 on, not by 2022.3."


@pytest.mark.parametrize("version", ["2020.3.0.0", "2022.3.0.0", "2023.2.0.0", "2023.3.0.0", "2025.2.0.0", "", "odd"])
def test_only_later_releases_are_asked_for_tensor_operations(run: Command, tmp_path: Path, version: str) -> None:
    counts = version in ("", "odd") or version >= "2023.3"
    for device in (A100, H100):
        metrics: Metrics = {**device, **timing(), **BUSY}
        path = report(tmp_path / "r.ncu-rep", kernel(metrics), ncu_version=version)
        document = json.loads(run("advise", path, "--json").out)
        asking = [one for one in document["findings"] + document["without_advice"] if "ollect" in one["text"]]
        said = {one["rule"].removeprefix("NcuRoofline"): one["text"] for one in asking}
        assert any("ops_path" in text or "HierarchicalTensor" in text for text in said.values()) is counts
        section = "section HierarchicalTensorRooflineChart." if counts else "counts per opcode (section SourceCounters)."
        assert f"collect {section}" in said["Tensor"]
        assert counts or said["Tensor"].endswith(f"not by {version[:6]}.")
        # What every release can count is asked for.
        assert "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum" in said["BoundDouble"]
        assert not counts or "sm__ops_path_tensor" in said["BoundTensor"]


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
    if changed and "Busy" in text:  # before opcodes were counted
        (message,) = collectable(outcome, "2019.5.1").messages
        assert message.text.startswith("Busy: collect a report with a later release. ")


def test_annotated_reports_say_the_same(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **BUSY}), ncu_version="2022.3.0.0")
    with read_report(path) as opened:
        adviser = Adviser(our_rules(), opened.ncu_version, measurements_of(opened))
        results = adviser.advice(opened.kernels[0], set(), set())[0]
    texts = [message.text for result in results for message in result.messages]
    assert any("counts per opcode" in text for text in texts)
    assert not any("HierarchicalTensor" in text for text in texts)
