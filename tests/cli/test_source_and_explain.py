"""`source` and `explain` against other programs, libraries and real reports; their sessions have what they print."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses.source.text import BY
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import LAST_RELEASE
from ncu_roofline.cli import source
from ncu_roofline.formats.report import read_report
from ncu_roofline.model.explanations import metrics_for, tensor_metrics
from ncu_roofline.model.work import WARPS
from ncu_roofline.plugin.check.chips import OK, chip, libraries, passes
from ncu_roofline.rendering.table import columns_wide
from tests.cli.command import Command, assert_refused
from tests.cli.made import basic
from tests.factory import kernel, report
from tests.made_up_code import smooth

OWN = "Opcodes are named by our own table"
WORDS = ("--by", "instruction", "--width", 200)


def test_instructions(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvdisasm our own table names opcodes, and it is recommended where there is one for the system and the chip."""
    path = report(tmp_path / "smooth.ncu-rep", smooth())
    monkeypatch.setattr(source, "find_nvdisasm", lambda: None)
    for platform, oldest, recommended in (("linux", (8, 0), True), ("darwin", (8, 0), False), ("linux", (9, 0), False)):
        monkeypatch.setattr(source.sys, "platform", platform)
        monkeypatch.setattr(source, "_DISASSEMBLED", oldest)  # that it knows; the report's is 8.0
        out = run("source", path, *WORDS).out
        assert (OWN in out, "pip install 'ncu-roofline[sass]'" in out) == (True, recommended), (platform, oldest)
    monkeypatch.setattr(source, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(source, "disassemble", lambda *_: [{0x190: "LDG.E R8, [R8.64]", 0x1A0: "\33[2J; DMUL"}])
    text = run("source", path, *WORDS).out
    assert ("LDG.E R8, [R8.64]" in text, OWN in text) == (True, False)

    def fails(*_: object) -> None:
        raise RooflineError("Cannot disassemble with", "nvdisasm", "it knows no such chip", "Update it.")

    monkeypatch.setattr(source, "disassemble", fails)
    outcome = run("source", path, *WORDS)
    assert (outcome.code, outcome.err, outcome.out.count("it knows no such chip")) == (0, "", 1)  # a note, once
    assert (OWN in outcome.out, "pip install" in outcome.out) == (True, False)


@pytest.mark.skipif(os.name == "nt", reason="the made-up nvdisasm is a shell script")
def test_it_runs_where_instructions_are_shown_and_only_there(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for several kernels; also where code without -lineinfo has its instructions in place of lines."""
    tool, mark = tmp_path / "bin" / "nvdisasm", tmp_path / "mark"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho ran >> {mark}\necho '/*10000000210*/ FAKE.SAID R1 ;'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    code = smooth().code
    assert code is not None
    unlined = replace(code, cubin=code.cubin.replace(b".debug_line", b".other_line"))
    bare = replace(smooth(), name="bare", function_name="bare", code=unlined)
    report(tmp_path / "smooth.ncu-rep", smooth())
    report(tmp_path / "bare.ncu-rep", bare)
    report(tmp_path / "both.ncu-rep", smooth(), bare)
    nowhere = ("", "--by outer-line", "--by loop", "-o x.md", "-o x.csv --table totals", "-o x.html --no-disassembly")
    shown = ("--by instruction", "-o x.md --by instruction", "-o x.csv --table instructions", "-o x.html", "-o x.json")
    for name, lines, runs in (
        ("smooth", nowhere, 0),
        ("smooth", shown, 1),
        ("bare", ("", "--by line", "--by outer-line"), 1),
        ("both", ("--top 2",), 1),
    ):
        for line in lines:
            mark.unlink(missing_ok=True)
            words = line.split()
            outcome = run("source", f"{name}.ncu-rep", *words, *(("--force",) if "-o" in words else ()))
            assert outcome.code == 0, outcome.err
            text = Path(words[1]).read_text() if "-o" in words else outcome.out
            ran = len(mark.read_text().splitlines()) if mark.exists() else 0
            assert (ran, text.count("FAKE.SAID") > 0) == (runs, runs > 0), (name, line)
            assert ("no source lines: its instructions stand in their place" in text) == (name != "smooth")


@pytest.mark.reports
@pytest.mark.parametrize("chosen", ["a100-ncu2020.3-full-1", pytest.param("full|a100.*custom", marks=pytest.mark.exhaustive)])
def test_real_reports(run: Command, real_reports: dict[str, Path], chosen: str) -> None:
    """Those without source counters are refused; of the others every table fits every terminal."""
    for path in (path for name, path in real_reports.items() if re.search(chosen, name)):
        with read_report(path) as opened:
            counted = any("inst_executed" in one.metrics.names() for one in opened.kernels)
        if not counted:
            assert_refused(run("source", path), path)
        for words in ((), *(("--by", by) for by in BY)) if counted else ():
            for width in (60, 80, 120, 200):
                outcome = run("source", path, "--no-disassembly", *words, "--width", width)
                assert outcome.code == 0, outcome.err
                assert [line for line in outcome.out.splitlines() if columns_wide(line) > width] == []


@pytest.mark.reports
def test_what_is_said_of_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    lost = real_reports["a100-ncu2022.4-full-2.ncu-rep"]  # its rules say, too, that metrics of the section were not found
    outcome = run("source", lost)
    assert_refused(outcome, lost)
    assert "although section SourceCounters was requested: ncu collected none of its metrics" in outcome.err
    said = " ".join(run("show", real_reports["v100-ncu2022.2-full-1.ncu-rep"]).out.split())
    assert "1.9x to the FP64 FMA roof; miniWeather_mpi_openacc.F90:288: FP64 divisions, 29 % of samples. " in said
    names = ("a40-ncu2022.1-full-1.ncu-rep", "a40-ncu2022.4-full-1.ncu-rep")
    outcome = run("compare", *(real_reports[name] for name in names), "--fail-if", "fraction < 0.9 * baseline")
    assert outcome.out.startswith(f"{names[1]} against {names[0]} (baseline)")
    assert (outcome.code in (0, 1), "nan" in outcome.out) == (True, False)


CHIPS = [(architecture, name) for architecture in load_spec().architectures for name in architecture.chips]


def explained(run: Command, path: Path, *words: str) -> dict[str, Any]:
    (document,) = json.loads(run("explain", path, "--json", *words).out)
    return dict(document)


FILLS = {(7, 2): "sysmem", (8, 7): "device", (11, 0): "sysmem", (12, 1): "device"}


@pytest.mark.parametrize("capability", [(8, 0), *FILLS])
def test_what_it_proposes_is_enough(run: Command, tmp_path: Path, capability: tuple[int, int]) -> None:
    """Systems on a chip are asked for what stands for DRAM: with that lower bound nothing is left to ask for."""
    dram = f"lts__d_sectors_fill_{FILLS[capability]}.sum" if capability in FILLS else "dram__bytes.sum"
    device = basic(*capability)
    one = explained(run, report(tmp_path / "basic.ncu-rep", kernel(device)))
    names = shlex.split(one["command"])[2].split(",")
    assert ({"fp64", "l1", "l2"} <= set(one["missing"]), dram in names) == (True, True)
    assert any(name.startswith("dram__") for name in names) == (capability == (8, 0))
    whole = report(tmp_path / "whole.ncu-rep", kernel({**device, **dict.fromkeys(names, 1e6)}))
    again = explained(run, whole)
    assert (again["missing"], again["partial"], again["command"]) == ([], [], "")
    text = run("explain", whole).out.replace("Nothing is missing", "")
    assert ("missing" in text, "ncu --metrics" in text) == (False, False)


@pytest.mark.parametrize(
    ("architecture", "name"),
    [pytest.param(*one, marks=() if one[1] in ("GH100", "TU116") else pytest.mark.exhaustive, id=one[1]) for one in CHIPS],
)
def test_every_name_is_one_of_the_chip(architecture: Any, name: str) -> None:
    found, spec = chip(name), load_spec()
    if found is None:
        pytest.skip(f"no libnvperf_host here knows {name}")
    product = "NVIDIA GeForce GTX 1660 Ti" if name in ("TU116", "TU117") else ""
    own = [one for one in spec.precisions if spec.bindings(one, architecture.compute_capability)]
    if product:
        own = [one for one in own if not one.id.startswith("tensor")]
    levels = [level for level in spec.levels if spec.bindings(level, architecture.compute_capability)]
    gpus = ((architecture, product),)
    names = [*metrics_for(gpus, own, levels, LAST_RELEASE), *tensor_metrics(gpus, LAST_RELEASE)[0]]
    assert [one for one in names if one != WARPS and found.verdict(one) != OK] == []


@pytest.mark.parametrize("chosen", ["GH100", pytest.param("", marks=pytest.mark.exhaustive)])
def test_passes_that_are_told(chosen: str) -> None:
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    spec = load_spec()
    for one in (one for one in spec.architectures if one.tensor_passes and chosen in ("", *one.chips)):
        core = spec.collect(one.compute_capability, spec.core, spec.chain, lacking=True)
        tensor = tensor_metrics(((one, ""),), LAST_RELEASE)[0]
        before, after = passes(one.chips[0], core), passes(one.chips[0], (*core, *tensor))
        if before is not None and after is not None:  # where a library here schedules it
            assert after.total - before.total == one.tensor_passes


@pytest.mark.reports
def test_sets_and_own_options_of_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    own = {
        "gh200120gb-ncu2025.2-basic-1.ncu-rep": "--kernel-name-base demangled -k regex:[Bb]enchmark ./test_basisset",
        "a100-ncu2022.4-full-2.ncu-rep": "-k nodeByPoint5 -c 10 ./build/main",
        "a10g-ncu2023.1-basic-2.ncu-rep": "--target-processes all ./a.out",
    }
    for name, path in real_reports.items():
        one = explained(run, path)
        made_with = name.split("-")[2]
        assert one["sets"]["made_with"] == ("" if made_with == "custom" else made_with), name
        if name in own:
            wanted = own[name].split()
            assert shlex.split(one["command"])[5:][: len(wanted)] == wanted
