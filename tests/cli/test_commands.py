"""Every command and option does what its help says."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES, views
from ncu_roofline.cli import executors, reading
from ncu_roofline.cli.list import LISTS
from ncu_roofline.cli.parser import COMMANDS
from ncu_roofline.facts import load_spec
from ncu_roofline.inputs import FORMATS
from ncu_roofline.model import columns
from ncu_roofline.report import KernelData, ReportData, Session, write_report
from ncu_roofline.units import UNITS
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import A100, H100, NO_WORK, Metrics, complete, flops, kernel, report, timing, traffic
from tests.published_report import CEILINGS, REPORT


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four launches of three kernels, six milliseconds in all."""
    return report(
        tmp_path / "r.ncu-rep",
        kernel(complete(seconds=1e-3), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=2e-3), "void second(int)", nvtx=("solve", "inner")),
        kernel(complete(seconds=2e-3, clock=0.705e9), "void second(int)", nvtx=("solve",)),
        kernel({**A100, **timing(1e-3), **NO_WORK, **traffic(1, 1, 1)}, "void copy(int)"),
    )


@pytest.fixture
def rows(run: Command) -> Callable[..., Any]:
    """The document that ``show --json`` prints for some words."""

    def show(*words: object) -> Any:
        outcome = run("show", "--json", *words)
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    return show


def launches(document: Any) -> list[int]:
    return [row["launch"] for row in document["kernels"]]


