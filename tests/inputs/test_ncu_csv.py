"""CSV of Nsight Compute: numbers, decimal marks and units of its cells, the GPU, and tables that are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.ncu_csv import decimal_mark, factor_of, read, value_of
from ncu_roofline.formats.inputs.tables import MetricTable, names_gpu, with_gpu
from ncu_roofline.model import roofline
from tests.inputs.ncu_tables import OLD_IDENTITY, SUMS, long, text_of, wide

# Printed value, decimal mark of the file -> value.
NUMBERS = [
    *(
        ("12", ".", 12.0),
        ("1,234", ".", 1234.0),
        ("1,234,567.89", ".", 1234567.89),
        ("1.5e-05", ".", 1.5e-5),
        ("-3", ".", -3.0),
    ),
    *(("0.017056", ".", 0.017056), ("1557 (3; 3; 6)", ".", 1557.0), ("1,557.50 (1: 3; 16: 3)", ".", 1557.5)),
    *(("inf", ".", float("inf")), ("15,72", ",", 15.72), ("1.234", ",", 1234.0), ("1.234.567,89", ",", 1234567.89)),
    *(("1 234,5", ",", 1234.5), ("1\N{NARROW NO-BREAK SPACE}234,5", ",", 1234.5), ("9,00 (4,5; 4,5)", ",", 9.0)),
    *((text, ".", text) for text in ("CachePreferNone", "NVIDIA A100", "0x1f", "1.2.3.")),
    *((text, ".", None) for text in ("n/a", "-nan(ind)", "(!) n/a", "no data", "1.#QNAN", "")),
]
MARKS = [
    *((["12", "1,234"], ""), (["12", "1,234", "9,00"], ","), (["1,234", "0.25"], "."), (["1,234.567"], ".")),
    *(
        (["1.234,567"], ","),
        (["0,017056"], ","),
        (["0,125"], ","),
        (["1234,567"], ","),
        (["a,b", "3.x", "1,2,3.4.5 (6,7)"], ""),
    ),
]
# Unit -> what a report stores for a printed 1.
UNITS = {
    "": 1, "%": 1, "inst": 1, "sector": 1, "register/thread": 1, "inst/cycle": 1, "byte/block": 1, "pass": 1, "%/": 1,
    "nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "byte": 1,
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "byte/second": 1, "Gbyte/second": 1e9, "Gbyte/s": 1e9,
    "byte/ns": 1e9, "Kbyte/cycle": 1e3, "cycle/second": 1, "cycle/usecond": 1e6, "cycle/nsecond": 1e9, "hz": 1, "Mhz": 1e6,
    "Ghz": 1e9, "sector/msecond": 1e3, "sector/ns": 1e9, "sector/s": 1, "%/Kbyte": 1e-3, "SM": 1, "branches": 1,
}  # fmt: skip


def test_numbers_marks_and_units() -> None:
    found = [(text, mark, value_of(text, mark)) for text, mark, _ in NUMBERS]
    assert [(*row[:2], None if row[2] != row[2] else row[2]) for row in found] == NUMBERS
    assert [(texts, decimal_mark(texts)) for texts, _ in MARKS] == MARKS
    assert {unit: factor_of(unit) for unit in UNITS} == pytest.approx(UNITS, rel=1e-12)
    assert [factor_of(unit) for unit in ("furlong", "byte/fortnight", "Xbyte", "GB/s/W")] == [None] * 4


def test_what_a_file_says_of_its_gpu_is_not_overruled(tmp_path: Path) -> None:
    for layout, capability in ((wide(SUMS), "8.0"), (long(SUMS, identity=OLD_IDENTITY), "7.0")):
        (tmp_path / "x.csv").write_text(text_of(layout))
        table = open_input(tmp_path / "x.csv")
        assert isinstance(table, MetricTable)
        assert names_gpu(table) == (capability == "8.0")
        assert list(roofline(with_gpu(table, (7, 0))).kernels.compute_capability) == [capability]


@pytest.mark.parametrize("text", [text_of(wide(SUMS, SUMS)), text_of(long(SUMS))], ids=["raw", "live"])
def test_a_cut_changes_no_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cut.csv"
    path.write_text(text)
    whole = read(path).values
    start = text.index("\n", text.index("\n") + 1) + 2  # behind the second row
    ends, refused = range(start, len(text) - 1, 7), 0
    for end in ends:
        path.write_text(text[:end])
        try:
            cut = read(path)
        except RooflineError as error:
            refused += 1
            assert "cut off or damaged" in str(error) or "no profiled kernel" in str(error)  # noqa: PT017
            continue
        assert all(list(column) == list(whole[name][: len(cut)]) for name, column in cut.values.items())
    assert refused > 0.97 * len(ends)  # the rest ends with a row, or within the cells of a rule
