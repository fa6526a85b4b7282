"""`ncu-roofline source`: what it prints and writes, which launches it takes, when nvdisasm runs, what is missing."""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline import render, source_roofline
from ncu_roofline.analyses.source.frames import TABLES
from ncu_roofline.analyses.source.text import BY, RANKED
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.units import UNITS
from ncu_roofline.cli import source
from ncu_roofline.formats.report import KernelData, read_report
from ncu_roofline.rendering.table import columns_wide
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel, report
from tests.made_up_code import NAME, SWEEPS, WIDTH, executed, smooth

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REAL = Path(os.environ.get("NCU_ROOFLINE_REPORTS", "absent"))
LOST = "amples by instruction are "
OWN = "Opcodes are named by our own table"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return report(tmp_path / "smooth.ncu-rep", smooth())


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A report without counts by instruction."""
    return report(tmp_path / "bare.ncu-rep", kernel(complete()))


@pytest.fixture
def plain(run: Command) -> Callable[..., Outcome]:
    """Without nvdisasm, wherever the tests run."""
    return lambda *words: run("source", "--no-disassembly", *words)


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


def test_by_what_is_one_table(plain: Command, path: Path) -> None:
    begins = {
        "loop": "Loops of", "line": "Lines of", "outer-line": "Lines of", "function": "Functions",
        "instruction": "Instructions of",
    }  # fmt: skip
    assert set(begins) == set(BY)
    for by in BY:
        outcome = plain(path, "--by", by, "--all")
        text = shown(outcome)
        assert "What to look at" not in text
        assert [begin in text for begin in begins.values()] == [begin == begins[by] for begin in begins.values()]
        assert outcome.out.count("---") == 1 or len([line for line in outcome.out.splitlines() if set(line) == {"-"}]) == 1
        assert ("weight(k)" in text) == (by in ("line", "outer-line"))


def test_json_has_all_tables_and_their_units(plain: Command, path: Path) -> None:
    document = json.loads(plain(path, "--json").out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (document["schema"], document["view"], document["notes"]) == ("ncu-roofline", "source", [])
    assert set(document["units"].values()) <= set(UNITS)
    for name, declared in TABLES.items():
        assert list(document[name][0]) == [one.name for one in declared]
    assert sum(row["executed"] for row in document["instructions"]) == sum(executed().values())
    assert [(row["depth"], row["trips"]) for row in document["loops"] if row["loop"] >= 0] == [(1, SWEEPS), (2, WIDTH)]
    assert {row["report"] for row in document["lines"]} == {"smooth.ncu-rep"}
    inner, outer = ({row["line"]: row for row in document[name]} for name in ("lines", "outer_lines"))
    assert (4 in inner, 4 in outer) == (True, False)  # lines of the kernel hold what is inlined there
    assert outer[16]["samples"] == inner[16]["samples"] + inner[4]["samples"]


def test_notes_are_told_whatever_is_written(plain: Command, tmp_path: Path) -> None:
    whole = smooth()
    kept = {name: values for name, values in whole.instances.items() if "_stalled_" not in name}
    kept |= {"smsp__pcsamp_sample_count": kept["smsp__pcsamp_sample_count"][::2]}  # half of the samples is lost
    noted = report(tmp_path / "noted.ncu-rep", replace(whole, instances=kept))
    assert LOST in shown(plain(noted))
    printed = plain(noted, "--json")
    assert ([LOST in note for note in json.loads(printed.out)["notes"]], printed.err) == ([True], "")
    for suffix in ("csv", "html", "md"):
        target = tmp_path / f"x.{suffix}"
        told, *rest = reversed(plain(noted, "-o", target).err.splitlines())
        assert told == f"Wrote {target}"
        assert [LOST in line for line in rest] == [True] * (suffix == "csv")
        assert (LOST in target.read_text()) == (suffix != "csv")


def test_csv_and_parquet_hold_the_tables_of_json(plain: Command, path: Path, tmp_path: Path) -> None:
    document = json.loads(plain(path, "--json").out)
    printed = {}
    for table, columns in TABLES.items():
        printed[table] = plain(path, "-o", "-", "--format", "csv", "--table", table).out
        found = list(csv.DictReader(io.StringIO(printed[table])))
        assert [list(row) for row in found] == [[one.name for one in columns]] * len(document[table])
    for words, table in (((), "lines"), (("--by", "outer-line"), "outer_lines"), (("--by", "loop"), "loops")):
        assert plain(path, *words, "-o", "-", "--format", "csv").out == printed[table]
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    target = tmp_path / "out.parquet"
    for table in TABLES:
        outcome = plain(path, "-o", target, "--table", table, "--force")
        assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
        assert parquet.read_table(target).to_pylist() == document[table]


def test_files_are_written_whole_and_never_over_others(plain: Command, path: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    starts = {"html": b"<!DOCTYPE", "svg": b"<?xml", "md": b"", "csv": b"", "json": b"{", "txt": b""}
    for suffix, start in starts.items():
        target = tmp_path / "out" / f"x.{suffix}"
        assert plain(path, "-o", target).err == f"Wrote {target}\n"
        first = target.read_bytes()
        assert first.startswith(start)
        assert_refused(plain(path, "-o", target), target)
        assert plain(path, "-o", target, "--force").code == 0
        assert target.read_bytes() == first
    assert_no_leftovers(tmp_path / "out", *(f"x.{suffix}" for suffix in starts))


def test_text_in_a_file_is_what_is_printed(plain: Command, path: Path, tmp_path: Path) -> None:
    words = ("--by", "line", "--rows", 3, "--sort", "work", "--width", 90, "--ascii")
    printed = plain(path, *words).out
    assert printed.isascii()
    assert plain(path, *words, "-o", tmp_path / "x.txt").code == 0
    assert (tmp_path / "x.txt").read_text() == printed
    rendered = render(source_roofline(path, label=path.name), "text", by="line", rows=3, sort="work", width=90, ascii_only=True)
    assert rendered.decode() == printed


def test_what_does_not_go_together_is_wrong_usage(plain: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for words, about in (
        ("--json -o x.json", "x.json"),
        ("-o x.docx", "x.docx"),
        ("-o x.nersc", "x.nersc"),
        ("--table loops", "loops"),
        ("-o x.html --table loops", "loops"),
        ("-o x.csv --by loop --table lines", "--by"),
        ("-o x.html --by loop", "--by"),
        ("-o x.html --rows 3", "--rows"),
        ("-o x.csv --all", "--all"),
        ("--json --sort work", "--sort"),
        ("--rows 3 --all", "--rows"),
        ("--theme dark", "--theme"),
        ("--title A", "--title"),
        ("-o x.md --width 90", "--width"),
        ("--json --ascii", "--ascii"),
        ("--source-folder nowhere", "nowhere"),
    ):
        assert_refused(plain(path, *words.split()), about, 2)
    assert_no_leftovers(path.parent, path.name)


def test_without_source_counters_the_command_that_collects_them_is_told(
    plain: Command, path: Path, bare: Path, tmp_path: Path
) -> None:
    outcome = plain(bare)
    assert_refused(outcome, bare)
    assert "Collect them with `ncu --set full --import-source on -o bare-roofline ./app`" in outcome.err
    for words in ((bare, path), (tmp_path,)):  # beside others they are left out
        outcome = plain(*words)
        assert outcome.code == 0
        assert outcome.err.splitlines() == [f"ncu-roofline: {bare} is left out: it has no counts by instruction."]
        assert outcome.out == plain(path).out
    other = report(tmp_path / "other.ncu-rep", kernel(complete()))
    outcome = plain(bare, other)
    assert_refused(outcome, f"{bare} {other}")
    assert "Collect them with `ncu " in outcome.err
    table = tmp_path / "x.csv"  # files of other tools have none
    table.write_text("kernel,gflop/s,flop/byte\na,1,2\n")
    assert_refused(plain(table), table)


def test_reports_that_cannot_be_read_are_left_out_where_asked(plain: Command, path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.ncu-rep"
    damaged.write_bytes(b"no report")
    assert_refused(plain(damaged, path), damaged)
    outcome = plain(damaged, path, "--keep-going")
    assert outcome.code == 1
    assert str(damaged) in outcome.err
    assert "smooth.ncu-rep" in outcome.out


def test_which_launches(plain: Command, path: Path, tmp_path: Path) -> None:
    """Of a kernel, one without counts that takes longest, and two launches of one that take longer together."""
    shorter, other = ({**smooth().metrics, "gpu__time_duration.sum": time} for time in (6e6, 5e6))
    several = report(
        tmp_path / "several.ncu-rep",
        replace(smooth(), name="first", function_name="first", metrics=shorter),
        kernel(complete(seconds=1.0), "void uncounted()"),
        replace(smooth(), name="second", function_name="second", metrics=other),
        replace(smooth(), name="second", function_name="second"),
    )
    for words, launches in (
        ((), {3}),
        (("--top", 2), {0, 3}),
        (("--top", 5), {0, 3}),
        (("--kernel", "second"), {3}),
        (("--launch", "2"), {2}),
        (("--launch", "0,2-3"), {0, 2, 3}),
    ):
        assert {row["launch"] for row in json.loads(plain(several, *words, "--json").out)["lines"]} == launches, words
    outcome = plain(several, "--kernel", "frist")
    assert_refused(outcome, several)
    assert "first" in outcome.err
    outcome = plain(several, "--kernel", "uncounted")
    assert_refused(outcome, several)
    assert "none of the launches chosen has counts by instruction; launches 0,3 have" in outcome.err
    assert "Choose with --launch 0,3." in outcome.err
    text = shown(plain(several, "--launch", "2-3"))
    assert text.index("launch 3 of") < text.index("launch 2 of")  # those with most time come first
    for words, reports in (((), {"several.ncu-rep", "smooth.ncu-rep"}), (("--kernel", NAME), {"smooth.ncu-rep"})):
        found = json.loads(plain(several, path, *words, "--json").out)["loops"]
        assert {row["report"] for row in found} == reports


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ("code", "code unknown; no source lines; 19,306 samples"),
        ("text", "whose text the report lacks"),
        ("sampled", "no samples"),
    ],
)
def test_reports_that_lack_something(plain: Command, tmp_path: Path, lacks: str, says: str) -> None:
    lacking = report(tmp_path / "x.ncu-rep", smooth(**{"code": True, "text": True, "sampled": True, lacks: False}))
    for by in BY:
        assert plain(lacking, "--by", by).code == 0
    assert says in shown(plain(lacking))


def test_source_text_is_looked_for_where_the_user_says(plain: Command, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("seeds", [(0, 1), pytest.param(range(2, 40), marks=pytest.mark.exhaustive)], ids=["two", "all"])
def test_damage_ends_in_a_result_or_in_a_sentence(plain: Command, path: Path, tmp_path: Path, seeds: tuple[int, ...]) -> None:
    """Ten reports each with a few bytes changed, cut or doubled, most of them inside of the cubin and the counts."""
    whole = path.read_bytes()
    for seed in seeds:
        chance = random.Random(seed)
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


def test_show_says_that_there_is_more(run: Command, path: Path, bare: Path) -> None:
    command = f"`ncu-roofline source {path}`"
    assert command in shown(run("show", bare, path))
    assert "lines of code that was compiled with -lineinfo" in shown(run("show", path))
    assert "ncu-roofline source" not in shown(run("show", bare))
    assert "1 of 1 launches have counts by instruction" in shown(run("explain", path))
    assert "--section SourceCounters collects" in shown(run("explain", bare))
    assert "ncu-roofline source" not in run("show", path, "--json").out


def test_the_choices_of_the_help_are_those_of_the_text() -> None:
    """The help names them without loading what numpy is needed for."""
    parser = argparse.ArgumentParser()
    source.add_source(parser)
    choices = {action.dest: action.choices for action in parser._actions}
    assert (choices["by"], choices["sort"]) == (BY, RANKED)


def _without_lines() -> KernelData:
    """The same launch, of code that was built without -lineinfo, as another kernel."""
    code = smooth().code
    assert code is not None
    bare = replace(code, cubin=code.cubin.replace(b".debug_line", b".other_line"))
    return replace(smooth(), name="bare", function_name="bare", code=bare)


class TestDisassembly:
    WORDS = ("--by", "instruction", "--width", 200)

    def test_without_nvdisasm(self, run: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Opcodes are named by our own table, and nvdisasm is recommended where there is one for the system and the chip."""
        monkeypatch.setattr(source, "find_nvdisasm", lambda: None)
        monkeypatch.setattr(source.sys, "platform", "linux")
        outcome = run("source", path, *self.WORDS)
        assert OWN in outcome.out
        assert "pip install 'ncu-roofline[sass]'" in outcome.out
        alone = run("source", path, *self.WORDS, "--no-disassembly").out
        assert (OWN in alone, "pip install" in alone) == (True, False)
        assert outcome.out.startswith(alone.rstrip())
        monkeypatch.setattr(source.sys, "platform", "darwin")
        assert "pip install" not in run("source", path, *self.WORDS).out
        monkeypatch.setattr(source.sys, "platform", "linux")
        monkeypatch.setattr(source, "_DISASSEMBLED", (9, 0))  # a chip that it does not know
        assert "pip install" not in run("source", path, *self.WORDS).out

    def test_with_it_instructions_are_whole_and_its_failure_is_told_once(
        self, run: Command, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "find_nvdisasm", lambda: Path("nvdisasm"))
        monkeypatch.setattr(source, "disassemble", lambda *_: [{0x190: "LDG.E R8, [R8.64]", 0x1A0: "\33[2J; DMUL"}])
        text = run("source", path, *self.WORDS).out
        assert ("LDG.E R8, [R8.64]" in text, OWN in text) == (True, False)

        def fails(*_: object) -> None:
            raise RooflineError("Cannot disassemble with", "nvdisasm", "it knows no such chip", "Update it.")

        monkeypatch.setattr(source, "disassemble", fails)
        outcome = run("source", path, *self.WORDS)
        assert (outcome.code, outcome.err.count("it knows no such chip")) == (0, 1)
        assert (OWN in outcome.out, "pip install" in outcome.out) == (True, False)

    @pytest.mark.skipif(os.name == "nt", reason="the made-up nvdisasm is a shell script")
    def test_it_runs_where_instructions_are_shown_and_only_there(
        self, run: Command, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tool, mark = tmp_path / "bin" / "nvdisasm", tmp_path / "mark"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\necho ran >> {mark}\necho '/*0210*/ FAKE.SAID R1 ;'\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.chdir(tmp_path)

        def said(where: Path, *words: str) -> tuple[str, int]:
            """What is printed or written, and how often nvdisasm ran."""
            mark.unlink(missing_ok=True)
            outcome = run("source", where, *words, *(("--force",) if "-o" in words else ()))
            assert outcome.code == 0, outcome.err
            text = Path(words[words.index("-o") + 1]).read_text() if "-o" in words else outcome.out
            return text, len(mark.read_text().splitlines()) if mark.exists() else 0

        for line in ("", "--by line", "--by outer-line", "--by loop", "--by function", "-o x.md", "-o x.csv", "-o x.svg",
                     "-o x.csv --table totals", "-o x.html --no-disassembly", "--by instruction --no-disassembly"):  # fmt: skip
            assert said(path, *line.split())[1] == 0, line
        for line in ("--by instruction", "-o x.md --by instruction", "-o x.csv --table instructions", "-o x.html", "-o x.json"):
            text, runs = said(path, *line.split())
            assert (runs, "FAKE.SAID" in text) == (1, True), line
        without = report(tmp_path / "x.ncu-rep", _without_lines())
        for line in ("", "--by line", "--by outer-line"):
            text, runs = said(without, *line.split())
            assert (runs, "FAKE.SAID" in text) == (1, True), line
            assert "no source lines: its instructions stand in their place" in text
        both = report(tmp_path / "y.ncu-rep", smooth(), _without_lines())
        text, runs = said(both, "--top", "2")
        assert (runs, text.count("FAKE.SAID")) == (1, 1)


@pytest.mark.skipif(not REAL.is_dir(), reason="no real reports (NCU_ROOFLINE_REPORTS)")
def test_a_section_that_gave_nothing_is_named(plain: Command) -> None:
    """Its rules say, too, that metrics of the section were not found."""
    outcome = plain(REAL / "a100-ncu2022.4-full-2.ncu-rep")
    assert_refused(outcome, REAL / "a100-ncu2022.4-full-2.ncu-rep")
    assert "although it was collected with section SourceCounters: ncu got none of its metrics" in outcome.err
    assert "see what ncu prints: `ncu --set full" in outcome.err


REPORTS = sorted(REAL.glob("*full*.ncu-rep")) + sorted(REAL.glob("a100*custom*.ncu-rep"))


@pytest.mark.skipif(not REPORTS, reason="no real reports (NCU_ROOFLINE_REPORTS)")
@pytest.mark.parametrize(
    "real",
    [
        pytest.param(one, marks=() if one.stem == "a100-ncu2020.3-full-1" else pytest.mark.exhaustive, id=one.stem)
        for one in REPORTS
    ],
)
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
