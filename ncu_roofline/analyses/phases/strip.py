"""The bands of a kernel over its time as a small picture, for the page of the ordinary roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from ncu_roofline.analyses.hierarchical.kernels import leading
from ncu_roofline.analyses.phases.chart import DrawnBand, LaunchChart, charts
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
            for one in charts(phase_roofline(with_samples(report, launch))) if isinstance(report, Report) else ():
                about = one.heading().removeprefix(f"{one.kernel}: ")
                bands = tuple((one_line(band.label), *_drawn(band, one)) for band in one.bands)
                found.append(Strip(f"{one_line(kernel.kernel)}, {about}", format_value(one.seconds, "second", 3), bands))
    return tuple(found)


def _drawn(band: DrawnBand, one: LaunchChart) -> tuple[str, str]:
    """Areas from slice to slice, none where nothing is known, and what the highest is."""
    highest, path = band.span[2], ""
    top = highest if highest > 1 else 1.0
    for value, begin, end in zip(band.values, one.edges, one.edges[1:], strict=False):
        if math.isfinite(value):
            left, right = (WIDTH * at / one.seconds for at in (begin, end))
            path += f"M{left:.1f} {HEIGHT}V{HEIGHT * (1 - value / top):.1f}H{right:.1f}V{HEIGHT}z"
    return path, "n/a" if math.isnan(highest) else f"{highest:.0%}".replace("%", " %")
