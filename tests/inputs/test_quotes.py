"""Quotation marks that are not closed, and lines padded by terminals: what they swallow is told, with the line."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import intel, ncu_csv, nvprof, open_input, plain_table
from ncu_roofline.formats.inputs.tables import PointTable
from tests.inputs import intel_output, ncu_tables, nvprof_logs, test_advisor, test_likwid
from tests.inputs.test_plain_table import PLAIN

HEADER, *ROWS = (f"{line},note {number}" for number, line in enumerate(PLAIN.splitlines()))


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def table_of(folder: Path, text: str) -> PointTable:
    table = open_input(write(folder, text))
    assert isinstance(table, PointTable)
    return table


PLAIN_QUOTED = "\n".join((HEADER.replace("note 0", "note"), ROWS[0].replace(",note", ',"note'), *ROWS[1:], ""))


def test_quotes_that_are_closed_are_not_told(tmp_path: Path) -> None:
    assert table_of(tmp_path, PLAIN_QUOTED.replace("note 1", 'note 1"')).warnings == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PLAIN_QUOTED.replace("KNL", '"KNL', 1).replace('"note', "note"), "line 2 is not closed"),
        (PLAIN_QUOTED, "line 2 is not closed"),
        (f'# from a paper\n{PLAIN_QUOTED.rstrip()}"\n{ROWS[0]}\n', "line 3 is not closed"),
        (
            test_advisor.survey(test_advisor.TRIAD, test_advisor.TRIAD, preamble=False).replace('""\n', '"\n', 1),
            "line 2 is not closed",
        ),
        (ncu_tables.text_of(ncu_tables.wide(ncu_tables.SUMS)).replace('"6.00"', '"6.00'), "line 3 is not closed"),
    ],
    ids=["plain table", "a note", "a note closed later", "advisor", "ncu raw"],
)
def test_a_table_that_a_quote_breaks_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(RooflineError, match=f"the quotation mark that opens in {told}"):
        open_input(write(tmp_path, text))


# As a terminal shows the summary of a release before CUDA 9: no types of rows, blanks to the edge of the window.
PADDED = """\
==2100== NVPROF is profiling process 2100, command: ./app               
==2100== Profiling result:                                              
"Time(%)","Time","Calls","Avg","Min","Max","Name"                       
%,ms,,us,us,us,                                                         
60.0,3.0,2,1500.0,1400.0,1600.0,"axpy(double*, int)"                    
40.0,2.0,1,2000.0,2000.0,2000.0,"[CUDA memcpy HtoD]"                    
==2100== API calls:                                                     
"Time(%)","Time","Calls","Avg","Min","Max","Name"                       
%,ms,,us,us,us,                                                         
90.0,9.0,3,3000.0,1000.0,5000.0,"cudaMemcpy"                            
"""  # noqa: W291


def test_a_padded_summary_without_types(tmp_path: Path) -> None:
    table = nvprof.read(write(tmp_path, PADDED))
    assert [(point.name, point.seconds, point.launches) for point in table.points] == [
        ("axpy(double*, int)", pytest.approx(3e-3), 2)
    ]
    assert any("functions of CUDA" in warning and "cudaMemcpy" in warning for warning in table.warnings)


def test_which_reader_takes_them() -> None:
    assert nvprof.recognises(PADDED)
    assert plain_table.recognises(PLAIN_QUOTED)
    assert intel.recognises_advisor(test_advisor.GOOD)
    assert ncu_csv.recognises(ncu_tables.text_of(ncu_tables.wide(ncu_tables.SUMS)))


def test_a_launch_without_a_count_keeps_its_time(tmp_path: Path) -> None:
    text = nvprof_logs.trace([("k", 1e-6), ("k", 2e-6)], {"flop_count_dp": ("<OVERFLOW>", 2), "dram_read_bytes": (1, 1)})
    text = text.replace("dram_read_bytes", "achieved_occupancy")
    points = nvprof.read(write(tmp_path, text)).points
    assert [(point.seconds, point.work) for point in points] == [
        (pytest.approx(1e-6), {}),
        (pytest.approx(2e-6), {"fp64": 2}),
    ]


def test_a_thread_without_a_number_is_no_zero(tmp_path: Path) -> None:
    text = test_likwid.GOOD.replace("DP [MFLOP/s],1000.0,2000.0", "DP [MFLOP/s],1000.0,nan")
    table = table_of(tmp_path, text)
    assert table.points[0].work == {}
    assert any('"DP [MFLOP/s]" left out: it has no number for some thread' in warning for warning in table.warnings)


MANY = "9" * 5000
DIGITS = {
    "sde": intel_output.mix(intel_output.STREAM).replace("*mem-read-16 ", f"*mem-read-{MANY} "),
    "likwid": test_likwid.GOOD.replace("Group 1 Metric", f"Group {MANY} Metric"),
    "likwid, rows": test_likwid.GOOD.replace(",MEM_DP,9,", f",MEM_DP,{MANY},"),
    "ncu": ncu_tables.text_of(ncu_tables.wide(ncu_tables.SUMS)).replace('"4711"', f'"{MANY}"').replace('"7"', f'"{MANY}"'),
    "ncu, sizes": ncu_tables.text_of(ncu_tables.wide(ncu_tables.SUMS)).replace("(256, 1, 1)", f"({MANY}, 1, 1)"),
}


@pytest.mark.parametrize("name", DIGITS)
def test_numbers_of_thousands_of_digits_end_nothing(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, DIGITS[name])
    with contextlib.suppress(RooflineError):
        assert open_input(path).warnings is not None
