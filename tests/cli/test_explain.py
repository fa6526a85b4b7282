"""`ncu-roofline explain`: its commands against libraries of NVIDIA, and real reports; words are in `explain.session`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import LAST_RELEASE
from ncu_roofline.model.explanations import metrics_for, tensor_metrics
from ncu_roofline.model.work import WARPS
from ncu_roofline.plugin.check.chips import OK, chip, libraries, passes
from tests.cli.command import Command
from tests.cli.made import basic
from tests.factory import kernel, report

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


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(one, marks=() if "GH100" in one.chips else pytest.mark.exhaustive, id=one.name)
        for one in load_spec().architectures
        if one.tensor_passes
    ],
)
def test_passes_that_are_told(architecture: Any) -> None:
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    spec, name = load_spec(), architecture.chips[0]
    core = spec.collect(architecture.compute_capability, spec.core, spec.chain, lacking=True)
    before, after = passes(name, core), passes(name, (*core, *tensor_metrics(((architecture, ""),), LAST_RELEASE)[0]))
    if before is None or after is None:
        pytest.skip(f"no libnvperf_host here schedules {name}")
    assert after.total - before.total == architecture.tensor_passes


@pytest.mark.reports
def test_sets_and_own_options_of_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    """The set is part of the name under which each report was filed."""
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
