"""CSV of Nsight Compute in each of its layouts: the same kernel; numbers, decimal marks and units of its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import FORMATS, open_input
from ncu_roofline.formats.inputs.ncu_csv import decimal_mark, factor_of, read, value_of
from ncu_roofline.formats.inputs.tables import MetricTable, names_gpu, with_gpu
from ncu_roofline.model import roofline
from tests.inputs.ncu_tables import IDENTITY, OLD_IDENTITY, SUMS, long, text_of, wide

PROLOGUE = '==PROF== Connected to process 4711 (/home/user/app)\nsolving "it" ...\n==PROF== Profiling "axpy" - 0: 0%....100%\n'
EPILOGUE = "==PROF== Disconnected from process 4711\nresidual, 1e-9\n"
LAYOUTS = {
    "raw": text_of(wide(SUMS)),
    "raw of an old release": text_of(wide(SUMS, identity=OLD_IDENTITY)),
    "live": PROLOGUE + text_of(long(SUMS)) + EPILOGUE,
    "live of an old release": PROLOGUE + text_of(long(SUMS, identity=OLD_IDENTITY)) + EPILOGUE,
    "live raw": PROLOGUE + text_of(wide(SUMS)) + EPILOGUE,
    "lines of the application in between": text_of(long(SUMS)).replace("\n", "\n==WARNING== slow\n12, 13\n\n", 1),
    "saved again without quotes": text_of(long(SUMS), quoted=False),
    "semicolons": text_of(wide(SUMS), delimiter=";", quoted=False),
    "columns in another order": text_of([row[::-1] for row in wide(SUMS)]),
    "few columns": text_of(long(SUMS, identity={name: IDENTITY[name] for name in ("ID", "Kernel Name")})),
    "names behind labels": text_of(long({f"Some Label ({name})": value for name, value in SUMS.items()})),
    "instances": text_of(wide({name: (unit, f"{value} (1; 2; 3)") for name, (unit, value) in SUMS.items()})),
    "instances with their ids": text_of(long({name: (unit, f"{value} (0: 1; 8: 2)") for name, (unit, value) in SUMS.items()})),
    "the same launch in two sections": text_of(long(SUMS) + long(SUMS, section="Other")[1:]),
}


def opened(tmp_path: Path, text: str) -> MetricTable:
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    table = open_input(tmp_path / "x.csv")
    assert isinstance(table, MetricTable)
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_kernel(tmp_path: Path, layout: str) -> None:
    assert [row.id for row in FORMATS if row.call("recognises", LAYOUTS[layout])] == ["ncu-csv"]
    table = opened(tmp_path, LAYOUTS[layout])
    assert (table.format, table.warnings) == ("ncu-csv", ())
    assert names_gpu(table) == ("CC" in LAYOUTS[layout])
    capability = "8.0" if names_gpu(table) else "7.0"  # what a file says is not overruled
    result = roofline(with_gpu(table, (7, 0)))
    (kernel,) = result.kernels.to_dict("records")
    assert (kernel["status"], kernel["compute_capability"], kernel["missing"]) == ("ok", capability, "fp32 fp16")
    points = {row.level: row for row in result.points.itertuples()}
    assert {level: row.intensity for level, row in points.items()} == pytest.approx({"l1": 0.5, "l2": 1.0, "dram": 2.0})
    assert (points["dram"].performance, points["dram"].fma_share, points["dram"].seconds) == pytest.approx((1.5e12, 0.5, 2e-3))
    launch = table.launches()[0]
    assert (launch.name, launch.function_name) == ("void ns::axpy<double>(double *, int)", "axpy")
    if layout == "live":
        assert (launch.grid, launch.block, launch.stream, launch.context) == ((108, 2, 1), (256, 1, 1), 7, 1)
        assert (table.session.process.id, table.session.process.name, table.session.host) == (4711, "app", "node1")


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