class TestShow:
    def test_table_has_the_numbers(self, run: Command, source: Path) -> None:
        outcome = run("show", source, "--width", 140)
        assert (outcome.code, outcome.err) == (0, "")
        line = next(line for line in outcome.out.splitlines() if line.startswith("first"))
        # 1 GFLOP in 1 ms; 1, 0.5 and 0.25 GB; 1 TFLOP/s of 4 x 1555.2 GB/s
        for text in ("1 ms", "FP64", " 1 ", " 2 ", " 4 ", "1 TFLOP/s", "16.1 %", "latency", "6.2x"):
            assert text in line
        assert "1 kernel without floating-point work" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 140

    @pytest.mark.parametrize("width", [1, 40, 80, 300])
    def test_width(self, run: Command, source: Path, width: int) -> None:
        outcome = run("show", source, "--width", width)
        assert outcome.code == 0
        assert max(map(len, outcome.out.splitlines())) <= max(width, 60)

    def test_json_schema(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source)
        assert (document["schema"], document["schema_version"]) == ("ncu-roofline", 1)
        assert set(document["units"].values()) <= set(UNITS)
        for name, declared in (("points", columns.POINTS), ("roofs", columns.ROOFS), ("kernels", columns.KERNELS)):
            assert document[name]
            types = {"str": str, "int": int, "float": (float, type(None))}
            for row in document[name]:
                assert list(row) == [column.name for column in declared]
                assert all(isinstance(row[column.name], types[column.dtype]) for column in declared)

    def test_json_numbers_are_si(self, rows: Callable[..., Any], source: Path) -> None:
        point = next(row for row in rows(source)["points"] if row["level"] == "dram")
        assert (point["work"], point["traffic"], point["intensity"]) == (1e9, 2.5e8, 4)
        assert point["seconds"] == pytest.approx(1e-3)
        assert point["fraction"] == pytest.approx(1e12 / (4 * 1555.2e9))

    def test_what_is_missing_is_said(self, run: Command, tmp_path: Path) -> None:
        metrics = {**complete()}
        del metrics["dram__bytes.sum"]
        outcome = run("show", report(tmp_path / "r.ncu-rep", kernel(metrics)))
        assert outcome.code == 0
        assert outcome.out.endswith("r.ncu-rep: DRAM missing in its launch; `ncu-roofline explain` tells how to add them.\n")

    def test_paths_are_in_json_on_request_only(self, run: Command, rows: Callable[..., Any], tmp_path: Path) -> None:
        for part in ("a", "b"):
            (tmp_path / "secret" / part).mkdir(parents=True)
        paths = [report(tmp_path / "secret" / part / "same.ncu-rep", kernel(complete(), part)) for part in ("a", "b")]
        other = report(tmp_path / "secret" / "other.ncu-rep", kernel(complete()))
        assert {row["report"] for row in rows(other)["kernels"]} == {"other.ncu-rep"}
        assert {row["report"] for row in rows(*paths)["kernels"]} == {"a/same.ncu-rep", "b/same.ncu-rep"}
        assert {row["report"] for row in rows(*paths, "--full-paths")["kernels"]} == set(map(str, paths))
        assert "Add --json" in run("show", other, "--full-paths").err
        for view in ("roofline", "time", "instruction", "phases"):
            assert "secret" not in run("show", tmp_path, "--view", view, "--notes").out
        assert "secret" not in run("explain", tmp_path).out

    def test_steps_are_found_in_paths_that_are_not_shown(self, rows: Callable[..., Any], tmp_path: Path) -> None:
        for nw in (1, 2):
            (tmp_path / f"nw{nw}").mkdir()
        paths = [report(tmp_path / f"nw{nw}" / "gpp.ncu-rep", kernel(complete())) for nw in (1, 2)]
        found = rows(*paths, "--label", r"nw(\d+)/")["kernels"]
        assert [(row["label"], row["report"]) for row in found] == [("1", "nw1/gpp.ncu-rep"), ("2", "nw2/gpp.ncu-rep")]
        found = rows(*paths, "--label", f"{tmp_path.name}/nw(.)")["kernels"]
        assert [row["label"] for row in found] == ["1", "2"]

    def test_a_terminal_has_the_kernels_with_most_to_gain(self, run: Command, tmp_path: Path) -> None:
        names = [f"k{place}" for place in range(25)]
        kernels = [kernel(complete(seconds=1e-3 * (1 + place)), name) for place, name in enumerate(names)]
        source = report(tmp_path / "many.ncu-rep", *kernels, *kernels)
        short, whole = run("show", source).out, run("show", source, "--all").out
        written = tmp_path / "x.txt"
        run("render", source, "-o", written)
        for text, found in ((short, names[5:]), (whole, names), (written.read_text(), names)):
            rows = [line.split()[0] for line in text.splitlines() if line.startswith("k") and "latency" in line]
            assert rows == found[::-1]
            assert "25 kernels, 50 launches, 650 ms" in text
            assert ("and 5 more (4.6 % of the time); --all shows them" in text) == (text is short)

    def test_people_see_kernels_and_data_has_launches(self, run: Command, rows: Callable[..., Any], tmp_path: Path) -> None:
        source = report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete()))
        for more, count in (((), 1), (("--by", "launch"), 2)):
            table = run("show", source, *more).out.partition("---")[2]
            assert table.count("\nkernel ") == count
        assert len(rows(source)["kernels"]) == 2
        assert len(rows(source, "--by", "kernel")["kernels"]) == 1
        for name, count in (("x.md", 1), ("x.csv", 6)):
            run("render", source, "-o", tmp_path / name)
            assert (
                sum("kernel" in line for line in (tmp_path / name).read_text().splitlines() if "FP64" in line or "fp64" in line)
                == count
            )

    def test_no_escapes_unless_it_is_a_terminal(self, run: Command, source: Path) -> None:
        assert "\x1b" not in run("show", source).out


