"""Where the work on reports runs: in this process, in several of this machine, or on a dask cluster.

An executor gives the outcome of each report in the order of the reports, errors that we explain as values.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import platform
import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from ncu_roofline.cli.outputs import say
from ncu_roofline.errors import RooflineError
from ncu_roofline.files import read_file
from ncu_roofline.version import __version__

T = TypeVar("T")

# Takes the path to open and the name that the user gave it; picklable, like its result, as it may run elsewhere.
Work = Callable[[str, str], T]

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000

_INSTALL = "Install it with pip install 'ncu-roofline[dask]'."
_CHECK = "Check the address that `dask scheduler` prints, and that this machine reaches it."
_GONE, _LOOK_AT_LOG = "it went away during the work", "Start it again, and look at its log."
_MOST_BYTES = 1_000_000  # of a scheduler file, which has a few thousand
_CONNECT_SECONDS = 15
_WORKERS_SECONDS = 120  # batch systems start workers late; adaptive clusters start them for the first work
_LOOK_SECONDS = 2
# A task costs the scheduler about a millisecond, so small reports travel together; the last ones must still spread evenly.
_BATCH = 32
_BATCHES_PER_THREAD = 4
# Tasks under way per thread: enough to keep it busy, few enough that results don't pile up in the workers' memory.
_AHEAD = 4
# Workers have several threads, but running rules changes what the whole process imports.  Little is lost: Python takes turns.
_ONE_AT_A_TIME = threading.Lock()


class Executor(Protocol):
    """Runs work on many reports."""

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """What ``work`` gives for each path, or the error it raised, in the order of ``paths``."""


def executor_for(paths: Sequence[str], dask: str | None = None) -> Executor:
    """The one for these reports; ``dask`` is the address of a scheduler, or the path of its scheduler file."""
    if dask:
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


class _Item(NamedTuple):
    """A report: where it is, what the user calls it, and whether this machine sees it."""

    path: str
    name: str
    seen: bool


class Dask:
    """All reports, in batches, on the cluster of the scheduler at ``address`` (or of the scheduler file with that path)."""

    def __init__(self, address: str) -> None:
        self._address = address

    def outcomes(self, work: Work[T], paths: Sequence[str]) -> Generator[T | RooflineError, None, None]:
        """See Executor.  Raises RooflineError where the cluster fails."""
        import asyncio  # only distributed needs it, and it takes its time

        with _quiet_log(), self._client() as client:
            try:
                yield from self._gathered(client, work, [_Item(os.path.abspath(path), path, _sees(path)) for path in paths])
            except asyncio.CancelledError as error:
                raise self._error(_GONE, _LOOK_AT_LOG) from error

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A client, closed at the end.  Raises RooflineError where there is no scheduler or no package."""
        try:
            from distributed import Client
        except ImportError as error:
            raise self._error(f"the package distributed is not installed ({error})", _INSTALL) from error
        address = self._from_file() if self._address.endswith(".json") else self._address
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = _connected(Client, address)
        if isinstance(client, BaseException):
            reason = f"no scheduler answers there ({_first_line(client) or type(client).__name__})"
            raise self._error(reason, _CHECK) from client
        for warning in caught:  # of packages whose versions differ between here, scheduler and workers
            if "VersionMismatch" in warning.category.__name__:
                say(f"ncu-roofline: dask: {' '.join(str(warning.message).split())}")
        with client:
            yield client

    def _from_file(self) -> str:
        """The address in the file that `dask scheduler --scheduler-file` writes; distributed would wait for it for ever."""
        try:
            return str(json.loads(read_file(self._address, _MOST_BYTES))["address"])
        except OSError as error:
            raise self._error(error.strerror or str(error), "Give the scheduler file that `dask scheduler` wrote.") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._error("it is no scheduler file", "Give the scheduler file that `dask scheduler` wrote.") from error

    def _gathered(self, client: Any, work: Work[T], items: Sequence[_Item]) -> Iterator[T | RooflineError]:
        threads = max(sum(client.nthreads().values()), 1)
        size = max(1, min(_BATCH, len(items) // (threads * _BATCHES_PER_THREAD)))
        batches = deque(items[start : start + size] for start in range(0, len(items), size))
        under_way: deque[Any] = deque()
        while batches or under_way:
            while batches and len(under_way) < _AHEAD * threads:
                under_way.append(client.submit(read_batch, __version__, work, batches.popleft(), pure=False))
            yield from self._result(client, under_way.popleft())

    def _result(self, client: Any, future: Any) -> list[Any]:
        """The outcomes of a batch.  Raises RooflineError where its workers died or are of another kind, or there are none."""
        from distributed.scheduler import KilledWorker

        self._wait(client, future)
        try:
            outcomes: list[Any] = future.result()
        except KilledWorker as error:
            reason = "the workers that read some of the reports died, perhaps for lack of memory"
            raise self._error(reason, "Give the workers more memory, or each fewer threads.") from error
        except (ImportError, AttributeError, RuntimeError) as error:
            reason = f"its workers cannot run this program ({_first_line(error)})"
            next_step = f"Install ncu-roofline {__version__} in the Python environment of the workers."
            raise self._error(reason, next_step) from error
        return outcomes

    def _wait(self, client: Any, future: Any) -> None:
        """Until the future is done.  Raises RooflineError where that can't be hoped for."""
        alone_since = time.monotonic()
        while not future.done() and not _done_soon(future):
            if client.status != "running":
                raise self._error(_GONE, _LOOK_AT_LOG)
            if client.nthreads():
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > _WORKERS_SECONDS:
                reason = f"no worker has joined it for {_WORKERS_SECONDS} seconds"
                raise self._error(reason, "Start workers with dask worker and its address.")

    def _error(self, reason: str, next_step: str) -> RooflineError:
        return RooflineError("Cannot use the dask cluster", self._address, reason, next_step)


def read_batch(version: str, work: Work[T], items: Sequence[_Item]) -> list[T | RooflineError]:
    """What a worker does: ``work`` on each report.  Raises RuntimeError where it is not of the client's version."""
    if version != __version__:
        raise RuntimeError(f"they have ncu-roofline {__version__}, not {version}")
    with _ONE_AT_A_TIME:
        return [_outcome(work, item) for item in items]


def _outcome(work: Work[T], item: _Item) -> T | RooflineError:
    if item.seen and not _sees(item.path):
        reason = f"the dask worker on {platform.node() or 'another machine'} does not see it as {item.path}"
        return RooflineError("Cannot read", item.name, reason, "Put it into a folder that all workers share under one path.")
    return guarded(work, item.path, item.name)


def _connected(client: Any, address: str) -> Any:
    """A client, or what went wrong.  In a thread: distributed waits for ever for a server that takes a connection silently."""
    found: queue.Queue[Any] = queue.Queue()

    def connect() -> None:
        try:
            found.put(client(address, timeout=_CONNECT_SECONDS, set_as_default=False))
        except Exception as error:  # of many kinds, by what goes wrong; each becomes a sentence
            found.put(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        return found.get(timeout=_CONNECT_SECONDS + _LOOK_SECONDS)
    except queue.Empty:
        return TimeoutError(f"it takes the connection, but says nothing for {_CONNECT_SECONDS} seconds")


def _done_soon(future: Any) -> bool:
    import asyncio

    try:
        future.exception(timeout=_LOOK_SECONDS)
    except (TimeoutError, asyncio.TimeoutError):
        return False
    return True


def _sees(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a null character
        return False


def _first_line(error: BaseException) -> str:
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "")


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Without what distributed logs of connections that end: whatever matters is said in a sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
