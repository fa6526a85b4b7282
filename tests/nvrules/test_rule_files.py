"""The rule files are what all releases understand, their numbers the model's; stock rules say what they said."""

from __future__ import annotations

import ast
import builtins
import json
import math
import os
import random
import re
import subprocess
import symtable
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline import roofline
from ncu_roofline.base.files import HELPER as PREFIX
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.spec import OVERVIEW_SECTION
from ncu_roofline.chips.verdict import SHORT_LAUNCH
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.model import Measurements, Roofline, measurements_of
from ncu_roofline.plugin.generate.rules import render_rules, rule_templates
from ncu_roofline.plugin.generate.sections import render_sections
from ncu_roofline.plugin.nvrules.findings import VERDICT
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import Known, RuleSet, known_of, load_rules
from tests.factory import H100, Metrics, complete, flops, kernel, report, timing, traffic
from tests.generate.made import collected, kernel_metrics
from tests.nvrules.running import RULES, data_of, helper, our_rules, read_cases, rules_with
from tests.published_report import CEILINGS, REPORT

TEXTS = render_rules()
(HELPER,) = (name.removesuffix(".py") for name in TEXTS if name.startswith(PREFIX))
NAMES = sorted({name.removesuffix(".py") for name in TEXTS} - {HELPER})
DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
IMPORTABLE = {"math", "re", "collections", "functools", "itertools", "operator", "NvRules"}
SECTIONS = {f"Hierarchical{name}RooflineChart" for name in ("Double", "Single", "Half", "Tensor")}
SECTIONS |= {"InstructionRooflineChart", "RooflineOverview"}


@pytest.mark.parametrize("name", TEXTS)
def test_every_release_understands_it(name: str) -> None:
    """Python 3.5, ASCII, modules that all have; enumerations of NvRules are asked for, not counted on."""
    assert TEXTS[name].isascii()
    imported = set()
    for node in ast.walk(ast.parse(TEXTS[name], feature_version=(3, 5))):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Assert)), node.lineno
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            assert not node.args.posonlyargs
            assert not any(one.annotation for one in [*node.args.args, *node.args.kwonlyargs])
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert all(isinstance(one, ast.Name) and one.id == "once" for one in node.decorator_list)
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith(("MsgType_", "Severity_", "SpeedupType_", "MarkerKind_"))
        imported |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        imported |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    assert imported <= IMPORTABLE | ({HELPER} if name != f"{HELPER}.py" else set())


def test_the_helper_is_called_by_its_text_and_is_no_rule() -> None:
    """Nsight Compute runs files of one name from several folders into one module: another text has to have another name."""
    assert render_rules() == TEXTS
    assert not {"get_identifier", "apply"} & defined(TEXTS[f"{HELPER}.py"])
    measured = render_rules(ceilings=[read_ceilings(DEMO / CEILINGS)])
    (other,) = measured.keys() - TEXTS.keys()
    assert other.startswith(PREFIX)
    assert not [name for name, text in measured.items() if HELPER in text]


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_is_there(name: str) -> None:
    nodes = list(ast.walk(ast.parse(TEXTS[f"{name}.py"])))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    shared = {name for name in defined(TEXTS[f"{HELPER}.py"]) if not name.startswith("_")}
    assert read <= shared | own | defined(TEXTS[f"{name}.py"]) | set(dir(builtins))


def defined(text: str) -> set[str]:
    symbols = symtable.symtable(text, "", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}


def test_no_name_of_the_helper_has_two_meanings() -> None:
    """Texts of several modules stand in it: a later one would take the names of an earlier one."""
    meanings: dict[str, list[str]] = {}
    for node in ast.parse(TEXTS[f"{HELPER}.py"]).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            meanings.setdefault(node.name, []).append("")
        elif isinstance(node, ast.Assign):
            names = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            for name in (one.id for one in names if isinstance(one.ctx, ast.Store)):
                meanings.setdefault(name, []).append(ast.dump(node.value))
    module = helper(our_rules())  # numbers that several modules import stand there twice
    twice = {name for name, values in meanings.items() if len(values) > 1}
    assert {name for name in twice if isinstance(getattr(module, name), (tuple, dict, FunctionType))} == set()


