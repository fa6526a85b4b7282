"""Files that sessions of this room may name: those in `files`."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

FILES = {path.name: partial(shutil.copy, path) for path in (Path(__file__).parent / "files").iterdir()}
GPP = (Path(__file__).parent / "files" / "gpp.txt").read_text(encoding="utf-8")
"""The published figures of GPP as a data file of NERSC's plot scripts."""
