"""What may be written for which release."""

from __future__ import annotations

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import LAST
from ncu_roofline.formats.sectionfile.section import ArchRange
from ncu_roofline.plugin.generate import BASE, dialect_of
from ncu_roofline.plugin.generate.dialects import EVERYWHERE
from tests.generate.made import CAPABILITIES

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
    assert made.ranges(frozenset(chips), ALL) == tuple(ArchRange(*pair) for pair in expected)


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
    assert BASE.architectures == dialect_of("2020.3").architectures
    assert BASE.architectures[-1] == 86


@pytest.mark.parametrize("version", ["", "x", "2024", "24.1", "2024.0", "2024.1.x"])
def test_no_version(version: str) -> None:
    with pytest.raises(RooflineError, match="no version") as caught:
        dialect_of(version)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("version", ["2019.5", "2020.1", "2020.2.1"])
def test_releases_without_derived_metrics(version: str) -> None:
    with pytest.raises(RooflineError, match=r"2020\.3 or later"):
        dialect_of(version)
