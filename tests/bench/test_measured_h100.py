"""What was measured and profiled on an H100: counters hold the promises, dots lie on measured roofs, rules agree."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.device import parse_device
from ncu_roofline.bench.measuring import variation
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.model import Selection
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.bench.replay import rejudged
from tests.bench.scrubbing import scrubbed
from tests.bench.validate import script as validation

OK, PROFILED, SKIP, Promise = validation.OK, validation.PROFILED, validation.SKIP, validation.Promise

FOLDER = Path(__file__).parent / "measured_h100"
PROMISES: dict[str, dict[str, Any]] = json.loads((FOLDER / "promises.json").read_text(encoding="utf-8"))
MEASURED: dict[str, Any] = json.loads((FOLDER / "ceilings.json").read_text(encoding="utf-8"))
SMS = 132
LOADS_CONSTANTS = {"Mixed precisions", "FP16 FMA mix", "FP64 at 65 % of its DRAM roof"}
APPS = [*(f"gpp-nw{nw}" for nw in range(1, 7)), "gsrb", "lecture-a", "lecture-c"]


@pytest.fixture(scope="session")
def reports(h100_reports: Path) -> Path:
    """The folder with the reports."""
    return h100_reports


@pytest.fixture(scope="module")
def entries() -> dict[str, dict[str, Any]]:
    """The ceilings that today's rules make of the trials, by id."""
    return {entry["id"]: entry for entry in rejudged(MEASURED)["ceilings"]}


def promise_of(ceiling: str) -> Promise:
    """What the runner said of the launch that was profiled."""
    told = PROMISES[ceiling]
    return Promise(told["kernel"], float(told["work"]), told["grid"], told["block"], told["trips"])


def test_all_that_is_profiled_was_profiled() -> None:
    assert PROMISES.keys() == PROFILED.keys()


@pytest.mark.parametrize("ceiling", PROFILED)
def test_counters_hold_the_promise_and_the_dot_lies_on_the_roof(
    ceiling: str, reports: Path, entries: dict[str, dict[str, Any]]
) -> None:
    promise = promise_of(ceiling)
    counted = validation.read_counted(ceiling, reports / f"bench.{ceiling}.ncu-rep", promise)
    checks = list(validation.judge_profile(ceiling, counted, promise, entries[ceiling], SMS))
    assert [(check.name.partition(" ")[2], check.state) for check in checks] == [
        ("counters / promise", OK),
        ("dot / measured roof", OK),
    ], checks
    # What was seen is closer than what is asked for: arithmetic to a ten-thousandth.
    if not PROFILED[ceiling].level:
        assert checks[0].value == pytest.approx(1, abs=2e-4)
    assert checks[1].value == pytest.approx(1, abs=0.011)


def test_what_the_readme_says_is_what_the_files_say() -> None:
    text = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
    refused = [entry["id"] for entry in MEASURED["ceilings"] if entry["value"] is not None and not entry["accepted"]]
    assert len(refused) == 10
    assert f"({', '.join(f'`{name}`' for name in refused)})" in text
    sessions = [
        (entry["id"], one["values"], one["sm_mhz"])
        for entry in MEASURED["ceilings"]
        for one in entry["variants"]
        if one["role"] == "session"
    ]
    assert f"vary by {statistics.median(variation(values) for _, values, _ in sessions):.2%} ".replace("%", " %") in text
    clocks = [clocks for name, _, clocks in sessions if "wgmma" in name]
    assert f"is up to {max(map(variation, clocks)):.1%} and its range".replace("%", " %") in text
    assert f"up to {max(max(one) / min(one) - 1 for one in clocks):.1%} of the lowest".replace("%", " %") in text
    cycles = [
        variation([value / clock for value, clock in zip(values, clocks, strict=True)])
        for name, values, clocks in sessions
        if "wgmma" in name
    ]
    assert f"by {100 * min(cycles):.2f} to {100 * max(cycles):.2f} %" in text
    graph = next(entry for entry in MEASURED["ceilings"] if entry["id"] == "launch.graph")
    assert f"variation {100 * graph['between_session_cv']:.0f} %" in text


