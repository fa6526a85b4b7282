"""The command line: the only place that prints and exits."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ncu_roofline.base.errors import RooflineError, Terminated, UnexpectedError, unexpected
from ncu_roofline.cli.outputs import say, tell
from ncu_roofline.cli.parser import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error we explain, 2 usage, 128 and its number for a signal)."""
    for stream in (sys.stdout, sys.stderr):  # a console that can't show a character gets a replacement, not a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else argv
    try:
        with ended_by_signals() as interrupts:
            try:
                return _run(words)
            except UnexpectedError as error:
                if interrupts:  # extension modules say of an interrupted import that they can't be loaded
                    raise KeyboardInterrupt from error
                raise
    except RooflineError as error:
        tell(error)
        return error.exit_code
    except BrokenPipeError:  # `ncu-roofline show ... | head`
        return 0
    except Terminated as error:
        say(f"ncu-roofline: ended by {signal.Signals(error.number).name}")
        return 128 + error.number  # as shells tell of a signal
    except KeyboardInterrupt:
        say("ncu-roofline: interrupted")
        return 130


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Inside, SIGTERM or SIGHUP raises Terminated, and more of them change nothing: tidying up goes on to its end.

    Ctrl-C raises KeyboardInterrupt as ever, and stands in the list that is given: imports may make another error of it.
    A signal that is ignored (under nohup) or that somebody listens to already is left alone.
    """
    interrupts: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
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


def _run(words: Sequence[str]) -> int:
    try:
        args = parse(words)
        from ncu_roofline.cli.standard_input import kept

        with kept(args):
            return int(args.run(args))
    except (RooflineError, BrokenPipeError):
        raise
    except Exception as error:
        raise unexpected("Cannot run", f"ncu-roofline {' '.join(words)}", error) from error
