"""Files that are damaged, odd or hostile in a known way, under commands: a result in which they are harmless, or a sentence."""

from __future__ import annotations

import json
import math
import os
import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.formats.report.framing import message
from tests.attack import runs
from tests.attack.campaign import BASE, REPORT, Campaign
from tests.attack.changes import ANYTHING, SAME, TEXTS, WRITTEN, Attack, joined, names, texts
from tests.attack.reports import Document, made
from tests.attack.runs import EXPLAINED, OK, QUICK_LINES, SLOW_LINES, Line, judge
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel
from tests.inputs import likwid_output, ncu_tables, nvprof_logs
from tests.published import gpp_runs
from tests.published_report import gpp_ceilings, gpp_platforms
from tests.report.damaged import DAMAGED
from tests.report.factory import block, report_of, write
from tests.report.frames import packed

# By default all cases under few command lines; in the exhaustive run a few cases of each sort under all.
SOME = tuple(map(Line, ("show --json {r}", "explain {r}", "render {r} -o {o}.csv", "render {r} -o {o}.md")))
ALL = (*QUICK_LINES[::2], *SLOW_LINES[::3])  # the campaign meets the others
each, some = (
    pytest.mark.parametrize("lines", [few, pytest.param(ALL, marks=pytest.mark.exhaustive)], ids=["few", "all"])
    for few in ((Line("show {r}"),), SOME)
)
IDS_ONLY = message("KernelHead")(thread_id=5, context=1, stream=7, created=1_700_000_000).SerializeToString()


def found(folder: Path, reports: Iterable[tuple[str, bytes]], lines: Iterable[Line], kind: str = "", **more: Any) -> list[str]:
    """What is wrong with runs of these command lines on these reports; where another ``kind`` of outcome is, too."""
    campaign, attacks = Campaign(1, folder, made()), [Attack("", "code", data, name, ANYTHING) for name, data in reports]
    met = [(one.what, line.text, campaign.meet(one._replace(**more), line)) for one in attacks for line in lines]
    return [f"{one}" for one in met if one[2].kind in runs.FINDINGS or (kind and one[2].kind != kind)]


@each
def test_what_is_no_report_is_refused(tmp_path: Path, lines: tuple[Line, ...]) -> None:
    whole, nothing, two = made()["code"], block([b""], kernels=1), block([b"", IDS_ONLY], kernels=2)
    endless = block([message("KernelHead")(mangled=b"a" * 1_000_001).SerializeToString()], kernels=1)
    names = [name for name in DAMAGED if not re.search("module|too much$|(two|empty|skipped) frames", name)]
    if lines is ALL:
        names = ["cut off", "text", "older version", "zstd cut off", "zstd of text"]
    bare = {"no kernels": b"", "a record of nothing": nothing, "of ids": block([IDS_ONLY], kernels=1), "both": two}
    reports = {name: DAMAGED[name](whole) for name in names} | {name: report_of() + data for name, data in bare.items()}
    reports |= {"no metrics": report_of(kernel({}), kernel({})), "a name": whole + endless}
    assert found(tmp_path, reports.items(), lines, EXPLAINED) == []


@some
def test_a_compressed_report_says_the_same(tmp_path: Path, lines: tuple[Line, ...]) -> None:
    for base in ("several", "code"):
        assert found(tmp_path, [("compressed", packed(made()[base]))], lines, base=base, promise=SAME) == []


def test_records_that_say_nothing_among_others_are_kernels_without_metrics(tmp_path: Path) -> None:
    good = report_of(kernel(complete()), kernel(complete(), name="other()"))
    mixed = roofline(write(tmp_path, good + block([b"", IDS_ONLY], kernels=2), "mixed.ncu-rep"))
    assert list(mixed.kernels.status) == ["ok", "ok", "unknown-chip", "unknown-chip"]
    before, after = (one.points.drop(columns="report") for one in (roofline(write(tmp_path, good)), mixed))
    assert after.equals(before)