class TestModelOptions:
    def test_by_kernel(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source, "--by", "kernel")
        assert [(row["kernel"], row["launches"]) for row in document["kernels"]] == [("first", 1), ("second", 2), ("copy", 1)]
        assert {row["work"] for row in document["points"] if row["kernel"] == "second"} == {2e9}

    def test_by_application(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source, "--by", "application")
        assert [row["launches"] for row in document["kernels"]] == [4]
        point = next(row for row in document["points"] if row["level"] == "dram")
        assert point["work"] == 3e9
        assert point["seconds"] == pytest.approx(6e-3)

    def test_clock_max(self, rows: Callable[..., Any], source: Path) -> None:
        def peak(*words: str) -> float:
            roofs = rows(source, "--launch", "2", *words)["roofs"]
            return next(row["value"] for row in roofs if row["roof"] == "fp64.fma")

        assert peak("--clock", "max") == pytest.approx(2 * peak())
        assert peak("--clock", "profiled") == peak()

    def test_ceilings(self, rows: Callable[..., Any], tmp_path: Path, run: Command) -> None:
        assert run("demo", "--only", "gpp", "-o", tmp_path / "demo").code == 0
        document = rows(tmp_path / "demo" / REPORT, "--ceilings", tmp_path / "demo" / CEILINGS)
        assert {row["origin"] for row in document["roofs"]} == {"theoretical", "measured"}

    def test_ceilings_of_another_gpu(self, run: Command, tmp_path: Path, source: Path) -> None:
        run("demo", "--only", "gpp", "-o", tmp_path / "demo")
        ceilings = tmp_path / "demo" / CEILINGS
        outcome = run("show", source, "--ceilings", ceilings)
        assert_refused(outcome, ceilings)
        assert "V100" in outcome.err
        assert "A100" in outcome.err

    @pytest.mark.parametrize("words", [("--by", "kernel"), ("--clock", "max"), ("--by", "application", "--clock", "max")])
    @pytest.mark.parametrize("command", [("show",), ("render", "-o", "-", "--format", "csv")])
    def test_embedded_charts_stand_alone(
        self, run: Command, source: Path, words: tuple[str, ...], command: tuple[str, ...]
    ) -> None:
        assert_refused(run(*command, source, "--source", "embedded", *words), "embedded", code=2)

    def test_embedded_charts_need_no_counters_of_ours(self, run: Command, source: Path) -> None:
        outcome = run("show", source, "--source", "embedded")
        assert outcome.code == 0
        assert "without a roofline chart in the report" in outcome.out


class TestFilters:
    def test_launches(self, rows: Callable[..., Any], source: Path) -> None:
        for words, expected in {
            ("--kernel", "second"): [1, 2],
            ("--kernel", "^void (f|c)"): [0, 3],
            ("--nvtx", "solve"): [1, 2],
            ("--nvtx", "solve/inner"): [1],
            ("--launch", "0"): [0],
            ("--launch", "2-99, 0"): [0, 2, 3],
            ("--launch", "1-1000000000000000000000000"): [1, 2, 3],
            ("--top", "2"): [1, 2],
            ("--top", "99999999999999999999"): [0, 1, 2, 3],
            ("--kernel", "second", "--launch", "2", "--top", "1"): [2],
        }.items():
            assert launches(rows(source, *words)) == expected, words

    def test_top_kernels(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source, "--by", "kernel", "--top", "1")
        assert [(row["kernel"], row["launches"]) for row in document["kernels"]] == [("second", 2)]

    def test_precisions_and_levels(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source, "--precision", "FP64,tensor", "--level", "L2, dram")
        assert {(row["precision"], row["level"]) for row in document["points"]} == {("fp64", "l2"), ("fp64", "dram")}
        assert not rows(source, "--precision", "tensor")["points"]

    @pytest.mark.parametrize("command", [("show",), ("explain",), ("render", "-o", "-", "--format", "md")])
    def test_unknown_precisions_and_levels(self, run: Command, source: Path, command: tuple[str, ...]) -> None:
        for option, word, what in (
            ("--precision", "fp65", "precisions"),
            ("--precision", "tens", "precisions"),
            ("--level", "l4", "levels"),
        ):
            outcome = run(*command, source, option, word)
            assert_refused(outcome, word)
            assert f"`ncu-roofline list {what}`" in outcome.err

    @pytest.mark.parametrize("command", [("show",), ("explain",), ("render", "-o", "-", "--format", "md")])
    @pytest.mark.parametrize(
        ("words", "shown"),
        [(("--kernel", "nope"), "--kernel nope"), (("--nvtx", "x"), "--nvtx x"), (("--launch", "7,9-8"), "--launch 7,9-8")],
    )
    def test_nothing_left(
        self, run: Command, source: Path, command: tuple[str, ...], words: tuple[str, ...], shown: str
    ) -> None:
        outcome = run(*command, source, *words)
        assert_refused(outcome, source)
        assert f"({shown})" in outcome.err


