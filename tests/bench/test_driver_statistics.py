"""The statistics of repeated measurements."""

from __future__ import annotations

import math
import random

import pytest

from ncu_roofline.bench.measuring import (
    kept,
    median,
    median_interval,
    outliers,
    stable_from,
    summarise,
    variation,
)
from ncu_roofline.bench.telemetry import observe


def test_median_of_odd_and_even_counts() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5
    assert math.isnan(median([]))


@pytest.mark.parametrize(
    ("count", "rank"),
    [(6, 1), (9, 2), (11, 2), (15, 4), (20, 6), (31, 10), (50, 18), (100, 40)],
)
def test_the_interval_is_the_tabulated_pair_of_order_statistics(count: int, rank: int) -> None:
    """Ranks of the 95 % interval of the median as printed in tables of the sign test."""
    assert median_interval(list(range(1, count + 1))) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_values_give_their_range(count: int) -> None:
    assert median_interval(list(range(count))) == (0, count - 1)


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    dice = random.Random(1)
    hits = 0
    for _ in range(2000):
        low, high = median_interval([dice.expovariate(1.0) for _ in range(31)])
        hits += low <= math.log(2) <= high
    assert 0.95 <= hits / 2000 < 0.985


def test_outliers_by_median_absolute_deviation() -> None:
    values = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 50.0, 100.1]
    assert [i for i, out in enumerate(outliers(values)) if out] == [6]
    assert 50.0 not in kept(values)
    assert outliers([]) == []


def test_equal_values_are_no_outliers_of_each_other() -> None:
    assert not any(outliers([5.0] * 20 + [5.0005]))
    assert outliers([5.0] * 20 + [5.1])[-1]


def test_variation() -> None:
    assert math.isnan(variation([1.0]))
    assert variation([9.0, 10.0, 11.0]) == pytest.approx(0.1)
    lone = summarise([[7.0]])
    assert (lone["p05"], lone["p95"]) == (7.0, 7.0)
    assert summarise([[0.0, 10.0]])["p05"] == 0.5


def test_the_clock_stands_still_from_somewhere() -> None:
    assert stable_from([1000, 1400, 1700, 1900, 1980, 1980, 1979, 1981, 1980, 1980]) == 4
    assert stable_from([1980] * 5) == 0
    assert stable_from([1980, 1400] * 10) is None
    assert stable_from([1980] * 4) is None
    assert stable_from([0.0] * 10) is None


def test_summary_is_the_median_of_session_medians() -> None:
    """One long or odd session does not outvote the others, and the interval holds what differs between them."""
    summary = summarise([[10.0] * 31, [10.2] * 31, [12.0] * 310])
    assert (summary["value"], summary["ci95"]) == (10.2, [10.0, 12.0])
    assert [summary[key] for key in ("trials", "sessions", "min", "max", "cv")] == [372, 3, 10.0, 12.0, 0]
    assert summary["between_session_cv"] == pytest.approx(0.1022, abs=1e-3)


# What is read while trials run


def mean(samples: list[tuple[float, float]], windows: list[tuple[float, float]]) -> float | None:
    power: float | None = observe([{"time": time, "power": power} for time, power in samples], windows)["power"]
    return power


def test_power_is_weighted_with_time() -> None:
    samples = [(0.5, 90.0), (1.0, 600.0), (1.2, 600.0), (2.0, 700.0), (2.5, 90.0)]
    assert mean(samples, [(1.0, 2.0)]) == pytest.approx(0.6 * 600 + 0.4 * 700)
    assert mean([(1.3, 600.0)], [(1.0, 2.0)]) == 600.0


def test_power_of_pauses_does_not_count() -> None:
    samples = [(0.5, 600.0), (1.5, 100.0), (2.5, 700.0), (2.75, 700.0)]
    assert mean(samples, [(0.0, 1.0), (2.0, 3.0)]) == pytest.approx(650.0)
    assert mean(samples, [(0.0, 1.0), (1.6, 1.9), (2.0, 5.0)]) == pytest.approx((600 + 3 * 700) / 4)
    assert mean(samples, [(1.6, 1.9)]) is None
    assert mean(samples, []) is None
