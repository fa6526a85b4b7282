"""Published models on top of the hierarchical roofline: functions of its frames."""

from __future__ import annotations
