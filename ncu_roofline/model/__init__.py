"""From reports to points and roofs as tidy frames."""

from __future__ import annotations

from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.roofline import Displayed, Roofline, closing_input, measurements_of, roofline, roofline_of
from ncu_roofline.model.selection import Selection, as_trajectory

__all__ = [
    "Displayed",
    "Measurements",
    "Roofline",
    "Selection",
    "as_trajectory",
    "closing_input",
    "measurements_of",
    "roofline",
    "roofline_of",
]
