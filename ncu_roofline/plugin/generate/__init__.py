"""Sections and rules for Nsight Compute, made from the specification."""

from __future__ import annotations

from ncu_roofline.plugin.generate.dialects import BASE, Dialect, dialect_of
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.generate.sections import render_sections

__all__ = ["BASE", "Dialect", "dialect_of", "render_rules", "render_sections"]
