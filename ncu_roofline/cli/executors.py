"""Where the work on reports runs: in this process, in several of this machine, or on a dask cluster.

An executor gives the outcome of each report in the order of the reports, errors that we explain as values.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

from ncu_roofline.errors import RooflineError

T = TypeVar("T")

# Takes the path to open and the name that the user gave it; picklable, like its result, as it may run elsewhere.
Work = Callable[[str, str], T]

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000


class Executor(Protocol):
    """Runs work on many reports."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """What ``work`` gives for each path, or the error it raised, in the order of ``paths``."""


def executor_for(paths: Sequence[str], dask: str | None = None) -> Executor:
    """The one for these reports; ``dask`` is the address of a scheduler, or the path of its scheduler file."""
    if dask:
        from ncu_roofline.cli.dask_executor import Dask

        return Dask(dask)
    workers = min(os.cpu_count() or 1, len(paths))
    return Pool(workers) if workers > 1 and sum(map(_size, paths)) >= PARALLEL_FROM_BYTES else Serial()


class Serial:
    """One report after the other, in this process."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor."""
        return (guarded(work, path, path) for path in paths)


class Pool:
    """Several reports at a time, in processes of this machine."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor.  Raises RooflineError where a process dies."""
        # Spawned, not forked: the same on every platform, and safe whatever threads the caller has.
        with ProcessPoolExecutor(self._workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                for future in [pool.submit(guarded, work, path, path) for path in paths]:
                    yield future.result()
            except BrokenProcessPool as error:
                named = f"{len(paths)} reports, {paths[0]} among them"
                reason = "a process that read one of them died, perhaps for lack of memory"
                raise RooflineError("Cannot read", named, reason, "Give fewer reports at a time.") from error
            finally:
                pool.shutdown(cancel_futures=True)


def guarded(work: Work[T], path: str, name: str) -> T | RooflineError:
    """What ``work`` gives, or the error it raised, which then calls the report ``name``."""
    try:
        return work(path, name)
    except RooflineError as error:
        return type(error)(error.what, name if error.path == path else error.path, error.reason, error.next_step)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
