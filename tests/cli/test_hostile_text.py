"""Whatever text a report or another tool's file holds, it reaches no terminal and no file as anything but letters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.formats.report import ReportData, RuleResult, Session
from ncu_roofline.formats.report.reader import FocusMetric, RuleMessage
from ncu_roofline.rendering.page import plotly_js
from tests.cli.command import Command, Outcome
from tests.factory import A100, H100, complete, kernel, opcodes
from tests.hostile import FORGED, HOSTILE, faults, hostile_report, text_fields, written
from tests.inputs import likwid_output, ncu_tables, nvprof_logs
from tests.published import gpp_runs
from tests.published_report import gpp_ceilings, gpp_platforms
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

INLINE = HOSTILE.replace("\n", "").replace("\r", "").replace("\0", "")  # inside a cell, where a line end ends the row


def _data() -> ReportData:
    """Two GPUs, launches with and without work, ranges, a chart, a rule with all it may say."""
    stock = section(
        chart(points=(point(one("dram__bytes.sum.per_second"), one("lts__t_bytes.sum.per_second")),), roofs=(
            roof(per_second("sm__peak"), per_second("dram__peak")),
        )),
        definitions={"derived__x": "dram__bytes.sum * 2"},
    )  # fmt: skip
    rule = RuleResult(
        "Own", "Own rule", "Test", (RuleMessage("warning", "text", "title", 0, 5.0, "global", (FocusMetric("m", 1.0),)),)
    )
    rest = {"sections": (stock,), "rule_results": (rule,), "nvtx": ("outer", "inner")}
    extra = {f"hostile__{HOSTILE}.sum": 1, "text__metric": HOSTILE}
    launches = [
        kernel({**complete(device), **extra}, f"void k{i}<{i}>(int *)", **rest) for device in (A100, H100) for i in range(2)
    ]
    launches.append(kernel({**A100, **extra}, "void nothing(int *)", **rest))
    launches.append(kernel({**complete(A100), **extra}, "void ops(int *)", instances=opcodes(HMMA__16816_F32=5e6), **rest))
    session = Session(ncu_version="2024.1.0.0", command_line="ncu ./app", os="Linux", host="node" + "9" * 5000)
    return ReportData(launches, session)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "9000")  # where no line is wrapped, none begins with what stood inside a text
    return Command(capsys)


@pytest.fixture(params=[False, True], ids=["known metrics", "all names"])
def hostile(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two reports."""
    data, _ = hostile_report(_data(), monkeypatch, names=request.param)
    paths = [tmp_path / "rank0.ncu-rep", tmp_path / "rank1.ncu-rep"]
    for path in paths:
        path.write_bytes(data)
    return paths


def _sound(outcome: Outcome, words: object, refused: bool = False) -> None:
    assert outcome.code in ((0, 1) if refused else (0,)), (words, outcome)
    assert "Traceback" not in outcome.err, words
    assert faults(outcome.out) == [], words
    assert faults(outcome.err) == [], words


def test_every_field_that_holds_text_is_made_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    for kind in ("kernel", "range", "cmdlist", "graph"):
        rules = {} if kind in ("range", "graph") else {"rule_results": (RuleResult("Own", "Own rule"),)}
        one_of = kernel(complete(), kind=kind, sections=(section(),), nvtx=("n",), **rules)
        seen |= hostile_report(ReportData([one_of]), monkeypatch, names=True)[1]
    assert text_fields() - seen == set()


_SHOWN = [
    words
    for view in ("roofline", "time", "instruction", "phases")
    for words in (
        ("--view", view),
        ("--view", view, "--json"),
        ("--view", view, "--by", "launch" if view == "phases" else "application"),
        ("--view", view, "--by", "kernel", "--clock", "max"),
        ("--view", view, "--level", "dram"),
        ("--view", view, "--kernel", "nothing"),
    )
] + [("--source", "embedded"), ("--label", "nvtx"), ("--label", "rank(.)"), ("--precision", "fp16"), ("--nvtx", "outer")]


@pytest.mark.parametrize("words", _SHOWN, ids=" ".join)
def test_show(words: tuple[str, ...], hostile: list[Path], run: Command) -> None:
    _sound(run("show", *hostile, *words), words, refused=True)


@pytest.mark.parametrize("form", ["txt", "md", "csv", "json", "svg", "html"])
@pytest.mark.parametrize("view", ["roofline", "time", "instruction", "phases"])
def test_render(form: str, view: str, hostile: list[Path], tmp_path: Path, run: Command) -> None:
    target = tmp_path / f"out.{form}"
    words = ("--view", view, "-o", target, "--by", "launch")
    _sound(run("render", *hostile, *words), words, refused=True)
    if target.exists():
        text = written(target)
        _, _, page = text.rpartition(plotly_js()) if form == "html" else ("", "", text)
        assert [fault for fault in faults(page) if form != "txt" or not fault.startswith(FORGED)] == []


