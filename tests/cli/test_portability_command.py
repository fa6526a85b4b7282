"""`ncu-roofline portability`: inputs of several platforms, choices, outputs and every refusal."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses import portability as platforms
from tests import published_report
from tests.analyses import published_portability as paper
from tests.analyses.test_portability import sweep_table
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.inputs.made import GPP


@pytest.fixture
def knl(tmp_path: Path) -> Path:
    """The KNL rows of table III as a plain table without roofs."""
    path = sweep_table(tmp_path, paper.TABLE_3_FMA)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    path = tmp_path / "knl.csv"
    path.write_text("".join(",".join(row[:5]) + "\n" for row in rows if row[0] != "V100"))
    return path


@pytest.fixture
def knl_roofs(tmp_path: Path) -> Path:
    path = tmp_path / "knl-roofs.txt"
    path.write_text("memroofs 341.84\nmem_roof_names 'HBM'\ncomproofs 2390.12 959.49\ncomp_roof_names 'FMA' 'No-FMA'\n")
    return path


@pytest.fixture
def v100(tmp_path: Path) -> Path:
    """The published points and roofs of the V100 as a data file."""
    path = tmp_path / "v100.txt"
    path.write_text(GPP)
    return path


def portabilities(text: str) -> list[float]:
    return [100 * row["portability"] for row in json.loads(text)["summary"]]


def test_table_3(run: Command, tmp_path: Path, knl: Path, knl_roofs: Path, v100: Path) -> None:
    """From three files, and from a report beside them."""
    outcome = run("portability", knl, f"V100={v100}", "--ceilings", f"KNL={knl_roofs}", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert document["schema"] == "ncu-roofline-portability"
    assert portabilities(outcome.out) == pytest.approx(paper.TABLE_3_FMA.portability, abs=paper.TOLERANCE)
    assert {row["compute_origin"] for row in document["platforms"]} == {"measured"}
    lines = run("portability", knl, f"V100={v100}", "--ceilings", f"KNL={knl_roofs}").out.splitlines()
    (row,) = (line for line in lines if "nw=6" in line and "KNL" in line)
    assert row.split()[-5:] == ["DRAM", "39.65", "%", "49.65", "%"]
    assert "e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H." in lines
    assert "Executed FLOPs under the ceiling of fused multiply-adds (FMA)." in lines
    assert any(line.startswith("V100: compute ceiling measured, bandwidth of DRAM measured; ") for line in lines)
    published_report.write(tmp_path)
    report = tmp_path / published_report.REPORT
    ceilings = ("--ceilings", f"KNL={knl_roofs}", "--ceilings", f"V100={v100}")
    outcome = run("portability", knl, f"V100={report}", *ceilings, "--label", "nvtx", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert portabilities(outcome.out) == pytest.approx(paper.TABLE_3_FMA.portability, abs=paper.TOLERANCE)


def test_theoretical_roofs_of_a_report_are_said(run: Command, tmp_path: Path) -> None:
    published_report.write(tmp_path)
    outcome = run("portability", tmp_path / published_report.REPORT)
    assert outcome.code == 0
    assert "roofs are theoretical where none is measured" in outcome.err
    assert "compute ceiling theoretical, bandwidth of DRAM theoretical" in outcome.out


def test_files(run: Command, tmp_path: Path, knl: Path, knl_roofs: Path) -> None:
    words = ("portability", knl, "--ceilings", f"KNL={knl_roofs}", "-o")
    for suffix in ("csv", "md", "json", "txt"):
        target = tmp_path / f"out.{suffix}"
        outcome = run(*words, target)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
    assert_refused(run(*words, target), target)
    assert run(*words, target, "--force").code == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [100 * float(row["efficiency"]) for row in rows] == pytest.approx(paper.TABLE_3_FMA.efficiency[0], abs=0.02)
    assert "39.65 %" in (tmp_path / "out.md").read_text()


def test_a_missing_platform_is_named_and_makes_it_zero(run: Command, knl: Path, knl_roofs: Path) -> None:
    outcome = run("portability", knl, "--ceilings", f"KNL={knl_roofs}", "--platforms", "KNL,MI250", "--json")
    assert outcome.code == 0
    assert portabilities(outcome.out) == [0.0] * 6
    assert "MI250 nw=1: no input has it" in outcome.err


def test_choices_of_ceiling_and_level(run: Command, knl: Path, knl_roofs: Path) -> None:
    words = ("portability", knl, "--ceilings", f"KNL={knl_roofs}", "--json")
    document = json.loads(run(*words, "--ceiling", "nofma", "--level", "KNL=dram").out)
    assert {row["compute_roof"] for row in document["platforms"]} == {959.49e9}
    assert_refused(run(*words, "--level", "mcdram"), knl)
    assert_refused(run(*words, "--ceiling", "divide"), knl)


def test_impossible_pairing_is_warned_of(run: Command, tmp_path: Path) -> None:
    """Bar 4 of table II: canonical FLOPs under the ceiling of divides."""
    bar = paper.TABLE_2[3]
    header = "platform,gflop/s,ai_hbm,peak_div_nofma_gflops,bandwidth_hbm_gbs\n"
    lines = [
        f"{name},{bar.gflops[p]},{bar.intensity[p]},{bar.ceiling[p]},{(paper.KNL_HBM, paper.V100_HBM)[p]}\n"
        for p, name in enumerate(("KNL", "V100"))
    ]
    table = tmp_path / "bar4.csv"
    table.write_text(header + "".join(lines))
    outcome = run("portability", table, "--ceiling", "divide_nofma", "--json")
    assert portabilities(outcome.out) == pytest.approx([bar.portability], abs=paper.TOLERANCE)
    assert outcome.err.count("is impossible") == 2


def test_canonical_flops(run: Command, tmp_path: Path) -> None:
    executed, canonical = paper.TABLE_1[6]
    with_divides, printed = paper.TABLE_1_INTENSITY[6]
    table = tmp_path / "v100.csv"
    table.write_text(
        f"platform,nw,gflop,seconds,ai_dram,peak_gflops,bandwidth_dram_gbs\nV100,6,{executed},1.25,{with_divides},7068.86,828.758\n"
    )
    document = json.loads(run("portability", table, "--canonical-flops", f"nw=6={canonical}e9", "--json").out)
    (row,) = document["platforms"]
    assert (row["flops"], row["intensity"]) == ("canonical", pytest.approx(printed, rel=1e-4))
    assert row["performance"] == pytest.approx(canonical * 1e9 / 1.25)


def test_variants_by_file_name(run: Command, tmp_path: Path) -> None:
    published_report.write(tmp_path)
    data = (tmp_path / published_report.REPORT).read_bytes()
    for name in ("gpp-s2.ncu-rep", "gpp-s4.ncu-rep"):
        (tmp_path / name).write_bytes(data)
    outcome = run("portability", f"V100={tmp_path}/gpp-s*.ncu-rep", "--label", r"s(\d)", "--json")
    assert [row["variant"] for row in json.loads(outcome.out)["summary"]] == ["2", "4"]
    assert_refused(run("portability", tmp_path / "gpp-s2.ncu-rep", "--label", "nothing"), tmp_path / "gpp-s2.ncu-rep")


def test_refusals(run: Command, tmp_path: Path, knl: Path, knl_roofs: Path, v100: Path) -> None:
    gone, text = tmp_path / "gone.csv", tmp_path / "text.csv"
    text.write_text("just words")
    folder = sorted(path.name for path in tmp_path.iterdir())
    assert_refused(run("portability", gone), gone)
    assert_refused(run("portability", text), text)
    assert_refused(run("portability", knl), knl)  # no ceilings
    assert_refused(run("portability", knl, "--ceilings", f"KNL={gone}"), gone)
    assert_refused(run("portability", knl, v100, "--ceilings", knl_roofs), knl_roofs)  # of which platform?
    assert_refused(run("portability", knl, "--ceilings", f"V100={knl_roofs}"), knl_roofs)  # no such platform
    assert_refused(run("portability", f"V100={v100}", "--precision", "fp32", "--kernel", "none"), v100)
    assert_refused(run("portability", knl_roofs), knl_roofs)  # roofs and no points
    assert_no_leftovers(tmp_path, *folder)


def test_keep_going(run: Command, tmp_path: Path, knl: Path, knl_roofs: Path, v100: Path) -> None:
    """What can't be read is told and left out, also of the platforms that count: nobody knows whether it ran there."""
    bad = tmp_path / "bad.csv"
    bad.write_text("just words")
    ceilings = ("--ceilings", f"KNL={knl_roofs}", "--ceilings", f"MI250={v100}", "--json")
    assert_refused(run("portability", knl, f"MI250={bad}", *ceilings), bad)
    outcome = run("portability", f"MI250={bad}", knl, *ceilings, "--keep-going", "--platforms", "KNL,MI250")
    alone = run("portability", knl, *ceilings[:2], "--json")
    assert (outcome.code, alone.code) == (1, 0)
    assert f"ncu-roofline: Cannot read {bad}: " in outcome.err
    assert portabilities(outcome.out) == portabilities(alone.out)
    assert "MI250 nw=1: no input that could be read has it, so it is left out of the set of platforms" in outcome.err
    document = json.loads(outcome.out)
    assert {row["status"] for row in document["platforms"]} == {"yes", "unread"}
    assert {row["not_run"] for row in document["summary"]} == {"MI250"}
    text = run("portability", bad, knl, *ceilings[:-1], "--keep-going", "--platforms", "KNL,MI250")
    assert "unread" in text.out
    target = tmp_path / "out.csv"
    written = run("portability", bad, knl, *ceilings[:2], "--keep-going", "-o", target)
    assert written.code == 1
    assert len(target.read_text().splitlines()) == 1 + len(portabilities(alone.out))