@each
def test_metrics_that_are_no_counts(tmp_path: Path, lines: tuple[Line, ...]) -> None:
    odd: dict[str, bytes] = {}
    values = (math.nan, -1.0, 1e308, "many", math.inf, -math.inf, 5e-324, 2.0**64)
    for value in values[:4] if lines is ALL else values:
        for chosen in ("",) if lines is ALL else ("", "^(?!device)", "bytes|sectors"):
            document = Document(report_of(kernel(complete()), kernel(complete())))
            for name in document.numbers(document.results[0]):
                if re.search(chosen, name):
                    document.put(document.results[0], name, value)
            odd[f"{value} {chosen}"] = document.encode()
    assert found(tmp_path, odd.items(), lines) == []
    outcome = runs.run(["show", str(write(tmp_path, odd["nan "]))], tmp_path)
    assert (outcome.code, b"nan" in outcome.out.lower()) == (0, False)


@each
def test_hostile_texts(tmp_path: Path, lines: tuple[Line, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng, base, fields = random.Random(1), made()["two chips"], "(?!StringTable|Process|KernelResult.(sections|rules)).*"
    chosen = ("control characters", "lines", "tags", "templates") if lines is ALL else TEXTS
    hostile = [(called, texts(base, rng, fields, called)[0]) for called in chosen]
    assert found(tmp_path, hostile, lines) == []
    every = [(name, texts(made()[name], rng, ".*", "lines")[0]) for name in ("kinds", "several")]
    assert found(tmp_path, [("names", names(base, rng)[0]), *every], lines) == []
    monkeypatch.setenv("COLUMNS", "9000")  # where no line is wrapped, none begins with what stood inside a text
    for words in ("show", "show --view time", "explain", "advise", "source", "ranks", "portability"):
        shown = runs.run([*words.split(), str(write(tmp_path, dict(hostile)["lines"]))], tmp_path)
        assert not re.search(rb"^[ |-]*FORGED", shown.out + shown.err, re.MULTILINE), words
        assert words != "show" or b"FORGED" in shown.out


@some
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are text there")
def test_file_names_that_are_no_text_or_no_file(tmp_path: Path, run: Command, lines: tuple[Line, ...]) -> None:
    odd, base = os.fsdecode(b"r\xff\x1b[31m<b>\n.ncu-rep"), write(tmp_path, made()["several"], BASE)
    write(tmp_path, made()["several"], odd)
    for line in lines:
        outcome = runs.run(line.words(odd, BASE), tmp_path, frozenset((odd, BASE)))
        assert judge(line, outcome).kind in (OK, EXPLAINED), (line, outcome)
    (empty := tmp_path / "empty").mkdir()
    os.chdir(tmp_path)
    for path in (tmp_path / "missing.ncu-rep", tmp_path / "a\nb.ncu-rep", empty, tmp_path / ("x" * 300), ""):
        for command in (("show",), ("explain",), ("render", "-o", "x.csv")):
            assert_refused(run(*command, path), path or "''")
    (folder := tmp_path / "folder.ncu-rep").mkdir()
    write(folder, base.read_bytes(), "good.ncu-rep")
    (folder / "bad.ncu-rep").symlink_to(tmp_path / "nothing")
    assert_refused(run("show", folder), folder / "bad.ncu-rep")
    kept = run("show", folder, "--keep-going")
    assert (kept.code, "bad.ncu-rep" in kept.err, "saxpy" in kept.out) == (1, True, True)


CEILINGS = {name: joined(parts).encode("latin-1") for name, parts in WRITTEN["ceilings"].items()}
DRAWING = WRITTEN["with ceilings"]


@pytest.mark.parametrize("commands", [DRAWING[:1], pytest.param(DRAWING, marks=pytest.mark.exhaustive)], ids=["few", "all"])
def test_ceilings_that_are_none(tmp_path: Path, run: Command, commands: list[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    source, ceilings, folder = write(tmp_path, made()["several"], "r.ncu-rep"), tmp_path / "c.json", tmp_path / "folder"
    folder.mkdir()
    for words in commands:
        for content in CEILINGS.values():
            ceilings.write_bytes(content)
            assert_refused(run(*words.split(), source, "--ceilings", ceilings), ceilings)
        for path in (tmp_path / "none.json", folder):
            assert_refused(run(*words.split(), source, "--ceilings", path), path)
        assert_no_leftovers(tmp_path, "r.ncu-rep", "c.json", "folder")
    ceilings.write_bytes(CEILINGS["too many digits"])
    said = run("bench", "merge", ceilings).err
    assert ("too many digits" in said, "sys." in said) == (True, False)


HOSTILE = "".join(TEXTS[name] for name in ("escape", "8-bit escape", "direction", "lines", "nul"))
CELL = "".join(c for c in HOSTILE if c not in '\n\r\0",')  # inside a cell, where a line end ends the row


def of_other_tools(cells: str) -> dict[str, str]:
    """Tables and logs of other tools, that say this in all places."""
    table = gpp_platforms().replace("KNL 7250", "KNL" + cells).replace("GPP", "GPP" + cells)
    head = ["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"]
    metrics = (("dram__bytes.sum", "byte"), ("gpu__time_duration.sum", "ns"))
    rows = [["0", f"k{cells}", f"{name}{cells}", unit, "1000"] for name, unit in metrics]
    events = {"DP [MFLOP/s]": [1000.0], f"odd{cells} data volume [GBytes]": [1.0], "Runtime (RDTSC) [s]": [1.0]}
    log = nvprof_logs.metrics(nvprof_logs.gpp_metrics(gpp_runs()[0]), f"k{cells}(int)", device=f"Tesla V100{cells} (0)")
    likwid = likwid_output.output([("FLOPS_DP", events)], cells, cpu_type=cells)
    odd = {"odd.csv": ncu_tables.text_of([head, *rows]), "nvprof.log": nvprof_logs.OWN + log, "likwid.txt": likwid}
    return odd | {"table.csv": table, "head.csv": table.replace("nw", "nw" + cells, 1)}


def test_hostile_texts_of_other_tools_and_ceilings(tmp_path: Path) -> None:
    content: Any = gpp_ceilings()
    content["device"] |= {"name": "NVIDIA A100-SXM4-40GB" + HOSTILE, "cc": "8.0"}
    content |= {"host": {"hostname": HOSTILE, "time_utc": HOSTILE}, "warnings": [HOSTILE]}
    content["ceilings"] += [{"id": HOSTILE, "value": 1e12, "unit": HOSTILE, "accepted": True, "reasons": [HOSTILE]}]
    lines = [f"{words} --ceilings {{r}}" for words in ("show {b}", "show {b} --view time", "compare {b} {b}", "advise {b}")]
    files = [("ceilings", json.dumps(content), [*lines, "bench list {r}", "bench check {r}", "bench compare {r} {r}"])]
    tables = ["show {r}", "explain {r}", "render {r} -o {o}.md", "portability {r}"]
    files += [(name, text, tables) for cells in (CELL, f"a{CELL}") for name, text in of_other_tools(cells).items()]
    write(tmp_path, made()["several"], BASE)
    for name, text, wanted in files:
        write(tmp_path, text.encode(), REPORT)
        for line in map(Line, wanted):
            outcome = runs.run(line.words(REPORT, BASE), tmp_path, frozenset((REPORT, BASE)))
            results = (outcome.out, outcome.err, *outcome.files.values())
            leaks = [runs.leaked(what, data, line) for what, data in zip(("", "", *outcome.files), results, strict=True)]
            assert (outcome.code in (0, 1, 2), outcome.crash, any(leaks)) == (True, "", False), (name, line.text, leaks)