@pytest.mark.parametrize("command", ["compare", "portability", "ranks"])
def test_commands_of_several_reports(command: str, hostile: list[Path], tmp_path: Path, run: Command) -> None:
    more = {
        "compare": (
            [],
            ["--match", "order"],
            ["--fail-if", "time > 0"],
            ["--against", "both"],
        ),
        "portability": ([], ["--by", "kernel"], ["--label", "rank(.)"]),
        "ranks": ([], ["--by", "application"], ["--rank", "rank(.)"]),
    }[command]
    for words in more:
        _sound(run(command, *hostile, *words), (command, words), refused=True)
    for form in ("txt", "csv", "json", *(["md"] if command != "ranks" else [])):
        _sound(run(command, *hostile, "-o", tmp_path / f"o.{form}"), (command, form), refused=True)
    for path in tmp_path.glob("[jo].*"):
        assert faults(written(path)) == [], path


@pytest.mark.parametrize(
    "words",
    [
        ("advise",),
        ("advise", "--json"),
        ("advise", "--all-findings"),
        ("advise", "--all-rules"),
        ("explain",),
        ("explain", "--json"),
    ],
    ids=" ".join,
)
def test_advise_and_explain(words: tuple[str, ...], hostile: list[Path], run: Command) -> None:
    _sound(run(words[0], hostile[0], *words[1:]), words, refused=True)


def test_data_of_other_programs(hostile: list[Path], tmp_path: Path, run: Command) -> None:
    words = ("--format", "nersc", "--precision", "fp64", "-o", tmp_path / "nersc.txt")
    _sound(run("render", hostile[0], *words), words, refused=True)
    for path in tmp_path.glob("nersc*"):
        assert faults(written(path)) == [], path


def test_what_is_hostile_is_shown(hostile: list[Path], run: Command) -> None:
    outcome = run("show", *hostile)
    assert outcome.code == 0
    assert outcome.out.count(FORGED) > 2


def test_annotate(hostile: list[Path], tmp_path: Path, run: Command) -> None:
    _sound(run("annotate", hostile[0], "-o", tmp_path / "new.ncu-rep"), "annotate", refused=True)


def test_ceilings_of_anybody(tmp_path: Path, run: Command, hostile: list[Path]) -> None:
    content = gpp_ceilings()
    content["device"]["name"] = "NVIDIA A100-SXM4-40GB" + HOSTILE
    content["device"]["cc"] = "8.0"
    content["host"] = {"hostname": HOSTILE, "time_utc": HOSTILE}
    content["warnings"] = [HOSTILE]
    content["ceilings"] += [{"id": HOSTILE, "value": 1e12, "unit": HOSTILE, "accepted": True, "reasons": [HOSTILE]}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    for words in (
        ("show", hostile[0], "--ceilings", path),
        ("show", hostile[0], "--ceilings", path, "--view", "time"),
        ("compare", *hostile, "--ceilings", path),
        ("advise", hostile[0], "--ceilings", path),
        ("bench", "list", path),
        ("bench", "check", path),
        ("bench", "compare", path, path),
        ("generate", "--out", tmp_path / "g", "--ceilings", path),
    ):
        outcome = run(*words)
        assert outcome.code in (0, 1, 2), words
        assert faults(outcome.out) + faults(outcome.err) == [], words


@pytest.mark.parametrize("quoted", [INLINE, f"a{INLINE}"])
def test_files_of_other_tools(quoted: str, tmp_path: Path, run: Command) -> None:
    cells = quoted.replace('"', "").replace(",", ";")
    table = gpp_platforms().replace("KNL 7250", "KNL" + cells).replace("GPP", "GPP" + cells)
    log = nvprof_logs.OWN + nvprof_logs.metrics(
        nvprof_logs.gpp_metrics(gpp_runs()[0]), f"k{cells}(int)", device=f"Tesla V100{cells} (0)"
    )
    launch = {"dram__bytes.sum": ("byte", "1000"), "gpu__time_duration.sum": ("ns", "1000")}
    events = {"DP [MFLOP/s]": [1000.0], f"odd{cells} data volume [GBytes]": [1.0], "Runtime (RDTSC) [s]": [1.0]}
    texts = {
        "table.csv": table,
        "nvprof.log": log,
        "head.csv": table.replace("nw", "nw" + cells, 1),
        "odd.csv": ncu_tables.text_of([["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"], *[
            ["0", f"k{cells}", name + cells, unit, value] for name, (unit, value) in launch.items()
        ]]),
        "likwid.txt": likwid_output.output([("FLOPS_DP", events)], cells, cpu_type=cells),
    }  # fmt: skip
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        for words in (
            ("show", path),
            ("explain", path),
            ("render", path, "-o", tmp_path / f"{name}.md"),
            ("portability", path),
        ):
            outcome = run(*words)
            assert outcome.code in (0, 1, 2), words
            assert faults(outcome.out) + faults(outcome.err) == [], (name, words[0], words[2:])
    for path in tmp_path.glob("*.md"):
        assert faults(written(path)) == [], path
