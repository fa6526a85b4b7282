"""Threshold expressions: what they read, what they refuse and where, and what they say of a comparison."""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline import roofline
from ncu_roofline.analyses.compare.columns import QUANTITIES
from ncu_roofline.analyses.compare.frames import Comparison, Settings, compare
from ncu_roofline.analyses.compare.thresholds import MISSING, evaluate, parse
from ncu_roofline.base.errors import UsageError
from tests.factory import A100, H100, NO_WORK, Metrics, complete, flops, kernel, report, timing, traffic

NUMBERS = {
    "time": 2.0,
    "baseline.time": 1.0,
    "fraction": 0.5,
    "baseline.fraction": 0.6,
    "share": 0.25,
    "bytes.dram": 3e9,
    "baseline.bytes.dram": 0.0,
    "flops.fp64": math.nan,
}

TRUTH: dict[str, bool | None] = {
    "time > 1.05 * baseline": True,
    "time > 2 * baseline": False,
    "time >= 2 * baseline": True,
    "time == 2": True,
    "time != 2": False,
    "time <= baseline + 1": True,
    "baseline < time": True,
    "fraction < 0.9 * baseline": True,
    "fraction<.9*baseline": True,
    "fraction < 90 % * baseline": True,
    "fraction < 83 % * baseline": False,
    "time - baseline.time > 1 s": False,
    "time - baseline > 999 ms": True,
    "time > 2e3 ms": False,
    "time > -1": True,
    "-time < -1": True,
    "- -time == 2": True,
    "time > 1 + 2 * 3 - 6": True,
    "time > (1 + 2) * 3 - 7.5": True,
    "8 / 2 / 2 == time": True,
    "6 - 2 - 2 == time": True,
    "bytes.dram > 2.9 GB": True,
    "bytes.dram > 3.1 GB": False,
    "bytes.dram > 2900 MB": True,
    "bytes.dram / time > 1": True,
    "time / baseline > 50 %": True,
    "time > (1 + 5 %) * 1 s": True,
    "time > 1 and share > 1 %": True,
    "time > 1 and share > 0.5": False,
    "time > 5 or share > 0.1": True,
    "time > 5 or share > 0.5": False,
    "time > 5 and time > 5 or share > 0": True,
    "share > 0 or time > 5 and time > 5": True,
    "flops.fp64 > baseline": None,
    "flops.fp64 > 0 and time > 5": False,
    "flops.fp64 > 0 and time > 1": None,
    "flops.fp64 > 0 or time > 1": True,
    "flops.fp64 > 0 or time > 5": None,
    "bytes.dram / baseline > 2": None,
    "time < baseline * (1 / 0)": None,
    "(time > 1) and (share > 0.5 or share > 0.1)": True,
    " time\n > 1 ": True,
}


@pytest.mark.parametrize("text", TRUTH)
def test_truth(text: str) -> None:
    expected = TRUTH[text]
    truth = parse(text).truth(lambda name: NUMBERS.get(name.text, math.nan))
    assert truth == (MISSING if expected is None else expected)


# Expression -> the character (from 1) at which it is wrong, 0 for its end, and a word of the reason.
WRONG = {
    "fraction": (0, "a comparison"),
    "fraction < baselin": (12, "names known"),
    "fraction << 2": (0, "a comparison"),
    "bytes > 1": (1, "needs a part"),
    "bytes.total > 1": (1, "needs a part"),
    "time.launch > 1": (1, "names known"),
    "time.foo > 1": (1, "names known"),
    "launches.dram > 1": (1, "names known"),
    "1 < 2": (1, "names nothing"),
    "baseline < 1": (1, "names nothing"),
    "time > flops * baseline": (16, "say which baseline"),
    "time > 1 GB": (8, "unit fits none"),
    "time > 5 %": (8, "a percentage of what"),
    "0.1 < fraction < 0.3": (16, "join comparisons"),
    "time > 1 $": (10, "no meaning"),
    "time > 2x": (9, "go on"),
    "time > 1 min": (10, "go on"),
    "time > 1 # and share > 1 %": (10, "no meaning"),
    "time > 2 ** 8": (8, "a number or a name"),
    "time > (share > 1)": (9, "a number or a name"),
    "time > (share).x": (8, "a number or a name"),
    "time .raw > 1": (1, "a number or a name"),
    "time > 1 .real": (8, "a number or a name"),
    "time > True": (8, "names known"),
    "a" * 600: (41, "longer"),
    "__import__('os').system('true')": (12, "no meaning"),
    "time\n> $": (8, "no meaning"),
    "time < 1e999": (8, "larger than 1.8e\\+308"),
    "time < 1e305 Ts": (8, "no number may be larger"),
    "time < " + "9" * 401: (8, "no number may be larger"),
    "nan > time": (1, "names known"),
    "time < inf": (8, "names known"),
}
# Where these are wrong is said as Python sees it.
UNREADABLE = (
    "", "fraction <", "fraction < 0.9 * * 2", "fraction = 2", "time > (1", "time > 1)", "not time > 1", "time > 1 and",
    "and time > 1", "(" * 60 + "1", "time > 0x10", "time > 1_0", "time > 1j", "time if share else 1 > 2",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_errors_point_at_the_place(text: str) -> None:
    character, reason = WRONG[text]
    with pytest.raises(UsageError, match=reason) as error:
        parse(text)
    assert error.value.exit_code == 2
    assert (f"at character {character} (" in str(error.value)) if character else "at its end" in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Cannot use threshold"):
        parse(text)


def test_depth_has_no_limit_but_the_length() -> None:
    for text in ("-" * 490 + "1 < time", "(" * 190 + "1" + ")" * 190 + " < time"):
        assert parse(text).truth(lambda _: 2.0) == 1


@given(st.text(alphabet="time.bselnfrdam0123456789 <>=!+-*/()%$and", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        parse(text).truth(lambda _: 1.0)


LEAF = st.one_of(st.integers(1, 9).map(str), st.sampled_from(["time", "share", "fraction"]))
SUM = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join), inner.map("({})".format), inner.map("-{}".format)
    ),
    max_leaves=8,
)


