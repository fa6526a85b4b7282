"""What is said of section files: rules on small files that break them, and the command as users call it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.sectionfile.section import MOST_BYTES, made, parse_section, release_of
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import BASE, FOREIGN, OK, SUFFIX, UNKNOWN, all_targets, targets_of
from ncu_roofline.plugin.check.section_rules import check_files
from tests import test_sessions
from tests.cli.command import Command, assert_refused
from tests.golden import assert_golden
from tests.nvrules.running import toml

HERE = Path(__file__).parent
FIXTURES = sorted((HERE / "fixtures").glob("*.section"))
HEAD = 'Identifier: "{}"\nDisplayName: "plain"\n'
DEFINED = 'Metrics {{ Metrics {{ Name: "a.sum" }} }}\n'
DEFINED += 'MetricDefinitions {{ MetricDefinitions {{ Name: "derived__rl_x" Expression: "{}" }} }}\n'
NEEDS_LIBRARY = {"unknown-metric", "metric-missing", "metric-suffix"}
SYSTEMS_ON_A_CHIP = ("GV11B", "GA10B", "GB10B", "GB20B")
BASES = {"lts__t_sectors", "lts__t_bytes", "lts__lts2xbar_cycles_active", "gpu__time_duration", "dram__bytes"}
BASES |= {f"{unit}__cycles_elapsed" for unit in ("dram", "sm", "smsp", "lts")}
BASES |= {f"{unit}__sass_thread_inst_executed_op_dfma_pred_on" for unit in ("sm", "smsp")}
SUFFIXES = (".sum", ".avg.per_second", ".sum.per_second", ".sum.peak_sustained", ".sum.per_cycle_elapsed")


class FakeChip:
    def __init__(self, name: str) -> None:
        self.name = name
        self.names = sorted(base for base in BASES if not (name in SYSTEMS_ON_A_CHIP and base.startswith("dram")))

    def verdict(self, name: str) -> str:
        base, point, suffix = name.partition(".")
        if ":" in name or base.startswith("derived__"):
            return FOREIGN
        if base not in self.names:
            return UNKNOWN
        return OK if point + suffix in SUFFIXES else SUFFIX if suffix else BASE


def files_of(case: dict[str, Any]) -> list[list[str]]:
    if "file" in case:
        text = (HERE / "fixtures" / f"{case['file']}.section").read_text(encoding="utf-8")
        for old, new in case.get("changes", ()):
            assert old in text
            head, _, tail = text.rpartition(old) if old.startswith("\n}") else text.partition(old)
            text = head + new + tail
        return [[text]]
    if "counters" in case:
        text = (HERE / "fixtures" / "counter-family.section").read_text(encoding="utf-8")
        old_dot, old_roof = "lts__t_bytes.sum.per_second", "lts__lts2xbar_cycles_active"
        return [[text.replace(old_roof, roof).replace(old_dot, f"{dot}.sum.per_second")] for dot, roof in case["counters"]]
    if "expressions" in case:
        return [[HEAD.format("A") + DEFINED.format(expression)] for expression in case["expressions"]]
    texts = case.get("texts") or [case["text"]]
    return [[HEAD.format(name) + text + "\n" for name, text in zip(case.get("identifiers", ["A"]), texts, strict=True)]]


@pytest.mark.usefixtures("no_library")
def test_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each code has a file of its name that breaks that rule, with little else."""
    monkeypatch.chdir(tmp_path)
    cases = {path.stem: {"file": path.stem} for path in FIXTURES}
    cases["release"]["release"] = "2022.3"  # it is right in later ones
    for code in NEEDS_LIBRARY:
        cases[code]["library"] = "fake"
    found = ""
    for name, case in {**cases, **toml(HERE / "remarks.toml")["cases"]}.items():
        found += f"=== {name}\n"
        with pytest.MonkeyPatch.context() as patch:
            if case.get("library") == "fake":
                patch.setattr("ncu_roofline.plugin.check.section_rules.chip", FakeChip)
            for texts in files_of(case):
                paths = [Path(f"{number}.section") for number in range(len(texts))]
                for path, text in zip(paths, texts, strict=True):
                    path.write_text(text, encoding="utf-8")
                release = release_of(case["release"]) if case.get("release") else None
                checked = check_files(paths, targets_of(case["chips"]) if "chips" in case else None, release)
                found += "".join(f"{one}\n" for file in checked for one in file.findings) or "nothing\n"
        assert name not in cases or f"[{name}]" in found.rpartition("===")[2], name
    # In the words of protobuf's reader.
    found = re.sub(r"error: .*(missing ending quote).*(?= \[syntax\])", r"error: \1", found)
    assert_golden(HERE / "remarks.txt", found)
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(chips.__file__).parent.glob("*.py"))
    assert set(re.findall(r'"([a-z]+-[a-z-]+)"', sources)) - {"text-format"} <= set(re.findall(r"\[([a-z-]+)\]$", found, re.M))


