"""`ncu-roofline advise`, and the rows that pages show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline import roofline
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.nvrules.findings import ReportAdvice, Silence, Told, advice_rows, as_text, findings, most_telling
from ncu_roofline.plugin.nvrules.runner import KernelAdvice, RuleOutcome, advise
from tests.cli.command import Command, assert_refused
from tests.factory import H100, NO_WORK, Metrics, by_address, complete, kernel, report
from tests.nvrules.running import our_rules
FEW_LANES: Metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
RULE = """
import NvRules
def get_identifier(): return "Mine"
def get_section_identifier(): return "{section}"
def apply(handle):
    fe = NvRules.get_context(handle).frontend()
    print("noise")
    fe.message(NvRules.IFrontend.MsgType_MSG_WARNING, "see @section:X:that@ \\x1b[31m", "My title")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(
        tmp_path / "r.ncu-rep",
        kernel(complete(), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=4e-6), "void second(int)", nvtx=("solve",)),
        kernel({**complete(), **NO_WORK}, "void copy(int)"),
    )


def mine(folder: Path, section: str = "") -> Path:
    folder.mkdir()
    (folder / "Mine.py").write_text(RULE.format(section=section))
    return folder


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_text(run: Command, source: Path, monkeypatch: pytest.MonkeyPatch, width: int, verbose: bool) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = run("advise", source, *["--verbose"] * verbose)
    assert (outcome.code, outcome.err) == (0, "")
    words = " ".join(outcome.out.split())
    dot = "\N{MIDDLE DOT}"
    assert words.startswith(
        f"NVIDIA A100-SXM4-40GB {dot} {source.name} {dot} Nsight Compute 2024.1.0.0 3 kernels, 2 ms: headroom 6.2x at present "
    )
    head = "first (launch 0): 50 % of the time, 1 ms"
    headroom = "6.2x at its present traffic and instructions, 839 \N{MICRO SIGN}s less"
    assert (f"{head}; {headroom} try: latency [NcuRooflineVerdict] Latency-bound" in words) == verbose
    assert (f"{head}: latency-bound" in words) != verbose
    assert "@section" not in words
    assert ("Without advice: NcuRooflineAccessPattern, NcuRoofline" in words) == verbose
    assert ("--all-findings shows why." in words) == verbose
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= width


