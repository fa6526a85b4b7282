"""What a report counted at each address of a launch: the metrics of source counters and of warp sampling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.base.texts import listed
from ncu_roofline.chips.source_counters import COUNTED, PARTS, STALLED, adds_up
from ncu_roofline.formats.report import Metrics
from ncu_roofline.model.counters import as_float
from ncu_roofline.model.displayed import several

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NOT_ISSUED = "_not_issued"
SELECTED = "selected"
"""The state of a warp that issues: sampled like the reasons for stalls, and none."""

_MOST = 2.0**64  # larger numbers count nothing
_LAST = 2**63
_REASON = re.compile(r"[a-z0-9_]{1,60}")
_MOST_REASONS = 100  # releases have about twenty
_NAMED = 3  # metrics that a note names
_ODD = (
    "left out, as some of their values can be no counts or have no address, or they don't add up to what the metric itself says"
)
_SAMPLED = "smsp__pcsamp"  # whether samples add up is for `Totals.miscounted`


@dataclass(frozen=True)
class Counts:
    """Counts by address: ``columns`` has an array for each metric that the report has, 0 where it names no instance.

    ``stalls``: samples by stall reason, (all, of these not issued), each an array like those of ``columns``.  ``odd`` are
    metrics that are left out because some of their values can be no counts, have no address, or are not what the metric itself
    says they add up to; ``notes`` say that, and what else is left out.
    """

    addresses: IntArray
    columns: Mapping[str, FloatArray]
    stalls: Mapping[str, tuple[FloatArray, FloatArray]]
    odd: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, metrics: Metrics) -> Counts:
        """What a launch has.  Raises RooflineError for damaged bytes."""
        chosen = {
            column: (next((name for name in names if metrics.has_name(name)), ""), worth)
            for column, (names, worth) in COUNTED.items()
        }
        like = sorted(name for name in metrics.names() if name.startswith(STALLED))
        reasons = [name for name in like if _is_reason(name)][: 2 * _MOST_REASONS]
        read = {name: _read(metrics, name) for name in (*(name for name, _ in chosen.values() if name), *reasons)}
        found = {name: pair for name, pair in read.items() if pair is not None and (len(pair[0]) or metrics.get(name) == 0)}
        odd = tuple(name for name, pair in read.items() if pair is None)
        every = [keys for keys, _ in found.values()]
        addresses = np.unique(np.concatenate(every)) if every else np.empty(0, dtype=np.int64)
        # Several values of one address are added.
        placed = {
            name: np.bincount(np.searchsorted(addresses, keys), weights=values, minlength=len(addresses)).astype(np.float64)
            for name, (keys, values) in found.items()
        }
        columns = {column: placed[name] * worth for column, (name, worth) in chosen.items() if name in placed}
        missing = np.full(len(addresses), np.nan)
        stalls = {
            name.removeprefix(STALLED): (placed[name], placed.get(name + NOT_ISSUED, missing))
            for name in sorted(placed)
            if name.startswith(STALLED) and not name.endswith(NOT_ISSUED)
        }
        if "samples" not in columns and stalls:  # releases until 2020.3
            columns["samples"] = np.sum([samples for samples, _ in stalls.values()], axis=0)
        if stalls:
            columns["not_issued"] = np.sum([not_issued for _, not_issued in stalls.values()], axis=0)
        impossible: dict[str, str] = {}
        for part, times, whole in PARTS:
            known = {part, whole} <= columns.keys() - impossible.keys()
            if known and np.any(columns[part] > times * columns[whole]):
                names = [chosen.get(column, ("",))[0] or column for column in (part, whole)]
                impossible[part] = f"{names[0]} is more than {f'{times} x ' if times > 1 else ''}{names[1]}"
        if "samples" in columns and stalls:
            sampled = np.sum([samples for samples, _ in stalls.values()], axis=0)
            if np.any(sampled > columns["samples"]):
                impossible["stalls"] = "samples by stall reason are more than all samples"
        notes = [f"{_ODD}: {listed(odd, _NAMED)}"] if odd else []
        if others := len(like) - len(reasons):
            notes.append(f"left out, as they are named like stall reasons, but are none: {several(others, 'metric')}")
        notes += [f"left out, as some of their values can't be: {reason}" for reason in impossible.values()]
        kept = {column: values for column, values in columns.items() if column not in impossible}
        return cls(addresses, kept, {} if "stalls" in impossible else stalls, odd, tuple(notes))

    def at(self, column: str, addresses: IntArray) -> FloatArray:
        """The counts at some addresses: NaN for what nobody counted, 0 where the metric names no instance."""
        values = self.columns.get(column)
        return np.full(len(addresses), np.nan) if values is None else self._pick(values, addresses)

    def stalls_at(self, addresses: IntArray) -> Mapping[str, tuple[FloatArray, FloatArray]]:
        """Samples by stall reason, (all, of these not issued), at some addresses."""
        return {
            reason: (self._pick(every, addresses), self._pick(not_issued, addresses))
            for reason, (every, not_issued) in self.stalls.items()
        }

    def _pick(self, values: FloatArray, addresses: IntArray) -> FloatArray:
        if not len(self.addresses):
            return np.zeros(len(addresses))
        place = np.minimum(np.searchsorted(self.addresses, addresses), len(self.addresses) - 1)
        return np.where(self.addresses[place] == addresses, values[place], 0.0)


def counted(names: Iterable[str]) -> bool:
    """Whether a launch with metrics of these names has counts by instruction."""
    wanted = {name for alternatives, _ in COUNTED.values() for name in alternatives}
    return any(name in wanted or _is_reason(name) for name in names)


def _is_reason(name: str) -> bool:
    """Whether a metric counts samples of a stall reason; what is longer, or has other letters, is of none."""
    reason = name.removeprefix(STALLED)
    return reason not in (name, NOT_ISSUED) and _REASON.fullmatch(reason.removesuffix(NOT_ISSUED)) is not None


def _read(metrics: Metrics, name: str) -> tuple[IntArray, FloatArray] | None:
    """Addresses and values; None if some of them can be none, or lack, or don't add up to the metric's own value."""
    keys, values = (np.array(one) for one in metrics.by_address(name))
    whole = len(keys) == metrics.instance_count(name)
    good = whole and bool(np.all((values >= 0) & (values < _MOST)) and np.all(keys < _LAST))
    if good and len(keys) and not name.startswith(_SAMPLED):
        good = adds_up(float(values.sum()), as_float(metrics.get(name)))
    return (keys.astype(np.int64), values.astype(np.float64)) if good else None
