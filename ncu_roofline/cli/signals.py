"""Signals as exceptions, so that what is temporary goes away: SIGTERM and SIGHUP, as batch systems and closed terminals send
them, and Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ncu_roofline.base.errors import Terminated

_SIGNALS = ("SIGTERM", "SIGHUP")


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Inside, SIGTERM or SIGHUP raises Terminated, and more of them change nothing: tidying up goes on to its end.

    Ctrl-C raises KeyboardInterrupt as ever, and stands in the list that is given: imports may make another error of it.
    A signal that is ignored (under nohup) or that somebody listens to already is left alone.
    """
    interrupts: list[int] = []
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        for one in ours:
            signal.signal(one, signal.SIG_IGN)
        raise Terminated(number)

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        for number in ours:
            signal.signal(number, end)
        if listening:
            signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # signals are for the main thread
        ours, listening = [], False
    try:
        yield interrupts
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