def test_names_are_private_and_sections_are_ours() -> None:
    rules = {one.identifier: one for one in our_rules().rules}
    assert rules.keys() == {one.identifier for one in rule_templates(load_spec())}
    for identifier, rule in rules.items():
        assert identifier.startswith("NcuRoofline")
        assert rule.path.stem == identifier
        assert all((rule.name, rule.module.get_description()))
        assert {rule.section, *re.findall(r"@section:(\w+):", TEXTS[rule.path.name])} <= SECTIONS
    # Rules that others name as their parents run before these; so does Nsight Compute from 2023.2 on.
    overview = [identifier for identifier, rule in rules.items() if rule.section == OVERVIEW_SECTION]
    assert overview[0] == VERDICT != overview[-1]


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_every_release_lists_them(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """``--list-rules`` imports the files in the Python inside ncu; one that fails there is left out without a word."""
    for release, ncu in ncu_releases.items():
        command = [str(ncu), f"--section-folder={RULES.parent / 'sections'}", f"--section-folder={RULES}", "--list-rules"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}, check=False)
        listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("NcuRoofline")}
        assert sorted(listed) == NAMES, release
        assert HELPER not in done.stdout + done.stderr, release


@pytest.mark.parametrize("interface", ["new", pytest.param("old", marks=pytest.mark.exhaustive)])
def test_every_python_says_the_same(tmp_path: Path, interface: str) -> None:
    """Of what all our sections together collect on an A100; "old": in a report of 2020.3.

    Other Pythons that developers keep: the language of the embedded ones is in between.
    """
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pythons = [path for minor in range(5, 14) for path in sorted(root.glob(f"3.{minor}.*/bin/python"))[:1]]
    if not pythons:
        pytest.skip("no other Python (set PYENV_ROOT to a pyenv with some)")
    metrics: Metrics = {"device__attribute_clock_rate": 1_410_000, "launch__waves_per_multiprocessor": 1.25, **timing()}
    for text in render_sections().values():
        metrics |= kernel_metrics(collected(parse_document(text).section, (8, 0)), (8, 0))
    (tmp_path / "fake.py").write_bytes(Path(__file__).with_name("stand_in.txt").read_bytes())
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    said = set()
    for python in pythons:
        command = [str(python), "-W", "error", "fake.py", "metrics.json", str(RULES), interface, *NAMES]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, f"{python}: {done.stderr}"
        said.add(done.stdout)
    (fake,) = map(json.loads, said)
    assert fake.pop("errors") == []
    assert any(text.startswith("FP64 ") for _, text, *_ in fake["NcuRooflineBoundDouble"])
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        for outcome in our_rules().run(opened.kernels[0]) if interface == "new" else ():
            assert [message[1] for message in fake[outcome.identifier]] == [m.text for m in outcome.messages]


# Numbers, on made-up kernels and on real reports.

# Release of the report: release of the rules.  Where they differ, the rules have the same texts in both.
RELEASES = {one: one for one in ("2020.3", "2022.3", "2024.1", "2024.2")} | {"2022.4": "2022.3", "2024.3": "2024.2"}
KNOWN = {
    # sorts instructions by a value that several share, in the order of a dict of Python 3.5
    ("a100-ncu2020.3-full-1.ncu-rep", "UncoalescedGlobalAccess"),
    # made by 2022.4 with a file that has a misprint which 2022.3 does not have
    ("a100-ncu2022.4-full-2.ncu-rep", "SOLFPRoofline"),
}


def close(ours: float | None, model: float) -> bool:
    """Whether a number of the rules is that of the model; either may be unknown."""
    if ours is None or math.isnan(ours) or math.isnan(model):
        return (ours is None or math.isnan(ours)) and math.isnan(model)
    return math.isclose(ours, model, rel_tol=1e-12)


