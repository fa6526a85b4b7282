"""What is made once for all of xdist's workers: the first that needs it makes it, the others wait."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder ``name`` that ``make`` filled, in this worker or another; where it failed, the next one tries again."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # then each worker has a folder beside the others'
        base = base.parent
    folder = base / name
    with _alone(base / f"{name}.lock"):
        if not folder.exists():
            made = base / f"{name}.part"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            make(made)
            made.rename(folder)
    return folder


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    fcntl = pytest.importorskip("fcntl", reason="no file locks on this system")
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
