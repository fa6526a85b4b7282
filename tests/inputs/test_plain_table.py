"""Plain tables: header spellings, units, CSV and JSON, points and rows, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ncu_roofline import render, roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.plain_table import header, read_rows, recognises
from ncu_roofline.formats.inputs.tables import PointTable
from tests.rendering.frames import make_roofline

PLAIN = """\
platform,application,kernel,precision,flops,bytes_l2,bytes_dram,seconds,peak_gflops,bandwidth_dram_gbs
KNL,GPP,sigma,fp64,4e12,2e12,1e12,2,2390.12,341.84
V100,GPP,sigma,fp64,4e12,2e12,1e12,0.5,7068.86,828.758
"""


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table_of(path: Path) -> PointTable:
    table = open_input(path)
    assert isinstance(table, PointTable)
    return table


@pytest.mark.parametrize(
    ("text", "quantity", "scale", "of"),
    [
        ("flops", "work", 1, ""),
        ("GFLOP", "work", 1e9, ""),
        ("flops_fp64", "work", 1, ""),
        ("GFLOP/s", "performance", 1e9, ""),
        ("Performance [TFLOP/s]", "performance", 1e12, ""),
        ("performance_gflops", "performance", 1e9, ""),
        ("mflop_per_s", "performance", 1e6, ""),
        ("performance", "performance", 1, ""),
        ("seconds", "seconds", 1, ""),
        ("time_ms", "seconds", 1e-3, ""),
        ("Run time (us)", "seconds", 1e-6, ""),
        ("duration (\N{MICRO SIGN}s)", "seconds", 1e-6, ""),
        ("duration_ns", "seconds", 1e-9, ""),
        ("bytes_dram", "traffic", 1, "dram"),
        ("hbm_bytes", "traffic", 1, "dram"),
        ("mcdram_gb", "traffic", 1e9, "mcdram"),
        ("L3 GiB", "traffic", 2**30, "l3"),
        ("bytes", "traffic", 1, ""),
        ("ai_l2", "intensity", 1, "l2"),
        ("Arithmetic intensity DRAM [FLOP/byte]", "intensity", 1, "dram"),
        ("intensity_shared", "intensity", 1, "shared"),
        ("attainable_gflops", "attainable", 1e9, ""),
        ("peak_gflops", "peak", 1e9, ""),
        ("bandwidth_dram_gbs", "bandwidth", 1e9, "dram"),
        ("L2 bandwidth (TB/s)", "bandwidth", 1e12, "l2"),
        ("canonical_gflop", "canonical", 1e9, ""),
        ("nw", "label", 1, ""),
        ("gpu", "device", 1, ""),
    ],
)
def test_headers(text: str, quantity: str, scale: float, of: str) -> None:
    found = header(text)
    assert found is not None
    assert (found.quantity, found.scale, found.of) == (quantity, pytest.approx(scale), of)


@pytest.mark.parametrize(
    "text",
    [
        "temperature",
        "Time (%)",
        "ID",
        "dram__bytes.sum",
        "flop_count_dp",
        "gpu__time_duration.sum",
        "DRAM read bytes",
        "Avg",
        "",
    ],
)
def test_headers_that_say_something_else(text: str) -> None:
    assert header(text) is None


@pytest.mark.parametrize(
    ("text", "precision", "ceiling", "theoretical"),
    [
        ("peak_gflops", "fp", "fma", False),
        ("peak_nofma_gflops", "fp", "nofma", False),
        ("Peak FP64 no-FMA [GFLOP/s]", "fp64", "nofma", False),
        ("theoretical_peak_sp_tflops", "fp32", "fma", True),
        ("peak_div_nofma_gflops", "fp", "divide_nofma", False),
    ],
)
def test_peaks(text: str, precision: str, ceiling: str, theoretical: bool) -> None:
    found = header(text)
    assert found is not None
    assert (found.precision, found.ceiling, found.theoretical) == (precision, ceiling, theoretical)


JSON_ROWS = [dict(zip(PLAIN.splitlines()[0].split(","), line.split(","), strict=True)) for line in PLAIN.splitlines()[1:]]
WAYS = {
    "csv": PLAIN,
    "tsv": PLAIN.replace(",", "\t"),
    "semicolons": PLAIN.replace(",", ";"),
    "spaces": PLAIN.replace(",", ", "),
    "comments": f"# from the paper\n\n{PLAIN}\n# end\n",
    "byte order mark": "\N{ZERO WIDTH NO-BREAK SPACE}" + PLAIN,
    "upper case": PLAIN.replace("platform,", "Platform,").replace("seconds", "Seconds").replace("bytes_dram", "DRAM_Bytes"),
    "json": json.dumps(JSON_ROWS),
    "json object": json.dumps({"about": "GPP", "rows": JSON_ROWS}, indent=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write_it(tmp_path: Path, way: str) -> None:
    points = table_of(write(tmp_path, WAYS[way])).points
    assert [(point.name, point.device, point.work, point.traffic, point.seconds) for point in points] == [
        ("sigma", "KNL", {"fp64": 4e12}, {"l2": 2e12, "dram": 1e12}, 2.0),
        ("sigma", "V100", {"fp64": 4e12}, {"l2": 2e12, "dram": 1e12}, 0.5),
    ]


def test_each_platform_has_its_own_roofs(tmp_path: Path) -> None:
    result = roofline(write(tmp_path, PLAIN))
    points = result.points.query("level == 'dram'").set_index("device")
    assert dict(points["attainable"]) == pytest.approx({"KNL": 4 * 341.84e9, "V100": 4 * 828.758e9})
    assert dict(points["performance"]) == pytest.approx({"KNL": 2e12, "V100": 8e12})
    assert set(points["roof_origin"]) == {"measured"}
    roofs = result.roofs.query("roof == 'fp64.fma'").set_index("device")["value"]
    assert dict(roofs) == pytest.approx({"KNL": 2390.12e9, "V100": 7068.86e9})


def test_rates_without_time(tmp_path: Path) -> None:
    table = table_of(write(tmp_path, "platform,nw,label,GFLOP/s,ai_dram\nKNL,6,old,100,2\n"))
    (point,) = table.points
    assert (point.rates, point.work, point.traffic, point.label) == (True, {"fp": 1e11}, {"dram": 5e10}, "nw=6 old")


@pytest.mark.parametrize(
    ("text", "work", "seconds", "traffic"),
    [
        ("gflop,time_ms,dram_gb\n4,2,1\n", 4e9, 2e-3, {"dram": 1e9}),
        ("gflop/s,seconds,bytes_l1\n4,2,16\n", 8e9, 2.0, {"l1": 16.0}),
        ("flops,performance_gflops,ai\n8,4,2\n", 8.0, 2e-9, {"dram": 4.0}),
        ("flops,seconds,intensity,level\n8,1,2,L2\n", 8.0, 1.0, {"l2": 4.0}),
    ],
)
def test_what_follows_from_what(tmp_path: Path, text: str, work: float, seconds: float, traffic: dict[str, float]) -> None:
    (point,) = table_of(write(tmp_path, text)).points
    assert (point.work, point.seconds, point.traffic) == (
        {"fp": pytest.approx(work)},
        pytest.approx(seconds),
        pytest.approx(traffic),
    )


def test_contradictions_are_said(tmp_path: Path) -> None:
    table = table_of(write(tmp_path, "flops,seconds,gflop/s,bytes_dram,ai_dram\n8e9,2,5,2e9,9\n"))
    assert ["5e+09 FLOP/s" in table.warnings[0], "9 FLOP/B" in table.warnings[1]] == [True, True]
    assert table.points[0].traffic == {"dram": 2e9}


def test_unknown_columns_and_rows_without_numbers_are_said(tmp_path: Path) -> None:
    table = table_of(write(tmp_path, "platform,flops,seconds,bytes_dram,colour\nA,1,1,1,red\nB,,,,blue\n"))
    assert len(table.points) == 1
    assert ["colour" in table.warnings[0], "1 rows lack" in table.warnings[1]] == [True, True]


def test_support_of_a_platform(tmp_path: Path) -> None:
    text = "platform,supported,gflop/s,ai_dram\nA,yes,1,1\nB,no,,\nC,not run,,\nD,,2,2\n"
    rows = read_rows(write(tmp_path, text)).rows
    assert [row.supported for row in rows] == ["yes", "no", "not run", "yes"]
    assert math.isnan(rows[1].seconds)


BAD = {
    "ambiguous": (
        "platform,gflops,ai_dram\nA,1,1\n",
        "the column 'gflops' may be work or a rate. Call it gflop for work or gflop/s",
    ),
    "word": ("flops,seconds,bytes_dram\nfast,1,1\n", "row 1, column 'flops': 'fast' is no number"),
    "negative": ("flops,seconds,bytes_dram\n1,-1,1\n", "row 1, column 'seconds': '-1'"),
    "zero time": ("flops,seconds,bytes_dram\n1,0,1\n", "row 1, column 'seconds': zero can't be meant"),
    "unit in a cell": ("flops,seconds,bytes_dram\n1,1 ms,1\n", "has a unit where a plain number belongs"),
    "short row": ("flops,seconds,bytes_dram\n1,1\n", "row 1 has 2 cells, and the header 3"),
    "twice": ("flops,seconds,seconds,bytes_dram\n1,1,1,1\n", "the column 'seconds' stands there twice"),
    "same meaning": ("flops,seconds,time,bytes_dram\n1,1,1,1\n", "the columns 'seconds' and 'time' hold the same"),
    "no rows": ("flops,seconds,bytes_dram\n", "the table has no rows"),
    "no points": ("flops,seconds,bytes_dram\n1,,1\n", "no row has both a rate"),
    "support": ("flops,seconds,bytes_dram,supported\n1,1,1,perhaps\n", "row 1 says 'perhaps' of its support"),
    "json cut": ('[{"flops": 1, "seconds": 1, "bytes_dram": 1}', "Expecting|delimiter"),
    "json cell": ('[{"flops": true, "seconds": 1, "bytes_dram": 1}]', "row 1, column 'flops': 'True' is no number"),
    "json rows": ('{"list": {"flops": 1, "seconds": 1, "bytes_dram": 1}}', "it is no list of rows"),
    "json row": ('[{"flops": 1, "seconds": 1, "bytes_dram": 1}, 5]', "row 2 is no object"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(tmp_path: Path, name: str) -> None:
    text, reason = BAD[name]
    path = write(tmp_path, text)
    with pytest.raises(RooflineError) as caught:
        open_input(path)
    assert any(part in str(caught.value) for part in reason.split("|"))
    assert str(caught.value).startswith(f"Cannot read {path}: ")


@pytest.mark.parametrize("table", ["points", "kernels"])
def test_our_own_tables_are_not_taken(table: str) -> None:
    """Their column bandwidth is what was reached, and no roof."""
    result = make_roofline(2)
    assert not recognises(render(result, "csv", table=table).decode())
    assert not recognises(render(result, "json").decode())


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2", "flops,seconds\n1,2", "seconds,bytes\n1,2", "[1, 2]", '{"flops": 1}', "just text"]
)
def test_other_texts_are_not_taken(text: str) -> None:
    assert not recognises(text)
