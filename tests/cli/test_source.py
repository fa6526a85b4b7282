"""`ncu-roofline source`: tables and texts go where they are sent; what has no source counters is told what to collect."""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline import render, source_roofline
from ncu_roofline.analyses.source.frames import TABLES
from ncu_roofline.analyses.source.text import BY
from ncu_roofline.base.units import UNITS
from ncu_roofline.cli import source
from ncu_roofline.formats.report import read_report
from ncu_roofline.rendering.table import columns_wide
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel, report
from tests.made_up_code import NAME, SWEEPS, WIDTH, executed, smooth

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REAL = Path(os.environ.get("NCU_ROOFLINE_REPORTS", "absent"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return report(tmp_path / "smooth.ncu-rep", smooth())


@pytest.fixture
def plain(run: Command) -> Command:
    """Without nvdisasm, wherever the tests run."""

    def command(*words: object) -> Outcome:
        return run("source", "--no-disassembly", *words)

    return command  # type: ignore[return-value]


def shown(outcome: Outcome) -> str:
    """What was printed, on one line."""
    assert (outcome.code, outcome.err) == (0, "")
    return " ".join(outcome.out.split())


def test_it_says_what_limits_the_kernel_and_then_where(plain: Command, path: Path) -> None:
    text = shown(plain(path, "--width", 130))
    parts = [
        NAME,
        "Latency-bound",
        "What to look at",
        "Loops of smooth.cu, with all",
        "Lines of smooth.cu with most samples:",
        "fit the kernel's counters",
    ]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert "sum += weight(k) * in[row * width + k];" in text


@pytest.mark.parametrize("by", BY)
def test_by_what_is_one_table(plain: Command, path: Path, by: str) -> None:
    outcome = plain(path, "--by", by, "--all")
    text = shown(outcome)
    assert "What to look at" not in text
    begins = {
        "loop": "Loops of", "line": "Lines of", "outer-line": "Lines of", "function": "Functions",
        "instruction": "Instructions of",
    }  # fmt: skip
    assert [begin in text for begin in begins.values()] == [begin == begins[by] for begin in begins.values()]
    assert outcome.out.count("---") == 1 or len([line for line in outcome.out.splitlines() if set(line) == {"-"}]) == 1
    assert ("weight(k)" in text) == (by in ("line", "outer-line"))


def test_lines_of_the_kernel_hold_what_is_inlined_there(plain: Command, path: Path) -> None:
    tables = json.loads(plain(path, "--json").out)
    inner, outer = ({row["line"]: row for row in tables[name]} for name in ("lines", "outer_lines"))
    assert 4 in inner
    assert 4 not in outer
    assert outer[16]["samples"] == inner[16]["samples"] + inner[4]["samples"]


def test_json_has_all_tables_and_their_units(plain: Command, path: Path) -> None:
    document = json.loads(plain(path, "--json").out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (document["schema"], document["view"]) == ("ncu-roofline", "source")
    assert set(document["units"].values()) <= set(UNITS)
    for name, declared in TABLES.items():
        assert list(document[name][0]) == [one.name for one in declared]
    assert sum(row["executed"] for row in document["instructions"]) == sum(executed().values())
    assert [(row["depth"], row["trips"]) for row in document["loops"] if row["loop"] >= 0] == [(1, SWEEPS), (2, WIDTH)]
    assert {row["report"] for row in document["lines"]} == {"smooth.ncu-rep"}


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    """A report whose only kernel lost half of its samples."""
    whole = smooth()
    kept = {name: values for name, values in whole.instances.items() if "_stalled_" not in name}
    kept |= {"smsp__pcsamp_sample_count": kept["smsp__pcsamp_sample_count"][::2]}
    return report(tmp_path / "noted.ncu-rep", replace(whole, instances=kept))


LOST = "amples by instruction are "


def test_notes_are_told_whatever_is_written(plain: Command, noted: Path, tmp_path: Path) -> None:
    assert LOST in shown(plain(noted))
    printed = plain(noted, "--json")
    assert ([LOST in note for note in json.loads(printed.out)["notes"]], printed.err) == ([True], "")
    for suffix in ("csv", "html", "md", "svg"):
        target = tmp_path / f"x.{suffix}"
        told, *rest = reversed(plain(noted, "-o", target).err.splitlines())
        assert told == f"Wrote {target}"
        assert [LOST in line for line in rest] == [True] * (suffix == "csv")
        assert (LOST in target.read_text()) == (suffix != "csv")


def test_what_has_no_notes_says_so(plain: Command, path: Path) -> None:
    assert json.loads(plain(path, "--json").out)["notes"] == []


@pytest.mark.parametrize("table", TABLES)
def test_csv_and_parquet_hold_the_tables_of_json(plain: Command, path: Path, tmp_path: Path, table: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = json.loads(plain(path, "--json").out)[table]
    found = list(csv.DictReader(io.StringIO(plain(path, "-o", "-", "--format", "csv", "--table", table).out)))
    assert [list(row) for row in found] == [[one.name for one in TABLES[table]]] * len(rows)
    target = tmp_path / "out.parquet"
    outcome = plain(path, "-o", target, "--table", table)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
    assert parquet.read_table(target).to_pylist() == rows


@pytest.mark.parametrize(
    ("words", "columns"), [((), "lines"), (("--by", "outer-line"), "outer_lines"), (("--by", "loop"), "loops")]
)
def test_rows_that_are_chosen_are_those_of_the_csv(plain: Command, path: Path, words: tuple[str, ...], columns: str) -> None:
    outcome = plain(path, *words, "-o", "-", "--format", "csv")
    assert outcome.out == plain(path, "-o", "-", "--format", "csv", "--table", columns).out


@pytest.mark.parametrize("suffix", ["html", "png", "svg", "pdf", "md", "csv", "json", "parquet", "txt"])
def test_files_are_written_whole_and_never_over_others(plain: Command, path: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / f"x.{suffix}"
    assert plain(path, "-o", target).err == f"Wrote {target}\n"
    first = target.read_bytes()
    assert_refused(plain(path, "-o", target), target)
    assert plain(path, "-o", target, "--force").code == 0
    assert target.read_bytes() == first
    assert_no_leftovers(target.parent, target.name)


def test_text_in_a_file_is_what_is_printed(plain: Command, path: Path, tmp_path: Path) -> None:
    words = ("--by", "line", "--rows", 3, "--sort", "work", "--width", 90, "--ascii")
    printed = plain(path, *words).out
    assert printed.isascii()
    assert plain(path, *words, "-o", tmp_path / "x.txt").code == 0
    assert (tmp_path / "x.txt").read_text() == printed
    rendered = render(source_roofline(path, label=path.name), "text", by="line", rows=3, sort="work", width=90, ascii_only=True)
    assert rendered.decode() == printed


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("--json", "-o", "x.json"), "x.json"),
        (("-o", "x.docx"), "x.docx"),
        (("-o", "x.nersc"), "x.nersc"),
        (("--table", "loops"), "loops"),
        (("-o", "x.html", "--table", "loops"), "loops"),
        (("-o", "x.csv", "--by", "loop", "--table", "lines"), "--by"),
        (("-o", "x.html", "--by", "loop"), "--by"),
        (("-o", "x.html", "--rows", 3), "--rows"),
        (("-o", "x.csv", "--all"), "--all"),
        (("--json", "--sort", "work"), "--sort"),
        (("--rows", 3, "--all"), "--rows"),
        (("--theme", "dark"), "--theme"),
        (("--title", "A"), "--title"),
        (("-o", "x.md", "--width", 90), "--width"),
        (("--json", "--ascii"), "--ascii"),
        (("--source-folder", "nowhere"), "nowhere"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(
    plain: Command, path: Path, words: tuple[str, ...], about: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    assert_refused(plain(path, *words), about, 2)
    assert_no_leftovers(path.parent, path.name)


def test_without_source_counters_the_command_that_collects_them_is_told(plain: Command, tmp_path: Path) -> None:
    bare = report(tmp_path / "bare.ncu-rep", kernel(complete()))
    outcome = plain(bare)
    assert_refused(outcome, bare)
    assert "Collect them with `ncu --set full --import-source on -o bare-roofline ./app`" in outcome.err


def test_reports_without_source_counters_are_left_out_beside_others(plain: Command, path: Path, tmp_path: Path) -> None:
    bare = report(tmp_path / "bare.ncu-rep", kernel(complete()))
    for words in ((bare, path), (tmp_path,)):
        outcome = plain(*words)
        assert outcome.code == 0
        assert outcome.err.splitlines() == [f"ncu-roofline: {bare} is left out: it has no counts by instruction."]
        assert outcome.out == plain(path).out


def test_where_no_report_has_source_counters_that_is_an_error(plain: Command, tmp_path: Path) -> None:
    bare = [report(tmp_path / f"bare{number}.ncu-rep", kernel(complete())) for number in range(2)]
    outcome = plain(*bare)
    assert_refused(outcome, f"{bare[0]} {bare[1]}")
    assert "Collect them with `ncu " in outcome.err


def test_reports_that_cannot_be_read_are_left_out_where_asked(plain: Command, path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.ncu-rep"
    damaged.write_bytes(b"no report")
    assert_refused(plain(damaged, path), damaged)
    outcome = plain(damaged, path, "--keep-going")
    assert outcome.code == 1
    assert str(damaged) in outcome.err
    assert "smooth.ncu-rep" in outcome.out


def test_files_of_other_tools_have_none(plain: Command, tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    table.write_text("kernel,gflop/s,flop/byte\na,1,2\n")
    assert_refused(plain(table), table)


class TestChoosing:
    @pytest.fixture
    def several(self, tmp_path: Path) -> Path:
        """A kernel, one without counts by instruction that takes longest, and two launches of one that take longer together."""
        shorter, other = ({**smooth().metrics, "gpu__time_duration.sum": time} for time in (6e6, 5e6))
        return report(
            tmp_path / "several.ncu-rep",
            replace(smooth(), name="first", function_name="first", metrics=shorter),
            kernel(complete(seconds=1.0), "void uncounted()"),
            replace(smooth(), name="second", function_name="second", metrics=other),
            replace(smooth(), name="second", function_name="second"),
        )

    @pytest.mark.parametrize(
        ("words", "launches"),
        [
            ((), {3}),
            (("--top", 2), {0, 3}),
            (("--top", 5), {0, 3}),
            (("--kernel", "second"), {3}),
            (("--launch", "2"), {2}),
            (("--launch", "0,2-3"), {0, 2, 3}),
        ],
    )
    def test_the_kernels_with_most_time_by_their_longest_launch(
        self, plain: Command, several: Path, words: tuple[object, ...], launches: set[int]
    ) -> None:
        assert {row["launch"] for row in json.loads(plain(several, *words, "--json").out)["lines"]} == launches

    def test_no_kernel_of_that_name(self, plain: Command, several: Path) -> None:
        outcome = plain(several, "--kernel", "frist")
        assert_refused(outcome, several)
        assert "first" in outcome.err

    def test_launches_without_counts(self, plain: Command, several: Path) -> None:
        outcome = plain(several, "--kernel", "uncounted")
        assert_refused(outcome, several)
        assert "none of the launches chosen has counts by instruction; launches 0,3 have" in outcome.err
        assert "Choose with --launch 0,3." in outcome.err

    def test_those_with_most_time_come_first(self, plain: Command, several: Path) -> None:
        text = shown(plain(several, "--launch", "2-3"))
        assert text.index("launch 3 of") < text.index("launch 2 of")

    def test_several_reports_are_one_after_the_other(self, plain: Command, several: Path, path: Path) -> None:
        found = json.loads(plain(several, path, "--json").out)["loops"]
        assert {row["report"] for row in found} == {"several.ncu-rep", "smooth.ncu-rep"}
        assert {row["report"] for row in json.loads(plain(several, path, "--kernel", NAME, "--json").out)["loops"]} == {
            "smooth.ncu-rep"
        }


class TestWhatIsMissing:
    @pytest.mark.parametrize(
        ("code", "text", "sampled", "says"),
        [
            (False, True, True, "code unknown; no source lines; 19,306 samples"),
            (True, False, True, "whose text the report lacks"),
            (True, True, False, "no samples"),
        ],
    )
    def test_reports_that_lack_something(
        self, plain: Command, tmp_path: Path, code: bool, text: bool, sampled: bool, says: str
    ) -> None:
        lacking = report(tmp_path / "x.ncu-rep", smooth(code=code, text=text, sampled=sampled))
        for by in BY:
            assert plain(lacking, "--by", by).code == 0
        assert says in shown(plain(lacking))

    def test_source_text_is_looked_for_where_the_user_says(self, plain: Command, tmp_path: Path) -> None:
        lacking = report(tmp_path / "x.ncu-rep", smooth(text=False))
        (tmp_path / "sources").mkdir()
        (tmp_path / "sources" / "smooth.cu").write_text("one\ntwo\n" + "\n" * 13 + "\33[31mhere; it is\n")
        text = shown(plain(lacking, "--source-folder", tmp_path / "sources"))
        assert "here; it is" in text
        assert "whose text the report lacks" not in text
        (tmp_path / "empty").mkdir()
        without = plain(lacking, "--source-folder", tmp_path / "empty")
        assert without.code == 0
        assert "1 of 1 source files are in no --source-folder: smooth.cu." in without.err


@pytest.mark.sampled("0", "1", "2", "3")
@pytest.mark.parametrize("seed", range(40), ids=str)
def test_damage_ends_in_a_result_or_in_a_sentence(plain: Command, path: Path, tmp_path: Path, seed: int) -> None:
    """Ten reports each with a few bytes changed, cut or doubled, most of them inside of the cubin and the counts."""
    chance = random.Random(seed)
    whole = path.read_bytes()
    for number in range(10):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            place = chance.randrange(len(data))
            data[place : place + chance.choice((0, 1, 1, 4))] = chance.randbytes(chance.choice((1, 1, 4)))
        damaged = tmp_path / f"{number}.ncu-rep"
        damaged.write_bytes(data)
        outcome = plain(damaged, "--by", chance.choice(BY))
        if outcome.code:
            assert_refused(outcome, damaged)
        assert "bug" not in outcome.err


def test_measured_ceilings_are_those_of_the_gpu(plain: Command, path: Path) -> None:
    assert_refused(plain(path, "--ceilings", DEMO / "gpp-v100-ceilings.json"), DEMO / "gpp-v100-ceilings.json")
    assert plain(path, "--ceilings", "auto").code == 0


def test_show_says_that_there_is_more(run: Command, path: Path, tmp_path: Path) -> None:
    bare = report(tmp_path / "bare.ncu-rep", kernel(complete()))
    command = f"`ncu-roofline source {path}`"
    assert command in shown(run("show", bare, path))
    assert "lines of code that was compiled with -lineinfo" in shown(run("show", path))
    assert "ncu-roofline source" not in shown(run("show", bare))
    assert "1 of 1 launches have counts by instruction" in shown(run("explain", path))
    assert "--section SourceCounters collects" in shown(run("explain", bare))
    assert "ncu-roofline source" not in run("show", path, "--json").out


def test_the_choices_of_the_help_are_those_of_the_text() -> None:
    """The help names them without loading what numpy is needed for."""
    from ncu_roofline.analyses.source.text import RANKED

    parser = argparse.ArgumentParser()
    source.add_source(parser)
    choices = {action.dest: action.choices for action in parser._actions}
    assert (choices["by"], choices["sort"]) == (BY, RANKED)


@pytest.mark.skipif(not REAL.is_dir(), reason="no real reports (NCU_ROOFLINE_REPORTS)")
def test_a_section_that_gave_nothing_is_named(plain: Command) -> None:
    """Its rules say, too, that metrics of the section were not found."""
    outcome = plain(REAL / "a100-ncu2022.4-full-2.ncu-rep")
    assert_refused(outcome, REAL / "a100-ncu2022.4-full-2.ncu-rep")
    assert "although it was collected with section SourceCounters: ncu got none of its metrics" in outcome.err
    assert "see what ncu prints: `ncu --set full" in outcome.err


REPORTS = sorted(REAL.glob("*full*.ncu-rep")) + sorted(REAL.glob("a100*custom*.ncu-rep"))


@pytest.mark.sampled("v100-ncu2022.2-full-2", "a100-ncu2022.4-full-2", "a100-ncu2020.3-full-1")
@pytest.mark.skipif(not REPORTS, reason="no real reports (NCU_ROOFLINE_REPORTS)")
@pytest.mark.parametrize("real", REPORTS, ids=lambda path: path.stem)
def test_real_reports(plain: Command, real: Path) -> None:
    """Those without source counters are refused; of the others every table fits every terminal, in reasonable time."""
    with read_report(real) as opened:
        counted = any("inst_executed" in one.metrics.names() for one in opened.kernels)
    if not counted:
        assert_refused(plain(real), real)
        return
    for words in ((), *(("--by", by) for by in BY)):
        for width in (60, 80, 120, 200):
            started = time.process_time()
            outcome = plain(real, *words, "--width", width)
            assert outcome.code == 0, outcome.err
            assert time.process_time() - started < 20
            assert [line for line in outcome.out.splitlines() if columns_wide(line) > width] == []


def test_the_place_that_matters_most_ends_the_sentence_on_the_first_kernel(run: Command, tmp_path: Path) -> None:
    said = " ".join(run("show", DEMO / "smooth-made-up.ncu-repz").out.split())
    assert "(1.35 of 12.6 FLOP/B); smooth.cu:16: waiting warps (long_scoreboard), 28 % of samples. " in said
    for suffix in ("md", "html"):
        run("render", DEMO / "smooth-made-up.ncu-repz", "-o", tmp_path / f"x.{suffix}")
        text = html.unescape((tmp_path / f"x.{suffix}").read_text(encoding="utf-8")).replace("\\", "")
        assert "smooth.cu:16: waiting warps (long_scoreboard), 28 % of samples" in text
    other = report(tmp_path / "two.ncu-rep", kernel(complete(seconds=1.0), "void longer(int)"), smooth())
    assert "smooth.cu:16" not in run("show", other).out  # the code of kernels that come later is not looked into


@pytest.mark.skipif(not REAL.is_dir(), reason="no real reports")
def test_the_place_that_matters_most_of_a_real_kernel(run: Command) -> None:
    said = " ".join(run("show", REAL / "v100-ncu2022.2-full-1.ncu-rep").out.split())
    assert "1.9x to the FP64 FMA roof; miniWeather_mpi_openacc.F90:288: FP64 divisions, 29 % of samples. " in said
