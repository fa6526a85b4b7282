"""Reports of the sessions: the cases of `launches.toml`, by their names with dashes."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from tests.factory import report
from tests.model.test_launches import CASES, launch_of


def write(case: dict[str, Any], path: Path) -> None:
    """A case as a report."""
    report(path, *(launch_of({**case, **one}) for one in case.get("launches", [{}])))


FILES = {f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}.ncu-rep": partial(write, case) for name, case in CASES.items()}
