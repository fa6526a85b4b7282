"""The view of phases on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.analyses.phases.frames import MOST_SLICES
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    return report(tmp_path / "phases.ncu-rep", Made().kernel(), kernel(complete(), "void plain(int *)"))


@pytest.fixture
def bands_only(tmp_path: Path) -> Path:
    made = Made((Group({SM: steps(20, 60)}), Group({DRAM: steps(80, 20)})))
    return report(tmp_path / "bands.ncu-rep", made.kernel())


def test_show(sampled: Path, run: Command) -> None:
    shown = run("show", sampled, "--view", "phases", "--width", 100)
    assert shown.code == 0
    lines = shown.out.splitlines()
    (heading,) = [line for line in lines if line.startswith("phased: 1 ms in 40 slices")]
    table = lines[lines.index(heading) + 3 :]
    assert [line.split()[0] for line in table[:4]] == ["SM", "FP64", "L2", "DRAM"]
    assert any("1 launch without samples over time" in line for line in lines)
    assert all(len(line) <= 100 for line in lines)


def test_launches_without_samples_are_told(sampled: Path, tmp_path: Path, run: Command) -> None:
    """Beside a picture or a page, which may be empty, and where a report is explained."""
    made = run("render", sampled, "--view", "phases", "-o", tmp_path / "x.html")
    assert made.code == 0
    assert "1 launch without samples over time" in made.err
    assert "--section PmSampling" in made.err
    said = " ".join(run("explain", sampled, "--view", "phases").out.split())
    assert "note 1 launch without samples over time" in said
    assert "note all launches have samples over their time" in " ".join(
        run("explain", sampled, "--view", "phases", "--launch", "0").out.split()
    )


def test_json(sampled: Path, run: Command) -> None:
    document = json.loads(run("show", sampled, "--view", "phases", "--json").out)
    assert document["view"] == "phases"
    assert {"points", "bands", "sampled", "roofs"} < set(document)
    assert [row["status"] for row in document["sampled"]] == ["ok", "no-samples"]
    assert len(document["points"]) == MOST_SLICES


@pytest.mark.parametrize("name", ANALYSES["phases"].formats)
def test_every_format(name: str, sampled: Path, tmp_path: Path, run: Command) -> None:
    if ANALYSES["phases"].formats[name].needs:
        pytest.importorskip(ANALYSES["phases"].formats[name].needs)
    target = tmp_path / "out"
    assert run("render", sampled, "--view", "phases", "--format", name, "-o", target).code == 0
    assert target.stat().st_size > 1000


def test_without_dots_a_table_holds_the_bands(bands_only: Path, run: Command) -> None:
    done = run("render", bands_only, "--view", "phases", "--format", "csv", "-o", "-")
    assert done.out.splitlines()[0].startswith("report,launch,kernel,device,label,step,slice,begin,end,band")
    assert "holds the bands" in done.err
    points = run("render", bands_only, "--view", "phases", "--format", "csv", "--table", "points", "-o", "-")
    assert len(points.out.splitlines()) == 1


def test_without_samples_a_table_holds_the_kernels(tmp_path: Path, run: Command) -> None:
    path = report(tmp_path / "plain.ncu-rep", kernel(complete()))
    done = run("render", path, "--view", "phases", "--format", "csv", "-o", "-")
    assert "no-samples" in done.out
    assert "holds the kernels" in done.err


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("--by", "application"), "application"),
        (("--source", "embedded"), "embedded"),
        (("--launch-latency", "4us"), "4e-06 s"),
    ],
)
def test_what_does_not_go_together(words: tuple[str, ...], about: str, sampled: Path, run: Command) -> None:
    assert_refused(run("show", sampled, "--view", "phases", *words), about, 2)


def test_a_low_paper_is_refused(sampled: Path, tmp_path: Path, run: Command) -> None:
    words = ("render", sampled, "--view", "phases", "-o", tmp_path / "x.png", "--height", "1.5in")
    done = run(*words)
    assert (done.code, "has no room for the picture" in done.err) == (2, True)
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("preset", ["column", "page", "slide"])
def test_presets(preset: str, sampled: Path, tmp_path: Path, run: Command) -> None:
    assert run("render", sampled, "--view", "phases", "-o", tmp_path / "x.svg", "--preset", preset).code == 0


def test_options_of_the_model_hold_here(sampled: Path, run: Command) -> None:
    document = json.loads(run("show", sampled, "--view", "phases", "--json", "--clock", "max", "--level", "dram").out)
    assert {row["level"] for row in document["points"]} == {"dram"}
    assert json.loads(run("show", sampled, "--view", "phases", "--json", "--precision", "fp32").out)["points"] == []


def test_reports_of_several_kernels_are_told_apart(tmp_path: Path, run: Command) -> None:
    names = ("void a(int *)", "void b(int *)")
    path = report(tmp_path / "two.ncu-rep", *(Made(TWO_PHASES, name=name, seconds=1e-3).kernel() for name in names))
    out = run("show", path, "--view", "phases").out
    assert "a: 1 ms in 40 slices" in out
    assert "b: 1 ms in 40 slices" in out
