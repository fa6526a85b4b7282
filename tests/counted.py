"""Work that is counted, not timed: machines differ, and others work on them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python run in ``work``, each iteration of a comprehension being one."""
    found = 0

    def count(_: FrameType, __: str, ___: object) -> Any:
        nonlocal found
        found += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return found
