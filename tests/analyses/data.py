"""Data of this room's tests in TOML."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def toml(text: str) -> dict[str, Any]:
    found: dict[str, Any] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    return found


def read(name: str) -> dict[str, Any]:
    """The file of this name beside this one."""
    return toml(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