def points(shared: Any, kernel: Any, levels: Any) -> Iterator[tuple[str, float, float | None, Any]]:
    """(precision, work, peak, binding) of each precision that has work, and of the mix."""
    for precision, work in kernel.works():
        if work.total > 0 and not load_spec().precision(precision.id).on_request:
            peak = shared.peak_of(kernel, precision)[0]
            yield precision.id, work.total, peak, shared.Bound(levels, work.total, peak)
    mix = shared.Mix(shared.demands(kernel))
    if mix.mixed and mix.peak is not None:
        yield "mixed", mix.total, mix.peak, shared.Bound(levels, mix.total, mix.peak)


def check(result: Roofline, one: Kernel, rules: RuleSet, known: Known | None = None) -> int:
    """Assert that the rules have the model's points of a launch; returns how many there are."""
    rows = result.points[result.points["launch"] == one.index]
    shared = helper(rules)
    kernel = shared.Kernel(IAction(one, known))
    counted = {precision.id for precision in load_spec().precisions if not precision.on_request}
    asked = {level.id for level in load_spec().levels if level.on_request}
    levels = {level.name: level for level in shared.levels_of(kernel)}
    found = list(points(shared, kernel, list(levels.values()))) if kernel.seconds else []
    for name, work, peak, bound in found:
        mine = rows[rows["precision"] == name]
        if not levels:
            assert not len(mine)
            continue
        assert set(levels) - asked <= set(mine["level"]) <= set(levels)
        for point in mine.itertuples():
            level = levels[point.level]
            ours = (work, level.traffic.total, kernel.seconds, level.attainable(work, peak))
            model = (point.work, point.traffic, point.seconds, point.attainable)
            assert all(map(close, ours, model)), (name, point.level, ours, model)
            if bound.attainable is not None and (point.binds or not shared.tensor_unknown(kernel)):
                assert point.binds == (bound.level.name if bound.level else point.binds)
                assert bound.level is not None or point.binds not in levels
                assert close(work / kernel.seconds / bound.attainable, point.binding_fraction)
    shown, names = set(rows["precision"]) & (counted | {"mixed"}), {name for name, *_ in found}
    # The model also knows charts inside the report, which rules can't see, and mixes without a known roof.
    assert shown - {"mixed"} == (names - {"mixed"} if levels else set())
    assert ("mixed" in shown) >= ("mixed" in names and bool(levels))
    return len(rows)


def same_verdict(result: Roofline, one: Kernel, rules: RuleSet, known: Known | None = None) -> bool:
    """Assert that the rule gives the row of the kernels frame: what limits, how full it is, the headrooms and why."""
    (rule,) = (rule for rule in rules.rules if rule.identifier == "NcuRooflineVerdict")
    said = rule.module.verdict_of(helper(rules).Kernel(IAction(one, known)))
    (row,) = result.kernels[result.kernels["launch"] == one.index].itertuples()
    assert (said.text, said.limit, said.reason) == (row.verdict, row.limit, row.reason), one.index
    ours = (said.fraction, said.headroom, said.headroom_compute, said.without_waste)
    model = (row.limit_fraction, row.headroom, row.headroom_compute, row.headroom_without_waste)
    assert all(map(close, ours, model)), (ours, model)
    (outcome,) = RuleSet((rule,), ()).run(one, known=known)
    assert [message.title for message in outcome.messages] == [row.verdict]
    assert outcome.messages[0].text.startswith(row.reason[:1].upper() + row.reason[1:] + ".") or row.verdict == "unknown"
    return True


