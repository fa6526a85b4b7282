"""Our charts and advice written into a copy of a report that was made without us."""

from __future__ import annotations

from ncu_roofline.plugin.annotate.annotation import Account, annotate

__all__ = ["Account", "annotate"]
