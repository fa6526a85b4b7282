"""Many ranks merged: nothing is lost on the way, spread is what it says, and who stands out is named with the reason."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline.analyses.ranks import RankSource, cause, modified_z, outliers, rank_names, rank_part, ranks
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import Selection, roofline
from tests.analyses.ranks_made import KERNELS, LAUNCHES, SKIPPED, UNEVEN, Faults, write_rank, write_ranks
from tests.factory import A100, H100, complete, flops, kernel, report, timing, traffic

COUNT = 12
FAULTS = Faults(slow={3}, clock={6}, uneven={5}, skipping={7, 8})


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_ranks(tmp_path_factory.mktemp("ranks"), COUNT, FAULTS)


@pytest.mark.parametrize(
    ("names", "expected", "origin"),
    [
        (["a.rank0.ncu-rep", "a.rank10.ncu-rep", "a.rank2.ncu-rep"], ["0", "10", "2"], "ranks in the paths"),
        (["out/rank_3/x.ncu-rep", "out/rank_04/x.ncu-rep"], ["3", "4"], "ranks in the paths"),
        (["node7-r12.ncu-rep", "node8-r13.ncu-rep"], ["12", "13"], "ranks in the paths"),
        (["job1.task.5.ncu-rep", "job1.task.6.ncu-rep"], ["5", "6"], "ranks in the paths"),
        (["p.MPI_Rank=1.ncu-rep", "p.mpi-rank-2.ncu-rep"], ["1", "2"], "ranks in the paths"),
        (["only.rank7.ncu-rep"], ["7"], "ranks in the paths"),
        (["report.0.ncu-rep", "report.11.ncu-rep"], ["0", "11"], "numbers in the paths"),
        (["gpp2024.003.ncu-rep", "gpp2024.004.ncu-rep"], ["3", "4"], "numbers in the paths"),
        (["t101.0.ncu-rep", "t205.1.ncu-rep", "t303.2.ncu-rep"], ["0", "1", "2"], "numbers in the paths"),
        (["r1-0.ncu-rep", "r1-1.ncu-rep"], ["0", "1"], "numbers in the paths"),
        (["left.ncu-rep", "right.ncu-rep"], ["left.ncu-rep", "right.ncu-rep"], "file names"),
        (["a/x.ncu-rep", "b/x.ncu-rep"], ["a/x.ncu-rep", "b/x.ncu-rep"], "file names"),
        (["t10.3.ncu-rep", "t20.7.ncu-rep"], ["t10.3.ncu-rep", "t20.7.ncu-rep"], "file names"),  # which number?
    ],
)
def test_usual_names(names: list[str], expected: list[str], origin: str) -> None:
    assert rank_names([RankSource(name) for name in names]) == (tuple(expected), origin)


def test_names_from_processes() -> None:
    alone = [RankSource("a.ncu-rep", "n1", 10), RankSource("b.ncu-rep", "n2", 10)]
    assert rank_names(alone)[0] == ("n1:10", "n2:10")
    pids = [RankSource("report_4711.ncu-rep", "n", 4711), RankSource("report_4712.ncu-rep", "n", 4712)]
    assert rank_names(pids) == (("4711", "4712"), "process ids in the paths")
    one_report = [RankSource("rank0.ncu-rep", "n", 1), RankSource("rank0.ncu-rep", "n", 2)]
    assert rank_names(one_report) == (("1", "2"), "processes in the reports")
    two_gpus = [RankSource("rank0.ncu-rep", "n", 1, "a"), RankSource("rank0.ncu-rep", "n", 1, "b")]
    assert rank_names(two_gpus)[0] == ("0", "0")


def test_a_pattern_of_the_user() -> None:
    sources = [RankSource("n3/x-017.ncu-rep"), RankSource("n4/x-018.ncu-rep")]
    assert rank_names(sources, r"-(\d+)")[0] == ("17", "18")
    assert rank_names(sources, r"n\d")[0] == ("n3", "n4")
    with pytest.raises(RooflineError, match=r"Cannot tell the rank of n4/x-018.ncu-rep: --rank n\(3\) finds none"):
        rank_names(sources, "n(3)")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0, 100.0], [-1.349, -0.6745, 0.0, 0.6745, 65.4265]),  # median 3, MAD 1
        ([1.0, 1.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0, 5 / 1.2533]),  # MAD 0, mean deviation 0.2
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
        ([1.0, 9.0], [math.nan] * 2),
        ([1.0, math.nan, 2.0, 3.0], [-0.6745, math.nan, 0.0, 0.6745]),
    ],
)
def test_modified_z_score(values: list[float], expected: list[float]) -> None:
    assert modified_z(np.array(values)) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 1.001, 0.999, 1.0, 1.04], [0, 0, 0, 0, 0]),  # 26 deviations, but only 4 % off
        ([1.0, 1.001, 0.999, 1.0, 1.06], [0, 0, 0, 0, 1]),
        ([1.0, 1.001, 0.999, 1.0, 0.9], [0, 0, 0, 0, -1]),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 0, 0, 0]),  # wide, but nobody stands out
        ([1.0, 50.0], [0, 0]),
    ],
)
def test_outliers(values: list[float], expected: list[int]) -> None:
    assert outliers(np.array(values)).tolist() == expected


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


def test_outliers_are_named_with_their_cause(paths: list[Path]) -> None:
    found = ranks(paths)
    assert (found.names, found.origin) == (tuple(map(str, range(COUNT))), "numbers in the paths")
    table = found.ranks[found.ranks["outlier"] != ""]
    assert set(table["rank"]) == {"3", "5", "6"}
    causes = {
        rank: {text.partition(":")[0] for text in table["cause"][table["rank"] == rank]} for rank in table["rank"].unique()
    }
    assert causes == {"3": {"slow GPU"}, "6": {"lower clock"}, "5": {"uneven work"}}
    assert (table["rank"] == "3").sum() == len(KERNELS)
    assert table["gpu"][table["rank"] == "3"].unique().tolist() == ["0000:44:00.0"]
    assert table["host"][table["rank"] == "5"].unique().tolist() == ["node1"]
    by_name = found.kernels.set_index("name")
    assert by_name.loc[UNEVEN, "slow_ranks"] == "3; 5; 6"
    assert by_name.loc[SKIPPED, "missing_ranks"] == "7; 8"
    assert by_name["missing"].tolist().count(0) == len(KERNELS) - 1


def test_spread_and_imbalance(tmp_path: Path) -> None:
    milliseconds = (1.0, 2.0, 3.0, 6.0)
    made = [report(tmp_path / f"r{n}.ncu-rep", kernel(complete(seconds=t * 1e-3))) for n, t in enumerate(milliseconds)]
    (row,) = ranks(made).kernels.to_dict("records")
    assert [row[f"seconds_{what}"] for what in ("min", "median", "max")] == pytest.approx([1e-3, 2.5e-3, 6e-3])
    assert row["imbalance"] == pytest.approx(6 / 3)
    assert row["imbalance_median"] == pytest.approx(6 / 2.5)
    assert row["spread"] == pytest.approx(5 / 2.5)
    assert (row["slowest"], row["ranks"], row["launches"]) == ("3", 4, 4)


@pytest.mark.parametrize("by", ["kernel", "application"])
def test_merged_is_the_roofline_of_all_launches(paths: list[Path], by: str) -> None:
    merged = ranks(paths, by=by, clock="max")
    if by == "kernel":
        whole = roofline(paths, by="kernel", clock="max")
        key = ["kernel", "precision", "level"]
        mine, theirs = (one.points.set_index(key).sort_index() for one in (merged, whole))
        for name in ("work", "traffic", "seconds", "intensity", "performance", "attainable", "fraction", "launches"):
            assert mine[name].to_numpy() == pytest.approx(theirs[name].to_numpy(), rel=1e-9), name
    assert merged.kernels["launches"].sum() == COUNT * LAUNCHES * len(KERNELS) - 2 * LAUNCHES
    assert (merged.points["fraction_min"] <= merged.points["fraction_max"]).all()
    assert (merged.points["intensity_median"] > 0).all()


def test_launches_that_lack_metrics_are_not_mixed_with_others(tmp_path: Path) -> None:
    full = complete(seconds=1e-3)
    no_dram = {name: value for name, value in complete(seconds=2e-3).items() if name != "dram__bytes.sum"}
    no_work = {**A100, **timing(4e-3), **traffic(10, 10, 10)}
    single = {**full, **flops("f", fma=300_000_000)}
    launches = [kernel(one) for one in (full, no_dram, full, no_work, single, single)]
    made = [report(tmp_path / f"r{n}.ncu-rep", *launches) for n in range(3)]
    with read_report(made[0]) as opened:
        assert len(rank_part(opened).measurements) == 4
    mine, theirs = ranks(made).points, roofline(made, by="kernel").points
    names = [
        "precision",
        "level",
        "work",
        "traffic",
        "seconds",
        "intensity",
        "performance",
        "attainable",
        "coverage",
        "launches",
    ]
    assert len(mine) == len(theirs) > 6
    for name in names:
        expected = theirs[name].tolist()
        assert mine[name].tolist() == (expected if isinstance(expected[0], str) else pytest.approx(expected)), name


def test_real_reports_stay_what_they_are(real_reports: dict[str, Path]) -> None:
    for path in real_reports.values():
        mine, theirs = ranks([path]).roofline, roofline(path, by="kernel")
        for name in ("work", "traffic", "seconds", "intensity", "performance", "launches"):
            assert mine.points[name].tolist() == pytest.approx(theirs.points[name].tolist(), rel=1e-9, nan_ok=True), path.name
        assert mine.kernels["seconds"].tolist() == pytest.approx(theirs.kernels["seconds"].tolist(), nan_ok=True), path.name


def test_several_files_of_a_rank_are_summed(paths: list[Path]) -> None:
    found = ranks(paths[:4], rank=r"report\.[0-3]*?([01]|[23])\.")
    assert found.names == ("0", "1", "2", "3")
    folded = ranks(paths[:4], rank=r"(report)")
    assert folded.names == ("report",)
    assert folded.kernels["launches_max"].tolist() == [4 * LAUNCHES] * len(KERNELS)


def test_other_gpus_are_other_rows_but_not_missing(tmp_path: Path) -> None:
    made = [write_rank(tmp_path / f"rank{number}.ncu-rep", number, device=A100 if number < 3 else H100) for number in range(6)]
    found = ranks(made).kernels
    assert len(found) == 2 * len(KERNELS)
    assert found["ranks"].tolist() == [3] * len(found)
    assert found["missing"].tolist() == [0] * len(found)


def test_filters(paths: list[Path]) -> None:
    only = ranks(paths, select=Selection(kernel=r"solve<2>"))
    assert only.kernels["missing_ranks"].tolist() == ["7; 8"]
    assert len(only.names) == COUNT
    top = ranks(paths, select=Selection(top=2))
    assert top.kernels["name"].tolist() == [KERNELS[3], KERNELS[2]]
    with pytest.raises(RooflineError, match="no launch passes the filters"):
        ranks(paths, select=Selection(kernel="nothing"))


def test_options_that_are_none(paths: list[Path]) -> None:
    with pytest.raises(ValueError, match="by must be one of kernel, application"):
        ranks(paths, by="launch")
    with pytest.raises(ValueError, match="no reports"):
        ranks([])
