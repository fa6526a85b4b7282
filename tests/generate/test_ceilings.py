"""Measured ceilings in sections: beside the theoretical roofs, as constants or scaled with the clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.generate.lowering import BASE
from ncu_roofline.plugin.generate.sections import render_sections
from tests.generate.made import collected, kernel_metrics
from tests.sectionfile import reading

DOUBLE = "HierarchicalDoubleRooflineChart.section"
A100 = (8, 0)


def entry(name: str, value: float, unit: str, theory: float | None = None) -> dict[str, Any]:
    """A ceiling of a file."""
    found = {"id": name, "value": value, "unit": unit, "clock": {"sm_mhz_mean": 1335.0}}
    return {**found, "theory": {"at_measured_clock": theory}} if theory else found


DRAM, L2, FMA = (
    entry("dram.read", 1.4e12, "B/s", 1.75e12),
    entry("l2.read", 5e12, "B/s"),
    entry("fp64.fma", 9e12, "FLOP/s", 1e13),
)


def ceilings(folder: Path, *entries: dict[str, Any], name: str = "NVIDIA A100-SXM4-40GB", cc: str = "8.0") -> Ceilings:
    """A file with these ceilings, read."""
    path = folder / "ceilings.json"
    document = {"schema": "ert-ceilings", "schema_version": 1, "host": {"time_utc": "2025-03-04T05:06:07Z"}}
    path.write_text(json.dumps({**document, "device": {"name": name, "cc": cc}, "ceilings": entries}))
    return read_ceilings(path)


def chart(text: str, capability: tuple[int, int] = A100) -> Chart:
    """The chart of a section's text for a kernel that has everything."""
    made = parse_document(text).section
    (found,) = evaluate_charts(made, kernel_metrics(collected(made, capability), capability), capability)
    return found


def test_constants_stand_beside_theory(tmp_path: Path) -> None:
    plain = chart(render_sections(BASE)[DOUBLE])
    text = render_sections(BASE, ceilings(tmp_path, DRAM, L2, FMA))[DOUBLE]
    found = chart(text)
    assert "# Measured roofs: ceilings.json, NVIDIA A100-SXM4-40GB, 2025-03-04" in text
    assert {roof.label for roof in plain.roofs} < {roof.label for roof in found.roofs}
    added = {roof.label: roof for roof in found.roofs if "measured" in roof.label}
    where = "measured on NVIDIA A100-SXM4-40GB, 2025-03-04, at 1.335 GHz"
    dram = added[f"DRAM bandwidth, FP64 FMA peak, {where}"]
    assert (dram.peak_work, dram.peak_traffic, dram.metrics) == (9e12, 1.4e12, ())
    assert added[f"L2 bandwidth, FP64 FMA peak, {where}"].peak_traffic == 5e12
    flat = added[f"FP64 FMA peak, {where}"]  # L1 was not measured
    assert flat.peak_work == 9e12
    assert flat.peak_traffic == next(roof.peak_traffic for roof in plain.roofs if roof.label.startswith("L1/TEX"))
    colors = [color for label, color in reading.colors(parse_document(text).section).items() if label.startswith("DRAM")]
    assert len(set(colors)) == 2


def test_some_roof_is_always_theoretical(tmp_path: Path) -> None:
    names = ("l1.read", "smem.read", "l2.read", "dram.read", "host.bidir")
    everything = [entry(name, 1e12, "B/s") for name in names] + [FMA, entry("fp64.nofma", 4.5e12, "FLOP/s")]
    found = chart(render_sections(BASE, ceilings(tmp_path, *everything), aside=("system",))[DOUBLE])
    theoretical = [roof for roof in found.roofs if "cycles_elapsed" in " ".join(roof.traffic_metrics)]
    assert len(theoretical) >= 5
    assert any(roof.label.startswith("System memory bandwidth") for roof in found.roofs)


def test_clock_consistent(tmp_path: Path) -> None:
    text = render_sections(BASE, ceilings(tmp_path, DRAM, L2, FMA), clock_consistent=True)[DOUBLE]
    theory = {roof.label.partition(",")[0]: roof for roof in chart(render_sections(BASE)[DOUBLE]).roofs}["DRAM bandwidth"]
    added = {roof.label: roof for roof in chart(text).roofs if "measured" in roof.label}
    scaled = "measured on NVIDIA A100-SXM4-40GB, 2025-03-04, at 1.335 GHz, scaled to this run's clock"
    dram = added[f"DRAM bandwidth, FP64 FMA peak, {scaled}"]
    assert dram.peak_work == pytest.approx(0.9 * theory.peak_work)
    assert dram.peak_traffic == pytest.approx(0.8 * theory.peak_traffic)
    assert "dram__cycles_elapsed.avg.per_second" in dram.traffic_metrics
    constant = next(roof for label, roof in added.items() if label.startswith("L2") and "scaled" not in label)
    assert constant.peak_traffic == 5e12  # nothing is known of its theory


def test_shares_of_theory_are_those_by_the_cycle(tmp_path: Path) -> None:
    """Under a power limit the value over theory at the mean clock may be above 1."""
    measured = {**FMA, "value": 1.01e13, "theory": {"at_measured_clock": 1e13, "fraction": 0.998}}
    text = render_sections(BASE, ceilings(tmp_path, DRAM, measured), clock_consistent=True)[DOUBLE]
    roofs = [roof for roof in chart(text).roofs if roof.label.startswith("DRAM bandwidth")]
    theory, scaled = sorted(roofs, key=lambda roof: "scaled" in roof.label)
    assert scaled.peak_work == pytest.approx(0.998 * theory.peak_work)


@pytest.mark.parametrize("clock_consistent", [False, True])
def test_what_its_own_file_disproves_is_not_drawn(tmp_path: Path, clock_consistent: bool) -> None:
    file = ceilings(tmp_path, entry("dram.read", 1.4e15, "B/s", 1.75e12), FMA)
    with pytest.raises(RooflineError, match=r"dram.read is 800x what theory gives at its clock\. Measure again"):
        render_sections(BASE, file, clock_consistent=clock_consistent)


def test_scaled_roofs_are_for_their_chip_only(tmp_path: Path) -> None:
    text = render_sections(BASE, ceilings(tmp_path, DRAM, FMA), clock_consistent=True)[DOUBLE]
    assert not [roof for roof in chart(text, (7, 5)).roofs if "measured" in roof.label]


def test_clock_consistent_needs_theory(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="at_measured_clock"):
        render_sections(BASE, ceilings(tmp_path, L2), clock_consistent=True)


def test_tensor_families(tmp_path: Path) -> None:
    file = ceilings(tmp_path, entry("tensor.fp16.wgmma", 8e14, "FLOP/s"), entry("tensor.fp16.mma", 6e14, "FLOP/s"), cc="9.0")
    text = render_sections(BASE, file)["HierarchicalTensorRooflineChart.section"]
    works = {
        roof.label.partition(", measured")[0]: roof.peak_work for roof in chart(text, (9, 0)).roofs if "measured" in roof.label
    }
    assert works["Tensor FP16 wgmma peak"] == 8e14
    assert works["Tensor FP16 mma.sync peak"] == 6e14


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    file = ceilings(tmp_path, DRAM, name='GPU" } \n } # {{ 7 * 7 }} \\ \u202e\u0000 é')
    text = render_sections(BASE, file)[DOUBLE]
    assert chart(text).roofs
    assert "49" not in next(line for line in text.splitlines() if "Measured roofs" in line)
    assert any('GPU" }' in roof.label for roof in chart(text).roofs)
