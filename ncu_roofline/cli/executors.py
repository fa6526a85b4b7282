"""Where the work on reports runs: in this process, or in several of this machine; `cluster` has a third place, dask.

Each gives the outcome of each report in the order of the reports, errors as values.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from ncu_roofline.base.errors import RooflineError, unexpected

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")

# Takes the path to open and the name that the user gave it; picklable, like its result, as it may run elsewhere.
Work = Callable[[str, str], T]
Outcomes = Generator[T | RooflineError, None, None]

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000


def outcomes_here(work: Work[T], paths: Sequence[str]) -> Outcomes[T]:
    """What ``work`` gives for each path on this machine, or the error it raised."""
    workers = min(os.cpu_count() or 1, len(paths))
    sizes = (os.path.getsize(path) for path in paths if os.path.exists(path))
    if workers > 1 and sum(sizes) >= PARALLEL_FROM_BYTES:
        return in_processes(work, paths, workers)
    return (guarded(work, path, path) for path in paths)


def guarded(work: Work[T], path: str, name: str) -> T | RooflineError:
    """What ``work`` gives, or the error it raised, of whatever type, which then calls the report ``name``."""
    try:
        return work(path, name)
    except RooflineError as error:
        return type(error)(error.what, name if error.path == path else error.path, error.reason, error.next_step)
    except Exception as error:
        return unexpected("Cannot read", name, error)


def in_processes(work: Work[T], paths: Sequence[str], workers: int) -> Outcomes[T]:
    """The same in so many processes.  One that dies costs the report that it read, and no other."""
    from concurrent.futures.process import BrokenProcessPool

    done = 0
    while done < len(paths):
        with _processes(workers) as pool, suppress(BrokenProcessPool):
            for path, future in zip(paths[done:], _submitted(pool, work, paths[done:]), strict=True):
                outcome = _outcome(future, path)
                done += 1
                yield outcome
        if done < len(paths):  # this report or one beside it killed its reader, so it gets a process of its own
            with _processes(1) as pool:
                try:
                    outcome = _outcome(_submitted(pool, work, paths[done : done + 1])[0], paths[done])
                except BrokenProcessPool:
                    reason = "the process that read it died, perhaps for lack of memory"
                    next_step = "Free some memory; --keep-going goes on without this report."
                    outcome = RooflineError("Cannot read", paths[done], reason, next_step)
            done += 1
            yield outcome


def _outcome(future: Future[T | RooflineError], path: str) -> T | RooflineError:
    """What came of a report.  Raises BrokenProcessPool where a process died."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # what came of the report can't travel between processes
        return unexpected("Cannot read", path, error)


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


def _submitted(pool: ProcessPoolExecutor, work: Work[T], paths: Sequence[str]) -> list[Future[T | RooflineError]]:
    """The work under way.  Raises BrokenProcessPool where a process died already.

    Processes start now, deaf to Ctrl-C from birth, before they can see to that themselves; here it takes effect at the end.
    """
    held: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    masks = main and hasattr(signal, "pthread_sigmask")  # what children inherit; handlers they don't
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number)) if main else None
    try:
        return [pool.submit(guarded, work, path, path) for path in paths]
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if main:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
