"""Section sets of Nsight Compute: the data file against real releases, and which set a report was made with."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import LAST_RELEASE
from ncu_roofline.chips.tables import load_sets

BASIC = ("SpeedOfLight", "LaunchStats", "Occupancy")
FULL = (*BASIC, "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SourceCounters")
ROOFLINE = tuple(f"SpeedOfLight_Hierarchical{p}RooflineChart" for p in ("Double", "Half", "Single", "Tensor"))
CHART = "SpeedOfLight_RooflineChart"


@pytest.mark.parametrize(
    ("release", "sections", "name"),
    [
        ((2020, 3), BASIC, "basic"),
        ((2024, 1), (*BASIC, "WorkloadDistribution"), "basic"),
        ((2020, 3), (*FULL, CHART, "WarpStateStats", "ComputeWorkloadAnalysis"), "full"),
        ((2025, 2), (*FULL, *ROOFLINE, CHART, "WarpStateStats", "ComputeWorkloadAnalysis"), "full"),
        ((2023, 1), ("SpeedOfLight", CHART, *ROOFLINE), "roofline"),
        ((2021, 1), ("SpeedOfLight", CHART, *ROOFLINE), ""),  # no such set then
        ((2021, 2), ("SourceCounters",), "source"),
        ((2021, 2), ("SchedulerStats", "SourceCounters", "WarpStateStats"), ""),
        ((2024, 2), (ROOFLINE[0], "Occupancy"), ""),
        ((2024, 2), (), ""),
    ],
)
def test_set_of_a_report(release: tuple[int, int], sections: tuple[str, ...], name: str) -> None:
    found = load_sets().made(release, iter(sections))
    assert (found.name if found else "") == name


def test_ids_and_releases() -> None:
    spec = load_spec()
    for one in load_sets().sets:
        assert set(one.work) <= {"tensor", *(p.id for p in spec.precisions)}
        assert set(one.traffic) <= {level.id for level in spec.levels}
    for release in ((2020, 1), (2021, 3), (2023, 1), (2024, 3), (2025, 4), (2026, 3), LAST_RELEASE):
        names = [one.name for one in load_sets().of(release)]
        assert len(set(names)) == len(names)
        assert {"basic", "detailed", "full"} <= set(names)


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_sections_of_real_releases(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for name, binary in ncu_releases.items():
        year, number = map(int, name.split("."))
        for one in load_sets().of((year, number)):
            chosen = "default" if one.name == "basic" and year < 2024 else one.name
            done = subprocess.run(
                [binary, "--set", chosen, "--list-sections"],
                capture_output=True,
                text=True,
                env={**os.environ, "HOME": str(tmp_path)},
                check=False,
            )
            sections = set(re.findall(r"^(\w+) .* yes ", done.stdout, re.MULTILINE))
            assert load_sets().made((year, number), sections) is one, (name, one.name, sections)
