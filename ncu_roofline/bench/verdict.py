"""Whether a ceiling stands, and why not: from its runs and from the theory at the measured clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncu_roofline.bench.campaign import Outcome
from ncu_roofline.bench.measuring import NOT_HERE, Record
from ncu_roofline.bench.settings import LIMITS
from ncu_roofline.bench.theory import Theory


@dataclass(frozen=True)
class Verdict:
    """``word``: ok, low, high, impossible, unstable, throttled, wrong, failed, emulated, unsupported, not measured."""

    word: str
    accepted: bool
    reasons: tuple[str, ...]


def standing(outcome: Outcome) -> list[Record]:
    """The sessions that the value is made of: those not rejected if they are more than half, else all with values."""
    measured = [record for record in outcome.sessions if record.values]
    good = [record for record in measured if not record.rejections]
    return good if 2 * len(good) > len(outcome.sessions) else measured


def without_value(outcome: Outcome) -> Verdict:
    """The verdict on a ceiling that was not measured."""
    reason = outcome.absent or next((r.failure for r in outcome.sessions if r.failure), "not measured")
    if reason in NOT_HERE:
        return Verdict(reason, False, (reason,))
    if reason.startswith("not measured"):
        return Verdict("not measured", False, (reason,))
    return Verdict("failed", False, (f"the benchmark failed: {reason}",))


def judge_value(outcome: Outcome, fraction: float | None, theory: Theory | None) -> Verdict:
    """The verdict on a measured value; ``fraction`` is its share of the theory at the measured clock."""
    used = standing(outcome)
    rejections = list(dict.fromkeys(reason for record in used for reason in record.rejections))
    reasons = [*rejections, *outcome.notes, *dict.fromkeys(note for record in used for note in record.notes)]
    dropped = sum(bool(record.values) for record in outcome.sessions) - len(used)
    if dropped:
        causes = dict.fromkeys(reason for record in outcome.sessions for reason in record.rejections)
        reasons.append(f"{dropped} of {len(outcome.sessions)} sessions left out: {'; '.join(causes)}")
    failures = [record.failure for record in outcome.sessions if record.failure]
    if failures:
        reasons.append(f"{len(failures)} of {len(outcome.sessions)} sessions failed: {'; '.join(dict.fromkeys(failures))}")
    word = rejections[0].partition(":")[0].partition(" ")[0] if rejections else "ok"
    accepted = not rejections
    if theory and fraction is not None:
        what, said = against_theory(fraction, theory)
        reasons += said
        if what == "impossible":
            word, accepted = what, False
        elif word == "ok":
            word = what
    return Verdict(word, accepted, tuple(reasons))


def against_theory(fraction: float, theory: Theory) -> tuple[str, list[str]]:
    """ "ok", "low", "high" or "impossible", and the reason where it is not ok."""
    told = f"{fraction:.1%} of theory at the measured clock"
    if fraction > LIMITS.impossible and not theory.uncertain:
        return "impossible", [f"{told}: the work is miscounted or the peak is wrong"]
    if fraction > LIMITS.impossible:
        return "high", [f"{told}: the peak is not a published figure, and this disproves it"]
    if fraction < LIMITS.low:
        return "low", [f"{told}: {theory.slow or 'no reason is known'}"]
    return "ok", []


def machine_balance(values: dict[str, float]) -> dict[str, float]:
    """FLOP per byte of device memory for each multiply-add and tensor ceiling (values by id, accepted ones only)."""
    memory = max((values[name] for name in ("dram.read", "dram.copy", "dram.write") if name in values), default=0.0)
    if not memory:
        return {}
    compute: Sequence[str] = [name for name in values if name.endswith(".fma") or name.startswith("tensor.")]
    return {f"{name}/dram": values[name] / memory for name in compute}
