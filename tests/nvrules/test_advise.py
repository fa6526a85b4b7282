"""`ncu-roofline advise`, and the rows that pages show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline import roofline
from ncu_roofline.nvrules import advice_rows, advise
from ncu_roofline.report import read_report
from tests.cli.command import Command, assert_refused
from tests.factory import NO_WORK, complete, kernel, report
from tests.nvrules.running import our_rules
from tests.nvrules.test_access_pattern import LOADS

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
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


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


def test_text(run: Command, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    outcome = run("advise", source)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == f"{source}: 3 launches, NVIDIA A100-SXM4-40GB, Nsight Compute 2024.1.0.0"
    assert lines[2] == "first (launch 0, grid 8x1x1, block 128x1x1, 1 ms)"
    assert lines[3] == "  try: latency [NcuRooflineVerdict, up to 84 % of the kernel's time]"
    assert "@section" not in outcome.out
    assert "  NcuRooflineAccessPattern (3 of 3 launches): Collect" in outcome.out
    assert max(map(len, lines[1:])) <= 100


def test_what_matters_most_comes_first(source: Path) -> None:
    order = ("error", "optimization", "warning", "ok", "none")
    with read_report(source) as opened:
        for one in advise(opened, our_rules()):
            kinds = [message.type for _, message in one.messages()]
            assert kinds == sorted(kinds, key=order.index)


def test_json(run: Command, source: Path) -> None:
    (document,) = json.loads(run("advise", source, "--json", "--kernel", "second").out)
    assert document["report"] == str(source)
    (one,) = document["kernels"]
    assert (one["launch"], one["kernel"], one["name"]) == (1, "second", "void second(int)")
    rules = {rule["identifier"]: rule for rule in one["rules"]}
    assert set(rules) == {rule.identifier for rule in our_rules().rules}
    (message,) = rules["NcuRooflineVerdict"]["messages"]
    assert (message["type"], message["title"]) == ("warning", "memory: DRAM")
    bound = rules["NcuRooflineBoundDouble"]["messages"][0]
    assert "@section:HierarchicalDoubleRooflineChart:chart@" in bound["text"]
    assert bound["plain"].endswith("See the chart.")


@pytest.mark.parametrize(
    ("options", "launches"),
    [
        (("--kernel", "first|copy"), [0, 2]),
        (("--launch", "1-2"), [1, 2]),
        (("--nvtx", "solve"), [1]),
        (("--top", "2"), [0, 2]),
    ],
)
def test_filters(run: Command, source: Path, options: tuple[str, ...], launches: list[int]) -> None:
    (document,) = json.loads(run("advise", source, "--json", *options).out)
    assert [one["launch"] for one in document["kernels"]] == launches


def test_several_reports(run: Command, source: Path, tmp_path: Path) -> None:
    other = report(tmp_path / "other.ncu-rep", kernel(complete()))
    document = json.loads(run("advise", source, other, "--json").out)
    assert [one["report"] for one in document] == [str(source), str(other)]
    assert run("advise", source, other).out.count("Nsight Compute 2024.1.0.0") == 2


def test_rules_of_a_folder(run: Command, source: Path, tmp_path: Path) -> None:
    outcome = run("advise", source, "--rules", mine(tmp_path / "rules"), "--launch", "0")
    assert outcome.code == 0
    assert "  note: My title [Mine]\n      see that \N{REPLACEMENT CHARACTER}[31m" in outcome.out
    assert "noise" not in outcome.out
    assert "NcuRoofline" not in outcome.out


def test_rules_of_sections_that_were_not_collected(run: Command, source: Path, tmp_path: Path) -> None:
    folder = mine(tmp_path / "rules", "Absent")
    without = run("advise", source, "--rules", folder, "--launch", "0").out
    assert "nothing to say" in without
    assert "1 rules did not run: section Absent was not collected. --all-rules runs those of other sections" in without
    assert "My title" in run("advise", source, "--rules", folder, "--launch", "0", "--all-rules").out


def test_broken_rules_are_named(run: Command, source: Path, tmp_path: Path) -> None:
    folder = mine(tmp_path / "rules")
    (folder / "Broken.py").write_text("def apply(:")
    outcome = run("advise", source, "--rules", folder)
    assert outcome.code == 0
    assert f"Left out {folder / 'Broken.py'}: SyntaxError" in outcome.err
    assert "My title" in outcome.out


def test_measured_ceilings(run: Command) -> None:
    outcome = run("advise", DEMO / "gpp-v100.ncu-rep", "--ceilings", DEMO / "gpp-v100-ceilings.json", "--launch", "0")
    assert "97 % of the 2.14 TFLOP/s that DRAM allows" in outcome.out
    assert "90 % of the 2.32 TFLOP/s that DRAM allows" in run("advise", DEMO / "gpp-v100.ncu-rep", "--launch", "0").out


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
        rows = advice_rows(advise(opened, our_rules()))
    assert {"kernel", "rule", "type", "title", "text"} == set(rows[0])
    assert {row["kernel"] for row in rows} <= set(roofline(source).kernels["kernel"])
    assert not [row for row in rows if row["type"] == "none" or "@section" in row["text"]]
    assert all(isinstance(value, str) for row in rows for value in row.values())


def test_what_is_worth_too_little_is_left_out(run: Command, tmp_path: Path) -> None:
    """A kernel of 0.5 % of the time says nothing, unless all is asked for; its launches count together."""
    wasteful = {LOADS.format("sectors"): 32 * 10**6, LOADS.format("requests"): 10**6}
    long, little = kernel(complete(seconds=1.0), "void long(int)"), {**complete(seconds=0.005), **wasteful}
    path = report(tmp_path / "few.ncu-rep", long, kernel(little, "void little(int)"))
    said = run("advise", path).out
    assert "Uncoalesced global loads" not in said
    note = "messages are left out, each worth less than 1 % of the run time of all launches. --all-findings shows them."
    assert note in " ".join(said.split())
    whole = run("advise", path, "--all-findings").out
    assert "Uncoalesced global loads" in whole
    assert "left out" not in whole
    assert json.loads(run("advise", path, "--json").out)[0]["left_out"] > 0
    assert "Uncoalesced global loads" in run("advise", path, "--kernel", "little").out
    often = report(tmp_path / "many.ncu-rep", long, *[kernel(little, "void little(int)")] * 3)
    assert "Uncoalesced global loads" in run("advise", often).out


def page(run: Command, path: Path) -> str:
    """The page of a report, as text."""
    target = path.with_suffix(".html")
    assert run("render", path, "-o", target).code == 0
    return target.read_text(encoding="utf-8")


def test_a_page_leaves_out_what_advise_leaves_out(run: Command, tmp_path: Path) -> None:
    """Below a hundredth of the time nothing is told, whether the rest of the time is of launches with advice or not."""
    wasteful = {LOADS.format("sectors"): 32 * 10**6, LOADS.format("requests"): 10**6}
    little = kernel({**complete(seconds=0.005), **wasteful}, "void little(int)")
    long = kernel(complete(seconds=1.0), "void long(int)")
    assert "Uncoalesced global loads" not in page(run, report(tmp_path / "few.ncu-rep", long, little))
    assert "Uncoalesced global loads" in page(run, report(tmp_path / "many.ncu-rep", long, *[little] * 3))
    # 4 of these 60 are among the 20 longest launches that a page has advice on: 0.1 % of the time, all are 1.8 %.
    often = report(tmp_path / "often.ncu-rep", *[long] * 16, *[little] * 60)
    for said in (page(run, often), run("advise", often).out):
        assert "Uncoalesced global loads" in said
    # 0.6 % of the time of all launches counts, not 5 % of that of the 20 longest.
    rare = kernel({**complete(seconds=0.011), **wasteful}, "void rare(int)")
    flat = report(tmp_path / "flat.ncu-rep", rare, *[kernel(complete(seconds=0.01), "void flat(int)")] * 170)
    for said in (page(run, flat), run("advise", flat).out):
        assert "Uncoalesced global loads" not in said


def test_numbers_are_the_models_also_where_one_launch_tells_less(run: Command, tmp_path: Path) -> None:
    """The roof of a short launch stands at the clock of the longer one, in the table as in the advice."""
    short = {**complete(seconds=1e-5, clock=0.5e9), "dram__bytes.sum": 10**5}
    path = report(tmp_path / "r.ncu-rep", kernel(complete(clock=1.2e9)), kernel(short, "void short(int)"))
    row = roofline(path).kernels.iloc[1]
    (document,) = json.loads(run("advise", path, "--json", "--all-findings").out)
    rules = {rule["identifier"]: rule for rule in document["kernels"][1]["rules"]}
    (verdict,) = rules["NcuRooflineVerdict"]["messages"]
    assert (verdict["title"], verdict["text"].split(". ")[0].lower()) == (row["verdict"], row["reason"].lower())
    peak = 108 * 64 * 1.2e9
    (bound,) = rules["NcuRooflineBoundDouble"]["messages"]
    assert f"{1e14 / peak:.0%}".replace("%", " %") in bound["text"]
