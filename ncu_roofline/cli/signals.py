"""SIGTERM and SIGHUP, as batch systems and closed terminals send them: exceptions, so that what is temporary goes away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ncu_roofline.errors import Terminated

_SIGNALS = ("SIGTERM", "SIGHUP")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside, the first of these signals raises Terminated, and more of them change nothing: tidying up goes on to its end.

    A signal that is ignored (under nohup) or that somebody listens to already is left alone.
    """
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        for one in ours:
            signal.signal(one, signal.SIG_IGN)
        raise Terminated(number)

    try:
        for number in ours:
            signal.signal(number, end)
    except ValueError:  # signals are for the main thread
        ours = []
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
