"""Replay passes, as NVIDIA's metric library schedules them: never more than the stock sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.check import Passes, Target, all_targets, check_files, section_passes, targets_of
from tests.generate.made import dialect, texts
from tests.generate.test_sections import CORE, IDENTIFIERS

# Hardware passes of the stock section of tensor cores (of release 2025), with its filters applied.
STOCK_TENSOR = {"GV100": 1, "TU102": 2, "TU116": 2, "GA100": 8, "GA102": 8, "GA10B": 8, "AD102": 9, "GH100": 7, "GB100": 7}
STOCK_TENSOR |= {"GB110": 7, "GB10B": 7, "GB202": 10, "GB20B": 10}
# One chip for each list of metric names.
EACH_CHIP = pytest.mark.parametrize("target", targets_of(list(STOCK_TENSOR)), ids=lambda one: one.chip)
VERSIONS = ("base", "2022.3", "2024.2", "2025.4")


def _passes(folder: Path, version: str, identifiers: tuple[str, ...], target: Target) -> Passes:
    made = dialect(version)
    if made.exact and not made.number(target.capability):
        pytest.skip("the release does not profile this chip")
    for name in identifiers:
        (folder / f"{name}.section").write_text(texts(version)[name])
    checked = check_files([folder / f"{name}.section" for name in identifiers], [target])
    found = section_passes([one.content for one in checked if one.content], target)
    if found is None:
        pytest.skip("no metric library knows this chip (install nvidia-cuda-cupti, or set NVPERF_HOST_LIB)")
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("version", VERSIONS)
@EACH_CHIP
def test_core_sections_together(target: Target, version: str, tmp_path: Path) -> None:
    found = _passes(tmp_path, version, CORE, target)
    assert (found.hardware, found.sass) == (1, 1)


@pytest.mark.sampled
@pytest.mark.parametrize("version", VERSIONS)
@EACH_CHIP
def test_tensor_section(target: Target, version: str, tmp_path: Path) -> None:
    found = _passes(tmp_path, version, ("HierarchicalTensorRooflineChart",), target)
    assert found.hardware <= STOCK_TENSOR[target.chip]
    assert not found.sass


@pytest.mark.sampled
@pytest.mark.parametrize("version", VERSIONS)
@EACH_CHIP
def test_light_sections(target: Target, version: str, tmp_path: Path) -> None:
    light = _passes(tmp_path, version, ("HierarchicalTensorLightRooflineChart",), target)
    assert light.hardware <= 3
    for name in ("InstructionRooflineChart", "RooflineOverview"):
        found = _passes(tmp_path, version, (name,), target)
        assert (found.hardware, found.sass) == (1, 1)


@pytest.mark.sampled("*-2025.4")
@pytest.mark.parametrize("version", ["2022.3", "2024.2", "2025.4"])
@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_metrics_exist_where_they_are_asked_for(identifier: str, version: str, tmp_path: Path) -> None:
    made = dialect(version)
    targets = [target for target in all_targets() if made.number(target.capability)]
    path = tmp_path / "made.section"
    path.write_text(texts(version)[identifier])
    (checked,) = check_files([path], targets, made.release)
    missing = [found.message for found in checked.findings if found.code == "metric-missing"]
    # TU116 and TU117 have Turing's compute capability without its tensor cores.
    assert [text for text in missing if "TU11" not in text] == []
