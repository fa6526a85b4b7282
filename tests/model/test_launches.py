"""Launches and what is said of them, case by case: `launches*.toml` have their metrics and the rows of frames."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.report import KernelData
from ncu_roofline.model import Roofline, Selection
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.runner import load_rules
from tests.cli.command import Command
from tests.cli.test_ceilings import ceiling, document, write
from tests.factory import (
    A100,
    NO_WORK,
    THREADS,
    WARPS,
    Metrics,
    complete,
    flops,
    kernel,
    opcodes,
    report,
    timing,
    traffic,
)
from tests.facts.stated import toml
from tests.nvrules.running import messages, outcomes

TABLE = toml(Path(__file__).parent / "launches.toml")
FILES = sorted(Path(__file__).parent.glob("launches*.toml"))
CASES = {name: case for path in FILES for topic in toml(path)["cases"].values() for name, case in topic.items()}


def number(stated: Any) -> Any:
    """Products and quotients are written as such: "= 64 * 108 * 1.41e9"."""
    if not (isinstance(stated, str) and stated.startswith("= ")):
        return stated
    value = 1.0
    for sign, factor in re.findall(r"([=*/]) ([\d.e+_-]+)", stated):
        value = value / float(factor) if sign == "/" else value * float(factor)
    return value


def device_of(name: str) -> Metrics:
    """An A100 that differs as `devices` says."""
    given = TABLE["devices"][name]
    words = {"name": "display_name", "major": "compute_capability_major", "minor": "compute_capability_minor"}
    return A100 | {f"device__attribute_{words.get(key, key)}": value for key, value in given.items()}


def full(name: str) -> str:
    """The name of a metric."""
    counter, percent, active = TABLE["short"].get(name, name).partition(" %")
    return f"{counter}.avg.pct_of_peak_sustained_{active.strip() or 'elapsed'}" if percent else counter


def launch_of(case: dict[str, Any]) -> KernelData:
    """``base``: what it has beside its device and ``metrics`` (those ``without`` are taken out, by how they begin)."""
    device, seconds, clock = device_of(case.get("device", "A100")), number(case.get("seconds", 1e-3)), case.get("clock", 1.41e9)
    moved = traffic(10**9, 500_000_000 // 32, 250_000_000)
    few: Metrics = {**traffic(10**6, 10**4, 10**6), **TABLE["quiet"]}
    metrics: Metrics = {
        "complete": complete(device, seconds, clock),
        "quiet": {**complete(device, seconds, clock), **few},
        "traffic": {**device, **timing(seconds, clock), **moved},
        "no work": {**device, **timing(seconds, clock), **NO_WORK, **moved},
        "time": {**device, **timing(seconds, clock)},
        "device": device,
    }[case.get("base", "complete")]
    metrics = {name: value for name, value in metrics.items() if not name.startswith(tuple(case.get("without", ("?",))))}
    metrics |= {full(name): number(value) for name, value in case.get("metrics", {}).items()}
    for letter, counts in case.get("flops", {}).items():
        metrics |= flops(letter, *map(round, map(number, counts)))
    instances = opcodes(**{name: number(count) for name, count in case.get("opcodes", {}).items()})
    if "instances" in case:
        instances = {key: [(name, float(count)) for name, count in case["instances"]] for key in (THREADS, WARPS)}
    return kernel(metrics, case.get("name", "k()"), instances=instances if any(instances.values()) else {})


def seen(case: dict[str, Any], path: Path) -> Roofline:
    launches = [launch_of({**case, **one}) for one in case.get("launches", [{}])]
    options = dict(case.get("options", {}))
    select = Selection(**{name: tuple(options.pop(name, ())) for name in ("precisions", "levels")})
    return roofline(report(path / "r.ncu-rep", *launches), ceilings_of(case, path), select=select, **options)


def ceilings_of(case: dict[str, Any], path: Path) -> Path | None:
    """Measured ones of the A100, if the case has any."""
    content = document(*(ceiling(one["id"]) | one for one in case.get("ceilings", ())), status=case.get("status", "measured"))
    content["device"]["sm_count"] = 108
    return write(path, content) if "ceilings" in case else None


def check(row: Any, expected: dict[str, Any]) -> None:
    """Texts and numbers as they are (unknown ones as nan); of a list of words each is there, of `not_...` none."""
    for name, stated in expected.items():
        column, value = name.removeprefix("not_"), number(stated)
        text = f"{row[column]}$"
        if isinstance(value, list):
            assert [word for word in value if (word in text) == name.startswith("not_")] == [], (name, text)
        elif isinstance(value, str):
            assert row[column] == value, name
        else:
            assert row[column] == pytest.approx(value, rel=1e-6, nan_ok=True), name


def rows_of(frame: pd.DataFrame, at: str) -> pd.DataFrame:
    """Of a point "fp64 dram" (and "1" for the launch), of a roof "fp64.fma" (and "9.0" for the chip, or its origin)."""
    columns = ("roof", "compute_capability") if "roof" in frame else ("precision", "level", "launch")
    for column, word in zip(columns, at.split(), strict=False):
        found = frame[column].astype(str) == word
        frame = frame[found if found.any() or "origin" not in frame else frame["origin"] == word]
    return frame


@pytest.mark.parametrize("which", CASES)
def test_case(which: str, tmp_path: Path) -> None:
    case = CASES[which]
    found = seen(case, tmp_path)
    for row, expected in zip_longest(found.kernels.to_dict("records"), case.get("kernels", ()), fillvalue={}):
        check(row, expected)
        assert row["reason"]
        assert not re.search("at most|nothing to gain|all together|faster", row["reason"]), row["reason"]  # a promise
        assert not row["headroom"] < 1
    if "drawn" in case:  # which points there are
        names = (found.points["precision"] + " " + found.points["level"]).tolist()
        assert list(dict.fromkeys(names)) == case["drawn"]
    for frame, kind in ((found.points, "points"), (found.roofs, "roofs")):
        for at, expected in case.get(kind, {}).items():
            rows = rows_of(frame, at)
            assert len(rows) == 1, (kind, at, frame)
            check(rows.iloc[0], expected)


@pytest.mark.parametrize("which", ["dram x 1000", "per cycle, slower", "published", "published, of another clock", "sectors"])
def test_the_rules_judge_by_the_same_roof(which: str, tmp_path: Path) -> None:
    case, rules = CASES[which], tmp_path / "rules"
    result, file, metrics = seen(case, tmp_path), ceilings_of(case, tmp_path), dict(launch_of(case).metrics)
    rules.mkdir()
    for name, text in render_rules(ceilings=[read_ceilings(file)]).items():
        (rules / name).write_text(text)
    loaded = load_rules([rules])
    for others in (metrics, dict(A100), complete(clock=1.0e9), complete(seconds=1e-5)):
        assert {one.status for one in outcomes(tmp_path, others, loaded).values()} == {"done"}
    names = ("Verdict", "Clocks", "BoundDouble")
    said = {name: " ".join(one.text for one in messages(tmp_path, metrics, name, loaded)) for name in names}
    assert result.kernels["reason"][0][:22] in said["Verdict"]
    assert (f": the {case.get('status', 'measured')} roof is " in said["Clocks"]) == ("unused" in set(result.roofs["origin"]))
    assert ("its own clock is not known" in said["Clocks"]) == (which == "published, of another clock")
    assert ("(published, conditions not comparable)" in said["BoundDouble"]) == (which == "published")


def test_charts_of_annotated_copies_have_the_roof_that_judges(tmp_path: Path, run: Command) -> None:
    mixed = {"ceilings": [*CASES["halves"]["ceilings"], {"id": "fp64.fma", "value": 1e16, "clock": {"sm_mhz_mean": 1410}}]}
    source = report(tmp_path / "r.ncu-rep", launch_of(CASES["halves"]))
    assert run("annotate", source, "--ceilings", ceilings_of(mixed, tmp_path), "-o", tmp_path / "out.ncu-rep").code == 0
    copy = (tmp_path / "out.ncu-rep").read_bytes()
    assert b"DRAM 1.25 TB/s, dram.copy (by the share of writes, 50 %) of ceilings.json" in copy
    assert b"fp64.fma of ceilings.json" not in copy