def alone(m: Measurements, row: int) -> bool:
    """Whether the counters of the launch itself tell all that the model knows of it.

    Clocks of short launches are those of longer ones, opcodes are no counters, and rules don't read charts of other sections.
    """
    quantities = [*m.work.values(), *m.traffic.values(), *m.compute.values(), *m.bandwidth.values()]
    sources = {one.origins[one.choice[row]].source for one in quantities if one.choice[row] >= 0}
    opcodes = any("opcodes" in one.origins[one.choice[row]].note for one in m.traffic.values() if one.choice[row] >= 0)
    others = opcodes or sources & {"opcodes", "embedded"}
    return not others and not m.seconds[row] < SHORT_LAUNCH and not m.tensor_gaps[row]


def chip(major: int, minor: int, name: str = "NVIDIA Some GPU") -> Metrics:
    version = {"compute_capability_major": major, "compute_capability_minor": minor}
    return {**H100, **{f"device__attribute_{key}": value for key, value in {"display_name": name, **version}.items()}}


def kernels() -> Iterator[Metrics]:
    """Kernels that take every way of counting: by chip, by suffix, by unit, with and without peaks and clocks."""
    for one in load_spec().architectures:
        device = chip(*one.compute_capability)
        yield complete(device)
        yield {**complete(device), **flops("f", 10**8, 10**8, 10**9), **flops("h", 5, 6, 10**8)}
        everything: Metrics = {
            f"{counter}.sum": 10**9 + index
            for precision in load_spec().precisions
            for binding in load_spec().bindings(precision, one.compute_capability)
            for index, counter in enumerate(binding.counters.counters())
        }
        peaks: Metrics = {
            f"{counter}.sum.peak_sustained": 1000.0 + index
            for item in (*load_spec().precisions, *load_spec().levels)
            for binding in load_spec().bindings(item, one.compute_capability)
            if binding.peak
            for index, counter in enumerate(binding.peak.counters())
        }
        yield {**complete(device), **everything}
        yield {**complete(device), **everything, **peaks, "dram__cycles_elapsed.avg.per_second": 2.6e9}
        yield {**complete(chip(*one.compute_capability, name="NVIDIA GeForce RTX 9999")), **everything, **peaks}
    halves: Metrics = {"lts__t_sectors.sum.per_second": 1e9, "lts__t_sectors.avg.per_cycle_elapsed": 0.01}
    for odd in (0, -1.41e9, 5e-324, 500.0):  # no clock is one of these
        clocks = {f"{unit}__cycles_elapsed.avg.per_second": odd for unit in ("sm", "lts", "dram")}
        maximum = {f"device__attribute_max_{what}_frequency_khz": odd for what in ("gpu", "mem")}
        yield {**complete(), **clocks, **halves}
        yield {**complete(), **clocks, **maximum, "smsp__cycles_elapsed.max": 1.2e6, "device__attribute_clock_rate": 1_400_000}
        ratio: Metrics = {"lts__t_sectors.sum.per_second": odd, "lts__t_sectors.avg.per_cycle_elapsed": 1}
        yield {**complete(), **clocks, **maximum, **ratio}


def used() -> Iterator[Metrics]:
    """Kernels of every chip that say how full units were in some of all the ways of saying it, and what can prove waste."""
    chance = random.Random(25)
    most = {"launch__waves_per_multiprocessor": 9, "smsp__thread_inst_executed_per_inst_executed.ratio": 32}
    bindings = [binding for level in load_spec().levels for binding in level.bindings]
    level_metrics = [f"{counter}.sum" for binding in bindings for counter in binding.counters.counters()]
    for one in load_spec().architectures:
        device = chip(*one.compute_capability)
        for _ in range(8):
            seconds, most_full = chance.choice((1e-3, 4e-4)), chance.choice((50.0, 90.0, 100.0))
            metrics = complete(device, seconds)
            for name in [name for name in load_units().metrics() if chance.random() < 0.3]:
                scale = most_full if "pct_of" in name else 1.4e9 * seconds if "cycles" in name else most.get(name, 2e7)
                metrics[name] = chance.uniform(0, 1) * scale if "cycles_elapsed" not in name else scale
            for name in chance.sample(level_metrics, 3):
                metrics[name] = float(chance.randrange(10**7))
            for name in chance.sample(sorted(traffic()), chance.choice((0, 2, 3))):
                del metrics[name]
            yield metrics


