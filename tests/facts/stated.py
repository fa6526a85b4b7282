"""Facts as others state them (`facts.toml`), and data files as they stand."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def toml(path: Path) -> dict[str, Any]:
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


FACTS = toml(Path(__file__).parent / "facts.toml")
