"""The statistics of repeated measurements."""

from __future__ import annotations

import math
import random

import pytest

from ncu_roofline.bench.statistics import (
    kept,
    median,
    median_interval,
    outliers,
    quantile,
    stable_from,
    summarise,
    variation,
)
from ncu_roofline.bench.telemetry import Sample, growth, mean


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


def test_variation_and_quantile() -> None:
    assert math.isnan(variation([1.0]))
    assert variation([9.0, 10.0, 11.0]) == pytest.approx(0.1)
    assert quantile([0.0, 10.0], 0.25) == 2.5
    assert quantile([7.0], 0.95) == 7.0


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


def counter(watts: float, ticks: list[float], step: float = 0.01, until: float = 3.0) -> list[Sample]:
    """Readings of a counter of a load that is 100 W, but ``watts`` from 1 s to 2 s, and that is renewed at the ticks."""

    def energy(time: float) -> float:
        return 1000 + 100 * time + (watts - 100) * min(max(time - 1.0, 0.0), 1.0)

    times = [number * step for number in range(round(until / step) + 1)]
    return [(time, energy(max([tick for tick in ticks if tick <= time + 1e-9], default=-0.05))) for time in times]


EVERY_50_MS = [number * 0.05 for number in range(61)]


def test_energy_is_that_of_the_timed_window_only() -> None:
    samples = counter(600.0, EVERY_50_MS)
    assert growth(samples, 1.0, 2.0) == pytest.approx(600.0, rel=1e-6)
    assert growth(samples, 1.02, 1.93) == pytest.approx(600.0 * 0.91, rel=1e-6)
    assert growth(samples, 0.5, 2.5) == pytest.approx(700.0, rel=1e-6)


def test_between_ticks_the_counter_is_a_straight_line() -> None:
    samples = [(0.0, 5.0), (1.0, 10.0), (2.0, 20.0), (2.5, 20.0), (3.0, 40.0), (4.0, 50.0)]
    assert growth(samples, 1.5, 3.5) == pytest.approx(45.0 - 15.0)
    assert growth(samples, 2.0, 3.0) == pytest.approx(20.0)


def test_a_reading_that_ends_with_the_window_goes_on_the_last_line() -> None:
    ended = [sample for sample in counter(600.0, EVERY_50_MS) if sample[0] <= 1.98]
    assert growth(ended, 1.0, 1.98) == pytest.approx(600.0 * 0.98, rel=1e-6)
    begun = [sample for sample in counter(600.0, EVERY_50_MS) if sample[0] >= 1.02]
    assert growth(begun, 1.03, 2.0) == pytest.approx(600.0 * 0.97, rel=1e-6)


def test_energy_that_cannot_be_told() -> None:
    samples = counter(600.0, EVERY_50_MS)
    assert growth(samples, 1.01, 1.08) is None  # one tick
    assert growth(samples, 1.01, 1.11) is not None  # two
    assert growth([], 1.0, 2.0) is None
    assert growth([(0.0, 5.0), (3.0, 5.0)], 1.0, 2.0) is None
    assert growth([(1.0, 5.0), (1.5, 6.0)], 1.0, 2.0) is None  # nobody knows when the first was renewed
    fell = [(time, energy if time < 1.5 else energy - 1e3) for time, energy in samples]
    assert growth(fell, 1.0, 2.0) is None  # the driver was loaded anew
    assert growth([(0.0, 9.0), (0.5, 8.0), (1.2, 9.0), (1.4, 10.0)], 1.0, 1.5) is None
    stopped = [(time, energy) for time, energy in samples if time <= 1.4]
    assert growth(stopped, 1.0, 1.45) is not None
    assert growth(stopped, 1.0, 2.0) is None  # 12 ticks after the last
    late = [(time, energy) for time, energy in samples if time >= 1.6]
    assert growth(late, 1.0, 2.0) is None


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