def test_made_up_kernels(tmp_path: Path) -> None:
    others = read_cases(Path(__file__).with_name("numbers.toml"))[0].values()
    path = report(tmp_path / "r.ncu-rep", *map(kernel, (*kernels(), *used())), *map(data_of, others))
    result, m = roofline(path), measurements_of(path)
    with read_report(path) as opened:
        assert sum(check(result, one, our_rules()) for one in opened.kernels) > 1000
        assert all(same_verdict(result, one, our_rules()) for one in opened.kernels)
        for row, one in enumerate(opened.kernels):
            ours = helper(our_rules()).Kernel(IAction(one))
            assert all(map(close, (ours.clock_profiled, ours.clock_max), (m.clock[row], m.clock_max[row])))
    judged_rows = result.kernels["verdict"].str.partition(":")[0]
    assert {"memory", "compute", "latency", "unknown", "tensor work unknown"} <= set(judged_rows)
    assert (result.kernels["waste"] != "").sum() > 5
    assert result.kernels["headroom_without_waste"].notna().any()
    assert result.kernels["reason"].str.contains("at least").any()


@pytest.mark.exhaustive
@pytest.mark.reports
def test_real_reports(real_reports: dict[str, Path]) -> None:
    rows = by_itself = 0
    for path in real_reports.values():
        result, m = roofline(path), measurements_of(path)
        with read_report(path) as opened:
            for one in list(opened.kernels)[:20]:
                known = known_of(m, one.index, opened.ncu_version)
                rows += check(result, one, our_rules(), known)
                assert same_verdict(result, one, our_rules(), known)
                if alone(m, one.index):
                    by_itself += same_verdict(result, one, our_rules())
    assert rows > 100
    assert by_itself > 20


def test_measured_ceilings(tmp_path: Path) -> None:
    ceilings = read_ceilings(DEMO / CEILINGS)
    rules = rules_with(tmp_path, ceilings)
    result = roofline(DEMO / REPORT, ceilings)
    assert (result.points["roof_origin"] == "measured").any()
    with read_report(DEMO / REPORT) as opened:
        assert sum(check(result, one, rules) for one in opened.kernels) == len(result.points)
        assert all(same_verdict(result, one, rules) for one in opened.kernels)


@pytest.mark.ncu
@pytest.mark.reports
@pytest.mark.exhaustive
def test_stock_rules_say_what_they_said(real_reports: dict[str, Path], ncu_releases: dict[str, Path]) -> None:
    """NVIDIA's own, run offline, what they said when the report was made, with all of it; and no others run."""
    rules = {release: load_rules([ncu.parents[2] / "sections"]) for release, ncu in ncu_releases.items()}
    assert all(one.problems == () for one in rules.values())
    runs, different = 0, set()
    for name, path in real_reports.items():
        with read_report(path) as report:
            stock = rules.get(RELEASES.get(".".join(report.ncu_version.split(".")[:2]), ""))
            for kernel in report.kernels if stock else ():
                ours = {outcome.identifier: outcome for outcome in stock.run(kernel, collected_only=True)}
                ran = {identifier for identifier, outcome in ours.items() if outcome.status != "skipped"}
                assert ran == {result.identifier for result in kernel.rule_results}, name
                for result in kernel.rule_results:
                    runs += 1
                    outcome, messages = ours[result.identifier], result.messages
                    missing = any(m.type == "error" and "Metric" in m.text and "not found" in m.text for m in messages)
                    # Old releases word it otherwise; an error it must be.
                    old, new = ([replace(message, id=None) for message in some] for some in (messages, outcome.messages))
                    same = outcome.status == "error" if missing else old == new
                    if not same:
                        different.add((name, result.identifier))
    if not runs:
        pytest.skip("no report of a release whose rules are here")
    assert different <= KNOWN
