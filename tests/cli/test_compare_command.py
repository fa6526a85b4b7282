"""`ncu-roofline compare`: reports in, a table, data and an exit code out."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.columns import QUANTITIES
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.factory import A100, H100, complete, flops, kernel, report, timing

ARROW = "\N{RIGHTWARDS ARROW}"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """main becomes half as fast; one kernel goes, one comes."""
    stay, gone, fresh = "void main_loop(double *)", "void gone()", "void fresh()"
    before = [kernel(complete(seconds=5e-3), stay), kernel(complete(), gone)]
    after = [kernel(complete(seconds=10e-3, **{"dram__bytes.sum": 500_000_000}), stay), kernel(complete(), fresh)]
    return report(tmp_path / "before.ncu-rep", *before), report(tmp_path / "after.ncu-rep", *after)


def test_the_table(run: Command, pair: tuple[Path, Path]) -> None:
    outcome = run("compare", *pair)
    assert outcome.code == 0
    assert outcome.err == ""
    lines = outcome.out.splitlines()
    assert lines[0].startswith("after.ncu-rep against before.ncu-rep (baseline), NVIDIA ")
    assert lines[1] == f"2.00x slower: 5 ms {ARROW} 10 ms (100 % more time); 1 kernel new; 1 kernel gone."
    said = " ".join(" ".join(lines[2:5]).split())
    assert said.startswith("5 ms lost, most by main_loop +5 ms. New: 1 ms (fresh). Gone: 1 ms")
    assert f"In all: 2 launches, 6 ms {ARROW} 2 launches, 11 ms. 3 kernels: 1 slower, 1 new, 1 gone." in said
    row = next(line for line in lines if line.startswith("main_loop"))
    assert f"5 ms {ARROW} 10 ms  +100.0 %" in row
    assert "=  +100.0 %  -50.0 %    3.2 %  " in row
    assert row.endswith("slower")
    assert any(line.startswith("gone") and line.endswith("removed") for line in lines)
    assert any(line.startswith("fresh") and line.endswith("added") for line in lines)


def test_lines_fit_the_width(run: Command, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    long = kernel(complete(), f"void {'long_name_' * 20}()")
    more = report(tmp_path / "more.ncu-rep", *[long] * 3)
    for width in (60, 100, 200):
        outcome = run("compare", *pair, more, "--width", width, "--fail-if", "fraction < 0.9 * baseline")
        assert max(map(len, outcome.out.splitlines())) <= width
        kept = ("kernel", "launches", "time/launch", "change", "of roof", "outcome") if width >= 100 else ()
        assert all(header in outcome.out for header in (*kept, *(("FLOP", "DRAM B", "total time") if width >= 200 else ())))


# Threshold -> exit code without and with --strict; `gone` and `fresh` lack what the other report has.
EXIT = {
    "time > 1.05 * baseline": (1, 1),
    "time > 3 * baseline": (0, 1),
    "time > 1": (0, 1),
    "bytes.dram > 1.1 * baseline": (1, 1),
    "flops.fp64 > baseline": (0, 1),
    "fraction < 0.1": (1, 1),
    "flops.tensor.int8 > 0": (0, 1),
}


def test_exit_codes(run: Command, pair: tuple[Path, Path]) -> None:
    for threshold, codes in EXIT.items():
        outcome = run("compare", *pair, "--fail-if", threshold)
        assert (outcome.code, run("compare", *pair, "--fail-if", threshold, "--strict").code) == codes, threshold
        assert "Thresholds: " in outcome.out
        assert (f"tripped: {threshold}: " in outcome.out) == bool(outcome.code)
        assert f"not evaluated: {threshold}: " in outcome.out


def test_what_tripped_and_with_which_numbers(run: Command, pair: tuple[Path, Path]) -> None:
    words = ("--fail-if", "time > 1.05 * baseline", "--fail-if", "time > 3 * baseline", "--width", 200)
    outcome = run("compare", *pair, *words)
    where = "main_loop (grid 8x1x1 block 128x1x1) in after.ncu-rep"
    assert f"tripped: time > 1.05 * baseline: {where}: time = 10 ms, baseline.time = 5 ms" in outcome.out
    assert "Thresholds: 1 tripped, 1 passed, 4 not evaluated." in outcome.out


def test_kernels_are_counted_as_kernels_whatever_their_configurations(run: Command, tmp_path: Path) -> None:
    grids = [replace(kernel(complete(), "void k()"), grid=(size, 1, 1)) for size in (8, 16)]
    path = report(tmp_path / "a.ncu-rep", *grids, kernel(complete(), "void other()"))
    assert "2 kernels in 3 configurations: 3 same." in run("compare", path, path, "--width", 200).out


SAME_PER_LAUNCH = (
    "time > 1.05 * baseline",
    "time < 0.95 * baseline",
    "cycles != baseline",
    "flops != baseline",
    "flops.fp64 != baseline",
    "bytes.dram != baseline",
    "bandwidth.l2 > 1.01 * baseline",
    "intensity.dram != baseline",
    "performance < 0.99 * baseline",
    "fraction < 0.99 * baseline",
)
TWICE_IN_ALL = ("time.total", "flops.total", "flops.total.fp64", "bytes.total.dram", "launches")


def test_another_number_of_launches_is_neither_slower_nor_faster(run: Command, tmp_path: Path) -> None:
    """In thresholds, words and every format; the other way round, too."""
    one = kernel(complete(), "void k()")
    paths = report(tmp_path / "one.ncu-rep", one), report(tmp_path / "two.ncu-rep", one, one)
    words = [word for text in SAME_PER_LAUNCH for word in ("--fail-if", text)]
    for turned, ratio, spent, launches, counts in (
        (paths, 2, "1 ms", "1 {0} 2", "1 launch, 1 ms {0} 2 launches, 2 ms"),
        (paths[::-1], 0.5, "2 ms", "2 {0} 1", "2 launches, 2 ms {0} 1 launch, 1 ms"),
    ):
        outcome = run("compare", *turned, *words, "--strict")
        assert outcome.code == 0
        text = " ".join(outcome.out.split())
        assert f"The same within 2.0 %: {spent} {ARROW} {spent}." in text
        assert f"In all: {counts.format(ARROW)}. 1 kernel: 1 same." in text
        assert launches.format(ARROW) in text
        all_words = [word for name in TWICE_IN_ALL for word in ("--fail-if", f"{name} == {ratio} * baseline")]
        assert f"Thresholds: {len(TWICE_IN_ALL)} tripped." in run("compare", *turned, *all_words).out
    (row,) = json.loads(run("compare", *paths, "--json").out)["kernels"]
    assert (row["launches_before"], row["launches"], row["outcome"]) == (1, 2, "same")
    assert (row["seconds"], row["total_seconds"]) == pytest.approx((1e-3, 2e-3))
    assert (row["work"], row["total_work"]) == (1e9, 2e9)
    (cells,) = csv.DictReader(run("compare", *paths, "-o", "-", "--format", "csv").out.splitlines())
    assert (cells["seconds"], cells["total_seconds"], cells["outcome"]) == ("0.001", "0.002", "same")
    markdown = run("compare", *paths, "-o", "-", "--format", "md").out
    assert "| k | 1 ms | same |" in markdown
    assert "its launches, 1 before and 2 now, are compared per launch" in markdown


def test_small_kernels_fail_the_command_only_if_asked(run: Command, tmp_path: Path) -> None:
    paths = [
        report(
            tmp_path / f"{side}.ncu-rep",
            kernel(complete(seconds=9e-3), "void long()"),
            kernel(complete(seconds=time), "void brief()"),
        )
        for side, time in (("before", 11e-6), ("after", 13e-6))
    ]
    words = ("--fail-if", "time > 1.05 * baseline", "--width", 200)
    for strict in ((), ("--strict",)):
        outcome = run("compare", *paths, *words, *strict)
        assert outcome.code == 0
        assert (
            "not judged: time > 1.05 * baseline: brief: launches under 20 \N{MICRO SIGN}s (--small judges them)" in outcome.out
        )
        assert "Thresholds: 1 passed, 1 not judged." in outcome.out
        assert "brief: not judged without --small: launches under 20 \N{MICRO SIGN}s" in outcome.out
    outcome = run("compare", *paths, *words, "--small")
    assert (outcome.code, "Thresholds: 1 tripped, 1 passed." in outcome.out, "not judged" in outcome.out) == (1, True, False)


def test_nothing_in_common(run: Command, tmp_path: Path) -> None:
    """No change of time, and no exit code 0."""
    seconds = {"a": 1e-3, "b": 0.3}
    paths = [report(tmp_path / f"{n}.ncu-rep", kernel(complete(seconds=time), f"void {n}()")) for n, time in seconds.items()]
    outcome = run("compare", *paths)
    assert outcome.code == 1
    assert "Nothing in common; 1 kernel new; 1 kernel gone.\nNew: 300 ms (b). Gone: 1 ms (a)." in outcome.out
    assert "slower" not in outcome.out
    assert len(outcome.err.splitlines()) == 1
    assert "nothing in common with" in outcome.err
    (summary,) = json.loads(run("compare", *paths, "--json").out)["summary"]
    assert (summary["outcome"], summary["time_change"], summary["seconds"]) == ("nothing in common", None, None)
    assert run("compare", *paths, "--fail-if", "time > 1").code == 1


def test_json_says_it_on_standard_error(run: Command, pair: tuple[Path, Path]) -> None:
    outcome = run("compare", *pair, "--json", "--fail-if", "time > 1.05 * baseline")
    document = json.loads(outcome.out)
    assert outcome.code == 1
    assert document["view"] == "comparison"
    assert [row["result"] for row in document["thresholds"]] == ["tripped", "not evaluated", "not evaluated"]
    assert document["summary"][0]["seconds"] == pytest.approx(10e-3)
    assert document["summary"][0]["total_seconds"] == pytest.approx(11e-3)
    assert document["kernels"][0]["seconds_saved"] == pytest.approx(-5e-3)
    assert document["kernels"][1]["time_change"] is None
    assert {row["level"] for row in document["levels"]} == {"", "l1", "l2", "dram"}
    assert "tripped: time > 1.05 * baseline: main_loop" in outcome.err


def test_tables(run: Command, pair: tuple[Path, Path]) -> None:
    for table in ("kernels", "levels", "summary", "thresholds", "roofs"):
        text = run("compare", *pair, "-o", "-", "--format", "csv", "--table", table, "--fail-if", "time > 1 s").out
        assert text.splitlines()[0].split(",") == [one.name for one in getattr(columns, f"COMPARISON_{table.upper()}")]


def test_files(run: Command, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for suffix, start in (
        ("md", "<!-- ncu-roofline compare -->\n\n## Nightly"),
        ("txt", "after.ncu-rep against"),
        ("json", "{"),
        ("html", "<!DOCTYPE"),
        ("svg", "<?xml"),
    ):
        target = tmp_path / f"out.{suffix}"
        words = ("compare", *pair, "-o", target, "--title", "Nightly")
        assert run(*words, *(("--theme", "dark") if suffix in ("html", "svg") else ())).code == 0
        assert target.read_text().startswith(start)
    assert_refused(run(*words), target)
    assert run(*words, "--force").code == 0


def test_roofs_are_those_of_each_report(run: Command, tmp_path: Path) -> None:
    """Two reports of one GPU at two clocks: each has compute roofs at its own."""
    clocks = {"slow": 1.0e9, "fast": 1.4e9}
    paths = [report(tmp_path / f"{name}.ncu-rep", kernel(complete(clock=clock))) for name, clock in clocks.items()]
    rows = json.loads(run("compare", *paths, "--json").out)["roofs"]
    peaks = [row["value"] for row in rows if row["roof"] == "fp64.fma"]
    assert peaks[1] == pytest.approx(1.4 * peaks[0])


def test_markdown_tables(run: Command, pair: tuple[Path, Path]) -> None:
    lines = run("compare", *pair, "-o", "-", "--format", "md").out.splitlines()
    header = next(line for line in lines if line.startswith("| kernel"))
    rows = [line for line in lines if line.startswith("| ")]
    assert {line.count("|") for line in rows} == {header.count("|")}
    assert len(rows) == 2 + 3
    text = run("compare", *pair, "--fail-if", "time > baseline", "-o", "-", "--format", "md").out
    assert 0 < text.index("### ") < text.index("**Thresholds") < text.index("| kernel")


def test_wrong_options(run: Command, pair: tuple[Path, Path]) -> None:
    for words, about in (
        (("--fail-if", "fraction <"), "threshold fraction <"),
        (("--fail-if", "fractoin < 1"), "threshold fractoin < 1"),
        (("--fail-if", "fraction.l9 < 1"), "threshold fraction.l9 < 1"),
        (("--fail-if", "__import__('os')"), "threshold __import__('os')"),
        (("--json", "-o", "x.json"), "--json x.json"),
        (("-o", "x.gif"), "x.gif"),
    ):
        outcome = run("compare", *pair, *words)
        assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (2, "", 1)
        assert outcome.err.startswith("ncu-roofline: Cannot ")
        assert all(part in outcome.err for part in about.split(" ", 1))
    assert_no_leftovers(pair[0].parent, "before.ncu-rep", "after.ncu-rep")


def test_tolerances(run: Command, pair: tuple[Path, Path]) -> None:
    for text in ("-1", "x", "100%", "nan", "", "150%", "1.5"):
        outcome = run("compare", *pair, f"--tolerance={text}")
        assert (outcome.code, "--tolerance" in outcome.err) == (2, True), text
    for text in ("99.9%", "0.999"):
        kernels = json.loads(run("compare", *pair, "--tolerance", text, "--json").out)["kernels"]
        assert [row["noise"] for row in kernels] == pytest.approx([0.999] * 3)


def test_folders_and_single_arguments(run: Command, tmp_path: Path) -> None:
    """A folder is one state, its reports together; alone, each of its reports is a state."""
    for folder, seconds in (("a", 1e-3), ("b", 2e-3)):
        (tmp_path / folder).mkdir()
        for rank in (0, 1):
            report(tmp_path / folder / f"rank{rank}.ncu-rep", kernel(complete(seconds=seconds)))
    both = json.loads(run("compare", tmp_path / "a", tmp_path / "b", "--json").out)["summary"]
    assert [(row["launches_before"], row["seconds"]) for row in both] == [(2, pytest.approx(4e-3))]
    alone = json.loads(run("compare", tmp_path, "--json", "--against", "baseline").out)["summary"]
    assert [row["seconds"] for row in alone] == pytest.approx([1e-3, 2e-3, 2e-3])
    text = run("compare", tmp_path).out
    assert "b/rank1.ncu-rep against a/rank0.ncu-rep (baseline)" in text


def test_a_report_with_itself_and_alone(run: Command, pair: tuple[Path, Path]) -> None:
    outcome = run("compare", pair[0], pair[0], "--fail-if", "time != baseline", "--strict")
    assert outcome.code == 0
    assert "The same within 2.0 %" in outcome.out
    assert_refused(run("compare", pair[0]), pair[0], code=2)
    with pytest.raises(TypeError, match="two states or more"):
        ncu_roofline.compare(pair[0])


def test_keep_going(run: Command, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    """A report that can't be read is left out, but nothing takes the place of the baseline."""
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(b"text")
    for position in range(3):
        outcome = run("compare", *pair[:position], bad, *pair[position:], "--keep-going")
        assert (outcome.code, outcome.out != "") == (1, position > 0)
        assert f"Cannot read {bad}" in outcome.err
        assert ("the baseline could not be read" in outcome.err) == (position == 0)


