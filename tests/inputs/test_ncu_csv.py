"""CSV of Nsight Compute in each of its layouts, with made-up numbers."""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import FORMATS, open_input
from ncu_roofline.formats.inputs.ncu_csv import decimal_mark, factor_of, function_of, read, recognises, value_of
from ncu_roofline.formats.inputs.tables import MetricTable, names_gpu, with_gpu
from ncu_roofline.model import roofline
from tests.cli.command import Command, assert_refused
from tests.inputs.ncu_tables import IDENTITY, OLD_IDENTITY, PUSHED, STARTED, SUMS, Metrics, long, text_of, wide

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
    "wide, saved again without quotes": text_of(wide(SUMS), quoted=False),
    "semicolons": text_of(wide(SUMS), delimiter=";", quoted=False),
    "columns in another order": text_of([row[::-1] for row in wide(SUMS)]),
    "few columns": text_of(long(SUMS, identity={name: IDENTITY[name] for name in ("ID", "Kernel Name")})),
    "names behind labels": text_of(long({f"Some Label ({name})": value for name, value in SUMS.items()})),
    "instances": text_of(wide({name: (unit, f"{value} (1; 2; 3)") for name, (unit, value) in SUMS.items()})),
    "instances with their ids": text_of(long({name: (unit, f"{value} (0: 1; 8: 2)") for name, (unit, value) in SUMS.items()})),
    "Windows line ends": text_of(wide(SUMS)).replace("\n", "\r\n"),
    "the same launch in two sections": text_of(long(SUMS) + long(SUMS, section="Other")[1:]),
}


def opened(tmp_path: Path, text: str) -> MetricTable:
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8", newline="")
    table = open_input(path)
    assert isinstance(table, MetricTable)
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_kernel(tmp_path: Path, layout: str) -> None:
    table = with_gpu(opened(tmp_path, LAYOUTS[layout]), (8, 0))
    assert table.format == "ncu-csv"
    assert table.warnings == ()
    result = roofline(table)
    assert list(result.kernels.status) == ["ok"]
    assert result.kernels.seconds[0] == pytest.approx(2e-3, rel=1e-12)
    points = {row.level: row for row in result.points.itertuples()}
    assert {level: row.intensity for level, row in points.items()} == pytest.approx({"l1": 0.5, "l2": 1.0, "dram": 2.0})
    assert points["dram"].performance == pytest.approx(1.5e12, rel=1e-12)
    assert points["dram"].fma_share == pytest.approx(0.5)
    launch = table.launches()[0]
    assert (launch.name, launch.function_name) == ("void ns::axpy<double>(double *, int)", "axpy")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_of_windows_shells(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text_of(long(SUMS)).encode(encoding))
    assert path.read_bytes().startswith((codecs.BOM_UTF8, codecs.BOM_UTF16))
    table = open_input(path)
    assert isinstance(table, MetricTable)
    assert table.columns(["dram__bytes.sum"]) == {"dram__bytes.sum": [1.5e9]}


def test_facts_of_a_launch(tmp_path: Path) -> None:
    table = opened(tmp_path, LAYOUTS["live"])
    launch = table.launches()[0]
    assert (launch.grid, launch.block, launch.stream, launch.context) == ((108, 2, 1), (256, 1, 1), 7, 1)
    assert (table.session.process.id, table.session.process.name, table.session.host) == (4711, "app", "node1")
    assert list(roofline(table).kernels.compute_capability) == ["8.0"]


def test_sizes_from_metrics_where_no_column_has_them(tmp_path: Path) -> None:
    sizes = {f"launch__{what}_dim_{axis}": ("", str(n)) for what, n in (("grid", 5), ("block", 32)) for axis in "xyz"}
    launch = opened(tmp_path, text_of(wide({**SUMS, **sizes}, identity=OLD_IDENTITY))).launches()[0]
    assert (launch.grid, launch.block) == ((5, 5, 5), (32, 32, 32))


