"""The section that samples a launch over its time: where it is generated, what it samples, and that real ncu knows it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.chips.formulas import covers
from ncu_roofline.chips.tables import counter_of, load_phases
from ncu_roofline.formats.sectionfile.section import Section, arch_number, items_of, name_on, text_of
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.check.chips import targets_of
from ncu_roofline.plugin.check.section_rules import check_files, section_passes
from ncu_roofline.plugin.generate.lowering import BASE
from ncu_roofline.plugin.generate.sections import render_sections
from tests.generate.made import dialect, profiled, section, texts
from tests.sectionfile import reading

NAME = "RooflinePhases"
SAMPLING = ("2024.1", "2024.2", "2025.1", "2025.4")
CHIPS = {"tu102": (7, 5), "ga100": (8, 0), "ga102": (8, 6), "ad102": (8, 9), "gh100": (9, 0)}
SUFFIX = re.compile(r"\.(avg|sum)(\..*)?$")


def sampled(made: Section, capability: tuple[int, int]) -> dict[str, list[str]]:
    """What is sampled on a chip, by the group that is sampled together."""
    ((item, _),) = items_of(made.message)
    arch = arch_number(capability)
    return {
        text_of(group.Label): [
            name for row in group.MetricRows for metric in row.Metrics if (name := name_on(metric, arch)) is not None
        ]
        for group in item.Timeline.MetricGroups
    }


@pytest.mark.parametrize("version", ["base", "2020.3", "2023.1", "2023.3"])
def test_releases_that_do_not_sample_are_spared(version: str) -> None:
    assert NAME not in texts(version)


@pytest.mark.parametrize("version", SAMPLING)
def test_it_is_in_no_set(version: str) -> None:
    assert reading.sets(section(version, NAME)) == ()


@pytest.mark.parametrize("version", SAMPLING)
def test_every_chip_samples_each_band_once(version: str) -> None:
    for chip in profiled(version):
        found = [name for names in sampled(section(version, NAME), chip).values() for name in names]
        if chip < (7, 5):
            assert found == []
            continue
        counters = [counter_of(name) for name in found]
        bands = [band for band in load_phases().bands if any(covers(one.capabilities, chip) for one in band.collect)]
        for band in bands:
            assert sum(name in counters for way in band.metrics for name in way) == 1, (chip, band.id)
        assert {"fma", "fp64", "tensor", "l2"} <= {band.id for band in bands}
        assert load_phases().collected_blocks in counters
        assert all(name.startswith("pmsampling:") or ".Triage" in name for name in found)


def test_groups_say_what_is_sampled_together() -> None:
    labels = re.findall(r"Groups: \"(\w+)\"", texts("2024.2")[NAME])
    assert set(labels) == {f"{NAME}_0", f"{NAME}_1"}
    assert labels.count(f"{NAME}_1") == 1
    assert labels.count(f"{NAME}_0") == 6


@pytest.mark.parametrize("version", ["2024.2", "2025.4"])
def test_what_is_sampled_together_fits_into_one_pass(version: str, tmp_path: Path) -> None:
    """Pipes and DRAM, by the schedules of the profiler's library, as far as it knows the names."""
    seen = 0
    for chip in profiled(version):
        names = sampled(section(version, NAME), chip)["Pipes and DRAM"]
        lines = "".join(f'Metrics {{ Name: "{counter_of(name)}" }}\n' for name in names)
        path = tmp_path / "one.section"
        path.write_text(f'Identifier: "One" DisplayName: "One" Metrics {{ {lines} }}')
        target = targets_of([f"{chip[0]}.{chip[1]}"])[0]
        (checked,) = check_files([path], [target])
        found = section_passes([checked.content], target) if checked.content else None
        if found is not None:
            seen += 1
            assert found.hardware <= 1, (chip, names)
    if not seen:
        pytest.skip("no metric library (install nvidia-cuda-cupti, or set NVPERF_HOST_LIB)")


@pytest.mark.ncu
@pytest.mark.parametrize("release", ["2024.1", "2024.2"])
@pytest.mark.parametrize("chip", CHIPS)
def test_real_ncu_can_sample_it(chip: str, release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    words = ("--query-metrics-collection", "pmsampling", "--query-metrics", "--query-metrics-mode", "base", "--chips", chip)
    environment = {**os.environ, "HOME": str(tmp_path)}
    listed = subprocess.run([ncu_releases[release], *words], capture_output=True, text=True, check=True, env=environment).stdout
    known = {line.split()[0] for line in listed.splitlines() if "__" in line.partition(" ")[0]}
    assert len(known) > 500
    wanted = [name for names in sampled(section(release, NAME), CHIPS[chip]).values() for name in names]
    assert [name for name in wanted if SUFFIX.sub("", name.removeprefix("pmsampling:")) not in known] == []


def test_it_says_what_it_is_for() -> None:
    assert dialect("2024.1").samples
    assert not BASE.samples
    text = render_sections(dialect("2024.2"))[f"{NAME}.section"]
    assert "Not proven on hardware" in text
    assert parse_document(text).section.identifier == NAME
