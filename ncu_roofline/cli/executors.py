"""Where the work on reports runs: in this process, or in several of this machine; `cluster` has a third place, dask.

An executor gives the outcome of each report in the order of the reports, errors as values.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from ncu_roofline.base.errors import RooflineError, unexpected

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

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
    workers = min(os.cpu_count() or 1, len(paths))
    sizes = (os.path.getsize(path) for path in paths if os.path.exists(path))
    return Pool(workers) if workers > 1 and sum(sizes) >= PARALLEL_FROM_BYTES else Serial()


class Serial:
    """One report after the other, in this process."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor."""
        return (guarded(work, path, path) for path in paths)


class Pool:
    """Several reports at a time, in processes of this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor.  A process that dies costs the report that it read, and no other."""
        found: dict[int, T | RooflineError] = {}
        begun = 0  # all before are done
        while begun < len(paths):
            todo = [number for number in range(begun, len(paths)) if number not in found]
            lost = []
            with _processes(self.workers) as pool:
                futures = _submitted(pool, work, [paths[number] for number in todo])
                for number, future in zip(todo, futures, strict=True):
                    outcome = _outcome(future, paths[number])
                    if isinstance(outcome, _DiedError):
                        lost.append(number)
                        continue
                    found[number] = outcome
                    while begun in found:
                        yield found.pop(begun)
                        begun += 1
            # Reports are begun in their order, so it was one of the first without an outcome; each has a process of its own.
            for number in lost[: self.workers]:
                with _processes(1) as pool:
                    (future,) = _submitted(pool, work, [paths[number]])
                    found[number] = _outcome(future, paths[number])
            while begun in found:
                yield found.pop(begun)
                begun += 1


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


def _outcome(future: Future[T | RooflineError] | None, path: str) -> T | RooflineError:
    from concurrent.futures.process import BrokenProcessPool

    try:
        if future:
            return future.result()
    except BrokenProcessPool:
        pass
    except Exception as error:  # what came of the report can't travel between processes
        return unexpected("Cannot read", path, error)
    reason = "the process that read it died, perhaps for lack of memory"
    return _DiedError("Cannot read", path, reason, "Free some memory; --keep-going goes on without this report.")


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, whatever ends it, and at once where the block is left by an exception."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, not forked: the same on every platform, and safe whatever threads the caller has.
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """In a worker: end when the parent does, however; Ctrl-C is the parent's to answer."""
    import multiprocessing

    def end() -> None:
        parent = multiprocessing.parent_process()
        if parent:
            parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end, daemon=True).start()


def _submitted(pool: ProcessPoolExecutor, work: Work[T], paths: Sequence[str]) -> list[Future[T | RooflineError] | None]:
    """The work under way, None where a process died before.

    Processes start now, deaf to Ctrl-C from birth, before they can see to that themselves; here it takes effect at the end.
    """
    from concurrent.futures.process import BrokenProcessPool

    held: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    masks = main and hasattr(signal, "pthread_sigmask")  # what children inherit; handlers they don't
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number)) if main else None
    futures: list[Future[T | RooflineError] | None] = []
    try:
        with suppress(BrokenProcessPool):
            futures.extend(pool.submit(guarded, work, path, path) for path in paths)
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if main:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
    return futures + [None] * (len(paths) - len(futures))
