"""Data of this room's tests in TOML, and which cases are of the default run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


def toml(text: str) -> dict[str, Any]:
    found: dict[str, Any] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    return found


def read(name: str) -> dict[str, Any]:
    """The file of this name beside this one."""
    return toml(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def first(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """Cases of a test, of which but the first are for the exhaustive run."""
    listed = [one if isinstance(one, tuple) else (one,) for one in cases]
    return [pytest.param(*one, marks=[pytest.mark.exhaustive] if place >= count else []) for place, one in enumerate(listed)]
