"""What may be written for which release: fields, filters, and metrics that it knows on each chip."""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Architecture, load_spec
from ncu_roofline.chips.fields import LAST, Release, parse_release
from ncu_roofline.chips.ncu import OPS_PATH_SINCE
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.generate.lowering import BASE, EVERYWHERE, dialect_of
from ncu_roofline.plugin.generate.sections import render_sections
from tests.generate.made import CAPABILITIES, collected

# Names that came later than the chips that have them: since which release, on which chips, which names.  Read off `ncu
# --query-metrics --chips` of 2020.3, 2022.3, 2024.1 and 2024.2, and off the metric library of each CUDA from 12.0 (2022.4)
# to 13.2 (2026.1, package nvidia-cuda-cupti), whose names are those of the ncu of the same CUDA where both are at hand.
LATER = (
    ((2022, 4), "GH100", "sm__inst_executed_pipe_tensor_op_gmma"),
    ((2022, 4), "GH100", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma"),
    ((2023, 2), "*", "sm__ops_path_tensor_*"),
    ((2023, 2), "GH100", "ctc__*_bytes_data_user"),
    ((2024, 1), "GH100", "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"),
    ((2025, 2), "GB20[235]", "dram__*_op_*"),
    ((2025, 2), "GB20[235]", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts"),
    ((2025, 3), "GB20B", "lts__*"),
    ((2025, 4), "GB20[23567]", "lts__t_sectors_*aperture_sysmem*"),
)
RELEASES = ("2020.3", "2021.3", "2022.3", "2022.4", "2023.1", "2023.2", "2023.3", "2024.1", "2024.2", "2024.3")
RELEASES += ("2025.1", "2025.2", "2025.3", "2025.4", "2026.1")
# Not of the metric library: attributes, and what sections derive themselves.
_OTHERS = ("derived__", "device__attribute_")


@cache
def _asked(version: str) -> dict[tuple[int, int], frozenset[str]]:
    """Counters and ratios (without suffix) that all sections made for a release ask for, by compute capability."""
    made = [parse_document(text).section for text in render_sections(dialect_of(version)).values()]
    chips = [one.compute_capability for one in _profiled(version)]
    names = {chip: {name for one in made for name in collected(one, chip)} for chip in chips}
    return {
        chip: frozenset(name.partition(".")[0] for name in found if not name.startswith(_OTHERS))
        for chip, found in names.items()
    }


def _profiled(version: str) -> list[Architecture]:
    dialect = dialect_of(version)
    return [one for one in load_spec().architectures if dialect.number(one.compute_capability)]


def _came_later(name: str, chip: str, release: Release) -> bool:
    return any(release < since and fnmatchcase(chip, chips) and fnmatchcase(name, names) for since, chips, names in LATER)


@pytest.mark.sampled("2020.3", "2022.3", "2024.2", "2025.4")
@pytest.mark.parametrize("version", RELEASES)
def test_no_name_is_later_than_the_release(version: str) -> None:
    release = parse_release(version)
    assert release
    for architecture in _profiled(version):
        asked = _asked(version)[architecture.compute_capability]
        assert len(asked) > 10
        for chip in architecture.chips:
            assert sorted(name for name in asked if _came_later(name, chip, release)) == [], chip


def test_what_came_later_is_asked_for_once_it_is_there() -> None:
    gmma = "sm__inst_executed_pipe_tensor_op_gmma"
    assert [gmma in _asked(version)[9, 0] for version in ("2022.3", "2022.4", "2024.2")] == [False, True, True]
    assert min(since for since, _, names in LATER if names.startswith("sm__ops_path")) <= OPS_PATH_SINCE


@pytest.mark.exhaustive
@pytest.mark.ncu
@pytest.mark.parametrize("version", ["2020.3", "2022.3", "2024.1", "2024.2"])
def test_names_are_known_to_real_releases(version: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """All chips that the release knows; a filter tells compute capabilities, not chips of one (TU116 has no tensor cores)."""
    if version not in ncu_releases:
        pytest.skip(f"no Nsight Compute {version}")
    listed = _ncu(ncu_releases[version], tmp_path, "--list-chips").upper().replace(",", " ").split()
    known = {chip: _names(ncu_releases[version], tmp_path, chip) for chip in listed}
    checked = 0
    for architecture in _profiled(version):
        asked = _asked(version)[architecture.compute_capability]
        here = [known[chip] for chip in architecture.chips if chip in known]
        assert sorted(asked - set().union(*here)) == [], architecture.chips
        checked += len(here)
        for chip in architecture.chips if version < "2023.3" else ():  # from then on what a chip lacks is optional
            assert sorted(asked - known.get(chip, asked)) == [], chip
    assert checked == len(listed) > 10


def _ncu(binary: Path, home: Path, *words: str) -> str:
    done = subprocess.run([binary, *words], capture_output=True, text=True, env={**os.environ, "HOME": str(home)}, check=True)
    return done.stdout


def _names(binary: Path, home: Path, chip: str) -> frozenset[str]:
    return frozenset(
        re.findall(r"^([a-z]\w*__\w+)\s", _ncu(binary, home, "--query-metrics", "--chips", chip.lower()), re.MULTILINE)
    )


ALL = (*CAPABILITIES, LAST)
AMPERE = ((8, 0), (8, 6), (8, 7), (8, 9))
DRAM = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))


@pytest.mark.parametrize(
    ("version", "chips", "expected"),
    [
        ("2024.2", ALL, [(None, None)]),
        ("2024.2", ((7, 5),), [(75, 75)]),
        ("2024.2", AMPERE, [(80, 89)]),
        ("2024.2", DRAM, [(None, 70), (75, 86), (89, None)]),
        ("2024.2", ((10, 0),), []),
        ("2025.1", ((11, 0),), [(101, 101)]),
        ("2025.3", ((11, 0),), [(110, 110)]),
        ("2025.3", ((12, 0), (12, 1), LAST), [(120, None)]),
        ("base", ALL, [(None, None)]),
        ("base", ((7, 0), (7, 2)), [(None, 72)]),
        ("base", AMPERE, [(80, None)]),
        ("base", ((9, 0),), [(86, None)]),
        ("base", DRAM, [(None, 70), (75, None)]),
    ],
)
def test_ranges(version: str, chips: tuple[tuple[int, int], ...], expected: list[tuple[int | None, int | None]]) -> None:
    made = BASE if version == "base" else dialect_of(version)
    assert made.ranges(frozenset(chips), ALL) == tuple(expected)


def test_what_a_release_profiles_entirely_needs_no_filter() -> None:
    assert dialect_of("2022.3").ranges(frozenset(c for c in CAPABILITIES if c <= (9, 0)), ALL) == EVERYWHERE


@pytest.mark.parametrize(
    ("feature", "before", "since"),
    [
        ("has_cc_names", "2020.3", "2021.1"),
        ("filter_items", "2021.2", "2021.3"),
        ("definition_filter", "2022.4", "2023.1"),
        ("ops_path", "2023.2", "2023.3"),
        ("show_only_if_not_zero", "2024.1", "2024.2"),
        ("nested_expressions", "2024.4", "2025.1"),
    ],
)
def test_features_begin_with_their_release(feature: str, before: str, since: str) -> None:
    assert [getattr(dialect_of(f"{one}.0.0"), feature) for one in (before, since, "2025.4")] == [False, True, True]
    assert getattr(BASE, feature) is (feature == "ops_path")


def test_base_writes_what_the_oldest_loads_and_collects_what_the_newest_knows() -> None:
    assert BASE.numbers == dialect_of("2020.3").numbers
    assert max(BASE.numbers.values()) == 86


@pytest.mark.parametrize("version", ["", "x", "2024", "24.1", "2024.0", "2024.1.x"])
def test_no_version(version: str) -> None:
    with pytest.raises(RooflineError, match="no version") as caught:
        dialect_of(version)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("version", ["2019.5", "2020.1", "2020.2.1"])
def test_releases_without_derived_metrics(version: str) -> None:
    with pytest.raises(RooflineError, match=r"2020\.3 or later"):
        dialect_of(version)