class TestReports:
    @pytest.fixture
    def several(self, tmp_path: Path) -> Path:
        """A folder with two reports, one of them deeper, and other files."""
        (tmp_path / "in" / "deep").mkdir(parents=True)
        report(tmp_path / "in" / "a.ncu-rep", kernel(complete()))
        report(tmp_path / "in" / "deep" / "b.nsight-cuprof-report", kernel(complete(H100)), kernel(complete()))
        (tmp_path / "in" / "notes.txt").write_text("no report")
        return tmp_path / "in"

    def names(self, document: Any) -> list[str]:
        return [Path(row["report"]).name for row in document["kernels"]]

    def test_several_in_order(self, rows: Callable[..., Any], several: Path, source: Path) -> None:
        document = rows(several / "deep" / "b.nsight-cuprof-report", several / "a.ncu-rep", "--level", "dram")
        assert self.names(document) == ["b.nsight-cuprof-report"] * 2 + ["a.ncu-rep"]
        assert launches(document) == [0, 1, 0]
        assert len({row["report"] for row in rows(several, source)["kernels"]}) == 3

    @pytest.mark.parametrize("pattern", ["", "**", "*.ncu-rep"])
    def test_folders_and_patterns(self, rows: Callable[..., Any], several: Path, pattern: str) -> None:
        where = several / pattern / "*report" if pattern == "**" else several / pattern
        expected = {"": ["a.ncu-rep"] + ["b.nsight-cuprof-report"] * 2, "*.ncu-rep": ["a.ncu-rep"]}
        assert self.names(rows(where)) == expected.get(pattern, ["b.nsight-cuprof-report"] * 2)

    def test_each_once(self, rows: Callable[..., Any], several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(several)
        document = rows("a.ncu-rep", "./a.ncu-rep", several / "a.ncu-rep", ".", "*.ncu-rep")
        assert [row["report"] for row in document["kernels"]].count("a.ncu-rep") == 1
        assert len(document["kernels"]) == 3

    def test_nothing_there(self, run: Command, several: Path) -> None:
        for word in (several / "*.nope", several / "deep" / "x.ncu-rep"):
            assert_refused(run("show", several / "a.ncu-rep", word), word)
        (several / "empty").mkdir()
        outcome = run("show", several / "empty")
        assert_refused(outcome, several / "empty")
        assert ".ncu-rep" in outcome.err

    def test_the_first_that_fails_ends_it(self, run: Command, several: Path, source: Path) -> None:
        bad = several / "bad.ncu-rep"
        bad.write_bytes(b"text")
        assert_refused(run("show", source, bad), bad)

    @pytest.mark.parametrize("command", [("show",), ("show", "--json"), ("explain",), ("explain", "--json")])
    def test_keep_going(self, run: Command, several: Path, source: Path, command: tuple[str, ...]) -> None:
        bad = several / "bad.ncu-rep"
        bad.write_bytes(b"text")
        outcome = run(*command, several, source, "--keep-going")
        assert outcome.code == 1
        assert outcome.err.count("\n") == 1
        assert f"ncu-roofline: Cannot read {bad}: " in outcome.err
        assert outcome.out

    def test_keep_going_renders_the_others(self, run: Command, several: Path, tmp_path: Path, source: Path) -> None:
        (several / "bad.ncu-rep").write_bytes(b"text")
        outcome = run("render", several, source, "--keep-going", "-o", tmp_path / "out.csv")
        assert outcome.code == 1
        assert (tmp_path / "out.csv").exists()

    def test_keep_going_with_nothing_good(self, run: Command, tmp_path: Path) -> None:
        outcome = run("show", tmp_path / "a", tmp_path / "b", "--keep-going")
        assert outcome.code == 1
        assert outcome.out == ""
        assert [line.partition(":")[0] for line in outcome.err.splitlines()] == ["ncu-roofline"] * 3
        assert "none of the reports could be read" in outcome.err


class TestParallel:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[Path]:
        return [
            report(tmp_path / f"{number}.ncu-rep", *(kernel(complete(seconds=1e-3 * (number + 1))) for _ in range(number + 1)))
            for number in range(4)
        ]

    def test_the_same_as_one_after_the_other(
        self, run: Command, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad = tmp_path / "2b.ncu-rep"
        bad.write_bytes(b"text")
        words = ("show", "--json", *paths[:2], bad, *paths[2:], "--keep-going")
        one_by_one = run(*words)
        monkeypatch.setattr(executors, "PARALLEL_FROM_BYTES", 0)
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        assert run(*words) == one_by_one
        assert len(json.loads(one_by_one.out)["kernels"]) == 10
        error = run("explain", *paths, bad)
        assert_refused(error, bad)
        assert error.err.strip() == one_by_one.err.strip()


class TestRender:
    @pytest.mark.sampled(".html-*", ".png-*", ".csv-*", ".json-*", ".md-*", ".TXT-*")
    @pytest.mark.parametrize(
        ("suffix", "start"),
        [
            (".html", b"<!doctype html>"),
            (".htm", b"<!doctype html>"),
            (".png", b"\x89PNG"),
            (".svg", b"<?xml"),
            (".pdf", b"%PDF"),
            (".csv", b"report,launch,"),
            (".json", b"{\n"),
            (".md", b"# "),
            (".TXT", b"3 kernels, 4 launches"),
        ],
    )
    def test_the_suffix_says_the_format(self, run: Command, source: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
        target = tmp_path / f"out{suffix}"
        outcome = run("render", source, "-o", target)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
        assert target.read_bytes()[:40].lower().startswith(start.lower())

    def test_format_option_wins(self, run: Command, source: Path, tmp_path: Path) -> None:
        target = tmp_path / "out.png"
        assert run("render", source, "-o", target, "--format", "json").code == 0
        json.loads(target.read_text())

    def test_standard_output(self, run: Command, source: Path) -> None:
        outcome = run("render", source, "-o", "-", "--format", "csv")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.splitlines()[0].split(",") == [column.name for column in columns.POINTS]

    @pytest.mark.parametrize("words", [("-o", "out.xyz"), ("-o", "out"), ("-o", "-"), ("-o", "a.png", "--format", "gif")])
    def test_unknown_formats(
        self, run: Command, source: Path, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        outcome = run("render", source, *words)
        assert_refused(outcome, words[1], code=2)
        assert all(name in outcome.err for name in ANALYSES["roofline"].formats)
        assert_no_leftovers(tmp_path, source.name)

    @pytest.mark.parametrize("table", ["points", "roofs", "kernels"])
    def test_tables(self, run: Command, source: Path, table: str) -> None:
        declared = {"points": columns.POINTS, "roofs": columns.ROOFS, "kernels": columns.KERNELS}[table]
        outcome = run("render", source, "-o", "-", "--format", "csv", "--table", table)
        assert outcome.out.splitlines()[0] == ",".join(column.name for column in declared)

    @pytest.mark.parametrize("name", ["out.csv", "-"])
    def test_kernels_where_there_are_no_points(self, run: Command, tmp_path: Path, name: str) -> None:
        source = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **NO_WORK, **traffic(1, 1, 1)}, "void copy(int)"))
        output = name if name == "-" else str(tmp_path / name)
        outcome = run("render", source, "-o", output, "--format", "csv")
        assert outcome.code == 0
        text = outcome.out if name == "-" else (tmp_path / name).read_text(encoding="utf-8")
        assert text.splitlines()[0] == ",".join(column.name for column in columns.KERNELS)
        assert len(text.splitlines()) == 2
        assert "holds the kernels, with their verdicts" in outcome.err
        asked = run("render", source, "-o", "-", "--format", "csv", "--table", "points")
        assert (asked.err, len(asked.out.splitlines())) == ("", 1)

    def test_title_and_theme(self, run: Command, source: Path, tmp_path: Path) -> None:
        title = "GPP & <b>friends</b> of $x_"
        for name in ("out.html", "out.svg", "out.md"):
            assert run("render", source, "-o", tmp_path / name, "--title", title, "--theme", "dark").code == 0
        assert "<b>friends</b>" not in (tmp_path / "out.html").read_text(encoding="utf-8")
        assert "GPP &amp; &lt;b&gt;friends" in (tmp_path / "out.html").read_text(encoding="utf-8")

    def test_the_page_says_what_is_missing(self, run: Command, tmp_path: Path) -> None:
        source = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **traffic(1, 1, 1)}))
        assert run("render", source, "-o", tmp_path / "out.html").code == 0
        assert "ncu --metrics" in (tmp_path / "out.html").read_text(encoding="utf-8")

    def test_parquet_without_pyarrow(self, run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ncu_roofline.analyses.find_spec", lambda _: None)
        outcome = run("render", source, "-o", tmp_path / "out.parquet")
        assert_refused(outcome, "parquet")
        assert "pip install 'ncu-roofline[parquet]'" in outcome.err
        assert_no_leftovers(tmp_path, source.name)


def without_work(device: Metrics = A100) -> Metrics:
    """What ``ncu --set basic`` collects: times and throughputs, no operations."""
    return {**device, **timing(), "dram__bytes.sum": 100}


def of(path: Path, *kernels: KernelData, version: str = "2024.1.0.0", application: str = "./app --n 3 'a  b'") -> Path:
    """A report with the command line that made it."""
    session = Session(ncu_version=version, command_line=f"ncu --set basic -o out {application}")
    write_report(path, ReportData(kernels, session), overwrite=True)
    return path


class TestExplain:
    def command(self, run: Command, *words: object) -> list[str]:
        """The ncu command line that ``explain`` proposes, in words."""
        outcome = run("explain", *words)
        assert (outcome.code, outcome.err) == (0, "")
        assert max(map(len, outcome.out.splitlines())) <= 120
        lines = [line.strip() for line in outcome.out.replace("\\\n", "").splitlines() if line.strip().startswith("ncu ")]
        assert len(lines) == 1, outcome.out
        return shlex.split(lines[0])

    def metrics(self, run: Command, *words: object) -> set[str]:
        command = self.command(run, *words)
        assert command[:2] == ["ncu", "--metrics"]
        return set(command[2].split(","))

    def test_basic_set(self, run: Command, tmp_path: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()))
        words = self.command(run, path)
        assert words[3:] == ["-o", "b-roofline", "./app", "--n", "3", "a  b"]
        metrics = set(words[2].split(","))
        assert set(NO_WORK) | set(traffic()) | {"gpu__time_duration.sum"} <= metrics
        assert not any("tensor" in name for name in metrics)
        out = run("explain", path).out
        assert "FP64         missing" in out
        assert "DRAM         1 of 1 launches (binding: dram__bytes.sum" in out

    def test_what_it_proposes_is_enough(self, run: Command, tmp_path: Path) -> None:
        names = self.metrics(run, of(tmp_path / "b.ncu-rep", kernel(without_work())))
        collected = kernel({**A100, **dict.fromkeys(names, 1e6)})
        outcome = run("explain", of(tmp_path / "c.ncu-rep", collected))
        assert "missing" not in outcome.out.replace("Nothing is missing", "")
        assert "Nothing is missing" in outcome.out

    def test_nothing_missing(self, run: Command, source: Path) -> None:
        outcome = run("explain", source)
        assert outcome.code == 0
        assert "Nothing is missing" in outcome.out
        assert "ncu --metrics" not in outcome.out

    def test_chip_without_dram_counters(self, run: Command, tmp_path: Path) -> None:
        orin = {**A100, "device__attribute_compute_capability_minor": 7, "device__attribute_display_name": "Orin"}
        path = of(tmp_path / "o.ncu-rep", kernel(without_work(orin)))
        names = self.metrics(run, path)
        assert not any("dram__" in name for name in names)
        assert "lts__d_sectors_fill_sysmem.sum" in names
        assert "DRAM         missing" in run("explain", path).out
        assert "compute capability 8.7 has no counters for System memory" in run("explain", path, "--level", "l2,system").out

    def test_tensor_counts_of_an_old_release(self, run: Command, tmp_path: Path) -> None:
        old = of(tmp_path / "o.ncu-rep", kernel(without_work()), version="2022.3.0.0")
        outcome = run("explain", old, "--precision", "fp64,tensor")
        assert "tensor operation counts need Nsight Compute 2023.3 or later" in outcome.out
        assert not any("ops_path" in name for name in self.metrics(run, old, "--precision", "fp64,tensor"))
        new = of(tmp_path / "n.ncu-rep", kernel(without_work()), version="2023.3.0.0")
        assert any("ops_path_tensor" in name for name in self.metrics(run, new, "--precision", "tensor.fp16"))

    @pytest.mark.parametrize("version", ["", "x", "2022", "\u00b2.1", "999999999999999999999.9"])
    def test_odd_releases(self, run: Command, tmp_path: Path, version: str) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()), version=version)
        assert self.metrics(run, path, "--precision", "tensor")

    def test_unknown_chip_and_unknown_application(self, run: Command, tmp_path: Path) -> None:
        future = {**A100, "device__attribute_compute_capability_major": 42}
        outcome = run("explain", of(tmp_path / "f.ncu-rep", kernel(without_work(future)), application=""))
        assert "compute capability 42.0 is not known" in outcome.out
        assert "Nothing is missing" not in outcome.out
        assert self.command(run, of(tmp_path / "a.ncu-rep", kernel(without_work()), application=""))[-1] == "./app"

    def test_filters_reach_the_command(self, run: Command, tmp_path: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work(), "void a b(int)"), kernel(complete()))
        words = self.command(run, path, "--kernel", "a b$|a b")
        assert words[3:5] == ["--kernel-name", "regex:a b$|a b"]
        assert "Nothing is missing" in run("explain", path, "--launch", "1").out

    def test_levels(self, run: Command, tmp_path: Path) -> None:
        names = self.metrics(run, of(tmp_path / "b.ncu-rep", kernel(complete())), "--level", "shared")
        assert any("mem_shared" in name for name in names)

    def test_json(self, run: Command, tmp_path: Path, source: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()))
        document = json.loads(run("explain", "--json", path, source).out)
        assert [Path(one["report"]).name for one in document] == ["b.ncu-rep", "r.ncu-rep"]
        assert document[0]["command"].startswith("ncu --metrics ")
        assert document[0]["missing"] == ["fp64", "fp32", "fp16", "l1", "l2"]
        assert (document[1]["command"], document[1]["missing"]) == ("", [])

    def test_nothing_in_a_report_reaches_the_terminal_as_a_command(self, run: Command, tmp_path: Path) -> None:
        device = {**without_work(), "device__attribute_display_name": "\x1b[31mGPU\u202e"}
        path = of(tmp_path / "e.ncu-rep", kernel(device), version="\x1b[2J", application="./app \x1b]0;x\x07 '; rm -rf ~ #'")
        out = run("explain", path).out
        assert all(line.isprintable() for line in out.splitlines())
        line = next(line.strip() for line in out.replace("\\\n", "").splitlines() if line.strip().startswith("ncu "))
        assert shlex.split(line)[-1] == "; rm -rf ~ #"


