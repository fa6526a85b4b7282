"""How much to measure, and what counts as a good measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ncu_roofline.formats.ceilings import CPU, GPU


@dataclass(frozen=True)
class Settings:
    """Amount of work of a run; times in seconds.

    ``budget`` is for all of one GPU: everything is measured once first, so that what does not fit are repeats.  ``spare``
    trials come before the ones that count, until the clock stands still.  ``retries`` are rounds over what did not stand; each
    begins with a pause of ``cool_down`` where the GPU was held back.  ``burst`` is how long the trials last that follow a
    ``rest``: as long as a kernel under a profiler, too short for the power limit to act.  The program hangs when it says
    nothing for ``silence``.
    """

    trials: int = 15
    sessions: int = 3
    min_time: float = 0.020
    spare: int = 10
    warm_up: float = 1.5
    budget: float = 170.0
    data: str = "random"
    seed: int = 1
    retries: int = 2
    cool_down: float = 4.0
    quick: bool = False
    silence: float = 40.0
    burst: float = 0.004
    rest: float = 0.2
    bursts: int = 7

    def key(self) -> dict[str, object]:
        """What must be the same for measurements to go together."""
        return {name: getattr(self, name) for name in ("trials", "sessions", "min_time", "data", "seed", "quick")}


FULL = Settings()
QUICK = Settings(
    trials=9,
    sessions=1,
    min_time=0.010,
    spare=6,
    warm_up=0.7,
    budget=27.0,
    retries=1,
    cool_down=1.0,
    quick=True,
    silence=10.0,
    bursts=0,
)


class Spread(NamedTuple):
    """How far trials ``within`` a session and medians ``between`` sessions may differ (coefficients of variation)."""

    within: float
    between: float


def spread_of(domain: str, device: str) -> Spread:
    """What is asked of a ceiling by its clock's domain and the kind of device.

    On a GPU trials agree to a thousandth; a CPU runs other programs, too; links and launches depend on the host.
    """
    if domain not in ("sm", "memory"):
        return Spread(0.10, 0.10)
    return {GPU: Spread(0.02, 0.01), CPU: Spread(0.05, 0.05)}[device]


@dataclass(frozen=True)
class Limits:
    """What else makes a good measurement.

    Share of ``outliers``; a core clock below ``clock`` of the highest seen in the warm-up is told; ``impossible`` and ``low``
    are shares of the theory at the measured clock; a value and the work per cycle may differ by ``swing`` of the clock; the
    host's clock may give a trial ``timers`` more time than the GPU's, and ``overhead`` seconds for the launch.  From ``trials``
    on their spread is known; a share of the CPU above ``disturbed`` that other programs took is told.
    """

    outliers: float = 0.10
    clock: float = 0.95
    impossible: float = 1.01
    low: float = 0.80
    slow_gpu: float = 0.03
    swing: float = 0.05
    timers: float = 0.02
    overhead: float = 0.0005
    trials: int = 3
    disturbed: float = 0.01


LIMITS = Limits()
