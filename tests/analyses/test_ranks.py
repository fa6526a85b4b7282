"""Ranks, beside ranks-spread.frames: their names, who stands out and why by hand, and that nothing is lost when merging."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline.analyses.ranks import RankSource, cause, modified_z, outliers, rank_names, rank_part, ranks
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import roofline
from tests.analyses.makers import written
from tests.analyses.ranks_made import Faults, write_ranks

IN_PATHS, NUMBERS, NAMES = "ranks in the paths", "numbers in the paths", "file names"
USUAL = [
    ("a.rank0.ncu-rep a.rank10.ncu-rep a.rank2.ncu-rep", "0 10 2", IN_PATHS),
    ("out/rank_3/x.ncu-rep out/rank_04/x.ncu-rep", "3 4", IN_PATHS),
    ("node7-r12.ncu-rep node8-r13.ncu-rep", "12 13", IN_PATHS),
    ("job1.task.5.ncu-rep job1.task.6.ncu-rep", "5 6", IN_PATHS),
    ("p.MPI_Rank=1.ncu-rep p.mpi-rank-2.ncu-rep", "1 2", IN_PATHS),
    ("only.rank7.ncu-rep", "7", IN_PATHS),
    ("report.0.ncu-rep report.11.ncu-rep", "0 11", NUMBERS),
    ("gpp2024.003.ncu-rep gpp2024.004.ncu-rep", "3 4", NUMBERS),
    ("t101.0.ncu-rep t205.1.ncu-rep t303.2.ncu-rep", "0 1 2", NUMBERS),
    ("r1-0.ncu-rep r1-1.ncu-rep", "0 1", NUMBERS),
    ("left.ncu-rep right.ncu-rep", "left.ncu-rep right.ncu-rep", NAMES),
    ("a/x.ncu-rep b/x.ncu-rep", "a/x.ncu-rep b/x.ncu-rep", NAMES),
    ("t10.3.ncu-rep t20.7.ncu-rep", "t10.3.ncu-rep t20.7.ncu-rep", NAMES),  # which number?
]
PROCESSES = [
    ([("a.ncu-rep", "n1", 10), ("b.ncu-rep", "n2", 10)], ("n1:10", "n2:10")),
    ([("report_4711.ncu-rep", "n", 4711), ("report_4712.ncu-rep", "n", 4712)], ("4711", "4712")),
    ([("rank0.ncu-rep", "n", 1), ("rank0.ncu-rep", "n", 2)], ("1", "2")),
    ([("rank0.ncu-rep", "n", 1, "a"), ("rank0.ncu-rep", "n", 1, "b")], ("0", "0")),  # of two GPUs
]


def test_usual_names() -> None:
    for names, expected, origin in USUAL:
        assert rank_names([RankSource(name) for name in names.split()]) == (tuple(expected.split()), origin)
    for sources, found in PROCESSES:
        assert rank_names([RankSource(*one) for one in sources])[0] == found
    given = [RankSource("n3/x-017.ncu-rep"), RankSource("n4/x-018.ncu-rep")]
    assert [rank_names(given, pattern)[0] for pattern in (r"-(\d+)", r"n\d")] == [("17", "18"), ("n3", "n4")]


@pytest.mark.parametrize(
    ("values", "scores", "found"),
    [
        ([1.0, 2.0, 3.0, 4.0, 100.0], [-1.349, -0.6745, 0.0, 0.6745, 65.4265], [0, 0, 0, 0, 1]),  # median 3, MAD 1
        ([1.0, 1.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0, 5 / 1.2533], [0, 0, 0, 0, 1]),  # MAD 0, mean deviation 0.2
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0, 0, 0]),
        ([1.0, 9.0], [math.nan] * 2, [0, 0]),
        ([1.0, math.nan, 2.0, 3.0], [-0.6745, math.nan, 0.0, 0.6745], [0, 0, 0, 0]),
        ([1.0, 1.001, 0.999, 1.0, 1.04], None, [0, 0, 0, 0, 0]),  # 26 deviations, but only 4 % off
        ([1.0, 1.001, 0.999, 1.0, 1.06], None, [0, 0, 0, 0, 1]),
        ([1.0, 1.001, 0.999, 1.0, 0.9], None, [0, 0, 0, 0, -1]),
        ([1.0, 2.0, 3.0, 4.0, 5.0], None, [0, 0, 0, 0, 0]),  # wide, but nobody stands out
    ],
)
def test_who_stands_out(values: list[float], scores: list[float] | None, found: list[int]) -> None:
    assert outliers(np.array(values)).tolist() == found
    assert scores is None or modified_z(np.array(values)) == pytest.approx(scores, nan_ok=True)


SAME = {"launches": 1.0, "FLOPs": 1.0, "dram bytes": 1.0}


@pytest.mark.parametrize(
    ("sign", "time", "loads", "clock", "expected"),
    [
        (1, 1.4, SAME, 1.0, "slow GPU: longer with the same work and bytes"),
        (1, 1.4, SAME, 0.7, "lower clock: 0.70 x the others' with the same work and bytes"),
        (-1, 0.8, SAME, 1.0, "fast GPU: shorter with the same work and bytes"),
        (-1, 0.8, SAME, 1.2, "higher clock: 1.20 x the others' with the same work and bytes"),
        (1, 2.0, {**SAME, "FLOPs": 2.0}, 1.0, "uneven work: 2.00 x the FLOPs"),
        (1, 2.0, {**SAME, "dram bytes": 1.95}, 1.0, "uneven work: 1.95 x the dram bytes"),
        (1, 3.0, {**SAME, "FLOPs": 2.0}, 1.0, "uneven work: 2.00 x the FLOPs; slow GPU: longer beyond that"),
        (-1, 0.5, {**SAME, "FLOPs": 0.5}, math.nan, "uneven work: 0.50 x the FLOPs"),
        (1, 1.4, {"launches": 1.0, "FLOPs": math.nan}, 1.0, "unknown: neither work nor bytes are known of these ranks"),
    ],
)
def test_causes(sign: float, time: float, loads: dict[str, float], clock: float, expected: str) -> None:
    assert cause(sign, time, loads, clock) == expected


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
    assert merged.origin == NUMBERS
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
        mine, theirs = ranks([path]).roofline, roofline(path, by="kernel")
        for name in ("work", "traffic", "seconds", "intensity", "performance", "launches"):
            assert mine.points[name].tolist() == pytest.approx(theirs.points[name].tolist(), rel=1e-9, nan_ok=True), path.name
        assert mine.kernels["seconds"].tolist() == pytest.approx(theirs.kernels["seconds"].tolist(), nan_ok=True), path.name
