"""Where the work on reports runs: in this process, or in several of this machine; `cluster` has a third place, dask.

An executor gives the outcome of each report in the order of the reports, errors as values.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from typing import Protocol, TypeVar

from ncu_roofline.base.errors import RooflineError, unexpected

T = TypeVar("T")

# Takes the path to open and the name that the user gave it; picklable, like its result, as it may run elsewhere.
Work = Callable[[str, str], T]

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000


class Executor(Protocol):
    """Runs work on many reports."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """What ``work`` gives for each path, or the error it raised, in the order of ``paths``."""


def executor_here(paths: Sequence[str]) -> Executor:
    """The one for these reports on this machine."""
    pool = Pool.of(paths)
    return pool if pool.workers > 1 and sum(map(_size, paths)) >= PARALLEL_FROM_BYTES else Serial()


class Serial:
    """One report after the other, in this process."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor."""
        return (guarded(work, path, path) for path in paths)


class Pool:
    """Several reports at a time, in processes of this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @classmethod
    def of(cls, paths: Sequence[str]) -> Pool:
        """As many processes as make sense for these reports."""
        return cls(min(os.cpu_count() or 1, len(paths)))

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor.  A process that dies costs the report that it read, and no other."""
        found: dict[int, T | RooflineError] = {}
        first = 0
        while first < len(paths):
            with closing(self._settled(work, paths, [n for n in range(first, len(paths)) if n not in found])) as settled:
                for number, outcome in settled:
                    found[number] = outcome
                    while first in found:
                        yield found.pop(first)
                        first += 1

    def _settled(
        self, work: Work[T], paths: Sequence[str], numbers: Sequence[int]
    ) -> Generator[tuple[int, T | RooflineError], None, None]:
        """Outcomes by number: of all; where a process died, of what ended before, and of the reports that may have been it."""
        lost = []
        with _processes(self.workers) as pool:
            futures = _submitted(pool, work, [paths[number] for number in numbers])
            for number, future in zip(numbers, futures, strict=True):
                outcome = _outcome(future, paths[number])
                if isinstance(outcome, _DiedError):
                    lost.append(number)
                else:
                    yield number, outcome
        # Reports are begun in their order, so it was one of the first without an outcome; each goes into a process of its own.
        for number in lost[: self.workers]:
            yield number, _alone(work, paths[number])


def guarded(work: Work[T], path: str, name: str) -> T | RooflineError:
    """What ``work`` gives, or the error it raised, of whatever type, which then calls the report ``name``."""
    try:
        return work(path, name)
    except RooflineError as error:
        return type(error)(error.what, name if error.path == path else error.path, error.reason, error.next_step)
    except Exception as error:
        return unexpected("Cannot read", name, error)


class _DiedError(RooflineError):
    """The process that read a report died, or one beside it did."""


def _alone(work: Work[T], path: str) -> T | RooflineError:
    with _processes(1) as pool:
        (future,) = _submitted(pool, work, [path])
        return _outcome(future, path)


def _outcome(future: Future[T | RooflineError], path: str) -> T | RooflineError:
    try:
        return future.result()
    except BrokenProcessPool:
        reason = "the process that read it died, perhaps for lack of memory"
        return _DiedError("Cannot read", path, reason, "Free some memory; --keep-going goes on without this report.")
    except Exception as error:  # what came of the report can't travel between processes
        return unexpected("Cannot read", path, error)


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, whatever ends it, and at once where the block is left by an exception."""
    # Spawned, not forked: the same on every platform, and safe whatever threads the caller has.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with, initargs=(reader,))
    try:
        yield pool
    except BaseException:
        writer.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        writer.close()
        reader.close()


def _end_with(parent: Connection) -> None:
    """In a worker: end when the other end of a pipe is closed, also by the parent's death; Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: Connection) -> None:
    try:
        parent.poll(None)
    finally:
        os._exit(1)


def _submitted(pool: ProcessPoolExecutor, work: Work[T], paths: Sequence[str]) -> list[Future[T | RooflineError]]:
    with _interrupts_held():  # now it starts its processes
        return [_begun(pool, work, path) for path in paths]


def _begun(pool: ProcessPoolExecutor, work: Work[T], path: str) -> Future[T | RooflineError]:
    try:
        return pool.submit(guarded, work, path, path)
    except BrokenProcessPool as error:
        failed: Future[T | RooflineError] = Future()
        failed.set_exception(error)
        return failed


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """What is started meanwhile is born deaf to Ctrl-C, before it can see to that itself; here it takes effect at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    masks = hasattr(signal, "pthread_sigmask")  # what children inherit; handlers they don't
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
