"""`ncu-roofline render`: formats, tables, titles, and where they go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.model import columns
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import A100, NO_WORK, kernel, report, timing, traffic


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
