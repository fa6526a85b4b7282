"""Weighted sums of counters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import summed

FP64 = WeightedSum.of({"dadd": 1, "dmul": 1, "dfma": 2})


def test_numbers_and_columns() -> None:
    assert summed(FP64, {"dadd": 1.0, "dmul": 10.0, "dfma": 100.0}.__getitem__) == 211.0
    assert summed(WeightedSum.of({"sectors": 32}), lambda _: 3) == 96
    values = {"dadd": np.array([1.0, np.nan, 0.0]), "dmul": np.array([0.0, 1.0, 0.0]), "dfma": np.array([5.0, 1.0, 0.0])}
    np.testing.assert_array_equal(summed(FP64, values.__getitem__), [11.0, np.nan, 0.0])
    with pytest.raises(KeyError):
        summed(FP64, {"dadd": 1.0}.__getitem__)
    for missing in FP64.counters():
        assert math.isnan(summed(FP64, lambda name, missing=missing: math.nan if name == missing else 1.0))


def test_names_text_and_equality() -> None:
    assert FP64.counters() == ("dadd", "dmul", "dfma")
    assert FP64.text() == "dadd + dmul + 2*dfma"
    assert WeightedSum.of({"a": 0.5, "b": 32}).text() == "0.5*a + 32*b"
    assert WeightedSum.of({"a": 2}) == WeightedSum((("a", 2.0),))
    assert len({FP64, WeightedSum.of({"dadd": 1, "dmul": 1, "dfma": 2}), WeightedSum.of({"a": 1})}) == 2


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.floats(0.125, 4096), min_size=1, max_size=6), st.floats(0, 1e12))
def test_linear(table: Mapping[str, float], factor: float) -> None:
    one = WeightedSum.of(table)
    assert summed(one, lambda _: factor) == pytest.approx(factor * sum(table.values()))
    assert one.counters() == tuple(table)