def test_the_gpu_of_a_raw_page(tmp_path: Path) -> None:
    gpu = {
        "device__attribute_display_name": ("", "NVIDIA A100-SXM4-40GB"),
        "device__attribute_compute_capability_major": ("", "8"),
        "device__attribute_compute_capability_minor": ("", "0"),
    }
    kernels = roofline(opened(tmp_path, text_of(wide({**gpu, **SUMS}, identity=OLD_IDENTITY)))).kernels
    assert (kernels.device[0], kernels.compute_capability[0]) == ("NVIDIA A100-SXM4-40GB", "8.0")


def test_nvtx_ranges_outermost_first(tmp_path: Path) -> None:
    pushed = '4711  "<default domain>:step:none:none:none:none:none:none"  "lib:solve: b:none:none:none:none:none:none" '
    started = '"3:<default domain>:run:none:none:none:none:none:none" '
    table = opened(tmp_path, text_of(wide(SUMS, identity={**IDENTITY, PUSHED: pushed, STARTED: started})))
    assert table.launches()[0].nvtx == ("run", "step", "solve: b")
    assert not {PUSHED, STARTED} & table.metric_names


def test_launches_stay_apart(tmp_path: Path) -> None:
    other = {name: (unit, "8.00") for name, (unit, _) in SUMS.items()}
    for rows in (wide(SUMS, other), long(SUMS, other), wide(SUMS) + wide(other), long(SUMS) + long(other)):
        table = opened(tmp_path, text_of(rows))
        assert table.columns(["dram__bytes.sum"]) == {"dram__bytes.sum": [1.5e9, 8e9]}


def test_units_of_a_second_run_in_the_same_file(tmp_path: Path) -> None:
    rows = wide(SUMS) + wide({**SUMS, "dram__bytes.sum": ("Kbyte", "1.50")})
    assert opened(tmp_path, text_of(rows)).columns(["dram__bytes.sum"]) == {"dram__bytes.sum": [1.5e9, 1.5e3]}


@pytest.mark.parametrize("absent", ["", "n/a", "nan", "-nan", "-nan(ind)", "(!) nan", "(!) n/a", "no data", "1.#QNAN"])
def test_what_is_missing_is_missing_and_not_zero(tmp_path: Path, absent: str) -> None:
    metrics: Metrics = {**SUMS, "dram__bytes.sum": ("Gbyte", absent)}
    for rows in (wide(SUMS, metrics), long(SUMS, metrics)):
        result = roofline(opened(tmp_path, text_of(rows)))
        assert list(result.kernels.missing) == ["fp32 fp16", "fp32 fp16 dram"]


def test_a_launch_that_failed_has_no_counters(tmp_path: Path) -> None:
    failed = {name: (unit, "0.00") for name, (unit, _) in SUMS.items()}
    table = opened(tmp_path, text_of(wide(SUMS, failed)))
    assert list(roofline(table).kernels.status) == ["ok", "no-time"]
    assert np.isnan(table.columns(["dram__bytes.sum"])["dram__bytes.sum"][1])
    assert "launch 1 took no time" in table.warnings[0]


# Printed value, decimal mark of the file -> value.
NUMBERS = [
    ("12", ".", 12.0),
    ("1,234", ".", 1234.0),
    ("1,234,567.89", ".", 1234567.89),
    ("1.5e-05", ".", 1.5e-5),
    ("0.017056", ".", 0.017056),
    ("-3", ".", -3.0),
    ("1557 (3; 3; 6)", ".", 1557.0),
    ("1,557.50 (1: 3; 16: 3)", ".", 1557.5),
    ("inf", ".", float("inf")),
    ("15,72", ",", 15.72),
    ("1.234", ",", 1234.0),
    ("1.234.567,89", ",", 1234567.89),
    ("1 234,5", ",", 1234.5),
    ("1\N{NARROW NO-BREAK SPACE}234,5", ",", 1234.5),
    ("9,00 (4,5; 4,5)", ",", 9.0),
    ("CachePreferNone", ".", "CachePreferNone"),
    ("NVIDIA A100", ".", "NVIDIA A100"),
    ("0x1f", ".", "0x1f"),
    ("1.2.3.", ".", "1.2.3."),
]


