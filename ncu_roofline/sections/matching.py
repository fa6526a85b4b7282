"""Which roof of a chart a dot stands under: that of its own precision and sparsity, at its own memory level.

Charts hold several precisions (FP64 and FP32 in the stock chart, every tensor type, dense and sparse) and do not say which
roof is meant for which dot: the metrics do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from ncu_roofline.sections.chart import Chart, Point, Roof
from ncu_roofline.sections.classify import classify

_UNIT = re.compile(r"^(derived__)?(rl_)?[a-z0-9]+__")
_SUFFIX = re.compile(r"(\.|_(sum|avg|min|max)_).*$|_x\d+$")
_CLOCK = re.compile(r"^cycles_(elapsed|active)")
_SPARSE = ".sparse"
_SAME = 1e-9  # of a peak: the same line, computed twice


@lru_cache(maxsize=4096)
def meaning(metrics: tuple[str, ...]) -> tuple[str, str]:
    """`classify` of a line's metrics, which are the same in every launch."""
    return classify(metrics)


@lru_cache(maxsize=4096)
def _counters(metrics: tuple[str, ...]) -> frozenset[str]:
    """What is counted, whatever unit it is summed over and however it is scaled: peaks and counts have the same name then."""
    names = (_SUFFIX.sub("", _SUFFIX.sub("", _UNIT.sub("", name))) for name in metrics)
    return frozenset(name for name in names if not _CLOCK.match(name))


def peaks_of(chart: Chart, point: Point) -> tuple[float, float]:
    """Peak work and peak traffic that a dot stands under, per second; NaN where the chart draws none for it.

    The horizontal line and the diagonal may come from different roofs: some charts draw the line of a second precision at one
    level only.  Where several lines could be meant and none is the dot's own, there is no telling: NaN.
    """
    level = meaning(point.traffic_metrics)[1]
    own = _of_work(chart.roofs, point)
    here = [roof for roof in chart.roofs if meaning(roof.traffic_metrics)[1] == level]
    both = [roof for roof in own if roof in here]
    work = max((roof.peak_work for roof in own), default=math.nan)
    return work, _only([roof.peak_traffic for roof in both or here])


def _of_work(roofs: Sequence[Roof], point: Point) -> list[Roof]:
    """Roofs for the work of a dot, by the closest agreement that any roof has."""
    precision, counted = meaning(point.work_metrics)[0], _counters(point.work_metrics)
    kinds = [(roof, meaning(roof.work_metrics)[0]) for roof in roofs]
    steps = [[roof for roof in roofs if (mine := _counters(roof.work_metrics)) and mine <= counted]]
    if precision:
        steps.append([roof for roof, kind in kinds if kind == precision])
        steps.append([roof for roof, kind in kinds if _is_kind_of(kind, precision)])
        steps.append([roof for roof, kind in kinds if _is_kind_of(precision, kind)])
    found = next(filter(None, steps), None)
    if found is not None:
        return found
    # Constants, and counters of unknown names: one line is everybody's, of several nobody knows whose they are.
    unnamed = [roof for roof, kind in kinds if not (precision and kind)]
    return unnamed if not math.isnan(_only([roof.peak_work for roof in unnamed])) else []


def _is_kind_of(kind: str, precision: str) -> bool:
    """Whether ``kind`` (tensor.bf16.wgmma) is a kind of ``precision`` (tensor.bf16), dense or sparse alike."""
    inner, outer = kind.removesuffix(_SPARSE), precision.removesuffix(_SPARSE)
    return inner.startswith(f"{outer}.") and kind.endswith(_SPARSE) == precision.endswith(_SPARSE) and bool(outer)


def _only(peaks: Sequence[float]) -> float:
    """The one value that all of them have, else NaN."""
    same = peaks and max(peaks) - min(peaks) <= _SAME * max(peaks)
    return max(peaks) if same else math.nan
