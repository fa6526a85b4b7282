"""The bar that shows how far long work is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """``items`` as they are, with a bar on standard error: from one second on, and only where somebody looks."""
    from tqdm import tqdm

    hidden = True if sys.stderr is None else None  # None: where standard error is no terminal
    with tqdm(items, what, total, delay=1.0, leave=False, disable=hidden, file=sys.stderr) as bar:
        yield from bar
