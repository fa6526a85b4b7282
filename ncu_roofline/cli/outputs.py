"""Where results go: a file, or standard output; messages go to standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ncu_roofline.errors import RooflineError, UsageError, printable
from ncu_roofline.files import check_target, write_atomically

STANDARD_OUTPUT = "-"


def check_output(path: str, force: bool) -> None:
    """Raise RooflineError early, before the work, if ``path`` could not be written."""
    if path != STANDARD_OUTPUT:
        check_target(path, force)


def chosen_format(args: argparse.Namespace, known: Collection[str], what: str) -> str:
    """The format that --json, --format or the suffix of --output asks for, text for none; ``what`` is rendered.

    Raises UsageError for one that is not ``known``, and for --json beside --output.
    """
    from ncu_roofline.analyses.formats import format_for

    if args.json and args.output:
        raise UsageError("Cannot use --json", args.output, "-o says where results go", "Leave out --json, or -o.")
    if not args.output:
        return "json" if args.json else "text"
    found: str = args.format or format_for(args.output)
    if found not in known:
        reason = f"{found or 'its suffix'} is no format of {what} ({', '.join(known)})"
        raise UsageError("Cannot render", args.output, reason, "Name one with --format.")
    return found


def write_output(path: str, data: bytes, force: bool) -> None:
    """Write all of ``data`` or nothing.  Raises RooflineError."""
    if path == STANDARD_OUTPUT:
        with _standard_output() as stream:
            stream.flush()
            stream.buffer.write(data)
    else:
        write_atomically(path, [data], overwrite=force)


def write_text(text: str) -> None:
    """Print ``text`` and a line end to standard output.  Raises RooflineError."""
    with _standard_output() as stream:
        stream.write(f"{text}\n")


def say(message: str) -> None:
    """A line for people, beside the data."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable(message), file=sys.stderr)


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    if sys.stdout is None:
        raise RooflineError("Cannot write", "standard output", "it is closed", "Leave it open, or write to a file.")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        _discard_the_rest()
        if isinstance(error, BrokenPipeError):
            raise
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", "standard output", reason, "Send it to a place with space on its disk.") from error


def _discard_the_rest() -> None:
    """What is still in the buffer can't be written either; Python would try once more when it exits, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
