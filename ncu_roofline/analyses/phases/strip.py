"""The bands of a kernel over its time as a small picture, for the page of the ordinary roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ncu_roofline.analyses.hierarchical.answer import leading
from ncu_roofline.analyses.phases.captions import heading
from ncu_roofline.analyses.phases.chart import LaunchChart, charts
from ncu_roofline.analyses.phases.frames import phase_roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import one_line
from ncu_roofline.base.units import format_value
from ncu_roofline.formats.report import Report
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.roofline import Roofline, closing_input
from ncu_roofline.model.samples import with_samples

WIDTH, HEIGHT = 1000, 100
"""Of a band's picture, in units of its paths."""


@dataclass(frozen=True)
class Strip:
    """A launch over its time: ``bands`` are what is drawn, a path of SVG, and the highest value in words."""

    heading: str
    seconds: str
    bands: tuple[tuple[str, str, str], ...]


def strips(roofline: Roofline, m: Measurements, paths: Mapping[str, str]) -> tuple[Strip, ...]:
    """Of each GPU the kernel that comes first, if its longest launch was sampled.

    ``roofline`` is that of ``m``; ``paths``: where reports with samples lie, by their names in ``m``.
    """
    found: list[Strip] = []
    for kernel, launch in leading(roofline, m, paths):
        with suppress(RooflineError), closing_input(paths[launch.report[0]]) as report:  # damaged samples draw nothing
            if isinstance(report, Report):
                found += [_strip(kernel.kernel, one) for one in charts(phase_roofline(with_samples(report, launch)))]
    return tuple(found)


def _strip(kernel: str, one: LaunchChart) -> Strip:
    bands = [(one_line(band.label), *_drawn(band.values, one.edges, one.seconds)) for band in one.bands]
    about = heading(one).removeprefix(f"{one.kernel}: ")
    return Strip(f"{one_line(kernel)}, {about}", format_value(one.seconds, "second", 3), tuple(bands))


def _drawn(values: Sequence[float], edges: Sequence[float], seconds: float) -> tuple[str, str]:
    """Areas from slice to slice, none where nothing is known, and what the highest is."""
    known = [value for value in values if math.isfinite(value)]
    top = max([1.0, *known])
    path = ""
    for value, begin, end in zip(values, edges, edges[1:], strict=False):
        if math.isfinite(value):
            left, right = (WIDTH * at / seconds for at in (begin, end))
            path += f"M{left:.1f} {HEIGHT}V{HEIGHT * (1 - value / top):.1f}H{right:.1f}V{HEIGHT}z"
    return path, f"{max(known):.0%}".replace("%", " %") if known else "n/a"
