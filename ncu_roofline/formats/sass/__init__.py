"""Machine code of NVIDIA GPUs: cubins, their line tables, instructions and control flow.  Knows no report."""

from __future__ import annotations


class CodeError(ValueError):
    """Code that can't be read; its text is the reason, as the middle of a sentence: ``its section table is cut off``."""


__all__ = ["CodeError"]
