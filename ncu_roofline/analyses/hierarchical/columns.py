"""The tables of the hierarchical roofline: the frames of the model."""

from __future__ import annotations

from ncu_roofline.model.columns import KERNELS, POINTS, ROOFS

TABLES = {"points": POINTS, "roofs": ROOFS, "kernels": KERNELS}