@pytest.mark.parametrize(("text", "mark", "value"), NUMBERS)
def test_numbers(text: str, mark: str, value: object) -> None:
    assert value_of(text, mark) == value


MARKS = [
    (["12", "1,234"], ""),
    (["12", "1,234", "9,00"], ","),
    (["1,234", "0.25"], "."),
    (["1,234.567"], "."),
    (["1.234,567"], ","),
    (["0,017056"], ","),
    (["0,125"], ","),
    (["1234,567"], ","),
    (["a,b", "3.x", "1,2,3.4.5 (6,7)"], ""),
]


@pytest.mark.parametrize(("texts", "mark"), MARKS)
def test_decimal_marks(texts: list[str], mark: str) -> None:
    assert decimal_mark(texts) == mark


def test_thousands_and_decimal_commas_in_a_file(tmp_path: Path) -> None:
    english = {**SUMS, "dram__bytes.sum": ("byte", "1,500,000,000.00"), "sm__cycles_elapsed.avg": ("cycle", "3,000,000")}
    german = {
        name: (unit, value.replace(",", "_").replace(".", ",").replace("_", ".")) for name, (unit, value) in english.items()
    }
    for metrics in (english, german):
        for rows in (wide(metrics), long(metrics)):
            table = opened(tmp_path, text_of(rows))
            found = table.columns(["dram__bytes.sum", "sm__cycles_elapsed.avg", "gpu__time_duration.sum"])
            assert [column[0] for column in found.values()] == pytest.approx([1.5e9, 3e6, 2e6], rel=1e-12)


# Unit -> what a report stores for a printed 1.
UNITS = {
    "": 1, "%": 1, "inst": 1, "sector": 1, "sectors": 1, "register/thread": 1, "inst/cycle": 1, "byte/block": 1, "pass": 1,
    "%/": 1, "nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9,
    "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "byte/second": 1, "Gbyte/second": 1e9, "Gbyte/s": 1e9,
    "byte/ns": 1e9, "Kbyte/cycle": 1e3, "cycle/second": 1, "cycle/usecond": 1e6, "cycle/nsecond": 1e9, "hz": 1, "Mhz": 1e6,
    "Ghz": 1e9, "sector/msecond": 1e3, "sector/ns": 1e9, "sector/s": 1, "Kbyte/block": 1e3, "%/Kbyte": 1e-3, "SM": 1,
    "block": 1, "warp": 1, "thread": 1, "branches": 1, "request": 1, "cluster": 1,
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_units(unit: str) -> None:
    assert factor_of(unit) == pytest.approx(UNITS[unit], rel=1e-12)


@pytest.mark.parametrize("unit", ["furlong", "byte/fortnight", "Xbyte", "GB/s/W"])
def test_unknown_units_are_named_and_their_metrics_left_out(tmp_path: Path, unit: str) -> None:
    assert factor_of(unit) is None
    metrics: Metrics = {**SUMS, "dram__bytes.sum": (unit, "1.50")}
    for rows in (wide(metrics), long(metrics)):
        table = opened(tmp_path, text_of(rows))
        assert "dram" in roofline(table).kernels.missing[0].split()
        assert len(table.warnings) == 1
        assert f"{unit!r}, were left out: dram__bytes.sum" in table.warnings[0]


def test_columns_and_rows_that_name_no_metric_are_named(tmp_path: Path) -> None:
    table = opened(tmp_path, text_of(wide({**SUMS, "My Column": ("", "1"), "inst_executed": ("inst", "3")})))
    assert table.warnings == (f"Columns of {table.path} that name no metric were left out: My Column.",)
    table = opened(tmp_path, text_of(long({**SUMS, "L2 Hit Rate": ("%", "3")})))
    assert "that name no metric were left out: L2 Hit Rate." in table.warnings[0]


def test_labels_of_the_details_page(tmp_path: Path) -> None:
    labels = {
        "Duration": ("us", "260.51"),
        "SM Frequency": ("Ghz", "1.32"),
        "DRAM Frequency": ("Mhz", "6230.25"),
        "Elapsed Cycles": ("cycle", "567961"),
        "Memory Throughput": ("%", "64.83"),
    }
    memory = {"Memory Throughput": ("Gbyte/s", "123.45")}
    rows = long(labels, section="GPU Speed Of Light Throughput") + long(memory, section="Memory Workload Analysis")[1:]
    table = opened(tmp_path, text_of(rows))
    result = {name: column[0] for name, column in table.values.items() if not name.startswith("device__")}
    assert result == pytest.approx({
        "gpu__time_duration.sum": 260510.0,
        "gpc__cycles_elapsed.avg.per_second": 1.32e9,
        "dram__cycles_elapsed.avg.per_second": 6230.25e6,
        "gpc__cycles_elapsed.max": 567961.0,
        "dram__bytes.sum.per_second": 123.45e9,
    })  # fmt: skip
    kernels = roofline(table).kernels
    assert kernels.seconds[0] == pytest.approx(260.51e-6)
    assert kernels.clock_profiled[0] == pytest.approx(1.32e9)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("axpy", "axpy"),
        ("axpy(double *, int)", "axpy"),
        ("void ns::axpy<(int)64, ns::Op<float> >(T1 *)", "axpy"),
        ("void (anonymous namespace)::axpy<int>(int)", "axpy"),
        ("ns::<unnamed>::axpy(int)", "axpy"),
        ("_Z4axpyPd", "_Z4axpyPd"),
        ("", ""),
    ],
)
def test_function_names(name: str, function: str) -> None:
    assert function_of(name) == function


