"""Where things are kept that can be made again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """The user's cache folder for this program; below the folder for temporary files where there is no home."""
    values = os.environ if environment is None else environment
    if platform == "win32":
        base = values.get("LOCALAPPDATA") or tempfile.gettempdir()
        return Path(base) / "ncu-roofline" / "cache"
    home = values.get("HOME")
    if not home:
        return Path(tempfile.gettempdir()) / f"ncu-roofline-{os.getuid() if hasattr(os, 'getuid') else 0}"
    if platform == "darwin":
        return Path(home) / "Library" / "Caches" / "ncu-roofline"
    return Path(values.get("XDG_CACHE_HOME") or Path(home) / ".cache") / "ncu-roofline"