@pytest.mark.usefixtures("no_library")
def test_commands(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test_sessions.test_session(HERE / "check.commands", run, tmp_path, monkeypatch)


def test_our_own_sections_are_the_default(run: Command) -> None:
    """They are for many chips at once, which is known; whoever wants to read the remarks is told how."""
    said = run("check").out
    assert ": warning: " not in said
    command = shlex.split(said.splitlines()[-1])
    assert ": warning: " in run(*command[1:]).out


@pytest.mark.skipif(not chips.libraries(), reason=f"{chips.HOW_TO_GET} (or set {chips.VARIABLE})")
def test_table_of_passes(run: Command, tmp_path: Path) -> None:
    for name, metric in (("time", "gpu__time_duration.sum"), ("sass", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum")):
        text = HEAD.format(name) + f'Metrics {{ Metrics {{ Name: "{metric}" }} }}\n'
        (tmp_path / f"{name}.section").write_text(text)
    outcome = run("check", tmp_path, "--passes", "--chip", "GH100,GV11B")
    assert outcome.code == 0
    rows = [re.sub(" {2,}", "|", line.strip()) for line in outcome.out.splitlines()]
    table = ["sass.section|1 (0+1)|-", "time.section|1 (1+0)|-", "all together|2 (1+1)|-"]
    assert rows[2:7] == ["Replay passes", "GH100|GV11B", *table]
    found = json.loads(run("check", tmp_path / "time.section", "--passes", "--chip", "GH100", "--json").out)["passes"]
    assert [*found.values()] == [{"GH100": {"total": 1, "hardware": 1, "sass": 0}}]


def test_files_that_are_no_section(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bad.section"
    for data in (b"\0" * 50, b"\xff\xfe\x00", b"NVR\0" + b"x" * 500):
        path.write_bytes(data)
        outcome = run("check", path)
        assert outcome.code == 1
        assert re.match(rf"{re.escape(str(path))}:1:.*: error: ", outcome.out)
        assert outcome.out.replace("\n", "").isprintable()
    path.write_text(HEAD.format("x" * MOST_BYTES))
    assert_refused(run("check", path), path)
    with pytest.raises(ValueError, match="more than 2 MB"):  # embedded in a report
        parse_section(made("Section", Identifier="x" * MOST_BYTES, DisplayName="x").SerializeToString())
    monkeypatch.setattr("os.listdir", mock.Mock(side_effect=PermissionError(13, "Permission denied")))
    assert_refused(run("check", tmp_path), tmp_path)


def test_chips_by_name() -> None:
    expected = {"gh100": "GH100", "9.0": "GH100", "sm_90a cc_90 90": "GH100", "12.1": "GB20B", "TU116": "TU116"}
    for names, name in expected.items():
        assert [one.chip for one in targets_of(names.split())] == [name]
    found = [(one.chip, one.capability) for one in targets_of(["H100", "rtx 4090", "TU116"])]
    assert found == [("GH100", (9, 0)), ("AD102", (8, 9)), ("TU116", (7, 5))]
    assert targets_of(["all"]) == all_targets()
    assert set(targets_of([])) < set(all_targets())
    assert len({one.capability for one in all_targets()}) == len(targets_of([]))
    with pytest.raises(RooflineError, match="has this name"):
        targets_of(["9"])