def test_keep_going_with_nothing_good(run: Command, tmp_path: Path, knl_roofs: Path) -> None:
    words = ("portability", tmp_path / "a", tmp_path / "b", "--keep-going", "--ceilings", f"KNL={knl_roofs}")
    outcome = run(*words, "-o", tmp_path / "out.csv")
    assert (outcome.code, outcome.out) == (1, "")
    first, second, last = outcome.err.splitlines()
    assert str(tmp_path / "a") in first
    assert str(tmp_path / "b") in second
    assert last.endswith("none of the reports could be read. See the messages above.")
    assert_no_leftovers(tmp_path, knl_roofs.name)


def test_an_error_that_nobody_foresaw_costs_its_input(
    run: Command, knl: Path, knl_roofs: Path, v100: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = platforms._read

    def broken(source: platforms.Platform, *rest: Any) -> Any:
        if source.path == str(v100):
            raise OverflowError("too large")
        return read(source, *rest)

    monkeypatch.setattr(platforms, "_read", broken)
    words = ("portability", knl, f"V100={v100}", "--ceilings", f"KNL={knl_roofs}")
    assert_refused(run(*words), v100)
    outcome = run(*words, "--keep-going")
    assert outcome.code == 1
    assert "KNL" in outcome.out
    assert f"Cannot read {v100}: " in outcome.err
    assert "This is a bug" in outcome.err


def test_usage_errors(run: Command, knl: Path) -> None:
    for words in (
        "--flops counted",
        "--ceiling roof",
        "--canonical-flops many",
        "--canonical-flops nw=1=-3",
        "--level KNL=",
        "--label (",
        "--by launch",
        "-o out.png",
        "--format html",
        "--ceilings a --ceilings KNL=b",
        "--ceilings KNL=a --ceilings KNL=b",
    ):
        outcome = run("portability", knl, *words.split())
        assert (outcome.code, outcome.out, "Traceback" in outcome.err) == (2, "", False), words
    assert "PP = |H| / sum(1/e)" in " ".join(run("portability", "--help").out.split())