@given(SUM)
def test_arithmetic_is_that_of_python(text: str) -> None:
    """Priorities, brackets and signs agree with Python's own reading of the same sums."""
    values = {"time": 2.0, "share": 0.25, "fraction": 0.5}
    try:
        expected = _python(ast.parse(text, mode="eval").body, values)
    except ZeroDivisionError:
        expected = math.nan
    truth = parse(f"time - time + {text} > 0").truth(lambda name: values[name.text])
    assert truth == (MISSING if math.isnan(expected) else 0.0 + expected > 0)


def _python(node: Any, values: dict[str, float]) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp):
        return -_python(node.operand, values)
    left, right = _python(node.left, values), _python(node.right, values)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    return left * right if isinstance(node.op, ast.Mult) else left / right


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    """A kernel twice as slow with twice the DRAM bytes, one added, one removed; all of 1 GFLOP FP64."""
    slower = complete(seconds=2e-3, **{"dram__bytes.sum": 500_000_000})
    before = report(tmp_path / "a.ncu-rep", kernel(complete()), kernel(complete(), "void gone()"))
    after = report(tmp_path / "b.ncu-rep", kernel(slower), kernel(complete(), "void fresh()"))
    return compare(roofline(before), roofline(after), labels=["a", "b"])


def results(comparison: Comparison, threshold: str) -> dict[str, str]:
    frame = evaluate(comparison, [threshold]).thresholds
    assert set(frame["threshold"]) == {threshold}
    return dict(zip(frame["kernel"], frame["result"], strict=True))


KERNEL = {
    "time > 1.05 * baseline": "tripped",
    "time.raw > 1.999 ms and time.raw < 2.001 ms": "tripped",
    "time.total > baseline": "tripped",
    "time.total == 2 ms": "tripped",
    "time.normalised > baseline": "tripped",
    "cycles > 2.8e6 and cycles < 2.9e6": "tripped",
    "clock != baseline": "passed",
    "launches != baseline": "passed",
    "share > 66 % and share < 67 %": "tripped",
    "noise == 2 %": "tripped",
    "flops != baseline": "passed",
    "flops == 1 GFLOP": "tripped",
    "flops.fp64 == 1 GFLOP and flops.fp32 == 0": "tripped",
    "flops.fp32 > baseline": "passed",
    "flops.total == 1 GFLOP and flops.total.fp64 == flops": "tripped",
    "flops.tensor.fp16 > baseline": "not evaluated",
    "bytes.dram == 2 * baseline": "tripped",
    "bytes.dram == 500 MB": "tripped",
    "bytes.total.dram == bytes.dram": "tripped",
    "bytes.system > 0": "not evaluated",
    "bandwidth.dram == 250 GB/s": "tripped",
    "intensity.dram == 2 FLOP/B and baseline.intensity.dram == 4 FLOP/B": "tripped",
    "intensity.fp64.l2 == 2": "tripped",
    "intensity.fp32.l2 == 2": "not evaluated",
    "performance == 500 GFLOP/s": "tripped",
    "performance.fp64 < 0.51 * baseline": "tripped",
    "fraction < 1.001 * baseline and fraction > 0.999 * baseline": "tripped",
    "fraction == fraction.dram": "tripped",
    "fraction.fp64 == fraction": "tripped",
    "fraction.fp64.l2 == fraction.l2": "tripped",
    "fraction.l2 < 0.3": "tripped",
}


@pytest.mark.parametrize("threshold", KERNEL)
def test_names(comparison: Comparison, threshold: str) -> None:
    assert results(comparison, threshold)["kernel"] == KERNEL[threshold]


def test_every_name_is_tried_above() -> None:
    tried = {name.quantity for text in KERNEL for name in parse(text).names}
    assert tried == set(QUANTITIES)


