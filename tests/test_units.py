"""Every prefix is the power it stands for, and a number keeps its value when it is written."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.model import columns

POWERS = {"p": -12, "n": -9, "\u00b5": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


# value, unit, digits -> text
VALUES = {
    (0, "flop", 4): "0 FLOP",
    (1, "flop/byte", 4): "1 FLOP/B",
    (12345.678, "op/byte", 4): "1.235e+04 OP/B",
    (0.00012, "flop/byte", 2): "0.00012 FLOP/B",
    (999.4, "byte/s", 3): "999 B/s",
    (999.96, "byte/s", 3): "1 kB/s",
    (999.96, "byte/s", 5): "999.96 B/s",
    (999.96e3, "hertz", 4): "1 MHz",
    (1000, "hertz", 4): "1 kHz",
    (999_999_999_999, "flop/s", 4): "1 TFLOP/s",
    (9.746e12, "flop/s", 3): "9.75 TFLOP/s",
    (3.35e12, "byte/s", 4): "3.35 TB/s",
    (1e-15, "second", 4): "0.001 ps",
    (1e24, "flop", 4): "1e+06 EFLOP",
    (97.36, "percent", 4): "97.36 %",
    (0.5, "ratio", 4): "0.5",
    (math.nan, "flop/s", 4): "n/a",
    (math.nan, "ratio", 4): "n/a",
    (math.inf, "flop/s", 4): "\N{INFINITY} FLOP/s",
    (-math.inf, "ratio", 4): "-\N{INFINITY}",
}


def test_values_and_prefixes() -> None:
    assert {asked: format_value(*asked) for asked in VALUES} == VALUES
    for prefix, power in POWERS.items():
        assert format_value(10.0**power, "second") == f"1 {prefix}s"
        assert format_value(2.5 * 10.0**power, "flop/s") == f"2.5 {prefix}FLOP/s"
        assert format_value(-999 * 10.0**power, "byte") == f"-999 {prefix}B"
    with pytest.raises(KeyError):
        format_value(1.0, "furlong")
    declared = (*columns.POINTS, *columns.ROOFS, *columns.KERNELS)
    assert {column.unit for column in declared if column.unit} <= set(UNITS)


@given(
    value=st.floats(min_value=1e-12, max_value=9e20) | st.floats(min_value=-9e20, max_value=-1e-12),
    unit=st.sampled_from(sorted(UNITS)),
    digits=st.integers(2, 6),
)
@example(value=1000.0, unit="second", digits=4)
@example(value=math.nextafter(1000.0, 0), unit="second", digits=4)
@example(value=1e-12, unit="second", digits=2)
def test_reads_back_as_the_same_number(value: float, unit: str, digits: int) -> None:
    text = format_value(value, unit, digits)
    found = re.fullmatch(rf"(\S+)(?: (.*){re.escape(UNITS[unit].symbol)})?", text)
    assert found, text
    number, prefix = float(found[1]), found[2] or ""
    assert number * 10.0 ** POWERS[prefix] == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
    if UNITS[unit].prefixed and prefix != "E":
        assert 1 <= abs(number) < 1000 or prefix == "p"
    if not UNITS[unit].prefixed:
        assert not prefix
