"""`bench compare`: differences beyond the spread, per cycle, per joule; conditions told; a threshold for CI."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.files import compare, open_file, over
from tests.bench.made_files import Change, write
from tests.cli.command import Command, assert_refused
from tests.schemas import assert_fits


def changed(**by_id: dict[str, Any]) -> Change:
    """Changes entries: ``fp64_fma={...}``."""

    def change(content: dict[str, Any]) -> None:
        for entry in content["ceilings"]:
            entry.update(by_id.get(entry["id"].replace(".", "_"), {}))

    return change


def compared(folder: Path, speed: float, change: Change = lambda _content: None) -> dict[str, Any]:
    return compare(
        open_file(str(write(folder / "a.json", 1))), open_file(str(write(folder / "b.json", 2, speed, change=change)))
    )


def publish(content: dict[str, Any]) -> None:
    content["status"] = "published"
    for entry in content["ceilings"]:
        entry["source"] = "A paper"


def outcomes(comparison: dict[str, Any]) -> dict[str, str]:
    return {row["ceiling"]: row["outcome"] for row in comparison["ceilings"]}


@pytest.mark.parametrize(
    ("speed", "outcome"), [(1.0, "same within spread"), (1.0001, "same within spread"), (1.01, "faster"), (0.95, "slower")]
)
def test_differences_beyond_the_spread(tmp_path: Path, speed: float, outcome: str) -> None:
    found = compared(tmp_path, speed)
    assert outcomes(found) == dict.fromkeys(("dram.read", "fp64.fma", "launch.stream"), outcome)
    rows = {row["ceiling"]: row for row in found["ceilings"]}
    assert rows["fp64.fma"]["ratio"] == pytest.approx(speed, rel=1e-3)
    assert rows["launch.stream"]["ratio"] == pytest.approx(1 / speed, rel=1e-3)  # seconds: there less is faster
    assert rows["launch.stream"]["slowdown"] == pytest.approx(1 / speed - 1, abs=1e-3)
    assert rows["dram.read"]["slowdown"] == pytest.approx(1 - speed, abs=1e-3)


def test_the_spread_is_that_of_both(tmp_path: Path) -> None:
    wide = {"ci95": [0.94 * 33e12, 1.0 * 33e12], "between_session_cv": 0.01}
    found = compared(tmp_path, 0.96, changed(fp64_fma=wide))
    row = next(row for row in found["ceilings"] if row["ceiling"] == "fp64.fma")
    assert row["b"]["spread"] == pytest.approx(0.03 * 33e12 / row["b"]["value"])
    assert row["spread"] == pytest.approx((row["a"]["spread"] ** 2 + row["b"]["spread"] ** 2) ** 0.5)  # type: ignore[operator]
    assert row["outcome"] == "slower"
    sessions = compared(tmp_path, 0.96, changed(fp64_fma={"between_session_cv": 0.05}))
    assert outcomes(sessions)["fp64.fma"] == "same within spread"
    unknown = compared(tmp_path, 0.96, changed(fp64_fma={"between_session_cv": None, "ci95": None}))
    assert outcomes(unknown)["fp64.fma"] == "spread unknown"
    assert [row["ceiling"] for row in over(unknown, 0.03)] == ["dram.read", "fp64.fma", "launch.stream"]


def test_of_a_single_session_the_spread_is_unknown(tmp_path: Path) -> None:
    for between in (None, 0.0):
        found = compared(tmp_path, 0.99, changed(fp64_fma={"sessions": 1, "between_session_cv": between}))
        assert outcomes(found)["fp64.fma"] == "spread unknown"
        assert outcomes(found)["dram.read"] == "slower"
        row = next(row for row in found["ceilings"] if row["ceiling"] == "fp64.fma")
        assert row["spread"] is None
        assert [row["ceiling"] for row in over(found, 0.005)] == ["dram.read", "fp64.fma", "launch.stream"]


def test_per_cycle_tells_clock_from_silicon(tmp_path: Path) -> None:
    """A GPU at a lower clock does as much in a cycle."""
    slower = {"clock": {"sm_mhz_mean": 990.0}, "value": 16.5e12, "per_sm_and_cycle": None, "power_w": 330.0}
    found = compared(tmp_path, 1.0, changed(fp64_fma=slower, dram_read={"clock": {"mem_mhz": 3201.0}, "power_w": None}))
    rows = {row["ceiling"]: row for row in found["ceilings"]}
    a, b = rows["fp64.fma"]["a"], rows["fp64.fma"]["b"]
    assert b["clock"] == 990e6
    assert b["per_cycle"] == pytest.approx(16.5e12 / 990e6 / 132)
    assert b["per_cycle"] == pytest.approx(a["per_cycle"], rel=2e-3)
    assert b["energy_per_unit"] == pytest.approx(20e-12)
    memory = rows["dram.read"]["b"]
    assert memory["per_cycle"] == pytest.approx(memory["value"] / 3201e6)
    assert (memory["power"], memory["energy_per_unit"]) == (None, None)
    assert rows["launch.stream"]["a"]["per_cycle"] is None


def test_what_is_not_accepted_or_missing_is_named(run: Command, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["ceilings"][1].update(accepted=False, reasons=["unstable"])
        content["ceilings"][2].update(value=None, accepted=False, reasons=["no kernel"])
        content["ceilings"][3].update(id="l9.read", value=1e12, unit="B/s", accepted=True, reasons=[])

    found = compared(tmp_path, 0.9, change)
    assert outcomes(found) == {
        "dram.read": "slower",
        "fp64.fma": "not accepted in B",
        "launch.stream": "only in A (no kernel)",
        "l9.read": "only in B",
    }
    outcome = run("bench", "compare", tmp_path / "a.json", tmp_path / "b.json", "--threshold", "3%")
    assert outcome.code == 1
    assert "only in A (no kernel)" in outcome.out
    assert outcome.out.endswith("Slower by more than 3 %:\n  dram.read: 10.0%\n")


@pytest.mark.parametrize(("threshold", "code"), [("3%", 1), ("0.04", 1), ("6%", 0), ("", 0)])
def test_threshold(run: Command, tmp_path: Path, threshold: str, code: int) -> None:
    files = write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, 0.95)
    words = ("--threshold", threshold) if threshold else ()
    outcome = run("bench", "compare", *files, *words)
    assert (outcome.code, outcome.err) == (code, "")
    rows = assert_fits("bench-compare", run("bench", "compare", *files, *words, "--json").out)
    assert rows[0]["over_threshold"] == (["dram.read", "fp64.fma", "launch.stream"] if code else [])


def test_a_threshold_below_the_spread_does_not_trip(run: Command, tmp_path: Path) -> None:
    files = write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, 0.9999)
    assert run("bench", "compare", *files, "--threshold", "0").code == 0


def test_conditions_that_differ(run: Command, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["device"].update(driver="570.1", power_limit_w=500.0, name="NVIDIA H100 80GB HBM3", ecc={"current": False})
        content["settings"]["data"] = "zeros"
        del content["tool"]["build"]

    outcome = run("bench", "compare", write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, change=change))
    assert outcome.code == 0
    for text in (
        "GPUs differ: A NVIDIA H200, B NVIDIA H100 80GB HBM3",
        "data differ: A random, B zeros",
        "drivers differ: A 580.65, B 570.1",
        "power limits differ: A unknown, B 500.0",
        "ECC modes differ: A unknown, B False",
        "compilers differ: A nvcc 13.0.88, B unknown",
    ):
        assert text in outcome.out
    same = run("bench", "compare", tmp_path / "a.json", write(tmp_path / "c.json", 3))
    assert "Conditions" not in same.out


def test_a_node_against_the_median_of_its_cluster(run: Command, tmp_path: Path) -> None:
    speeds = [1.0, 1.001, 0.95, 0.999, 1.0, 1.0005, 1.002, 1.0]
    files = [write(tmp_path / f"{number}.json", number, speed) for number, speed in enumerate(speeds)]
    cluster = tmp_path / "all.json"
    assert run("bench", "merge", *files, "-o", cluster).code == 0
    outcome = run("bench", "compare", cluster, files[0], files[2], "--threshold", "3%")
    assert outcome.code == 1
    good, slow = outcome.out.split("\n\nA: ")
    assert "Nothing is slower by more than 3 %." in good
    assert "drivers differ" not in good  # what all GPUs share stands in the merged file, too
    assert "8 GPUs" in good
    assert "fp64.fma: 5.0%" in slow


def test_published_figures_are_never_called_slower(run: Command, tmp_path: Path) -> None:
    found = compared(tmp_path, 0.5, publish)
    assert set(outcomes(found).values()) == {"conditions not comparable"}
    assert run("bench", "compare", tmp_path / "a.json", tmp_path / "b.json", "--threshold", "3%").code == 0


def test_table_and_json(run: Command, tmp_path: Path) -> None:
    files = write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, 1.01, change=changed(fp64_fma={"power_w": 700.0}))
    outcome = run("bench", "compare", *files)
    head, row = (next(line for line in outcome.out.splitlines() if word in line) for word in ("CEILING", "fp64.fma"))
    assert head.split() == ["CEILING", "A", "B", "B/A", "SPREAD", "OUTCOME", "MHZ", "PER", "CYCLE", "W", "ENERGY"]
    assert "33 TFLOP/s" in row
    assert "1.010" in row
    assert "pJ/FLOP" in row
    (found,) = json.loads(run("bench", "compare", *files, "--json").out)
    entry = next(entry for entry in found["ceilings"] if entry["ceiling"] == "fp64.fma")
    assert entry["b"]["energy_per_unit"] == pytest.approx(700 / entry["b"]["value"])
    assert (entry["outcome"], found["over_threshold"]) == ("faster", [])


@pytest.mark.parametrize("change", [{"values": [{}]}, {"ci95": [None, None]}, {"ci95": [1.0]}, {"ci95": []}, {}])
def test_a_spread_that_is_not_told_is_unknown(tmp_path: Path, change: dict[str, Any]) -> None:
    found = compared(tmp_path, 0.9, changed(fp64_fma={"ci95": None, "between_session_cv": None, **change}))
    assert outcomes(found)["fp64.fma"] == "spread unknown"


def test_threads_and_cores_of_a_cpu_are_conditions(run: Command, tmp_path: Path) -> None:
    def cpu(threads: int, cores: int) -> Change:
        return lambda content: content["device"].update(kind="cpu", threads=threads, cores=cores)

    files = write(tmp_path / "a.json", 1, change=cpu(8, 16)), write(tmp_path / "b.json", 1, change=cpu(4, 12))
    out = run("bench", "compare", *files).out
    assert "CPU threads differ: A 8, B 4" in out
    assert "CPU cores differ: A 16, B 12" in out


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["compare", "merge"])
def test_many_ceilings_take_no_time(run: Command, tmp_path: Path, command: str) -> None:
    def many(content: dict[str, Any]) -> None:
        content["ceilings"] = [{"id": f"k{i}.fma", "value": 1e12, "unit": "FLOP/s"} for i in range(20_000)]

    files = write(tmp_path / "a.json", 1, change=many), write(tmp_path / "b.json", 2, change=many)
    began = time.process_time()
    assert run("bench", command, *files, "--json").code == 0
    assert time.process_time() - began < 8  # where each ceiling looks through all others: a minute


def test_refusals(run: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", 1)
    assert_refused(run("bench", "compare", path), path, 2)
    assert_refused(run("bench", "compare", path, tmp_path / "none.json"), tmp_path / "none.json")
    assert run("bench", "compare", path, path, "--threshold", "fast").code == 2


def test_published_figures_are_not_merged(run: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", 1, change=publish)
    assert_refused(run("bench", "merge", path, write(tmp_path / "b.json", 2)), path)