def test_filters(run: Command, pair: tuple[Path, Path]) -> None:
    def kernels(*words: object) -> list[str]:
        return [row["kernel"] for row in json.loads(run("compare", *pair, "--json", *words).out)["kernels"]]

    assert kernels("--kernel", "main|gone") == ["main_loop", "gone"]
    assert kernels("--launch", "0") == ["main_loop"]
    assert kernels("--top", "1") == ["main_loop"]
    assert_refused(run("compare", *pair, "--kernel", "none"), f"{pair[0]} {pair[1]}")
    levels = json.loads(run("compare", *pair, "--json", "--level", "l2", "--precision", "fp64").out)["levels"]
    assert {row["level"] for row in levels} == {"", "l2"}
    assert {row["precision"] for row in levels} == {"", "fp64"}


def test_clocks_and_what_counts(run: Command, tmp_path: Path) -> None:
    compute = {**complete(), **flops("d", fma=3_000_000_000)}
    paths = [report(tmp_path / f"{n}.ncu-rep", kernel({**compute, **timing(1e-3 / n, n * 1e9)})) for n in (1, 1.4)]
    text = run("compare", *paths).out
    assert f"The same within 2.0 %: 1 ms {ARROW} 1 ms at the clock of the baseline" in text
    assert f"As measured: 1 ms {ARROW} 714 µs." in text
    assert "*: at the clock of the baseline" in text
    assert "nearest its FP64 FMA roof, so its time is scaled" in text
    assert "faster" in run("compare", *paths, "--times", "raw").out


