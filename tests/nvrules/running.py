"""Kernels and rules from a file of cases, and what the rules say of them as a text.

A case is the kernel of `complete()` but for `on` (A100, H100, V100), `chip` (major, minor, name), `seconds`, `clock`, `flops`
([add, mul, fma] by precision), `traffic`, `share` (of the bandwidth of DRAM), `without` and `only` (metrics with these words),
`metrics`, `counts` (by instruction), `opcodes` (executed a hundred times, or as said), `texts` and `lines` of instructions,
`functions` (their first ones).  `rule`: which rules look at it; `roofs`: which measured roofs they have; `speedup`: their first
promise in per cent.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ncu_roofline.base.files import HELPER, pack_folder
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.report import Kernel, KernelData, RuleMessage, read_report
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.interface import IAction, ISourceInfo
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, RuleSet, load_rules
from tests.factory import A100, H100, V100, Metrics, by_address, complete, flops, kernel, report, traffic

RULES = pack_folder("rules")
BASE = 0x7000_0000
GPUS = {"A100": A100, "H100": H100, "V100": V100}
_BY_OPCODE = "sass__{}_per_opcode_with_modifier_all"
OPCODES = [_BY_OPCODE.format(what) for what in ("thread_inst_executed_true", "inst_executed")]
Case = dict[str, Any]


@lru_cache(maxsize=1)
def our_rules() -> RuleSet:
    return load_rules([RULES])


def helper(rules: RuleSet) -> ModuleType:
    """The module that these rules of ours share."""
    modules = rules.rules[0].namespace.modules
    return next(module for name, module in modules.items() if name.startswith(HELPER))


def outcomes(folder: Path, metrics: Metrics, rules: RuleSet | None = None, **rest: object) -> dict[str, RuleOutcome]:
    path = report(folder / "rules.ncu-rep", kernel(metrics, **rest))  # type: ignore[arg-type]
    with read_report(path) as opened:
        return {outcome.identifier: outcome for outcome in (rules or our_rules()).run(opened.kernels[0])}


def messages(folder: Path, metrics: Metrics, rule: str, rules: RuleSet | None = None) -> tuple[RuleMessage, ...]:
    """What one of our rules says; ``rule`` without its prefix."""
    outcome = outcomes(folder, metrics, rules)[f"NcuRoofline{rule}"]
    assert outcome.status == "done", outcome
    return outcome.messages


def toml(path: Path) -> dict[str, Any]:
    reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = reader.loads(path.read_text(encoding="utf-8"))
    return found


def read_cases(path: Path) -> tuple[dict[str, Case], dict[str, Any]]:
    """The cases of a file with its names of metrics in full, and its measured roofs."""
    document = toml(path)
    names, rule = document["names"], {"rule": document.get("rule")}
    return {name: full({**rule, **case}, names) for name, case in document["cases"].items()}, document.get("roofs", {})


def full(case: Case, names: dict[str, str]) -> Case:
    metrics: Case = {}
    for key in ("metrics", "counts"):
        metrics[key] = {names.get(name, name): value for name, value in case.get(key, {}).items()}
    rule = case.get("rule", [])
    return {**case, **metrics, "rule": [rule] if isinstance(rule, str) else rule}


def metrics_of(case: Case) -> Metrics:
    found = complete(GPUS[case.get("on", "A100")], case.get("seconds", 1e-3), case.get("clock", 1.41e9))
    if "chip" in case:
        keys = ("compute_capability_major", "compute_capability_minor", "display_name")
        found |= {f"device__attribute_{key}": value for key, value in zip(keys, case["chip"], strict=True)}
    for precision, counts in case.get("flops", {}).items():
        found |= flops(precision, *counts)
    found |= traffic(*case["traffic"]) if "traffic" in case else {}
    found = {name: value for name, value in found.items() if not any(word in name for word in case.get("without", ()))}
    found = {name: value for name, value in found.items() if any(word in name for word in case.get("only", ("",)))}
    if "share" in case:
        found["dram__bytes.sum"] = int(case["share"] * 1.555e12 * case.get("seconds", 1e-3))
    return {**found, **case["metrics"]}


def data_of(case: Case) -> KernelData:
    """The kernel; where texts are given every instruction was executed by whole warps."""
    count = len(case.get("texts", ())) if case["rule"] == ["ArithmeticSpots"] else 0
    known = {"inst_executed": [100] * count, "thread_inst_executed_true": [3200] * count} if count else {}
    counts, opcodes = {**known, **case["counts"]}, case.get("opcodes", {})
    instances: dict[str, Any] = by_address(BASE, **counts) if counts else {}
    metrics = {**metrics_of(case), **{name: sum(values) for name, values in counts.items()}}
    executed = list(opcodes.items()) if isinstance(opcodes, dict) else [(opcode, 100) for opcode in opcodes]
    for name in OPCODES if executed else ():
        instances[name], metrics[name] = executed, sum(count for _, count in executed)
    if "functions" in case:
        instances["launch__function_pcs"] = [(number, BASE + 16 * first) for number, first in enumerate(case["functions"])]
    return kernel(metrics, instances=instances)


def rules_with(folder: Path, *ceilings: Ceilings) -> RuleSet:
    folder.mkdir(exist_ok=True)
    for name, text in render_rules(ceilings=list(ceilings)).items():
        (folder / name).write_text(text, encoding="utf-8")
    return load_rules([folder])


def ceilings_of(name: str, given: dict[str, Any]) -> Ceilings:
    roofs, clock = {}, given.get("clock", math.nan)
    for roof in given.keys() - {"device", "capability", "clock"}:
        unit = "s" if roof.startswith("launch") else "B/s" if roof.endswith("read") else "FLOP/s"
        roofs[roof] = Ceiling(roof, given[roof], unit, clock, "")
    return Ceilings(f"{name}.json", given["device"], "", tuple(given["capability"]), "2024-01-02", roofs)


def run_case(case: Case, one: Kernel, rules: RuleSet, patch: pytest.MonkeyPatch) -> tuple[list[RuleOutcome], int]:
    """What the rules of a case say, and how many instructions they asked for."""
    chosen = RuleSet(tuple(rule for rule in rules.rules if rule.identifier.removeprefix("NcuRoofline") in case["rule"]), ())
    with patch.context() as context:
        asked: list[int] = []
        if case["counts"] or "texts" in case:
            texts = dict(enumerate(case.get("texts", ())))
            context.setattr(IAction, "sass_by_pc", lambda _, at: asked.append(at) or texts.get((at - BASE) // 16, ""))
        if "lines" in case:
            places = [line if isinstance(line, str) else f"/src/k.cu:{line}" for line in case["lines"]]
            infos = [ISourceInfo(file, int(line)) for file, line in (place.rsplit(":", 1) for place in places)]
            context.setattr(IAction, "source_info", lambda _, address: infos[(address - BASE) // 16])
        found = {outcome.identifier.removeprefix("NcuRoofline"): outcome for outcome in chosen.run(one)}
    return [found[name] for name in case["rule"]], len(set(asked))


def as_text(outcome: RuleOutcome) -> str:
    marks = f" (marks in the source: {outcome.markers})" if outcome.markers else ""
    reason = f", {outcome.reason}" if outcome.reason else ""
    lines = [f"{outcome.identifier.removeprefix('NcuRoofline')}: {outcome.status}{reason}{marks}"]
    for said in outcome.messages:
        gain = "" if said.speedup is None else f", {said.speedup_type} {said.speedup:.4g} %"
        lines += [f"  {said.type}{gain}: {said.title}".rstrip(), f"    {said.text}"]
        lines += [f"    > {one.name} = {one.value:.6g}, {one.severity}: {one.info}".rstrip(": ") for one in said.focus]
    return "".join(f"{line}\n" for line in lines)
