"""Ranks, beside ranks-*.frames: nothing is lost when merging."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.analyses.ranks import rank_part, ranks
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import roofline
from tests.analyses.makers import written
from tests.analyses.ranks_made import Faults, write_ranks

KEY = ["kernel", "precision", "level"]
MERGED = ["work", "traffic", "seconds", "intensity", "performance", "attainable", "fraction", "coverage", "launches"]


def assert_merged(paths: list[Path], clock: str = "profiled") -> None:
    """The points of ranks are those of one roofline of all their launches."""
    mine, theirs = (
        made.points.set_index(KEY).sort_index()
        for made in (ranks(paths, clock=clock), roofline(paths, by="kernel", clock=clock))
    )
    assert mine.index.tolist() == theirs.index.tolist()
    for name in MERGED:
        assert mine[name].to_numpy() == pytest.approx(theirs[name].to_numpy(), rel=1e-9, nan_ok=True), (name, paths[0])


def test_merged_is_the_roofline_of_all_launches(tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 12, Faults(slow={3}, clock={6}, uneven={5}, skipping={7, 8}))
    assert_merged(paths, "max")
    merged = ranks(paths)
    assert merged.origin == "numbers in the paths"
    assert (merged.points["fraction_min"] <= merged.points["fraction_max"]).all()
    assert (merged.points["intensity_median"] > 0).all()


def test_launches_that_lack_metrics_are_not_mixed_with_others(tmp_path: Path) -> None:
    lacking = [{"ms": 2, "without": ["dram__bytes"]}, {"ms": 4, "without": ["smsp__sass"]}]
    kernels = [{}, lacking[0], {}, lacking[1], {"fp32": 3e8}, {"fp32": 3e8}]
    paths = [written(tmp_path, f"r{number}", kernels) for number in range(3)]
    with read_report(paths[0]) as opened:
        assert len(rank_part(opened).measurements) == 4
    assert_merged(paths)


def test_real_reports_stay_what_they_are(real_reports: dict[str, Path]) -> None:
    for path in list(real_reports.values())[::8]:
        assert_merged([path])
