"""Comparisons and thresholds, beside what `compare-*.frames` hold: other readings of the same numbers, and real reports."""

from __future__ import annotations

import ast
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline import roofline
from ncu_roofline.analyses.compare.columns import QUANTITIES
from ncu_roofline.analyses.compare.frames import compare
from ncu_roofline.analyses.compare.thresholds import MISSING, parse
from ncu_roofline.base.errors import RooflineError, UsageError
from tests.analyses.makers import written
from tests.golden import assert_golden

TABLE = Path(__file__).with_name("thresholds.txt")
NAMED = Path(__file__).with_name("compare-thresholds.frames")
NUMBERS = {"time": 2.0, "fraction": 0.5, "share": 0.25, "noise": 2.0, "bytes.dram": 3e9, "flops.fp64": math.nan}
NUMBERS |= {"baseline.time": 1.0, "baseline.fraction": 0.6, "baseline.bytes.dram": 0.0}


def outcome(text: str) -> str:
    """Whether a threshold holds of NUMBERS, or where it is wrong."""
    try:
        truth = parse(text).truth(lambda name: NUMBERS.get(name.text, math.nan))
    except UsageError as error:
        if error.exit_code != 2 or not str(error).isprintable():
            return "no error of usage in printable words"
        return str(error).removeprefix("Cannot use threshold ").partition(": at ")[2].partition(" `ncu-roofline")[0]
    return "a number is missing" if truth == MISSING else {1.0: "true", 0.0: "false"}[float(truth)]


def test_texts_of_thresholds() -> None:
    about, *texts = (line.partition("  =>")[0] for line in TABLE.read_text(encoding="utf-8").splitlines())
    found = [outcome(ast.literal_eval(text) if text.startswith("'") else text) if text else "" for text in texts]
    lines = [f"{text}  =>  {said}" if text else "" for text, said in zip(texts, found, strict=True)]
    assert_golden(TABLE, "\n".join([about, *lines, ""]))


def test_long_texts() -> None:
    """They have a limit, and depth has none but that."""
    for text in ("-" * 490 + "1 < time", "(" * 190 + "1" + ")" * 190 + " < time"):
        assert outcome(text) == "true"
    for text, said in (("a" * 600, "character 41 .*longer"), ("time < " + "9" * 401, "character 8 .*no number may be larger")):
        assert re.search(said, outcome(text))
    assert re.search("character 150 .*malformed here", outcome("(" * 150 + "1"))


@given(st.text(alphabet="time.bselnfrdam0123456789 <>=!+-*/()%$and", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        parse(text).truth(lambda _: 1.0)


def larger(sums: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(sums, st.sampled_from("+-*/"), sums).map(" ".join) | sums.map("({})".format) | sums.map("-{}".format)


LEAF = st.integers(1, 9).map(str) | st.sampled_from(["noise", "share", "fraction"])


@given(st.recursive(LEAF, larger, max_leaves=8))
def test_arithmetic_is_that_of_python(text: str) -> None:
    """Priorities, brackets and signs agree with Python's own reading of the same sums."""
    values = {name: NUMBERS[name] for name in ("noise", "share", "fraction")}
    try:
        expected = float(eval(text, {}, values))
    except ZeroDivisionError:
        expected = math.nan
    truth = parse(f"share - share + {text} > 0").truth(lambda name: values[name.text])
    assert truth == (MISSING if math.isnan(expected) else 0.0 + expected > 0)


def test_every_name_is_tried_of_a_comparison() -> None:
    tried = re.findall(r'^  "(.*)",$', NAMED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {name.quantity for text in tried for name in parse(text).names} == set(QUANTITIES)


def test_rates_of_launches_are_those_of_a_roofline_by_kernel(tmp_path: Path) -> None:
    three = written(tmp_path, "three", [{}, {"ms": 2, "fp64": 3e9}, {"ms": 4, "dram": 1e9}])
    result = compare(roofline(three), roofline(written(tmp_path, "one", [{}])))
    (row,) = result.kernels.to_dict("records")
    levels = result.levels[result.levels["row"] == 0].set_index(["precision", "level"])
    points = roofline(three, by="kernel").points.to_dict("records")
    assert len(points) == 3
    for point in points:
        mine = levels.loc[point["precision"], point["level"]]
        for name in ("intensity", "performance", "fraction"):
            assert mine[f"{name}_before"] == pytest.approx(point[name])
        assert (row["fraction_before"], row["binds_before"]) == (pytest.approx(point["binding_fraction"]), point["binds"])


def test_wrong_calls(tmp_path: Path) -> None:
    one = roofline(written(tmp_path, "one", [{}]))
    calls: list[tuple[Any, Any, str]] = [((None,), None, "of type NoneType"), (("/nowhere",), None, "there is no such file")]
    for states, labels, said in [*calls, ((one, one), ["a"], "zip")]:
        with pytest.raises((TypeError, ValueError, RooflineError), match=said):
            compare(*states, labels=labels)


PAIRS = [("a40-ncu2022.1-full-1", "a40-ncu2022.4-full-1"), ("rtx4060-ncu2024.2-custom-1", "rtx4060-ncu2024.2-custom-4")]


@pytest.mark.parametrize("pair", PAIRS)
def test_real_reports(real_reports: dict[str, Path], pair: tuple[str, str]) -> None:
    before, after = (roofline(real_reports[f"{name}.ncu-rep"]) for name in pair)
    result = compare(before, after)
    summary = result.summary.iloc[0]
    for frame, suffix in ((before, "_before"), (after, "")):
        assert summary[f"total_seconds{suffix}"] == pytest.approx(frame.kernels["seconds"].sum())
        assert result.kernels[f"launches{suffix}"].sum() == len(frame.kernels)
    matched = result.kernels[result.kernels["matched"] != ""]
    assert (summary["matched"], summary["outcome"] == "nothing in common") == (len(matched), matched.empty)
    if len(matched):  # the OpenACC kernel of line 34 is at line 39 by then, and its second launch has another grid
        assert matched["matched"].tolist() == ["numbers", "numbers"]
        assert matched["seconds_saved"].sum() == pytest.approx(summary["seconds_saved"])
    same = compare(before, before)
    assert (set(same.kernels["outcome"]), same.summary["speedup"][0]) == ({"same"}, pytest.approx(1.0))
