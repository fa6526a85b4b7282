"""`ncu-roofline show`: its numbers, the model that they are of, and which launches pass."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.units import UNITS
from ncu_roofline.model import columns
from tests.cli.command import Command, assert_refused, launches
from tests.factory import complete, flops, kernel, report
from tests.published_report import CEILINGS, REPORT

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


class TestShow:
    def test_table_has_the_numbers(self, run: Command, source: Path) -> None:
        outcome = run("show", source, "--width", 140)
        assert (outcome.code, outcome.err) == (0, "")
        lines = outcome.out.splitlines()
        place = next(place for place, line in enumerate(lines) if line.startswith("first"))
        # 1 GFLOP in 1 ms; 1, 0.5 and 0.25 GB; 1 TFLOP/s of 4 x 1555.2 GB/s; 9.74 TFLOP/s at its clock
        assert " ".join(lines[place].split()) == "first 1 1 ms 16.7 % latency 6.2x 9.7x 839 \N{MICRO SIGN}s DRAM 16 %"
        assert " ".join(lines[place + 1].split()).startswith("FP64 1 2 4 1 TFLOP/s 16.1 %")
        assert "1 kernel without floating-point work" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 140

    def test_width(self, run: Command, source: Path) -> None:
        for width in (1, 40, 80, 300):
            outcome = run("show", source, "--width", width)
            assert outcome.code == 0
            assert max(map(len, outcome.out.splitlines())) <= max(width, 60)
            assert "\x1b" not in outcome.out

    def test_json_schema(self, rows: Callable[..., Any], source: Path) -> None:
        document = rows(source)
        assert (document["schema"], document["schema_version"]) == ("ncu-roofline", 2)
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

    def test_a_terminal_has_the_kernels_that_could_save_most(self, run: Command, tmp_path: Path) -> None:
        names = [f"k{place}" for place in range(25)]
        kernels = [kernel(complete(seconds=1e-3 * (1 + place)), name) for place, name in enumerate(names)]
        source = report(tmp_path / "many.ncu-rep", *kernels, *kernels)
        short, whole = run("show", source).out, run("show", source, "--all").out
        written = tmp_path / "x.txt"
        run("render", source, "-o", written)
        for text, found in ((short, names[5:]), (whole, names), (written.read_text(), names)):
            rows = [line.split()[0] for line in text.splitlines() if re.match(r"k\d+ .* latency ", line)]
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
        for name, row, count in (("x.md", "| kernel", 1), ("x.csv", "r.ncu-rep", 6)):
            run("render", source, "-o", tmp_path / name)
            lines = (tmp_path / name).read_text().splitlines()
            assert sum(line.startswith(row) for line in lines if "FP64" in line or "fp64" in line) == count


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

    def test_ceilings(self, rows: Callable[..., Any], run: Command, source: Path) -> None:
        document = rows(DEMO / REPORT, "--ceilings", DEMO / CEILINGS)
        assert {row["origin"] for row in document["roofs"]} == {"theoretical", "measured"}
        outcome = run("show", source, "--ceilings", DEMO / CEILINGS)  # of another GPU
        assert_refused(outcome, DEMO / CEILINGS)
        assert "V100" in outcome.err
        assert "A100" in outcome.err

    def test_embedded_charts_stand_alone(self, run: Command, source: Path) -> None:
        for command in (("show",), ("render", "-o", "-", "--format", "csv")):
            for words in (("--by", "kernel"), ("--clock", "max"), ("--by", "application", "--clock", "max")):
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
            ("--kernel", "^first$"): [0],
            ("--kernel", "^(?!void first)"): [1, 2, 3],
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

    def test_unknown_precisions_and_levels(self, run: Command, source: Path) -> None:
        for option, word, what in (
            ("--precision", "fp65", "precisions"),
            ("--precision", "tens", "precisions"),
            ("--level", "l4", "levels"),
        ):
            for command in ("show", "explain"):
                outcome = run(command, source, option, word)
                assert_refused(outcome, word)
                assert f"`ncu-roofline list {what}`" in outcome.err

    def test_nothing_left(self, run: Command, source: Path) -> None:
        for words in (("--kernel", "nope"), ("--nvtx", "x"), ("--launch", "7,9-8")):
            for command in ("show", "explain"):
                outcome = run(command, source, *words)
                assert_refused(outcome, source)
                assert f"({' '.join(words)})" in outcome.err


def test_two_precisions_show_the_mixed_kernel(rows: Callable[..., Any], tmp_path: Path) -> None:
    metrics = {**complete(), **flops("f", fma=500_000_000)}
    document = rows(report(tmp_path / "m.ncu-rep", kernel(metrics)))
    assert {row["precision"] for row in document["points"]} == {"fp64", "fp32", "mixed"}
    only = rows(tmp_path / "m.ncu-rep", "--precision", "mixed")
    assert {row["precision"] for row in only["points"]} == {"mixed"}
    assert all(math.isfinite(row["fraction"]) for row in only["points"])
