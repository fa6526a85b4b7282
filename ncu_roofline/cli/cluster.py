"""Work on reports on a dask cluster, and what is said of everything that may be wrong with one."""

from __future__ import annotations

import os
import platform
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli.executors import Outcomes, Work, guarded
from ncu_roofline.version import __version__

T = TypeVar("T")

_CONNECT_SECONDS = 15
_WORKERS_SECONDS = 120  # batch systems start workers late; adaptive clusters start them for the first work
# A task costs the scheduler about a millisecond, so small reports travel together; the last ones must still spread evenly.
_BATCH, _BATCHES_PER_THREAD = 32, 4
# Tasks under way per thread: enough to keep it busy, few enough that results don't pile up in the workers' memory.
_AHEAD = 4
# Workers have several threads, but running rules changes what the whole process imports.  Little is lost: Python takes turns.
_ONE_AT_A_TIME = threading.Lock()


class Item(NamedTuple):
    """A report: where it is, what the user calls it, and whether this machine sees it."""

    path: str
    name: str
    seen: bool


def outcomes_on(address: str, work: Work[T], paths: Sequence[str]) -> Outcomes[T]:
    """``work`` on all reports, on the cluster of the scheduler at ``address`` (or of the scheduler file with that path).

    Raises RooflineError where none can be used, or it goes away.
    """
    items = [Item(os.path.abspath(path), path, os.path.exists(path)) for path in paths]
    with _client(address) as client:
        threads = max(sum(client.nthreads().values()), 1)
        size = max(1, min(_BATCH, len(items) // (threads * _BATCHES_PER_THREAD)))
        waiting = deque(items[start : start + size] for start in range(0, len(items), size))
        under_way: deque[tuple[Sequence[Item], Any]] = deque()
        while waiting or under_way:
            while waiting and len(under_way) < _AHEAD * threads:
                under_way.append((waiting[0], client.submit(read_batch, __version__, work, waiting.popleft(), pure=False)))
            yield from _result(client, address, *under_way.popleft())


def _cannot(address: str, reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot use the dask cluster", address, reason, next_step)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client with workers, closed at the end.  Raises RooflineError where there is no scheduler or no package."""
    import logging

    try:
        from distributed import Client
    except ImportError as error:
        next_step = "Install it with pip install 'ncu-roofline[dask]'."
        raise _cannot(address, f"the package distributed is not installed ({error})", next_step) from error
    if address.endswith(".json") and not os.path.isfile(address):  # distributed would wait for it for ever
        raise _cannot(address, "there is no such file", "Give the scheduler file that `dask scheduler` wrote.")
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what distributed logs of connections that end; what matters is said in a sentence
    make: Any = Client
    where = {"scheduler_file" if address.endswith(".json") else "address": address}
    try:
        try:
            client = make(**where, timeout=_CONNECT_SECONDS, set_as_default=False)
        except Exception as error:  # of many kinds, by what goes wrong; each becomes a sentence
            next_step = "Check the address that `dask scheduler` prints, and that this machine reaches it."
            raise _cannot(address, f"no scheduler answers there ({_first_line(error)})", next_step) from error
        with client:
            yield client
    finally:
        logging.disable(disabled)


def _result(client: Any, address: str, batch: Sequence[Item], future: Any) -> list[Any]:
    """What a batch gave.  Raises RooflineError where there is no hope of it."""
    import asyncio
    import concurrent.futures

    from distributed.scheduler import KilledWorker

    alone = True
    try:
        if not client.nthreads():
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        alone = False
        found: list[Any] = future.result()
        return found
    except KilledWorker:
        reason = f"the workers of the dask cluster that read it{' or one beside it' * (len(batch) > 1)} died"
        next_step = "Give them more memory, or read it without --dask; --keep-going goes on without it."
        return [RooflineError("Cannot read", item.name, reason, next_step) for item in batch]
    # Each release of distributed has its own ways to say that nobody is there.
    except (asyncio.TimeoutError, TimeoutError, OSError, asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        if alone and isinstance(error, (asyncio.TimeoutError, TimeoutError)):
            reason = f"no worker has joined it for {_WORKERS_SECONDS} seconds"
            raise _cannot(address, reason, "Start workers with dask worker and its address.") from error
        raise _cannot(address, "it went away", "Start it again, or leave out --dask to read the reports here.") from error
    except (ImportError, AttributeError, RuntimeError) as error:
        next_step = f"Install ncu-roofline {__version__} in the Python environment of the workers."
        raise _cannot(address, f"its workers cannot run this program ({_first_line(error)})", next_step) from error


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
    lines = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
