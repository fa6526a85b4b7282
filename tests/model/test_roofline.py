"""Launches together: sweeps and their published figures, filters, kernels, what is above a roof, which kernels come first."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from ncu_roofline import roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical.captions import above_note
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernels_of, ranked
from ncu_roofline.analyses.hierarchical.picture import figure
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.analyses.time.frames import time_roofline
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import natural_order
from ncu_roofline.formats.report import ReportData, write_report
from ncu_roofline.model import Measurements, Roofline, Selection, as_trajectory, measurements_of
from ncu_roofline.model.names import across_numbers
from ncu_roofline.model.points import ABOVE
from ncu_roofline.model.selection import differing, file_labels, order
from ncu_roofline.plugin.nvrules.findings import findings
from tests import published, published_report
from tests.cli.command import Command
from tests.factory import A100, Metrics, complete, kernel, report, timing
from tests.facts.stated import toml
from tests.instruction_factory import executed

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = DEMO / published_report.REPORT, DEMO / published_report.CEILINGS
SWEEPS = toml(Path(__file__).parent / "cases.toml")["sweeps"]
NW = [f"nw{nw}" for nw in range(1, 7)]
PUBLISHED = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}


def gpp_sweep(folder: Path, names: Sequence[str] = NW) -> list[Path]:
    """The six published runs as one report each, gpp-NAME.ncu-rep."""
    data = published_report.gpp_report()
    paths = [folder / f"gpp-{name}.ncu-rep" for name in names]
    for path, one in zip(paths, data.kernels, strict=True):
        write_report(path, ReportData(kernels=[one], session=data.session))
    return paths


def runs(path: Path, *kernels: tuple[str, str, float]) -> Path:
    """A report of (name, NVTX range, seconds)."""
    launches = ((complete(seconds=seconds), name, (where,) if where else ()) for name, where, seconds in kernels)
    return report(path, *(kernel(metrics, name, nvtx=nvtx) for metrics, name, nvtx in launches))


def steps(result: Roofline, level: str = "dram") -> list[tuple[str, str, int]]:
    """(kernel, label, step) of the points at a level, by kernel and step."""
    rows = result.points[result.points["level"] == level].sort_values(["kernel", "step"], kind="stable")
    return list(zip(rows["kernel"], rows["label"], rows["step"], strict=True))


def test_the_published_figures_come_out_as_published(tmp_path: Path) -> None:
    published_report.write(tmp_path)
    for name in (published_report.REPORT, published_report.CEILINGS, published_report.PLATFORMS):
        assert (DEMO / name).read_bytes() == (tmp_path / name).read_bytes()
    dram = roofline(REPORT, CEILINGS).points.query("level == 'dram'")
    assert (dram["fraction"] * 100).tolist() == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert dram["binds"].iloc[[0, 5]].tolist() == ["dram", "fp64.fma"]
    assert set(dram["roof_origin"]) == {"measured"}
    roofs = roofline(REPORT).roofs.set_index("roof")["value"]
    found = {name: roofs[name] for name in ("fp64.fma", "fp64.nofma", "dram", "l1")}
    assert found == pytest.approx({"fp64.fma": 7.83e12, "fp64.nofma": 3.92e12, "dram": 898e9, "l1": 15.67e12}, rel=1e-3)


def test_published_sweeps(tmp_path: Path) -> None:
    """Of six reports, and of ranges inside one; by patterns in either."""
    paths = gpp_sweep(tmp_path)
    assert roofline(paths, trajectory=True).points.sort_values("step")["report"].unique().tolist() == [str(p) for p in paths]
    inside = [f"nw={nw}" for nw in range(1, 7)]
    for files, label, labels in (
        *((paths, given, NW) for given in (True, r"gpp-(nw\d)", r"nw\d")),
        *((REPORT, given, labels) for given, labels in (("nvtx", inside), (r"nvtx:=(\d)", [*"123456"]))),
    ):
        result = roofline(files, trajectory=label)
        for level, intensities in PUBLISHED.items():
            assert steps(result, level) == [("sigma_gpp_gpu", one, step) for step, one in enumerate(labels)]
            rows = result.points[result.points["level"] == level].sort_values("step")
            assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-9)
            assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)
        assert len(result.kernels) == 6
        assert result.kernels["name"].tolist()[0].startswith("void sigma_gpp_gpu<1>")
    result = roofline(paths)  # without a sweep nothing has a step
    assert set(result.points["step"]) == set(result.kernels["step"]) == {-1}
    assert set(result.points["label"]) == {""}


def test_labels_names_and_order(tmp_path: Path) -> None:
    for paths, labels in SWEEPS["files"]:
        assert file_labels(paths) == labels
    for texts, labels in SWEEPS["texts"]:
        assert differing(texts) == labels
    for names, across in SWEEPS["across"]:
        assert across_numbers(names) == across
    names = ["b", "nw10", "nw2", "nw2b", "nw002", "dt0.5", "dt0.25", "7"]
    assert sorted(names, key=natural_order) == ["b", "dt0.25", "dt0.5", "nw2", "nw002", "nw2b", "nw10", "7"]
    for given, expected in SWEEPS["order"]:
        paths = [runs(tmp_path / f"app-{name}.ncu-rep", ("k", "", 1e-3)) for name in given]
        assert steps(roofline(paths, trajectory=True)) == [("k", label, step) for step, label in enumerate(expected)]
    for names, kernels in SWEEPS["kernels"]:
        paths = [runs(tmp_path / f"n{i}.ncu-rep", *((one, "", 1e-3) for one in each)) for i, each in enumerate(names)]
        assert sorted(set(roofline(paths, trajectory=True).points["kernel"])) == kernels
    path = runs(tmp_path / "alone.ncu-rep", ("k", "", 1e-3))
    for label, sentence in SWEEPS["refused"]:
        with pytest.raises(RooflineError) as error:
            roofline(path, trajectory=label or True)
        assert f"Cannot draw a trajectory of {path}: " in str(error.value)
        assert sentence in str(error.value)


def test_what_is_one_step(tmp_path: Path) -> None:
    paths = [runs(tmp_path / f"n{i}.ncu-rep", ("k", "", 1e-3), ("other", "", 1e-3), ("k", "", 3e-3)) for i in (1, 2)]
    result = roofline(paths, trajectory=True)  # several launches of a kernel are one dot
    assert steps(result) == [("k", "n1", 0), ("k", "n2", 1), ("other", "n1", 0), ("other", "n2", 1)]
    rows = result.kernels[result.kernels["kernel"] == "k"]
    assert rows["launches"].tolist() == [2, 2]
    assert rows["seconds"].tolist() == pytest.approx([4e-3, 4e-3])
    assert rows["report"].tolist() == [str(path) for path in paths]
    whole = roofline(paths, trajectory=True, by="application")
    assert steps(whole) == [("application", "n1", 0), ("application", "n2", 1)]
    paths = [runs(tmp_path / f"nw{nw}-run{run}.ncu-rep", ("k", "", 1e-3)) for nw in (1, 2) for run in (1, 2)]
    result = roofline(paths, trajectory=r"nw\d")  # reports with one label
    assert steps(result) == [("k", "nw1", 0), ("k", "nw2", 1)]
    assert result.kernels["launches"].tolist() == [2, 2]
    assert set(result.kernels["report"]) == {""}
    path = runs(tmp_path / "a.ncu-rep", ("k", "", 1e-3), ("k", "n=1", 1e-3), ("k", "n=2", 1e-3))
    assert steps(roofline(path, trajectory="nvtx")) == [("k", "", -1), ("k", "n=1", 0), ("k", "n=2", 1)]
    # Of kernels the one with most time, in all steps; labels that a file gives its points stay.
    chosen = Selection(top=1, top_by="kernel").launches(as_trajectory(measurements_of(REPORT), "nvtx"))
    assert chosen.label.tolist() == [f"nw={nw}" for nw in range(1, 7)]
    own: Measurements = replace(measurements_of(path), label=np.array(["p", "q", ""], dtype=object))
    labelled = as_trajectory(own)
    assert (labelled.label.tolist(), labelled.step.tolist()) == (["p", "q", ""], [0, 1, -1])


def of(path: Path, *metrics: Metrics, names: str = "", **options: Any) -> Roofline:
    """``names``: of the kernels, each with its number."""
    launches = [kernel(one, f"{names}{place}()" if names else "kernel()") for place, one in enumerate(metrics)]
    return roofline(report(path / "r.ncu-rep", *launches), **options)


def test_filters_and_options(tmp_path: Path) -> None:
    ranges = {"first": ("setup",), "second": ("solve", "inner"), "third": ()}
    named = [(complete(seconds=place * 1e-3), f"void {name}(int)") for place, name in enumerate(ranges, 1)]
    path = report(tmp_path / "r.ncu-rep", *(kernel(*one, nvtx=nvtx) for one, nvtx in zip(named, ranges.values(), strict=True)))

    def launches(**filters: Any) -> list[int]:
        return roofline(path, select=Selection(**filters)).kernels["launch"].tolist()

    assert launches(kernel="^void s") == launches(nvtx="inner") == [1]
    assert launches(launch=((0, 0), (2, 5))) == [0, 2]
    assert launches(top=2) == [1, 2]
    levels = roofline(path, select=Selection(levels=("dram",)))
    assert set(levels.points["level"]) == {"dram"}
    assert set(levels.roofs["level"]) == {"", "dram"}
    assert roofline(path, select=Selection(precisions=("fp32",))).points.empty
    wrong: dict[str, dict[str, Any]] = {
        "per launch": {"source": "embedded", "by": "kernel"},
        "sweeps": {"source": "embedded", "trajectory": "nvtx"},
        "source must be": {"source": "elsewhere"},
        "by must be": {"by": "x"},
        "clock must be": {"clock": "x"},
        "not a regular expression": {"trajectory": "nvtx:("},
    }
    for words, options in wrong.items():
        with pytest.raises(ValueError, match=words):
            roofline(path, **options)


@pytest.mark.reports
def test_a_kernel_that_was_made_faster(real_reports: dict[str, Path]) -> None:
    """miniWeather before and after it divides less often: 1.78 times as fast, where 1.4x was left at its instructions."""
    before, after = (roofline(real_reports[f"v100-ncu2022.2-full-{one}.ncu-rep"]).kernels.set_index("kernel") for one in (1, 2))
    name = "compute_tendencies_x_279_gpu"
    faster = before["seconds"][name] / after["seconds"][name]
    assert faster == pytest.approx(1.78, abs=0.005)
    assert before["headroom"][name] < faster < before["headroom_compute"][name]
    assert before["reason"][name].endswith("headroom 1.4x at its present instructions, 1.9x to the FP64 FMA roof")


HIGH = 2_000_000_000  # bytes in a millisecond, where DRAM gives 1.5552e9


def test_the_sentence_on_all_that_is_above(tmp_path: Path) -> None:
    below = of(tmp_path, complete())
    assert not any(ABOVE in note for note in (*below.points["notes"], *below.kernels["notes"]))
    assert above_note(below) == ""
    without_points = of(tmp_path, {**A100, **timing(), "dram__bytes.sum": HIGH}, names="k")
    assert above_note(without_points).startswith("1 kernel stands above a roof. k0: 128.6 % of the 1.56 TB/s of DRAM")
    many = of(tmp_path, *({**complete(), "dram__bytes.sum": HIGH + i * 10**8} for i in range(12)), complete(), names="k")
    assert above_note(many).startswith("12 dots stand above a roof. The highest is k11, FP64: ")
    for made in (figure(many), time_figure(time_roofline(many))):
        caption = " ".join(text.get_text() for text in made.findobj(Text))
        assert re.search("12 (dots|kernels) stand above a roof.*possible if", caption)


def test_every_page_explains(tmp_path: Path, run: Command) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), **executed(10**6), "dram__bytes.sum": HIGH}))
    for view in ("roofline", "time", "instruction"):
        assert run("render", file, "--view", view, "--format", "html", "-o", tmp_path / f"{view}.html").code == 0
        shown = re.sub(r"<[^>]*>|\s+", " ", (tmp_path / f"{view}.html").read_text(encoding="utf-8"))
        assert re.search(r"128\.6 % of the .*, possible if ", shown), view


BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}


def slow(seconds: float, share: float, **more: float) -> Metrics:
    """A kernel of so many seconds that uses a share of the bandwidth of DRAM."""
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds), **more}


@pytest.mark.parametrize("full", [0.97, 1.0])
def test_tables_pages_and_advice_rank_alike(tmp_path: Path, full: float) -> None:
    """A kernel of 11 us of unknown gain is behind one of 10 s that has next to nothing to gain."""
    metrics = {"little": slow(11e-6, 0.3, **BUSY), "long": slow(10.0, full), "half": slow(0.5, 0.2), "less": slow(5e-6, 0.1)}
    path = report(tmp_path / "r.ncu-rep", *(kernel(one, f"void {name}(int)") for name, one in metrics.items()))
    expected, rows = ["half", "long", "little", "less"], roofline(path, by="kernel")
    assert [one.kernel for one in ranked(kernels_of(rows).values())] == expected
    assert [row["kernel"] for row in kernels_table(rows).rows] == expected
    assert [one.name for one in findings((), measurements_of([path])).kernels] == expected
    (text,) = re.findall('<script[^>]*type="application/json"[^>]*>(.*?)</script>', render(rows, "html").decode(), re.DOTALL)
    assert [rows.kernels["kernel"][place] for place in json.loads(text)["order"]] == expected
    given = [("A", 10.0, 0.01), ("A", 11e-6, math.nan), ("A", 0.4, math.nan), ("A", math.nan, math.nan), ("B", 1e-3, 0.5e-3)]
    for kernels in itertools.permutations(given):
        assert [kernels[place][1] for place in order(kernels)][:4] == [0.4, 10.0, 1e-3, 11e-6]
    (answer,) = answers_of(rows)
    assert [said.partition(":")[0] for said in answer.sentences[1:]] == expected[: len(answer.sentences) - 1]