def test_launches_without_a_gpu(tmp_path: Path, run: Command) -> None:
    table = opened(tmp_path, LAYOUTS["live of an old release"])
    assert not names_gpu(table)
    assert list(roofline(table).kernels.status) == ["unknown-chip"]
    assert list(roofline(with_gpu(table, (7, 0))).kernels.compute_capability) == ["7.0"]
    silent = run("show", tmp_path / "x.csv")
    assert silent.code == 0
    assert "does not say on which GPU it was made" in silent.err
    told = run("show", tmp_path / "x.csv", "--gpu", "8.0")
    assert (told.code, told.err) == (0, "")
    assert "1.5 TFLOP/s" in told.out
    assert run("show", tmp_path / "x.csv", "--gpu", "V100").code == 2


def test_a_gpu_that_the_file_names_is_not_overruled(tmp_path: Path) -> None:
    assert list(roofline(with_gpu(opened(tmp_path, LAYOUTS["live"]), (7, 0))).kernels.compute_capability) == ["8.0"]


GOOD = text_of(wide(SUMS, SUMS))
GOOD_LONG = text_of(long(SUMS))
BAD = {
    "only a header": (text_of(wide(SUMS)[:1]), "no profiled kernel"),
    "only units": (text_of(wide(SUMS)[:2]), "no profiled kernel"),
    "a long header only": (text_of(long(SUMS)[:1]), "no profiled kernel"),
    "no units": (text_of([row for i, row in enumerate(wide(SUMS)) if i != 1]), "no row of units"),
    "no column of units": (text_of([[*row[:13], *row[14:]] for row in long(SUMS)]), "no table of launches"),
    "no ID": (text_of([row[1:] for row in long(SUMS)]), "no table of launches"),
    "cut off": (GOOD[: len(GOOD) - 40], "cut off or damaged"),
    "cut off inside a value": (GOOD[:-4], "its last row is not complete"),
    "a row too short": (text_of([row[: len(row) - (i == 3)] for i, row in enumerate(wide(SUMS, SUMS))]), "19 of 20 cells"),
    "a row too long": (text_of([[*row, *["1"] * (i == 3)] for i, row in enumerate(wide(SUMS, SUMS))]), "21 of 20 cells"),
    "long and cut off": (GOOD_LONG.split('"500000000"')[0], "its last row is not complete"),
    "an error of ncu": ("==ERROR== Failed to load report file 'x'.\n", "Failed to load report file"),
    "text without a table": (PROLOGUE + "  axpy(double *)\n    Duration  usecond  12\n", "ncu printed no table"),
    "a summary": (
        text_of([["Process ID", "Kernel Name", "Invocations", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"]]),
        "no table of launches",
    ),
}
COMMANDS = {"show": ("show",), "explain": ("explain",), "render": ("render", "-o", "-", "--format", "csv")}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_one_sentence(tmp_path: Path, run: Command, bad: str, command: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(BAD[bad][0])
    outcome = run(*COMMANDS[command], path)
    assert_refused(outcome, path)
    assert BAD[bad][1] in outcome.err


@pytest.mark.parametrize("text", [GOOD, GOOD_LONG])
def test_a_cut_changes_no_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cut.csv"
    path.write_text(text)
    whole = read(path).values
    start = text.index("\n", text.index("\n") + 1) + 2  # behind the second row
    refused = 0
    for end in range(start, len(text) - 1):
        path.write_text(text[:end])
        try:
            cut = read(path)
        except RooflineError as error:
            refused += 1
            assert "cut off or damaged" in str(error) or "no profiled kernel" in str(error)  # noqa: PT017
            continue
        for name, column in cut.values.items():
            assert list(column) == list(whole[name][: len(cut)])
    assert refused > 0.97 * (len(text) - start)  # the rest ends with a row, or within the cells of a rule


def test_binary_is_no_csv(tmp_path: Path, run: Command) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b'"ID","Kernel Name"\0\1\2' * 100)
    assert_refused(run("show", path), path)


@pytest.mark.parametrize("layout", ["raw", "live", "live raw"])
def test_commands_from_end_to_end(tmp_path: Path, run: Command, layout: str) -> None:
    source, page = tmp_path / "x.csv", tmp_path / "x.html"
    source.write_text(LAYOUTS[layout])
    shown = run("show", source)
    assert (shown.code, shown.err) == (0, "")
    assert "1.5 TFLOP/s" in shown.out
    explained = run("explain", source)
    assert explained.code == 0
    assert "FP64         1 of 1 launches" in explained.out
    assert "ncu --metrics" in explained.out
    assert run("render", source, "-o", page).code == 0
    assert "axpy" in page.read_text(encoding="utf-8")


def test_explain_refuses_finished_numbers(tmp_path: Path, run: Command) -> None:
    path = tmp_path / "points.txt"
    path.write_text("memroofs 828.8\nmem_roof_names 'HBM'\ncomproofs 7068.9\ncomp_roof_names 'FMA'\nAI 2.5\nFLOPS 2000\n")
    outcome = run("explain", path)
    assert_refused(outcome, path)
    assert "finished numbers of another tool" in outcome.err


OTHERS = [
    "kernel,seconds,flops,dram_bytes\naxpy,1,2,3\n",
    '==4711== NVPROF is profiling process 4711\n"Device","Kernel","Invocations","Metric Name","Metric Description","Avg"\n',
    '"Kernel Name","Total Time"\n"axpy","3"\n',
    "a roofline, they said\n",
    "",
]


@pytest.mark.parametrize("text", OTHERS)
def test_other_tables_are_not_taken_for_ours(text: str) -> None:
    assert not recognises(text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_other_importer_takes_them(layout: str) -> None:
    taken = [row.id for row in FORMATS if row.call("recognises", LAYOUTS[layout])]
    assert taken == ["ncu-csv"]
