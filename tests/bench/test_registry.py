"""Ceilings that come with the package: form, plausibility, nobody named; and what the reports of their H100 say of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

import ncu_roofline
from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.catalogue import CeilingKind, data_sheet, theory
from ncu_roofline.bench.device import device_of
from ncu_roofline.bench.document import as_text
from ncu_roofline.bench.files import merge, open_file
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.ceilings import MEASURED, NOT_COMPARABLE, model_name, read_ceilings, registry
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.plugin.machine.install import render_pack
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.bench import test_cpu_files
from tests.bench.fakes import EPYC, H200, HERE, device, some
from tests.bench.made import FILES, changed, document
from tests.bench.scrubbing import MEASURED as TRIALS
from tests.bench.scrubbing import PROMISES, rejudged, scrubbed
from tests.golden import assert_golden

DATA = Path(ncu_roofline.__file__).parent / "data"
PATHS = sorted((DATA / "ceilings").glob("*.json"))
SCHEMA = json.loads((DATA / "ceilings.schema.json").read_text(encoding="utf-8"))
H100 = DATA / "ceilings" / "h100-80gb-hbm3.json"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_file(path: Path) -> None:
    """Its form, its GPU, no value above what that can do, and no name of a machine."""
    content, found = json.loads(path.read_text(encoding="utf-8")), read_ceilings(path)
    jsonschema.validate(content, SCHEMA)
    assert content["status"] == found.status
    assert path.stem == found.device.replace("NVIDIA ", "").replace("Tesla ", "").lower().replace(" ", "-")
    gpu = find_gpu(found.device, content["device"]["sm_count"])
    assert gpu is not None
    assert content["device"]["cc"] == capability_text(gpu.compute_capability)
    known = {"host.h2d", "host.d2h", *(kind.id for kind in data_sheet())}
    for name, one in found.by_id.items():
        kind = CeilingKind(name, one.unit)
        peak = theory(kind, device_of(gpu))
        if peak is None:  # the table of GPUs knows no host, not all slices of L2, and no roof of divisions
            assert kind.domain in ("link", "") or kind.level == "l2" or name.endswith(".div"), name
        else:
            assert name in known or load_spec().level_of_ceiling(name), name
            assert 0.5 * (not peak.uncertain) < one.value / peak.value <= 1.01, name
    if content["status"] != MEASURED:
        assert "host" not in content
        assert NOT_COMPARABLE.split(", ")[1] in content["warnings"][0]
        return
    assert scrubbed(content) == content
    gpu_facts, tool = content["device"], content["tool"]
    assert all((gpu_facts["driver"], gpu_facts["power_limit_w"], tool["version"], content["host"]["time_utc"]))
    assert content["settings"]["data"] == "random"
    accepted = [entry for entry in content["ceilings"] if entry["accepted"]]
    on_chip = [entry for entry in accepted if CeilingKind(entry["id"], entry["unit"]).domain in ("sm", "memory")]
    assert len(on_chip) > 20
    assert all(entry["clock"]["sm_mhz_mean"] for entry in on_chip)


def test_the_form_is_that_of_measured_files() -> None:
    found = [(model_name(one.device), one.compute_capability, one.status) for one in registry()]
    assert len(found) == len(set(found)) == len(PATHS)
    content = document()
    for good in (content, scrubbed(content)):
        jsonschema.validate(good, SCHEMA)
    unnamed = [{"id": "dram.read", "value": 1, "unit": "B/s"}]
    bad = ({"device": {"name": "x", "cc": "sm_90"}}, {"ceilings": [{"id": "dram.read", "value": 1, "unit": "GB/s"}]})
    for change in (*bad, {"status": "published", "ceilings": unnamed}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, **change}, SCHEMA)


def test_scrubbing_takes_names_and_leaves_measurements(tmp_path: Path) -> None:
    content = changed(document(), {"host": {"name": "node17.cluster.example"}})
    after = scrubbed(content)
    assert not [name for name in ("node17", "GPU-0000", "00000000:1B:00.0") if name in as_text(after)]
    assert (after["ceilings"], after["status"], after["device"]["driver"]) == (content["ceilings"], "measured", "580.65")
    assert scrubbed(after) == after
    for name in ("0.json", "1.json", "2.json"):
        FILES[name](tmp_path / name)
    merged = merge([open_file(str(tmp_path / f"{number}.json")) for number in range(3)])
    assert {entry["gpus"] for entry in merged["ceilings"]} == {3, 0}
    assert not [name for name in ("node0", "GPU-0000", "0.json") if name in as_text(scrubbed(merged))]
    content["warnings"].append("node17.cluster.example is slow")
    with pytest.raises(RooflineError, match=r"'node17.*' is the name of a machine or GPU.*Take it out by hand"):
        scrubbed(content)
    told = "".join((HERE / "measured_h100" / name).read_text(encoding="utf-8") for name in ("results.json", "summary.md"))
    assert not re.search(
        r"GPU-[0-9a-f]{8}|uuid|pci_bus_id|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}|/(tmp|home|root|work|usr)\b", told
    )


def test_a_file_of_a_cpu_applies_to_no_gpu(tmp_path: Path) -> None:
    cpu = device(EPYC)
    found = read_ceilings(test_cpu_files.write(tmp_path / "cpu.json", cpu))
    assert (cpu.kind, cpu.capability_text, cpu.gpu, cpu.is_mig, device().kind) == ("cpu", "", None, False, "gpu")
    for name, capability in ((H200["name"], (9, 0)), (H200["name"], (0, 0)), (EPYC["name"], (9, 0)), ("", (0, 0))):
        assert not found.applies_to(name, capability)
    assert found.applies_to(EPYC["name"], (0, 0))  # in a log of LIKWID, say
    assert render_pack("2025.3", None).files == render_pack("2025.3", found).files  # sections and rules are of GPUs
    with pytest.raises(ValueError, match="compute capability"):
        device(EPYC, kind="npu")


# The H100 whose trials, counters and rules were recorded


def test_the_file_of_the_package_is_made_of_the_recorded_trials() -> None:
    made, shipped = scrubbed(rejudged(TRIALS)), json.loads(H100.read_text(encoding="utf-8"))
    for entry in (*shipped["ceilings"], *made["ceilings"]):  # what is not told any more, or was counted otherwise then
        for row in (entry, *entry["variants"], entry.get("throttle", {})):
            for name in ("attempts", "energy_j", "duty", "power_us", "thermal_us"):
                row.pop(name, None)
    assert shipped["ceilings"] == json.loads(json.dumps(made["ceilings"]))
    assert any("applied afterwards" in warning for warning in shipped["warnings"])


def words_of(rule: str, message: RuleMessage) -> str:
    """What a rule said; of the verdict, which has other words by now, its limit and how full that is."""
    found = re.search(r"[A-Z]\w+(?: FMA)?(?:-bound)? at \d+ %", message.text) if rule.endswith("Verdict") else None
    return found[0].replace("-bound", "") if found else message.text


APPS = (*(f"gpp-nw{nw}" for nw in range(1, 7)), "lecture-a", "lecture-c", "gsrb")


@pytest.mark.parametrize("name", some(APPS, ("gpp-nw6", "gsrb", "lecture-c")))
def test_rules_inside_ncu_said_what_advise_says_now(name: str, h100_reports: Path) -> None:
    with read_report(h100_reports / f"{name}.ncu-rep") as report:
        results = [result for kernel in report.kernels for result in kernel.rule_results]
        rules = [rule for kernel in advise(report, load_rules([pack_folder("rules")])) for rule in kernel.outcomes]
    inside, offline = (
        {(rule.section, message.title, words_of(rule.identifier, message)) for rule in said for message in rule.messages}
        for said in (results, rules)
    )
    assert len(inside) >= 4
    # Offline some say more: what only the whole report tells.  Reuse is told anew.
    old = [one for one in inside if "euse" not in one[1]]
    missing = [one for one in old if not any(other[:2] == one[:2] and other[2].startswith(one[2]) for other in offline)]
    # A rule in ncu takes the one load of a constant by HFMA2 for FP16 work: it sees no machine code.
    known = {"Mixed precisions", "FP16 FMA mix", "FP64 at 65 % of its DRAM roof"} if name == "lecture-c" else set()
    assert {title for _, title, _ in missing} == known
    assert name != "lecture-c" or not [text for _, _, text in offline if "FP16" in text]


ARITHMETIC = [name for name in PROMISES if name.partition(".")[0] not in ("dram", "l2", "l1", "smem")]


@pytest.mark.parametrize("name", some(ARITHMETIC, ("fp64.nofma", "int32.mad", "tensor.fp16.wgmma")))
def test_kernels_of_the_benchmark_under_the_roofs_that_they_measured(name: str, h100_reports: Path) -> None:
    """recorded/*.txt; no dot is above its roof, and a measured roof stands at the clock of the launch."""
    result = roofline(str(h100_reports / f"bench.{name}.ncu-rep"), H100)
    assert result.points["fraction"].max() <= 1.012
    roofs = result.roofs[result.roofs["origin"] == "measured"].set_index("roof")
    measured = {one["id"]: one for one in json.loads(H100.read_text(encoding="utf-8"))["ceilings"]}
    clock = float(result.kernels["clock_profiled"].median())
    if name == "tensor.fp16.wgmma":  # the value over the mean clock would be 0.3 % above
        assert roofs.loc["tensor.fp16", "clock"] == pytest.approx(clock)
        assert roofs.loc["tensor.fp16", "value"] == pytest.approx(measured[name]["per_sm_and_cycle"] * 132 * clock, rel=1e-6)
        assert "stand at the clock of the launches" in roofs.loc["tensor.fp16", "notes"]
    best = max(measured[f"dram.{way}"]["value"] for way in ("read", "write", "copy", "triad"))
    assert roofs.loc["dram", "value"] == best
    ends = result.points.groupby(["launch", "precision"])["fraction"].agg(["min", "max", "count"]).itertuples()
    lines = [f"{row[0]}: {row[1]:.3f} to {row[2]:.3f} of its roof at {row[3]} levels" for row in ends]
    kernels = result.kernels[["verdict", "headroom", "reason"]].itertuples(index=False)
    lines += [f"{row.verdict}, headroom {row.headroom:.3f}: {row.reason}" for row in kernels]
    assert_golden(HERE / "recorded" / f"{name}.txt", "\n".join([*lines, ""]))