def test_other_gpus(run: Command, tmp_path: Path) -> None:
    paths = [report(tmp_path / f"{n}.ncu-rep", kernel(complete(device))) for n, device in enumerate((A100, H100))]
    outcome = run("compare", *paths, "--fail-if", "time > baseline")
    assert outcome.code == 0
    assert "Another GPU: shares of the roof are compared, times are not" in outcome.out
    assert "times are not comparable" in outcome.out
    assert "the GPUs differ: no baseline.time" in " ".join(outcome.out.split())


def ceilings(path: Path, spread: float) -> Path:
    entries = [
        {"id": "dram.read", "value": 1.4e12, "unit": "B/s", "cv": spread},
        {"id": "fp64.fma", "value": 9e12, "unit": "FLOP/s"},
    ]
    device = {"name": "NVIDIA A100-SXM4-40GB", "cc": "8.0"}
    path.write_text(json.dumps({"schema": "ert-ceilings", "schema_version": 1, "device": device, "ceilings": entries}))
    return path


def test_measured_ceilings(run: Command, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    before, after = (
        json.loads(run("compare", *pair, "--json", *words).out)["kernels"][0]["fraction_before"]
        for words in ((), ("--ceilings", ceilings(tmp_path / "c.json", 0.01)))
    )
    assert after == pytest.approx(before * 1555.2e9 / 1.4e12)


@pytest.mark.parametrize(("spread", "verdict"), [(0.001, "further"), (0.9, "same")])
def test_the_spread_of_ceilings_is_noise_between_gpus(run: Command, tmp_path: Path, spread: float, verdict: str) -> None:
    paths = [report(tmp_path / f"{n}.ncu-rep", kernel(complete(device))) for n, device in enumerate((A100, H100))]
    h100 = {**H100, "device__attribute_global_memory_bus_width": 10240}
    report(paths[1], kernel(complete(h100)))
    words = ("--ceilings", ceilings(tmp_path / "c.json", spread), "--json")
    assert [row["outcome"] for row in json.loads(run("compare", *paths, *words).out)["kernels"]] == [verdict]


def test_help_names_every_quantity(run: Command) -> None:
    text = run("compare", "--help").out
    for name, quantity in QUANTITIES.items():
        for part in quantity.parts or ("",):
            assert f"{name}.{part}".rstrip(".") in text


REAL = [
    ("a40-ncu2022.1-full-1", "a40-ncu2022.4-full-1"),
    ("rtx4060-ncu2024.2-custom-1", "rtx4060-ncu2024.2-custom-2", "rtx4060-ncu2024.2-custom-3", "rtx4060-ncu2024.2-custom-4"),
    pytest.param(("a100-ncu2021.2-basic-1", "a100-ncu2022.4-full-1"), marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("names", REAL, ids=lambda names: names[0])
def test_real_reports(run: Command, real_reports: dict[str, Path], names: tuple[str, ...]) -> None:
    outcome = run("compare", *(real_reports[f"{name}.ncu-rep"] for name in names), "--fail-if", "fraction < 0.9 * baseline")
    assert outcome.code in (0, 1)
    assert f"{names[1]}.ncu-rep against {names[0]}.ncu-rep (baseline)" in outcome.out
    assert "nan" not in outcome.out
