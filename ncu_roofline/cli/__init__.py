"""The command line: the only place that prints and exits."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from ncu_roofline.base.errors import RooflineError, Terminated, UnexpectedError, unexpected
from ncu_roofline.cli.outputs import say, tell
from ncu_roofline.cli.parser import parse
from ncu_roofline.cli.signals import ended_by_signals


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error we explain, 2 usage, 128 and its number for a signal)."""
    _write_any_character()
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


def _write_any_character() -> None:
    """Kernel names hold any character; a console that can't show one gets a replacement instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
