"""Work on reports on a dask cluster, and what is said of everything that may be wrong with one."""

from __future__ import annotations

import json
import os
import platform
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import read_file
from ncu_roofline.cli.executors import Outcomes, Work, guarded, in_processes, outcomes_here
from ncu_roofline.cli.outputs import say
from ncu_roofline.version import __version__

T = TypeVar("T")

_CONNECT_SECONDS, _LOOK_SECONDS = 15, 2
_WORKERS_SECONDS = 120  # batch systems start workers late; adaptive clusters start them for the first work
# A task costs the scheduler about a millisecond, so small reports travel together; the last ones must still spread evenly.
_BATCH, _BATCHES_PER_THREAD = 32, 4
# Tasks under way per thread: enough to keep it busy, few enough that results don't pile up in the workers' memory.
_AHEAD = 4
# Workers have several threads, but running rules changes what the whole process imports.  Little is lost: Python takes turns.
_ONE_AT_A_TIME = threading.Lock()


class _GoneError(Exception):
    """The scheduler doesn't answer any more."""


class Item(NamedTuple):
    """A report: where it is, what the user calls it, and whether this machine sees it."""

    path: str
    name: str
    seen: bool


def outcomes_on(address: str, work: Work[T], paths: Sequence[str]) -> Outcomes[T]:
    """``work`` on all reports, on the cluster of the scheduler at ``address`` (or of the scheduler file with that path).

    What a cluster leaves that goes away is done here.  Raises RooflineError where none can be used.
    """
    import asyncio  # only distributed needs it, and it takes its time
    import concurrent.futures
    import logging

    done, items = 0, [Item(os.path.abspath(path), path, os.path.exists(path)) for path in paths]
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what distributed logs of connections that end; what matters is said in a sentence
    try:
        with _client(address) as client:
            for outcome in _gathered(client, address, work, items):
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
    say(f"ncu-roofline: the dask cluster at {address} went away; {left} read here")
    with closing(outcomes_here(work, rest)) as outcomes:
        yield from outcomes


def _cannot(address: str, reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot use the dask cluster", address, reason, next_step)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client, closed at the end.  Raises RooflineError where there is no scheduler or no package."""
    try:
        from distributed import Client
    except ImportError as error:
        next_step = "Install it with pip install 'ncu-roofline[dask]'."
        raise _cannot(address, f"the package distributed is not installed ({error})", next_step) from error
    make: Any = Client
    scheduler = address
    if address.endswith(".json"):  # as `dask scheduler --scheduler-file` writes it; distributed would wait for it for ever
        try:
            scheduler = str(json.loads(read_file(address, 1_000_000))["address"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or "it is no scheduler file"
            raise _cannot(address, reason, "Give the scheduler file that `dask scheduler` wrote.") from error
    found: queue.Queue[Any] = queue.Queue()

    def connect() -> None:
        try:
            found.put(make(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False))
        except Exception as error:  # of many kinds, by what goes wrong; each becomes a sentence
            found.put(error)

    # In a thread: distributed waits for ever for a server that takes a connection silently.
    threading.Thread(target=connect, daemon=True).start()
    try:
        client = found.get(timeout=_CONNECT_SECONDS + _LOOK_SECONDS)
    except queue.Empty:
        client = TimeoutError(f"it takes the connection, but says nothing for {_CONNECT_SECONDS} seconds")
    if isinstance(client, BaseException):
        reason = f"no scheduler answers there ({_first_line(client) or type(client).__name__})"
        next_step = "Check the address that `dask scheduler` prints, and that this machine reaches it."
        raise _cannot(address, reason, next_step) from client
    with client:
        yield client


def _gathered(client: Any, address: str, work: Work[T], items: Sequence[Item]) -> Iterator[T | RooflineError]:
    """The outcomes, some batches ahead.

    Raises _GoneError, and RooflineError where its workers are of another kind, or there are none.
    """
    from distributed.scheduler import KilledWorker

    threads = max(sum(client.nthreads().values()), 1)
    size = max(1, min(_BATCH, len(items) // (threads * _BATCHES_PER_THREAD)))
    waiting = deque(items[start : start + size] for start in range(0, len(items), size))
    under_way: deque[tuple[Sequence[Item], Any]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < _AHEAD * threads:
            under_way.append((waiting[0], client.submit(read_batch, __version__, work, waiting.popleft(), pure=False)))
        batch, future = under_way.popleft()
        try:
            yield from _result(client, address, future)
        except KilledWorker:
            names = [item.name for item in batch]
            among = names[0] if len(names) == 1 else f"{names[0]} or of the {len(names) - 1} read with it"
            say(f"ncu-roofline: workers of the dask cluster died of {among}; read here, each in a process of its own")
            with closing(in_processes(work, names, min(os.cpu_count() or 1, len(names)))) as found:
                yield from found
        except (ImportError, AttributeError, RuntimeError) as error:
            if client.status != "running":
                raise _GoneError from error
            next_step = f"Install ncu-roofline {__version__} in the Python environment of the workers."
            raise _cannot(address, f"its workers cannot run this program ({_first_line(error)})", next_step) from error


def _result(client: Any, address: str, future: Any) -> Any:
    """What a batch gave.  Raises _GoneError or RooflineError where there is no hope of it."""
    import asyncio

    alone_since = time.monotonic()
    while True:
        try:
            return future.result(timeout=_LOOK_SECONDS)
        except (TimeoutError, asyncio.TimeoutError):
            if client.status != "running":
                raise _GoneError from None
        if client.nthreads():
            alone_since = time.monotonic()
        elif time.monotonic() - alone_since > _WORKERS_SECONDS:
            reason = f"no worker has joined it for {_WORKERS_SECONDS} seconds"
            raise _cannot(address, reason, "Start workers with dask worker and its address.")


def read_batch(version: str, work: Work[T], items: Sequence[Item]) -> list[T | RooflineError]:
    """What a worker does: ``work`` on each report.  Raises RuntimeError where it is not of the client's version."""
    if version != __version__:
        raise RuntimeError(f"they have ncu-roofline {__version__}, not {version}")
    found: list[T | RooflineError] = []
    with _ONE_AT_A_TIME:
        for item in items:
            if item.seen and not os.path.exists(item.path):
                reason = f"the dask worker on {platform.node() or 'another machine'} does not see it as {item.path}"
                next_step = "Put it into a folder that all workers share under one path."
                found.append(RooflineError("Cannot read", item.name, reason, next_step))
            else:
                found.append(guarded(work, item.path, item.name))
    return found


def _first_line(error: BaseException) -> str:
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "")
