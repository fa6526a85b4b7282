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
from tests.golden import assert_golden
from tests.sectionfile import reading

DOUBLE, TENSOR = "HierarchicalDoubleRooflineChart", "HierarchicalTensorRooflineChart"


def entry(name: str, value: float, unit: str, theory: float | None = None, **more: float) -> dict[str, Any]:
    """A ceiling of a file."""
    found = {"id": name, "value": value, "unit": unit, "clock": {"sm_mhz_mean": 1335.0}}
    return {**found, "theory": {"at_measured_clock": theory, **more}} if theory else found


DRAM, L2 = entry("dram.read", 1.4e12, "B/s", 1.75e12), entry("l2.read", 5e12, "B/s")
FMA, NOFMA = entry("fp64.fma", 9e12, "FLOP/s", 1e13), entry("fp64.nofma", 4.5e12, "FLOP/s")
CASES: dict[str, tuple[list[dict[str, Any]], tuple[int, int], str, bool]] = {  # roofs, chip, section, scaled with the clock
    "constants; L1 was not measured": ([DRAM, L2, FMA], (8, 0), DOUBLE, False),
    # 0.8 of DRAM's theory and 0.9 of that of FP64; nothing is known of the theory of L2.
    "scaled with the clock": ([DRAM, L2, FMA], (8, 0), DOUBLE, True),
    # Under a power limit the value over theory at the mean clock may be above 1: the share is that by the cycle.
    "shares by the cycle": ([DRAM, entry("fp64.fma", 1.01e13, "FLOP/s", 1e13, fraction=0.998)], (8, 0), DOUBLE, True),
    "scaled roofs are for their chip only": ([DRAM, FMA], (7, 5), DOUBLE, True),
    "families of tensor instructions": (
        [entry("tensor.fp16.wgmma", 8e14, "FLOP/s"), entry("tensor.fp16.mma", 6e14, "FLOP/s")],
        (9, 0),
        TENSOR,
        False,
    ),
}


def ceilings(folder: Path, *entries: dict[str, Any], name: str = "NVIDIA A100-SXM4-40GB", cc: str = "8.0") -> Ceilings:
    """A file with these ceilings, read."""
    document = {"schema": "ert-ceilings", "schema_version": 1, "host": {"time_utc": "2025-03-04T05:06:07Z"}}
    path = folder / "ceilings.json"
    path.write_text(json.dumps({**document, "device": {"name": name, "cc": cc}, "ceilings": entries}))
    return read_ceilings(path)


def chart(text: str, capability: tuple[int, int] = (8, 0)) -> Chart:
    """The chart of a section's text for a kernel that has everything."""
    made = parse_document(text).section
    (found,) = evaluate_charts(made, kernel_metrics(collected(made, capability), capability), capability)
    return found


def test_measured_roofs_stand_beside_theory(tmp_path: Path) -> None:
    """Theory is in the text as well; the two colours of a level differ."""
    found = ""
    for name, (entries, capability, identifier, scaled) in CASES.items():
        given = ceilings(tmp_path, *entries, cc="9.0" if identifier == TENSOR else "8.0")
        text = render_sections(BASE, given, clock_consistent=scaled)[f"{identifier}.section"]
        assert "# Measured roofs: ceilings.json, NVIDIA A100-SXM4-40GB, 2025-03-04" in text
        roofs = chart(text, capability).roofs
        plain = {roof.label for roof in chart(render_sections(BASE)[f"{identifier}.section"], capability).roofs}
        assert plain <= {roof.label for roof in roofs}
        shown = [roof for roof in roofs if "measured" in roof.label or identifier == DOUBLE]
        found += f"=== {name}\n" + "".join(
            f"{roof.peak_work:.6g} / {roof.peak_traffic:.6g}{'' if roof.metrics else ' (constant)'}: {roof.label}\n"
            for roof in shown
        )
        if not found.count("scaled"):
            lines = reading.colors(parse_document(text).section).items()
            assert len({color for label, color in lines if label.startswith("DRAM")}) == 2
    assert_golden(Path(__file__).with_name("measured.txt"), found)


def test_some_roof_is_always_theoretical(tmp_path: Path) -> None:
    names = ("l1.read", "smem.read", "l2.read", "dram.read", "host.bidir")
    given = ceilings(tmp_path, *[entry(name, 1e12, "B/s") for name in names], FMA, NOFMA)
    found = chart(render_sections(BASE, given, aside=("system",))[f"{DOUBLE}.section"])
    assert len([roof for roof in found.roofs if "cycles_elapsed" in " ".join(roof.traffic_metrics)]) >= 5
    assert any(roof.label.startswith("System memory bandwidth") for roof in found.roofs)


def test_what_can_not_be_drawn(tmp_path: Path) -> None:
    """What its own file disproves, and roofs to scale without theory; a hostile name stays a name."""
    impossible = ceilings(tmp_path, entry("dram.read", 1.4e15, "B/s", 1.75e12), FMA)
    for scaled in (False, True):
        with pytest.raises(RooflineError, match=r"dram.read is 800x what theory gives at its clock\. Measure again"):
            render_sections(BASE, impossible, clock_consistent=scaled)
    with pytest.raises(RooflineError, match="at_measured_clock"):
        render_sections(BASE, ceilings(tmp_path, L2), clock_consistent=True)
    hostile = ceilings(tmp_path, DRAM, name='GPU" } \n } # {{ 7 * 7 }} \\ \u202e\u0000 é')
    text = render_sections(BASE, hostile)[f"{DOUBLE}.section"]
    assert "49" not in next(line for line in text.splitlines() if "Measured roofs" in line)
    assert any('GPU" }' in roof.label for roof in chart(text).roofs)
