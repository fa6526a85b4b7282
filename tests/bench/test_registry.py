"""The ceilings that come with the package: form, plausibility, whose GPUs; and what may be published at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ncu_roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.catalogue import CeilingKind, data_sheet, theory
from ncu_roofline.bench.device import device_of
from ncu_roofline.bench.document import as_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.ceilings import (
    MEASURED,
    NOT_COMPARABLE,
    PUBLISHED,
    energy_per_unit,
    model_name,
    read_ceilings,
    registry,
)
from tests.bench.made_files import write
from tests.bench.scrubbing import scrubbed
from tests.cli.command import Command

DATA = Path(ncu_roofline.__file__).parent / "data"
FILES = sorted((DATA / "ceilings").glob("*.json"))
SCHEMA = json.loads((DATA / "ceilings.schema.json").read_text(encoding="utf-8"))
KNOWN = {"host.h2d", "host.d2h", *(kind.id for kind in data_sheet())}


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestEachFile:
    def test_form(self, path: Path) -> None:
        jsonschema.validate(load(path), SCHEMA)
        found = read_ceilings(path)
        assert load(path)["status"] == found.status
        assert path.stem == found.device.replace("NVIDIA ", "").replace("Tesla ", "").lower().replace(" ", "-")

    def test_the_gpu_is_known_and_no_value_above_what_it_can_do(self, path: Path) -> None:
        content, found = load(path), read_ceilings(path)
        gpu = find_gpu(found.device, content["device"]["sm_count"])
        assert gpu is not None
        assert content["device"]["cc"] == capability_text(gpu.compute_capability)
        for name, one in found.by_id.items():
            kind = CeilingKind(name, one.unit)
            assert (
                name in KNOWN or load_spec().level_of_ceiling(name) or kind.domain in ("link", "") or name.endswith(".div")
            ), name
            peak = theory(kind, device_of(gpu))
            if peak is None:  # the table of GPUs knows no host, not all slices of L2, and no roof of divisions
                assert kind.domain in ("link", "") or kind.level == "l2" or name.endswith(".div"), name
            else:
                assert 0.5 * (not peak.uncertain) < one.value / peak.value <= 1.01, name

    def test_nobody_is_named(self, path: Path) -> None:
        content = load(path)
        if content["status"] == MEASURED:
            assert scrubbed(content) == content
            device, tool = content["device"], content["tool"]
            assert all((device["driver"], device["power_limit_w"], tool["version"], content["host"]["time_utc"]))
            assert content["settings"]["data"] == "random"
            accepted = [entry for entry in content["ceilings"] if entry["accepted"]]
            on_chip = [e for e in accepted if CeilingKind(e["id"], e["unit"]).domain in ("sm", "memory")]
            assert len(on_chip) > 20
            assert all(entry["clock"]["sm_mhz_mean"] for entry in on_chip)
        else:
            assert "host" not in content
            assert NOT_COMPARABLE.split(", ")[1] in content["warnings"][0]


def test_a_file_per_model_and_status() -> None:
    found = [(model_name(one.device), one.compute_capability, one.status) for one in registry()]
    assert len(found) == len(set(found)) == len(FILES)


def test_published_figures_say_where(tmp_path: Path) -> None:
    content = load(FILES[0])
    assert content["status"] == PUBLISHED
    del content["ceilings"][1]["source"]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content))
    with pytest.raises(RooflineError, match=f'{content["ceilings"][1]["id"]} has no "source"'):
        read_ceilings(path)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, SCHEMA)
    path.write_text(json.dumps({**content, "status": "guessed"}))
    with pytest.raises(RooflineError, match='"status" must be measured or published'):
        read_ceilings(path)


def test_the_form_is_that_of_measured_files(tmp_path: Path) -> None:
    content = load(write(tmp_path / "a.json", 1))
    jsonschema.validate(content, SCHEMA)
    jsonschema.validate(scrubbed(content), SCHEMA)
    for change in (
        {"device": {**content["device"], "cc": "sm_90"}},
        {"ceilings": [{"id": "dram.read", "value": 1, "unit": "GB/s"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, **change}, SCHEMA)


class TestScrubbing:
    def test_names_go_and_measurements_stay(self, tmp_path: Path) -> None:
        content = load(write(tmp_path / "a.json", 1, host="node17.cluster.example"))
        before, after = content["ceilings"][0], scrubbed(content)
        assert "node17" in as_text(content)
        assert "GPU-00000001" in as_text(content)
        assert not [name for name in ("node17", "GPU-0000", "00000000:1B:00.0") if name in as_text(after)]
        assert after["ceilings"][0] == before
        assert before["variants"][0]["values"]
        assert (after["status"], after["device"]["driver"]) == ("measured", "580.65")
        assert scrubbed(after) == after

    def test_merged_files(self, run: Command, tmp_path: Path) -> None:
        paths = [write(tmp_path / f"{number}.json", number) for number in range(3)]
        assert run("bench", "merge", *paths, "-o", tmp_path / "all.json").code == 0
        after = scrubbed(load(tmp_path / "all.json"))
        assert not [name for name in ("node0", "GPU-0000", "0.json") if name in as_text(after)]
        assert {entry["gpus"] for entry in load(tmp_path / "all.json")["ceilings"]} == {3, 0}

    def test_a_name_in_a_warning_is_told(self, tmp_path: Path) -> None:
        content = load(write(tmp_path / "a.json", 1, host="node17"))
        content["warnings"].append("node17 is slow")
        with pytest.raises(RooflineError, match=r"'node17' is the name of a machine or GPU.*Take it out by hand"):
            scrubbed(content)


def test_list(run: Command) -> None:
    rows = json.loads(run("list", "ceilings", "--json").out)
    assert [row["model"] for row in rows] == [one.device for one in registry()]
    a100 = next(row for row in rows if row["model"] == "NVIDIA A100-PCIE-40GB")
    assert (a100["status"], a100["driver"], a100["ceilings"]) == ("published", "525.89.02", "6")
    assert a100["source"].startswith("ProjectPhysX/OpenCL-Benchmark README")


@pytest.mark.parametrize(
    ("entry", "joules"),
    [
        ({"unit": "FLOP/s", "value": 2e12, "power_w": 400.0}, 2e-10),
        ({"unit": "B/s", "value": 2e12, "power_w": 400.0, "energy_per_unit_j": 1.5e-10}, 1.5e-10),
        ({"unit": "B/s", "value": 2e12, "power_w": None}, None),
        ({"unit": "B/s", "value": None, "power_w": 400.0}, None),
        ({"unit": "B/s", "value": 0, "power_w": 400.0}, None),
        ({"unit": "s", "value": 2e-6, "power_w": 400.0}, None),
    ],
)
def test_energy_per_unit(entry: dict[str, Any], joules: float | None) -> None:
    assert energy_per_unit(entry) == (pytest.approx(joules) if joules else None)
