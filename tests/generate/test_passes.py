"""Replay passes, as NVIDIA's metric library schedules them: never more than the stock sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.base.files import pack_folder
from ncu_roofline.plugin.check.chips import Passes, Target, all_targets, targets_of
from ncu_roofline.plugin.check.section_rules import check_files, section_passes
from ncu_roofline.plugin.generate.sections import LIGHT_SET, SET
from tests.generate.made import dialect, section, texts
from tests.generate.test_sections import CORE, IDENTIFIERS
from tests.sectionfile import reading

# Hardware passes of the stock section of tensor cores (of release 2025), with its filters applied.
STOCK_TENSOR = {"GV100": 1, "TU102": 2, "TU116": 2, "GA100": 8, "GA102": 8, "GA10B": 8, "AD102": 9, "GH100": 7, "GB100": 7}
STOCK_TENSOR |= {"GB110": 7, "GB10B": 7, "GB202": 10, "GB20B": 10}
# One chip for each list of metric names.
EACH_CHIP = pytest.mark.parametrize("target", targets_of(list(STOCK_TENSOR)), ids=lambda one: one.chip)
VERSIONS = ("base", "2022.3", "2024.2", "2025.4")
# Passes of the sets with the committed files, with all types of the tensor cores and with one: hardware and patching, without
# the one that ncu adds.
SETS = {
    "GV100": ("2 (1+1)", "3 (2+1)"),
    "TU102": ("3 (2+1)", "3 (2+1)"),
    "TU116": ("2 (1+1)", "3 (2+1)"),
    "GA100": ("9 (8+1)", "3 (2+1)"),
    "GA102": ("9 (8+1)", "3 (2+1)"),
    "GA10B": ("9 (8+1)", "3 (2+1)"),
    "AD102": ("10 (9+1)", "3 (2+1)"),
    "GH100": ("8 (7+1)", "4 (3+1)"),
    "GB100": ("8 (7+1)", "3 (2+1)"),
    "GB110": ("8 (7+1)", "3 (2+1)"),
    "GB10B": ("8 (7+1)", "3 (2+1)"),
    "GB202": ("10 (9+1)", "3 (2+1)"),
    "GB20B": ("10 (9+1)", "3 (2+1)"),
}


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
    assert light.hardware <= 2
    assert not light.sass
    for name in ("InstructionRooflineChart", "RooflineOverview"):
        found = _passes(tmp_path, version, (name,), target)
        assert (found.hardware, found.sass) == (1, 1)


@pytest.mark.sampled("GA100", "GH100")
@EACH_CHIP
def test_sets(target: Target, tmp_path: Path) -> None:
    members = {
        name: tuple(one for one in IDENTIFIERS if name in reading.sets(section("base", one))) for name in (SET, LIGHT_SET)
    }
    assert tuple(str(_passes(tmp_path, "base", chosen, target)) for chosen in members.values()) == SETS[target.chip]


@pytest.mark.ncu
@pytest.mark.sampled("GA102")
@EACH_CHIP
def test_stock_sets_cost_what_they_cost(target: Target, ncu_releases: dict[str, Path]) -> None:
    """With our sections beside the stock ones, as `install` puts them."""
    if "2024.2" not in ncu_releases:
        pytest.skip("no Nsight Compute 2024.2")
    stock = sorted((ncu_releases["2024.2"].parents[2] / "sections").glob("*.section"))
    ours = sorted(pack_folder("sections").glob("*.section"))

    def cost(paths: list[Path]) -> Passes | None:
        contents = [one.content for one in check_files(paths, [target]) if one.content]
        return section_passes((one for one in contents if "roofline" in reading.sets(one.document.section)), target)

    alone = cost(stock)
    if alone is None:
        pytest.skip("no metric library knows this chip (install nvidia-cuda-cupti, or set NVPERF_HOST_LIB)")
    assert alone.hardware > 1
    assert cost([*stock, *ours]) == alone


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
