"""Names of kernels that are cut for a column keep their beginning and what tells them apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.rendering.table import cut, cut_apart, numbered

SORTS = ["DeviceRadixSortHistogramKernel", "DeviceRadixSortOnesweepKernel", "DeviceRadixSortExclusiveSumKernel"]
NODES = [
    "nodeByPoint5(double *,doubl...ng long *)",
    "nodeByPoint5(double *,unsig...ng long *)",
    "nodeByPoint5(double*,double*,long*)",
]


@pytest.mark.parametrize(
    ("name", "most", "text"),
    [
        ("nodeByPoint5", 24, "nodeByPoint5"),
        ("nodeByPoint5(double*,double*,long*)", 24, "nodeByPoint5(double*..)"),
        ("nodeByPoint5(double*,double*,long*)", 16, "nodeByPoint5(..)"),
        ("nodeByPoint5(double*,double*,long*)", 14, "nodeByPoint5"),
        ("distanceCalculationsKernel", 16, "distance...ernel"),
        ("(anonymous namespace)::f", 12, "(anony...::f"),
    ],
)
def test_parameters_go_first(name: str, most: int, text: str) -> None:
    assert cut(name, most) == text


def test_what_names_share_goes_before_what_tells_them_apart() -> None:
    found = cut_apart(SORTS, 24)
    assert list(found.values()) == ["Device...HistogramKernel", "DeviceR...OnesweepKernel", "Devic...Exclusiv...ernel"]


def test_names_that_no_cut_tells_apart_are_numbered() -> None:
    found = cut_apart(NODES, 20)
    assert list(found.values()) == ["nodeByPoint5(d..) #1", "nodeByPoint5(d..) #2", "nodeByPoint5(d..) #3"]
    assert numbered(found) == [f"{text}: {name}" for name, text in found.items()]


@given(st.lists(st.text("abK(,*) ", min_size=1, max_size=40), unique=True, max_size=6), st.integers(12, 40))
def test_any_names_fit_and_differ(names: list[str], most: int) -> None:
    found = cut_apart(names, most)
    assert list(found) == names
    assert all(len(text) <= most for text in found.values())
    assert len(set(found.values())) == len(names)
    assert all(text == name for name, text in found.items() if len(name) <= most and " #" not in text)


def test_a_name_that_another_goes_on_with() -> None:
    found = cut_apart(["abcdefghijklmnopqrstuvw", "abcdefghijklmnopqrstuvwx"], 12)
    assert list(found.values()) == ["abcdefghi...", "abcdefgh...x"]
