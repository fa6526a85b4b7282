"""Work on reports on a dask cluster, and what is said of everything that may be wrong with one."""

from __future__ import annotations

import concurrent.futures
import json
import logging
import os
import platform
import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import read_file
from ncu_roofline.cli.executors import Pool, Work, executor_here, guarded
from ncu_roofline.cli.outputs import say
from ncu_roofline.version import __version__

T = TypeVar("T")

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


class _GoneError(Exception):
    """The scheduler doesn't answer any more."""


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
        """See Executor.  What a cluster leaves that goes away is done here.  Raises RooflineError where none can be used."""
        import asyncio  # only distributed needs it, and it takes its time

        done, items = 0, [_Item(os.path.abspath(path), path, _sees(path)) for path in paths]
        disabled = logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # what distributed logs of connections that end; what matters is said in a sentence
        try:
            with self._client() as client:
                for outcome in self._gathered(client, work, items):
                    done += 1
                    yield outcome
            return
        # Each release of distributed has its own ways to say that nobody is there.
        except (_GoneError, asyncio.CancelledError, concurrent.futures.CancelledError, asyncio.TimeoutError, OSError):
            pass
        finally:
            logging.disable(disabled)
        rest = paths[done:]
        left = f"the remaining {len(rest)} reports are" if len(rest) > 1 else "the last report is"
        say(f"ncu-roofline: the dask cluster at {self._address} went away; {left} read here")
        with closing(executor_here(rest).outcomes(work, rest)) as outcomes:
            yield from outcomes

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A client, closed at the end.  Raises RooflineError where there is no scheduler or no package."""
        try:
            from distributed import Client
        except ImportError as error:
            next_step = "Install it with pip install 'ncu-roofline[dask]'."
            raise self._error(f"the package distributed is not installed ({error})", next_step) from error
        address = self._from_file() if self._address.endswith(".json") else self._address
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = _connected(Client, address)
        if isinstance(client, BaseException):
            reason = f"no scheduler answers there ({_first_line(client) or type(client).__name__})"
            next_step = "Check the address that `dask scheduler` prints, and that this machine reaches it."
            raise self._error(reason, next_step) from client
        for warning in caught:  # of packages whose versions differ between here, scheduler and workers
            if "VersionMismatch" in warning.category.__name__:
                say(f"ncu-roofline: dask: {' '.join(str(warning.message).split())}")
        with client:
            yield client

    def _from_file(self) -> str:
        """The address in the file that `dask scheduler --scheduler-file` writes; distributed would wait for it for ever."""
        next_step = "Give the scheduler file that `dask scheduler` wrote."
        try:
            return str(json.loads(read_file(self._address, _MOST_BYTES))["address"])
        except OSError as error:
            raise self._error(error.strerror or str(error), next_step) from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._error("it is no scheduler file", next_step) from error

    def _gathered(self, client: Any, work: Work[T], items: Sequence[_Item]) -> Iterator[T | RooflineError]:
        """The outcomes, some batches ahead.  Raises _GoneError."""
        threads = max(sum(client.nthreads().values()), 1)
        size = max(1, min(_BATCH, len(items) // (threads * _BATCHES_PER_THREAD)))
        waiting = deque(items[start : start + size] for start in range(0, len(items), size))
        under_way: deque[tuple[Sequence[_Item], Any]] = deque()
        while waiting or under_way:
            while waiting and len(under_way) < _AHEAD * threads:
                batch = waiting.popleft()
                under_way.append((batch, client.submit(read_batch, __version__, work, batch, pure=False)))
            yield from self._result(client, work, *under_way.popleft())

    def _result(self, client: Any, work: Work[T], batch: Sequence[_Item], future: Any) -> Iterator[T | RooflineError]:
        """The outcomes of a batch.  Raises RooflineError where its workers are of another kind, or there are none."""
        from distributed.scheduler import KilledWorker

        self._wait(client, future)
        try:
            outcomes: list[Any] = future.result()
        except KilledWorker:
            names = [item.name for item in batch]
            among = names[0] if len(names) == 1 else f"{names[0]} or of the {len(names) - 1} read with it"
            say(f"ncu-roofline: workers of the dask cluster died of {among}; read here, each in a process of its own")
            with closing(Pool(min(os.cpu_count() or 1, len(names))).outcomes(work, names)) as found:
                yield from found
            return
        except (ImportError, AttributeError, RuntimeError) as error:
            if client.status != "running":
                raise _GoneError from error
            next_step = f"Install ncu-roofline {__version__} in the Python environment of the workers."
            raise self._error(f"its workers cannot run this program ({_first_line(error)})", next_step) from error
        yield from outcomes

    def _wait(self, client: Any, future: Any) -> None:
        """Until the future is done.  Raises _GoneError or RooflineError where that can't be hoped for."""
        import asyncio

        alone_since = time.monotonic()
        while not future.done():
            try:
                future.exception(timeout=_LOOK_SECONDS)
                return
            except (TimeoutError, asyncio.TimeoutError):
                pass
            if client.status != "running":
                raise _GoneError
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
    found: list[T | RooflineError] = []
    with _ONE_AT_A_TIME:
        for item in items:
            if item.seen and not _sees(item.path):
                reason = f"the dask worker on {platform.node() or 'another machine'} does not see it as {item.path}"
                next_step = "Put it into a folder that all workers share under one path."
                found.append(RooflineError("Cannot read", item.name, reason, next_step))
            else:
                found.append(guarded(work, item.path, item.name))
    return found


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


def _sees(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a null character
        return False


def _first_line(error: BaseException) -> str:
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "")
