"""How much to measure, and what counts as a good measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Amount of work of a run; times in seconds.

    ``sweep_trials`` 0: no sweep, the first variant of each ceiling is taken.  ``budget`` is for all of one GPU; what does not
    fit is left out and named.  ``spare`` trials come before the ones that count, until the clock stands still.
    """

    trials: int = 31
    sessions: int = 3
    min_time: float = 0.020
    sweep_trials: int = 5
    spare: int = 10
    warm_up: float = 1.5
    budget: float = 170.0
    data: str = "random"
    seed: int = 1
    retries: int = 3
    cool_down: float = 4.0
    quick: bool = False
    silence: float = 40.0

    def key(self) -> dict[str, object]:
        """What must be the same for measurements to go together."""
        return {
            "trials": self.trials,
            "sessions": self.sessions,
            "min_time": self.min_time,
            "sweep_trials": self.sweep_trials,
            "data": self.data,
            "seed": self.seed,
            "quick": self.quick,
        }


FULL = Settings()
QUICK = Settings(
    trials=11,
    sessions=1,
    min_time=0.010,
    sweep_trials=0,
    spare=6,
    warm_up=0.7,
    budget=27.0,
    retries=1,
    cool_down=1.0,
    quick=True,
)


@dataclass(frozen=True)
class Limits:
    """What a good measurement is.

    ``cv`` within a session, ``between`` sessions (told, not rejected), share of ``outliers``; the SM clock must stay above
    ``clock`` of the highest seen in the warm-up; ``impossible`` and ``low`` are shares of the theory at the measured clock.
    """

    cv: float = 0.02
    between: float = 0.01
    outliers: float = 0.10
    clock: float = 0.95
    impossible: float = 1.01
    low: float = 0.80
    slow_gpu: float = 0.03


LIMITS = Limits()
