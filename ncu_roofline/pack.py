"""Where the plugin pack lies: the sections and rules for Nsight Compute, the benchmark sources."""

from __future__ import annotations

from pathlib import Path

HELPER = "NcuRooflineShared"
"""What the file beside the rules that they import, and that is no rule, is called; a hash of its text follows."""

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder ``sections``, ``rules`` or ``bench``: package data of an installed wheel, else of the checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
