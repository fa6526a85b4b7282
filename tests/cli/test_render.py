"""`ncu-roofline render`: formats, tables, titles, paper, and where they go; `--label` and `--trajectory`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.model import columns
from tests import published
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import A100, NO_WORK, complete, kernel, report, timing, traffic
from tests.model.test_roofline import NW, gpp_sweep

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep"


class TestRender:
    def test_the_suffix_says_the_format(self, run: Command, source: Path, tmp_path: Path) -> None:
        for suffix, start in (
            (".htm", b"<!doctype html>"),
            (".png", b"\x89PNG"),
            (".csv", b"report,launch,"),
            (".json", b"{\n"),
            (".md", b"# "),
            (".TXT", b"3 kernels, 4 launches"),
        ):
            target = tmp_path / f"out{suffix}"
            outcome = run("render", source, "-o", target)
            assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
            assert target.read_bytes()[:40].lower().startswith(start.lower())
        target = tmp_path / "other.png"
        assert run("render", source, "-o", target, "--format", "json").code == 0  # the option wins
        json.loads(target.read_text())

    @pytest.mark.parametrize("words", [("-o", "out.xyz"), ("-o", "out"), ("-o", "-"), ("-o", "a.png", "--format", "gif")])
    def test_unknown_formats(
        self, run: Command, source: Path, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        outcome = run("render", source, *words)
        assert_refused(outcome, words[1], code=2)
        assert all(name in outcome.err for name in ANALYSES["roofline"].formats)
        assert_no_leftovers(tmp_path, source.name)

    def test_tables_on_standard_output(self, run: Command, source: Path) -> None:
        for table, declared in (("points", columns.POINTS), ("roofs", columns.ROOFS), ("kernels", columns.KERNELS)):
            outcome = run("render", source, "-o", "-", "--format", "csv", "--table", table)
            assert (outcome.code, outcome.err) == (0, "")
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
        for name in ("out.html", "out.svg"):
            assert run("render", source, "-o", tmp_path / name, "--title", title, "--theme", "dark").code == 0
        assert "<b>friends</b>" not in (tmp_path / "out.html").read_text(encoding="utf-8")
        assert "GPP &amp; &lt;b&gt;friends" in (tmp_path / "out.html").read_text(encoding="utf-8")

    def test_the_page_says_what_is_missing(self, run: Command, tmp_path: Path) -> None:
        source = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **traffic(1, 1, 1)}))
        assert "ncu --metrics" in run("render", source, "-o", "-", "--format", "html").out

    def test_parquet_without_pyarrow(self, run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ncu_roofline.analyses.find_spec", lambda _: None)
        outcome = run("render", source, "-o", tmp_path / "out.parquet")
        assert_refused(outcome, "parquet")
        assert "pip install 'ncu-roofline[parquet]'" in outcome.err
        assert_no_leftovers(tmp_path, source.name)


class TestPaper:
    """The options for the paper of a picture."""

    def test_a_png_of_the_width_and_dots_asked_for(self, run: Command, tmp_path: Path) -> None:
        picture = tmp_path / "x.png"
        asked = ("--width", "84mm", "--height", "7cm", "--font", "7", "--dpi", "200", "--size", "time")
        assert run("render", DEMO, "-o", picture, *asked).code == 0
        data = picture.read_bytes()
        assert [int.from_bytes(data[place : place + 4], "big") for place in (16, 20)] == [661, 551]

    def test_presets_go_with_every_view(self, run: Command, tmp_path: Path) -> None:
        for view in ("time", "instruction"):
            picture = tmp_path / f"{view}.svg"
            assert run("render", DEMO, "-o", picture, "--view", view, "--preset", "column").code == 0
            assert b'width="237.6pt"' in picture.read_bytes()

    def test_refusals(self, run: Command, tmp_path: Path) -> None:
        for words, said in (
            ("x.png --width 0in", "--width: 0 is not between 1.5 and 60 inches"),
            ("x.png --width=", "argument --width: '' is no length"),
            ("x.png --width wide", "--width: 'wide' is not a length such as 3.3in"),
            ("x.png --font 5", "--font: 5 is not between 6 and 72 points"),
            ("x.png --font nan", "--font: nan is not between"),
            ("x.png --dpi 1e9", "--dpi: 1e+09 is not between 36 and 2400"),
            ("x.png --height 1.5in --font 14", "--height: 1.5in has no room for the picture"),
            ("x.png --preset poster", "invalid choice: 'poster'"),
            ("x.html --preset column", "Cannot use --preset: --view roofline as html has no use for it"),
            ("x.txt --width 3in", "Cannot use --width: --view roofline as text has no use for it"),
            ("x.png --view time --size time", "Cannot use --size: --view time as png has no use for it"),
        ):
            outcome = run("render", DEMO, "-o", *f"{tmp_path}/{words}".split())
            assert (outcome.code, said in " ".join(outcome.err.split())) == (2, True), words
        assert_no_leftovers(tmp_path)


class TestTrajectory:
    def sweep(self, run: Command, *words: object) -> list[tuple[Any, ...]]:
        """(label, step, intensity at DRAM) that `show --json` gives."""
        outcome = run("show", "--json", *words)
        assert (outcome.code, outcome.err) == (0, "")
        points = [point for point in json.loads(outcome.out)["points"] if point["level"] == "dram"]
        assert {point["kernel"] for point in points} == {"sigma_gpp_gpu"}
        return sorted((point["step"], point["label"], point["intensity"]) for point in points)

    def expected(self, labels: list[str]) -> list[tuple[Any, ...]]:
        values = enumerate(zip(labels, published.INTENSITY_DRAM, strict=True))
        return [(step, label, pytest.approx(intensity, rel=1e-9)) for step, (label, intensity) in values]

    def test_six_reports_however_they_are_named(self, run: Command, tmp_path: Path) -> None:
        paths = gpp_sweep(tmp_path)
        for words in (paths, [tmp_path], [tmp_path / "gpp-*.ncu-rep"]):
            assert self.sweep(run, *words, "--trajectory") == self.expected(NW)
        assert self.sweep(run, *reversed(paths), "--trajectory")[0][1] == "nw6"
        assert self.sweep(run, tmp_path, "--label", r"nw(\d)") == self.expected(list("123456"))
        document = json.loads(run("show", "--json", tmp_path, "--trajectory", "--by", "application").out)
        assert [(row["kernel"], row["label"]) for row in document["kernels"]] == [("application", label) for label in NW]

    def test_labels_of_nvtx(self, run: Command) -> None:
        assert self.sweep(run, DEMO, "--label", "nvtx") == self.expected([f"nw={nw}" for nw in range(1, 7)])
        assert self.sweep(run, DEMO, "--label", r"nvtx:\d", "--trajectory") == self.expected(list("123456"))
        for name in ("html", "csv", "md"):
            assert "nw=6" in run("render", DEMO, "--label", "nvtx", "-o", "-", "--format", name).out

    def test_steps_in_a_folder_are_in_natural_order(self, run: Command, tmp_path: Path) -> None:
        gpp_sweep(tmp_path, ["n2", "n4", "n8", "n10", "n16", "n100"])
        assert self.sweep(run, tmp_path, "--trajectory") == self.expected(["n2", "n4", "n8", "n10", "n16", "n100"])

    def test_top_counts_kernels(self, run: Command, tmp_path: Path) -> None:
        both = kernel(complete(seconds=1.0), "void long(int)"), kernel(complete(), "void short(int)")
        for n in (1, 2):
            report(tmp_path / f"n{n}.ncu-rep", *both)
        document = json.loads(run("show", "--json", tmp_path, "--trajectory", "--top", "1").out)
        assert [(row["kernel"], row["label"]) for row in document["kernels"]] == [("long", "n1"), ("long", "n2")]

    def test_refusals(self, run: Command) -> None:
        for words in (["--trajectory"], ["--label", "q{9}"], ["--label", "nvtx:zzz"]):
            assert_refused(run("show", DEMO, *words), DEMO)
        outcome = run("show", DEMO, "--label", "nvtx:(")
        assert outcome.code == 2
        assert "argument --label: '(' is not a regular expression" in outcome.err
        assert_refused(run("show", DEMO, "--trajectory", "--source", "embedded"), "embedded", code=2)
