"""Mean power, energy and duty of the time in which trials ran."""

from __future__ import annotations

import pytest

from ncu_roofline.bench.statistics import Sample, duty, growth, mean, within


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


def test_duty_is_the_timed_share_of_the_span() -> None:
    assert duty([(1.0, 2.0)]) == 1.0
    assert duty([(1.0, 2.0), (3.0, 3.5), (4.5, 5.0)]) == pytest.approx(0.5)
    assert duty([]) is None
    assert duty([(1.0, 1.0)]) is None


def test_within() -> None:
    windows = [(1.0, 2.0), (3.0, 4.0)]
    assert [within(time, windows) for time in (0.9, 1.0, 2.0, 2.5, 3.0, 4.1)] == [False, True, True, False, True, False]