def test_what_one_report_lacks_is_not_evaluated(comparison: Comparison) -> None:
    expected = {"kernel": "passed", "fresh": "not evaluated", "gone": "not evaluated"}
    assert results(comparison, "time > 5 * baseline") == expected
    assert results(comparison, "time > 1") == {**expected, "fresh": "passed"}
    assert results(comparison, "time > baseline + 1 or time > 0") == {
        "kernel": "tripped",
        "fresh": "tripped",
        "gone": "not evaluated",
    }
    reasons = evaluate(comparison, ["time > 5 * baseline"]).thresholds.set_index("kernel")["reason"]
    assert reasons["fresh"] == "added: no baseline.time"
    assert reasons["gone"] == "removed: no time"
    assert reasons["kernel"] == "time = 2 ms, baseline.time = 1 ms"


def test_what_is_small_trips_nothing_unless_asked(tmp_path: Path) -> None:
    """A launch that went from 11 to 13 us, and one of 1 % of the time; what is false or lacks a number stays so."""
    kernels = [("void short()", 11e-6, 13e-6), ("void little()", 50e-6, 60e-6), ("void long()", 10e-3, 11e-3)]
    states = [
        roofline(report(tmp_path / f"{side}.ncu-rep", *(kernel(complete(seconds=one[side]), str(one[0])) for one in kernels)))
        for side in (1, 2)
    ]
    comparison, asked = compare(*states), compare(*states, settings=Settings(small=True))
    for threshold in ("time > 1.05 * baseline", "performance < 0.95 * baseline", "time > 1 us"):
        assert results(comparison, threshold) == {"long": "tripped", "little": "not judged", "short": "not judged"}
        assert set(results(asked, threshold).values()) == {"tripped"}
    assert set(results(comparison, "time > 2 * baseline").values()) == {"passed"}
    assert set(results(comparison, "flops.tensor.fp16 > 0").values()) == {"not evaluated"}
    reasons = evaluate(comparison, ["time > baseline"]).thresholds.set_index("kernel")["reason"]
    assert reasons["short"] == "launches under 20 \N{MICRO SIGN}s (--small judges them)"
    assert reasons["little"] == "under 1 % of the time (--small judges them)"


@pytest.mark.parametrize(
    ("threshold", "reason"),
    [
        ("flops.fp65 > 0", "fp65 is no precision or level"),
        ("fraction.l9 < 1", "l9 is no precision or level"),
        ("bytes.fp64 < 1", "bytes takes bytes.LEVEL"),
        ("flops.total.dram < 1", "flops.total takes flops.total.PRECISION"),
        ("flops.dram < 1", "flops takes flops.PRECISION"),
        ("intensity.fp64 < 1", "intensity takes intensity.LEVEL"),
        ("share > baseline", "the baseline has none"),
    ],
)
def test_parts_that_do_not_exist(comparison: Comparison, threshold: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        evaluate(comparison, [threshold])


def test_times_of_different_gpus_are_not_evaluated(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"{n}.ncu-rep", kernel(complete(device))) for n, device in enumerate((A100, H100))]
    result = compare(*map(roofline, paths))
    assert results(result, "time > baseline") == {"kernel": "not evaluated"}
    assert results(result, "bytes.dram > baseline") == {"kernel": "passed"}
    assert "the GPUs differ" in evaluate(result, ["time > baseline"]).thresholds["reason"][0]


def test_thresholds_use_times_at_one_clock(tmp_path: Path) -> None:
    """The same cycles at another clock: a compute-bound kernel has not become slower."""
    metrics: Metrics = {**complete(), **flops("d", fma=3_000_000_000)}
    paths = [
        report(tmp_path / f"{clock}.ncu-rep", kernel({**metrics, **timing(1e-3 * 1.4e9 / clock, clock)}))
        for clock in (1.4e9, 1.0e9)
    ]
    result = compare(*map(roofline, paths))
    assert results(result, "time > 1.05 * baseline") == {"kernel": "passed"}
    assert results(result, "time.raw > 1.05 * baseline") == {"kernel": "tripped"}


def test_bytes_of_copies(tmp_path: Path) -> None:
    """Kernels without floating-point work have no points, but bytes."""
    idle: Metrics = {**A100, **timing(), **NO_WORK}
    paths = [report(tmp_path / f"{size}.ncu-rep", kernel({**idle, **traffic(1, 1, size)})) for size in (10**8, 2 * 10**8)]
    result = compare(*map(roofline, paths))
    assert results(result, "bytes.dram > 1.1 * baseline") == {"kernel": "tripped"}
    assert results(result, "fraction < 0.3") == {"kernel": "not evaluated"}


def test_only_the_steps_before(tmp_path: Path) -> None:
    steps = [roofline(report(tmp_path / f"{n}.ncu-rep", kernel(complete(seconds=n * 1e-3)))) for n in (1, 2, 3)]
    both = evaluate(compare(*steps), ["time > 2.5 * baseline"]).thresholds
    assert both["result"].tolist() == ["passed", "tripped"]
    assert set(both["against"]) == {"baseline"}
    previous = evaluate(compare(*steps, settings=Settings(against="previous")), ["time > 1.6 * baseline"]).thresholds
    assert previous["result"].tolist() == ["tripped", "passed"]
