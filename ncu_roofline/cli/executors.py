"""Where the work on reports runs: in this process, in several of this machine, or on a dask cluster.

Each gives the outcome of each report in the order of the reports, errors as values.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from ncu_roofline.base.errors import RooflineError, unexpected
from ncu_roofline.version import __version__

T = TypeVar("T")

# Takes the path to open and the name that the user gave it; picklable, like its result, as it may run elsewhere.
Work = Callable[[str, str], T]
Outcomes = Generator[T | RooflineError, None, None]

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000
_CONNECT_SECONDS = 15
_WORKERS_SECONDS = 120  # batch systems start workers late; adaptive clusters start them for the first work
# A task costs the scheduler about a millisecond, so small reports travel together; the last ones must still spread evenly.
_BATCH, _BATCHES_PER_THREAD = 32, 4
# Workers have several threads, but running rules changes what the whole process imports.  Little is lost: Python takes turns.
_ONE_AT_A_TIME = threading.Lock()


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
    """The same in so many processes, each fed by a thread.  One that dies costs the report that it read, and no other.

    They end with this process, whatever ends it, and at once where not all outcomes are asked for.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Spawned, not forked: the same on every platform, and safe whatever threads the caller has.
    spawned: Any = {"mp_context": multiprocessing.get_context("spawn"), "initializer": _end_with_parent}
    processes: dict[int, ProcessPoolExecutor] = {}  # of each thread, one
    stopped = threading.Event()

    def end(pool: ProcessPoolExecutor) -> None:
        for process in list((pool._processes or {}).values()):
            process.terminate()

    def read(path: str) -> T | RooflineError:
        thread = threading.get_ident()
        if thread not in processes:
            processes[thread] = ProcessPoolExecutor(1, **spawned)
        try:
            future = processes[thread].submit(guarded, work, path, path)
            if stopped.is_set():  # while the process started
                end(processes[thread])
            return future.result()
        except BrokenProcessPool:
            del processes[thread]
            next_step = "Free some memory; --keep-going goes on without this report."
            return RooflineError("Cannot read", path, "the process that read it died, perhaps for lack of memory", next_step)
        except Exception as error:  # what came of the report can't travel between processes
            return unexpected("Cannot read", path, error)

    threads = ThreadPoolExecutor(workers, initializer=_deaf)
    try:
        yield from threads.map(read, paths)
    except BaseException:
        stopped.set()
        threads.shutdown(wait=False, cancel_futures=True)
        for pool in list(processes.values()):
            end(pool)
        raise
    finally:
        threads.shutdown()
        for pool in processes.values():
            pool.shutdown()


def _deaf() -> None:
    """In a thread: Ctrl-C is not for it, nor for the processes that it starts, from their birth on."""
    from multiprocessing import resource_tracker

    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # as it starts it lets signals through
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


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


def outcomes_on(address: str, work: Work[T], paths: Sequence[str]) -> Outcomes[T]:
    """``work`` on all reports, on the dask cluster of the scheduler at ``address`` (or of the scheduler file with that path).

    Raises RooflineError where none can be used, or it goes away.
    """
    import asyncio
    import concurrent.futures
    import logging

    def cannot(reason: str, next_step: str) -> RooflineError:
        return RooflineError("Cannot use the dask cluster", address, reason, next_step)

    def first_line(error: BaseException) -> str:
        return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)

    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        next_step = "Install it with pip install 'ncu-roofline[dask]'."
        raise cannot(f"the package distributed is not installed ({error})", next_step) from error
    if address.endswith(".json") and not os.path.isfile(address):  # distributed would wait for it for ever
        raise cannot("there is no such file", "Give the scheduler file that `dask scheduler` wrote.")
    where = {"scheduler_file" if address.endswith(".json") else "address": address}
    items = [(os.path.abspath(path), path, os.path.exists(path)) for path in paths]
    cancelled = (asyncio.CancelledError, concurrent.futures.CancelledError)
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what distributed logs of connections that end; what matters is said in a sentence
    make: Any = Client
    try:
        try:
            client = make(**where, timeout=_CONNECT_SECONDS, set_as_default=False)
        except Exception as error:  # of many kinds, by what goes wrong; each becomes a sentence
            next_step = "Check the address that `dask scheduler` prints, and that this machine reaches it."
            raise cannot(f"no scheduler answers there ({first_line(error)})", next_step) from error
        with client:
            size = max(1, min(_BATCH, len(items) // (sum(client.nthreads().values()) * _BATCHES_PER_THREAD or 1)))
            batches = [items[start : start + size] for start in range(0, len(items), size)]
            futures = deque(client.submit(read_batch, __version__, work, batch, pure=False) for batch in batches)
            for batch in batches:
                try:
                    client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
                    yield from futures.popleft().result()  # and the cluster may forget it
                except KilledWorker:  # noqa: PERF203 - each batch may fail alone
                    reason = f"the workers of the dask cluster that read it{' or one beside it' * (len(batch) > 1)} died"
                    next_step = "Give them more memory, or read it without --dask; --keep-going goes on without it."
                    yield from (RooflineError("Cannot read", name, reason, next_step) for _, name, _ in batch)
                # Each release of distributed has its own ways to say that nobody is there.
                except (asyncio.TimeoutError, TimeoutError, OSError, *cancelled) as error:
                    next_step = "Start it again, with workers, or leave out --dask to read the reports here."
                    raise cannot("it went away, or has no workers", next_step) from error
                except (ImportError, AttributeError, RuntimeError) as error:
                    next_step = f"Install ncu-roofline {__version__} in the Python environment of the workers."
                    raise cannot(f"its workers cannot run this program ({first_line(error)})", next_step) from error
    finally:
        logging.disable(disabled)


def read_batch(version: str, work: Work[T], items: Sequence[tuple[str, str, bool]]) -> list[T | RooflineError]:
    """What a worker does: ``work`` on each report, by its path, its name and whether the client sees it.

    Raises RuntimeError where the worker is not of the client's version.
    """
    if version != __version__:
        raise RuntimeError(f"they have ncu-roofline {__version__}, not {version}")
    found: list[T | RooflineError] = []
    with _ONE_AT_A_TIME:
        for path, name, seen in items:
            if seen and not os.path.exists(path):
                reason = f"the dask worker does not see it as {path}"
                next_step = "Put it into a folder that all workers share under one path."
                found.append(RooflineError("Cannot read", name, reason, next_step))
            else:
                found.append(guarded(work, path, name))
    return found