def test_of_a_kernel_three_findings_have_a_line_each(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the sentence of the verdict, with the gain; the others are counted, and told in full on request."""
    monkeypatch.setenv("COLUMNS", "100")
    wait = {f"smsp__pcsamp_warps_issue_stalled_{name}": [0.0, number] for name, number in (("barrier", 300), ("membar", 250))}
    instances = by_address(0x7000, smsp__pcsamp_warps_issue_stalled_selected=[450.0, 0.0], **wait)
    sums: Metrics = {name: sum(value for _, value in counts) for name, counts in instances.items() if "stalled" in name}
    metrics = {**complete(), **FEW_LANES, **sums, "launch__waves_per_multiprocessor": 1.2}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, "void some(int)", instances=instances))
    brief, full = (run("advise", path, *more).out for more in ((), ("--verbose",)))
    head, *findings = brief.split("\n\n")[1].split("\n  ")
    lines = [line for line in findings if not line.startswith("  ")]
    assert " ".join(head.split()).startswith("some (launch 0): 1 ms: latency-bound, no unit above 60 % ")
    assert [line.split(":")[0] for line in lines] == ["Tail of the last wave", "Lanes without work", "Where warps wait"]
    assert lines[0].startswith("Tail of the last wave: about 40 % less time: 1.2 waves: in the last one")
    assert all(len(line) <= 98 for line in lines)
    assert lines[1].endswith(" ...")
    assert "\n\n--verbose shows 1 more finding, and all in full.\n" in brief
    assert "left out" not in brief
    assert full.count("  try: Where warps wait: ") == 2
    assert "--verbose" not in full
    in_full = json.loads(run("advise", path, "--json").out)["findings"]
    assert sum(one["type"] == "optimization" for one in in_full) == 5  # programs get all


def test_clocks_are_told_once_for_a_gpu(run: Command, tmp_path: Path) -> None:
    """Without what launches say that take less than a hundredth of its time."""
    slow = (("one", 0.7), ("two", 0.8))
    kernels = [kernel(complete(seconds=3e-3, clock=clock * 1e9), f"void {name}(int)") for name, clock in slow]
    kernels.append(kernel(complete(seconds=2.1e-5, clock=0.5e9), "void tiny(int)"))
    path = report(tmp_path / "r.ncu-rep", *kernels, kernel(complete(H100), "void other(int)"))
    for words in ((), ("--verbose",)):
        said = " ".join(run("advise", path, *words).out.split())
        assert said.count("--clock-control none") == 2  # GPUs
        assert (
            "NVIDIA A100-SXM4-40GB: Profiled at 700\N{EN DASH}800 MHz SM clock, 50\N{EN DASH}57 % of the GPU's maximum" in said
        )
        assert "Profiled below the maximum clock" not in said
    document = json.loads(run("advise", path, "--json").out)
    assert not [one for one in document["findings"] if one["rule"] == "NcuRooflineClocks" and one["type"] != "ok"]
    assert [note.partition(" SM clock")[0] for note in document["notes"]] == [
        "NVIDIA A100-SXM4-40GB: Profiled at 700\N{EN DASH}800 MHz",
        "NVIDIA H100 80GB HBM3: Profiled at 1.41 GHz",
    ]


def test_all_findings_are_told_in_full(run: Command, source: Path) -> None:
    short, full = (run("advise", source, more).out for more in ("--verbose", "--all-findings"))
    assert "  NcuRooflineAccessPattern (3 of 3 launches): Collect" in full
    assert ": Collect" not in short
    assert "  fine: " in short
    assert "  ok: Clocks [NcuRooflineClocks]\n    Profiled at 1.41 GHz" in full
    assert "fine:" not in full


def test_json(run: Command, source: Path) -> None:
    document = json.loads(run("advise", source, "--json", "--kernel", "second").out)
    assert (document["schema"], document["schema_version"]) == ("ncu-roofline-advice", 1)
    assert document["reports"] == [{"report": source.name, "ncu_version": "2024.1.0.0"}]
    assert {(one["kernel"], one["name"], one["device"]) for one in document["findings"]} == {
        ("second", "void second(int)", "NVIDIA A100-SXM4-40GB")
    }
    (bound,) = (one for one in document["findings"] if one["rule"] == "NcuRooflineBoundDouble")
    assert bound["text"].endswith("See the chart.")
    assert (bound["launches"], bound["count"], bound["share"]) == ([{"report": source.name, "launch": 1}], 1, 1)
    without = {one["rule"]: one["text"] for one in document["without_advice"]}
    assert without["NcuRooflineAccessPattern"]
    assert "DRAM at " in without["NcuRooflineVerdict"]


@pytest.mark.parametrize(
    ("options", "launches"),
    [
        (("--kernel", "first|copy"), [0, 2]),
        (("--launch", "1-2"), [1, 2]),
        (("--nvtx", "solve"), [1]),
        (("--longest", "2"), [0, 2]),
    ],
)
def test_filters(run: Command, source: Path, options: tuple[str, ...], launches: list[int]) -> None:
    document = json.loads(run("advise", source, "--json", "--all-findings", *options).out)
    assert sorted({launch["launch"] for one in document["findings"] for launch in one["launches"]}) == launches


def test_several_reports_of_a_gpu_are_told_together(run: Command, source: Path, tmp_path: Path) -> None:
    other = report(tmp_path / "other.ncu-rep", kernel(complete(seconds=2e-3), "void first(int)"))
    document = json.loads(run("advise", source, other, "--json").out)
    assert [one["report"] for one in document["reports"]] == [source.name, other.name]
    (one,) = (one for one in document["findings"] if (one["kernel"], one["title"]) == ("first", "latency"))
    assert one["launches"] == [{"report": other.name, "launch": 0}, {"report": source.name, "launch": 0}]
    assert run("advise", source, other).out.count("Nsight Compute 2024.1.0.0") == 1


def test_where_reports_lie_is_said_on_request_only(run: Command, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / source.name
    other.parent.mkdir()
    report(other, kernel(complete(), "void first(int)"))
    for words in (("advise", source), ("advise", source, "--json")):
        assert str(tmp_path) not in run(*words).out
    two = json.loads(run("advise", source, other, "--json").out)
    assert [one["report"] for one in two["reports"]] == [f"{path.parent.name}/{path.name}" for path in (source, other)]
    full = json.loads(run("advise", source, other, "--json", "--full-paths").out)
    assert [one["report"] for one in full["reports"]] == [str(source), str(other)]
    assert {launch["report"] for one in full["findings"] for launch in one["launches"]} == {str(source), str(other)}
    assert [one["id"] for one in two["findings"]] == [one["id"] for one in full["findings"]]
    refused = run("advise", source, "--full-paths")
    assert refused.code == 2
    assert "Add --json." in refused.err


def test_each_gpu_has_its_own_part(run: Command, tmp_path: Path) -> None:
    a100 = report(tmp_path / "a100.ncu-rep", kernel(complete(), "void first(int)"))
    h100 = report(tmp_path / "h100.ncu-rep", kernel(complete(H100, seconds=3e-3), "void first(int)"))
    told = run("advise", a100, h100).out
    places = [told.index(part) for part in ("NVIDIA H100 80GB HBM3", h100.name, "NVIDIA A100-SXM4-40GB", a100.name)]
    assert places == sorted(places)
    found = json.loads(run("advise", a100, h100, "--json").out)["findings"]
    assert {one["device"]: one["share"] for one in found} == {"NVIDIA H100 80GB HBM3": 1, "NVIDIA A100-SXM4-40GB": 1}
    assert len({(one["device"], one["id"]) for one in found}) == len(found)


def test_rules_of_a_folder(run: Command, source: Path, tmp_path: Path) -> None:
    folder = mine(tmp_path / "rules")
    assert "\n  My title: see that \N{REPLACEMENT CHARACTER}[31m\n" in run("advise", source, "--rules", folder).out
    outcome = run("advise", source, "--rules", folder, "--launch", "0", "--verbose")
    assert outcome.code == 0
    assert "  note: My title [Mine]\n    see that \N{REPLACEMENT CHARACTER}[31m" in outcome.out
    assert "noise" not in outcome.out
    assert "NcuRoofline" not in outcome.out


def test_rules_of_sections_that_were_not_collected(run: Command, source: Path, tmp_path: Path) -> None:
    folder = mine(tmp_path / "rules", "Absent")
    without = run("advise", source, "--rules", folder, "--launch", "0").out
    assert "\n\nfirst: 1 ms: latency-bound" in without
    assert "1 rule did not run: section Absent was not collected. --all-rules runs those of other sections" in without
    assert "My title" in run("advise", source, "--rules", folder, "--launch", "0", "--all-rules").out


def test_broken_rules_are_named(run: Command, source: Path, tmp_path: Path) -> None:
    folder = mine(tmp_path / "rules")
    (folder / "Broken.py").write_text("def apply(:")
    outcome = run("advise", source, "--rules", folder)
    assert outcome.code == 0
    assert f"Left out {folder / 'Broken.py'}: SyntaxError" in outcome.err
    assert "My title" in outcome.out


def test_measured_ceilings(run: Command) -> None:
    command = ("advise", DEMO / "gpp-v100.ncu-rep", "--launch", "0", "--all-findings")
    measured, theoretical = (run(*command, *more).out for more in (("--ceilings", DEMO / "gpp-v100-ceilings.json"), ()))
    for text, head, reason in (
        (measured, "1.03x at its present traffic and instructions", "97 % of the 2.14 TFLOP/s that DRAM allows"),
        (theoretical, "1.1x at its present traffic and instructions", "90 % of the 2.32 TFLOP/s that DRAM allows"),
    ):
        words = " ".join(text.split())
        assert reason in words
        assert f"sigma_gpp_gpu (launch 0): 552 ms; {head}" in words


def test_refusals(run: Command, source: Path, tmp_path: Path) -> None:
    assert_refused(run("advise", tmp_path / "none.ncu-rep"), tmp_path / "none.ncu-rep")
    assert_refused(run("advise", source, "--rules", tmp_path / "none"), tmp_path / "none")
    assert_refused(run("advise", source, "--kernel", "nothing"), source)
    ceilings = DEMO / "gpp-v100-ceilings.json"
    assert_refused(run("advise", source, "--ceilings", ceilings), ceilings)
    assert_refused(run("advise", source, "--ceilings", tmp_path / "none.json"), tmp_path / "none.json")
    both = run("advise", source, "--ceilings", ceilings, "--rules", mine(tmp_path / "rules"))
    assert_refused(both, ceilings, code=2)


def test_rows_for_a_page(source: Path) -> None:
    with read_report(source) as opened:
        measurements = measurements_of(opened)
        rows = advice_rows(findings(advise(opened, our_rules(), measurements), measurements).found)
    assert {"id", "kernel", "device", "rule", "type", "title", "text", "launches", "share", "recoverable", "speedup"} == set(
        rows[0]
    )
    assert {row["kernel"] for row in rows} <= set(roofline(source).kernels["kernel"])
    assert not [row for row in rows if row["type"] == "none" or "@section" in row["text"]]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_what_is_worth_too_little_is_left_out(run: Command, tmp_path: Path) -> None:
    """A kernel of 0.5 % of the time says nothing, unless all is asked for; its launches count together."""
    long, little = kernel(complete(seconds=1.0), "void long(int)"), {**complete(seconds=0.005), **FEW_LANES}
    path = report(tmp_path / "few.ncu-rep", long, kernel(little, "void little(int)"))
    said = run("advise", path).out
    assert "Lanes without work" not in said
    note = "findings left out, worth less than 1 % of the run time each: --all-findings shows them."
    assert note in " ".join(said.split())
    whole = run("advise", path, "--all-findings").out
    assert "Lanes without work" in whole
    assert "left out" not in whole
    assert json.loads(run("advise", path, "--json").out)["left_out"]["minor"] > 0
    assert "Lanes without work" in run("advise", path, "--kernel", "little").out
    often = report(tmp_path / "many.ncu-rep", long, *[kernel(little, "void little(int)")] * 3)
    assert "Lanes without work" in run("advise", often).out


def page(run: Command, path: Path) -> str:
    """The page of a report, as text."""
    target = path.with_suffix(".html")
    assert run("render", path, "-o", target).code == 0
    return target.read_text(encoding="utf-8")


def test_a_page_leaves_out_what_advise_leaves_out(run: Command, tmp_path: Path) -> None:
    """Below a hundredth of the time nothing is told, whether the rest of the time is of launches with advice or not."""
    little = kernel({**complete(seconds=0.005), **FEW_LANES}, "void little(int)")
    long = kernel(complete(seconds=1.0), "void long(int)")
    assert "Lanes without work" not in page(run, report(tmp_path / "few.ncu-rep", long, little))
    assert "Lanes without work" in page(run, report(tmp_path / "many.ncu-rep", long, *[little] * 3))
    # 4 of these 60 are among the 20 longest launches that a page has advice on: 0.1 % of the time, all are 1.8 %.
    often = report(tmp_path / "often.ncu-rep", *[long] * 16, *[little] * 60)
    for said in (page(run, often), run("advise", often).out):
        assert "Lanes without work" in said
    # 0.6 % of the time of all launches counts, not 5 % of that of the 20 longest.
    rare = kernel({**complete(seconds=0.011), **FEW_LANES}, "void rare(int)")
    flat = report(tmp_path / "flat.ncu-rep", rare, *[kernel(complete(seconds=0.01), "void flat(int)")] * 170)
    for said in (page(run, flat), run("advise", flat).out):
        assert "Lanes without work" not in said


def test_a_page_has_advice_on_every_kernel_that_matters(run: Command, tmp_path: Path) -> None:
    """Also on those of which no launch is among the 20 longest; the launch looked at stands for all of its kernel."""
    few = {**complete(seconds=1e-3), **FEW_LANES}
    long = kernel(complete(seconds=2e-3), "void long(int)")
    path = report(tmp_path / "r.ncu-rep", *[long] * 30, *[kernel(few, "void often(int)")] * 40)
    with read_report(path) as opened:
        m = measurements_of(opened)
        advice = advise(opened, our_rules(), m.take(most_telling(m, 20)))
    assert [one.launch for one in advice] == [*range(19), 30]
    (hint,) = (one for one in findings(advice, m).found if one.title == "Lanes without work")
    assert hint.share == pytest.approx(0.4)
    assert "Lanes without work" in page(run, path)


def test_numbers_are_the_models_also_where_one_launch_tells_less(run: Command, tmp_path: Path) -> None:
    """The roof of a short launch stands at the clock of the longer one, in the table as in the advice."""
    short = {**complete(seconds=1e-5, clock=0.5e9), "dram__bytes.sum": 10**5}
    path = report(tmp_path / "r.ncu-rep", kernel(complete(clock=1.2e9)), kernel(short, "void short(int)"))
    row = roofline(path).kernels.iloc[1]
    document = json.loads(run("advise", path, "--json", "--all-findings").out)
    mine = {one["rule"]: one for one in document["findings"] if one["kernel"] == "short"}
    (verdict,) = (one["text"] for one in document["without_advice"] if one["rule"] == "NcuRooflineVerdict")
    assert (row["verdict"], verdict.rstrip(".").lower()) == ("too short to judge", row["reason"].lower())
    peak = 108 * 64 * 1.2e9
    assert f"{1e14 / peak:.0%}".replace("%", " %") in mine["NcuRooflineBoundDouble"]["text"]


def test_a_rule_that_spoke_is_not_without_advice(source: Path) -> None:
    """What it could not tell besides is told in full once, whatever numbers are in it."""
    advice = []
    for launch, number in enumerate((2, 3, 7)):
        unknown = RuleMessage("none", f"Collect {number} metrics")
        speaking = RuleOutcome("A", "A", "S", "", messages=(unknown, RuleMessage("ok", "Fine")))
        outcomes = (speaking, RuleOutcome("B", "B", "S", "", messages=(unknown,)))
        advice.append(KernelAdvice("r", launch, 1.0, outcomes))
    with read_report(source) as opened:
        launches = measurements_of(opened)
    told = Told([ReportAdvice("r", "2024.1", launches, tuple(advice), ())], findings([], launches), {})
    text = "Collect 2\N{EN DASH}7 metrics"
    assert told.silences == [Silence("A", text, 3, alone=False), Silence("B", text, 3)]
    assert as_text(told, 100).endswith("\n\nWithout advice: B. --all-findings shows why.")
    assert f"A (3 of 3 launches): {text}" in as_text(told, 100, whole=True)