class TestList:
    @pytest.mark.parametrize("what", LISTS)
    def test_table_and_json_agree(self, run: Command, what: str) -> None:
        table = run("list", what)
        document = json.loads(run("list", what, "--json").out)
        assert (table.code, table.err) == (0, "")
        assert len(table.out.splitlines()) == len(document) + 1
        assert all(value in table.out for row in document for value in row.values())

    def test_everything_is_there(self, run: Command) -> None:
        def first(what: str) -> list[str]:
            return [next(iter(row.values())) for row in json.loads(run("list", what, "--json").out)]

        spec = load_spec()
        assert first("precisions") == [one.id for one in spec.precisions]
        assert first("levels") == [one.id for one in spec.levels]
        assert first("formats") == list(ANALYSES["roofline"].formats)
        assert first("inputs") == ["report", *(one.id for one in FORMATS)]
        assert len(first("architectures")) == len(spec.architectures)


class TestUsage:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_help(self, run: Command, command: str) -> None:
        outcome = run(command, "--help")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"usage: ncu-roofline {command}")

    def test_help_names_all_lists(self) -> None:
        assert COMMANDS["list"].endswith(": " + ", ".join(LISTS))

    def test_help_names_the_tables_of_a_view(self) -> None:
        assert all(row.holds == tuple(row.tables) for command in COMMANDS for row in views(command).values())

    def test_program(self, run: Command) -> None:
        assert run("--version").out.startswith(f"ncu-roofline {ncu_roofline.__version__}")
        outcome = run("--help")
        assert outcome.code == 0
        assert all(re.search(rf"^ +{command}\b", outcome.out, re.MULTILINE) for command in COMMANDS)

    @pytest.mark.parametrize(
        "words",
        [
            "nope",
            "show",
            "render r",
            "list",
            "list nope",
            "show r --by nope",
            "show r --clock fast",
            "show r --source x",
            "show r --top 0",
            "show r --top -1",
            "show r --top many",
            "show r --width 0",
            "show r --launch x",
            "show r --launch 1-",
            "show r --launch -1",
            "show r --launch 1,,2",
            "show r --kernel (",
            "show r --nvtx [",
            "show r --nope",
            "render r -o x.html --theme pink",
            "render r -o x.csv --table rows",
            "explain r --by kernel",
        ],
    )
    def test_usage_errors(self, run: Command, words: str) -> None:
        outcome = run(*words.split())
        assert outcome.code == 2
        assert outcome.out == ""
        assert "ncu-roofline" in outcome.err
        assert "error: " in outcome.err
        assert "Traceback" not in outcome.err

    def test_interrupt(self, run: Command, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(reading, "closing_input", interrupt)
        outcome = run("show", source)
        assert (outcome.code, outcome.out, outcome.err) == (130, "", "ncu-roofline: interrupted\n")


@pytest.mark.sampled("show")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("words", ["show", "show --json", "explain --json", "render -o - --format html"])
def test_a_reader_that_goes_away(tmp_path: Path, words: str) -> None:
    many = [kernel(complete(), f"void k{number}(int)") for number in range(300)]
    source = report(tmp_path / "r.ncu-rep", *many)
    line = f'"$0" -m ncu_roofline {words} "$1" | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, str(source)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_consoles_that_cannot_show_every_character(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete(), "void \u4e2d\u6587(int)"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "ncu_roofline", "show", str(source)],
        capture_output=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"1 TFLOP/s" in done.stdout


def test_two_precisions_show_the_mixed_kernel(rows: Callable[..., Any], tmp_path: Path) -> None:
    metrics = {**complete(), **flops("f", fma=500_000_000)}
    document = rows(report(tmp_path / "m.ncu-rep", kernel(metrics)))
    assert {row["precision"] for row in document["points"]} == {"fp64", "fp32", "mixed"}
    only = rows(tmp_path / "m.ncu-rep", "--precision", "mixed")
    assert {row["precision"] for row in only["points"]} == {"mixed"}
    assert all(math.isfinite(row["fraction"]) for row in only["points"])