def test_the_kept_results_are_those_that_the_readme_tells_and_name_no_machine() -> None:
    content = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    states = [check["state"] for check in content["checks"]]
    told = f"{states.count('ok')} ok, {states.count('FAIL')} FAIL"
    assert (told, states.count("skip")) == ("89 ok, 17 FAIL", 4)
    for name in ("README.md", "summary.md"):
        assert told in (FOLDER / name).read_text(encoding="utf-8")
    for name in ("results.json", "summary.md"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(
            r"GPU-[0-9a-f]{8}|uuid|pci_bus_id|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}|/(tmp|home|root|work|usr)\b", text
        )


@pytest.mark.parametrize("name", ["machine.png", "gpp.png"])
def test_the_pictures_are_small(name: str) -> None:
    content = (FOLDER / name).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert 20_000 < len(content) < 200_000


def test_the_ceilings_stand_today() -> None:
    content = rejudged({**MEASURED, "device": {**MEASURED["device"], "uuid": "GPU-0"}})
    rows = [
        {"ceiling": entry["id"], "variant": "", "reason": "emulated" if entry["verdict"] == "emulated" else ""}
        for entry in content["ceilings"]
        if entry["verdict"] != "unsupported"
    ]
    listed = validation.rows_here("\n".join(map(json.dumps, rows)), "9.0")
    checks = list(validation.judge_ceilings(content, parse_device(content["device"]), listed, False))
    assert [check for check in checks if check.state not in (OK, SKIP)] == []
    assert sum(check.state == OK for check in checks) >= 41


def test_the_file_of_the_package_is_made_of_these_trials() -> None:
    made = scrubbed(rejudged(MEASURED))
    path = pack_folder("ncu_roofline") / "data" / "ceilings" / "h100-80gb-hbm3.json"
    shipped = json.loads(path.read_text(encoding="utf-8"))
    for entry in (*shipped["ceilings"], *made["ceilings"]):  # what is not told any more, or was counted otherwise then
        for row in (entry, *entry["variants"], entry.get("throttle", {})):
            for name in ("attempts", "energy_j", "duty", "power_us", "thermal_us"):
                row.pop(name, None)
    assert shipped["ceilings"] == json.loads(json.dumps(made["ceilings"]))
    assert any("applied afterwards" in warning for warning in shipped["warnings"])


@pytest.mark.parametrize(
    ("ceiling", "share"),
    [
        ("tensor.fp16.wgmma", 0.99),
        ("tensor.bf16.wgmma", 0.99),
        ("tensor.tf32.wgmma", 0.99),
        ("tensor.int8.wgmma", 0.99),
        ("tensor.fp8.wgmma", 0.99),
        ("tensor.fp64.mma", 0.99),
        ("tensor.fp16.mma", 0.99),
        ("fp64.fma", 0.99),
        ("fp32.fma", 0.98),
        ("smem.read", 0.99),
        ("l1.read", 0.98),
    ],
)
def test_shares_of_theory_per_cycle(ceiling: str, share: float, entries: dict[str, dict[str, Any]]) -> None:
    assert share < entries[ceiling]["theory"]["fraction"] < 1.001


def test_a_burst_runs_at_a_higher_clock_than_what_the_power_limit_sustains(entries: dict[str, dict[str, Any]]) -> None:
    for ceiling in ("tensor.fp16.wgmma", "tensor.bf16.wgmma", "tensor.fp8.wgmma"):
        entry, burst = entries[ceiling], entries[ceiling]["burst"]
        assert burst["value"] > 1.05 * entry["value"]
        assert burst["sm_mhz"] > 1.05 * entry["clock"]["sm_mhz_mean"]
        assert entry["throttle"]["reasons"] == ["power cap"]
        assert entry["power_w"] > 0.95 * MEASURED["device"]["power_limit_w"]


def test_energy_per_operation_falls_with_the_width_of_the_type(entries: dict[str, dict[str, Any]]) -> None:
    order = ["fp64.fma", "fp32.fma", "fp16.fma", "tensor.tf32.wgmma", "tensor.fp16.wgmma", "tensor.fp8.wgmma"]
    joules = [entries[ceiling]["energy_per_unit_j"] for ceiling in order]
    assert joules == sorted(joules, reverse=True)
    assert joules[0] == pytest.approx(700.1 / 33.606e12, rel=1e-3)


def words_of(rule: str, message: RuleMessage) -> str:
    """What a rule said; of the verdict, which has other words by now, its limit and how full that is."""
    found = re.search(r"[A-Z]\w+(?: FMA)?(?:-bound)? at \d+ %", message.text) if rule.endswith("Verdict") else None
    return found[0].replace("-bound", "") if found else message.text


@pytest.mark.parametrize("name", APPS)
def test_rules_inside_ncu_said_what_advise_says_now(name: str, reports: Path) -> None:
    path = reports / f"{name}.ncu-rep"
    with read_report(path) as report:
        results = [result for kernel in report.kernels for result in kernel.rule_results]
        inside = {
            (result.section, message.title, words_of(result.identifier, message))
            for result in results
            for message in result.messages
        }
        rules = [rule for kernel in advise(report, load_rules([pack_folder("rules")])) for rule in kernel.outcomes]
    assert len(inside) >= 4
    offline = {(rule.section, message.title, words_of(rule.identifier, message)) for rule in rules for message in rule.messages}
    # Offline some say more: what only the whole report tells.  Reuse is told anew.
    inside = {one for one in inside if "euse" not in one[1]}
    missing = [one for one in inside if not any(other[:2] == one[:2] and other[2].startswith(one[2]) for other in offline)]
    if name == "lecture-c":  # a rule in ncu takes its one load of a constant by HFMA2 for FP16 work: it sees no machine code
        assert {title for _, title, _ in missing} == LOADS_CONSTANTS
        assert not [text for _, _, text in offline if "FP16" in text]
    else:
        assert missing == []


def test_multiply_adds_of_integers_fill_their_pipe_at_half_of_the_issue_limit(reports: Path) -> None:
    """The kernel that set the ceiling int32.mad can't be faster, and the ceiling, of two operations each, is no roof of it."""
    ceilings = pack_folder("ncu_roofline") / "data" / "ceilings" / "h100-80gb-hbm3.json"
    result = roofline(str(reports / "bench.int32.mad.ncu-rep"), ceilings, select=Selection(precisions=("int32",)))
    assert list(result.kernels["verdict"]) == ["compute: INT32"] * 2
    assert result.kernels["headroom"].to_numpy() == pytest.approx(1.0, abs=0.01)
    assert "100 % of its instruction-mix ceiling (50 % of the issue limit)" in result.kernels["reason"].iloc[0]
    assert set(result.roofs[result.roofs["precision"] == "int32"]["origin"]) == {"theoretical"}
    assert result.points["fma_share"].isna().all()


def test_gpp_climbs_with_its_frequencies_as_the_papers_say(reports: Path) -> None:
    found = []
    for nw in range(1, 7):
        points = roofline(str(reports / f"gpp-nw{nw}.ncu-rep")).points
        dram = points[(points["precision"] == "fp64") & (points["level"] == "dram")]
        found.append((float(dram["intensity"].iloc[0]), float(dram["performance"].iloc[0])))
    assert found == sorted(found)
    assert found[-1][0] > 4 * found[0][0]


@pytest.mark.parametrize("ceiling", [name for name, target in PROFILED.items() if not target.level and name != "int32.mad"])
def test_no_kernel_of_the_benchmark_is_above_the_roof_that_it_measured(ceiling: str, reports: Path) -> None:
    ceilings = pack_folder("ncu_roofline") / "data" / "ceilings" / "h100-80gb-hbm3.json"
    result = roofline(str(reports / f"bench.{ceiling}.ncu-rep"), ceilings)
    kernels = result.kernels
    assert all(verdict.startswith("compute: ") for verdict in kernels["verdict"])
    # mma.sync is held against wgmma: our section does not count instruction families apart.
    least = 0.65 if ceiling == "tensor.fp16.mma" else 0.49 if ceiling.endswith(".nofma") else 0.97
    points = result.points[result.points["precision"] == ceiling.rpartition(".")[0]]
    assert len(points) >= 3
    assert points["fraction"].between(least, 1.012).all()


def test_a_measured_roof_stands_at_the_clock_of_the_launch(reports: Path) -> None:
    ceilings = pack_folder("ncu_roofline") / "data" / "ceilings" / "h100-80gb-hbm3.json"
    result = roofline(str(reports / "bench.tensor.fp16.wgmma.ncu-rep"), ceilings)
    roofs = result.roofs[result.roofs["origin"] == "measured"].set_index("roof")
    measured = {one["id"]: one for one in json.loads(ceilings.read_text(encoding="utf-8"))["ceilings"]}
    roof, entry = roofs.loc["tensor.fp16"], measured["tensor.fp16.wgmma"]
    clock = float(result.kernels["clock_profiled"].median())
    assert roof["clock"] == pytest.approx(clock)
    assert roof["value"] == pytest.approx(entry["per_sm_and_cycle"] * 132 * clock, rel=1e-6)
    theory = result.roofs[(result.roofs["roof"] == "tensor.fp16") & (result.roofs["origin"] == "theoretical")]
    assert roof["value"] < float(theory["value"].iloc[0])  # the value over the mean clock would be 0.3 % above
    assert "stand at the clock of the launches" in roof["notes"]
    assert roofs.loc["dram", "value"] == max(
        measured[name]["value"] for name in ("dram.read", "dram.write", "dram.copy", "dram.triad")
    )
