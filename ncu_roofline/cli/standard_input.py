"""The report `-`: what comes on standard input, as a file for the time of a command."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ncu_roofline.base.errors import UsageError
from ncu_roofline.cli.outputs import STANDARD_INPUT, called

NAME = "standard input"
"""What outputs and messages call it."""
_REPORTS = ("reports", "report", "inputs")  # what commands call the reports that they read


@contextmanager
def kept(args: Namespace) -> Iterator[None]:
    """Inside, a file stands in the place of the report `-` in ``args``; it is gone afterwards.

    Raises UsageError where it is named twice, is a terminal or is for other machines, RooflineError where it can't be kept.
    """
    given = {name: value for name in _REPORTS if (value := getattr(args, name, None))}
    asked = [one for value in given.values() for one in ([value] if isinstance(value, str) else value) if _is_input(one)]
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise UsageError("Cannot read", NAME, "it is named twice and can be read once", "Write it to a file and name that.")
    if getattr(args, "dask", None):
        reason = "standard input is on this machine, not where its workers are"
        raise UsageError("Cannot use --dask", args.dask, reason, "Write it to a file that they see and name that.")
    if sys.stdin is None:
        raise UsageError("Cannot read", NAME, "it is closed", "Leave it open, or name a file.")
    if sys.stdin.isatty():
        raise UsageError("Cannot read", NAME, "it is a terminal", "Send a report there: `cat FILE | ncu-roofline show -`.")
    from ncu_roofline.base.files import temporary_folder

    with temporary_folder() as folder:
        path = folder / NAME
        _copy(sys.stdin.buffer, path)
        for name, value in given.items():
            found = [f"{one[:-1]}{path}" if _is_input(one) else one for one in ([value] if isinstance(value, str) else value)]
            setattr(args, name, found[0] if isinstance(value, str) else found)
        with called(str(path), NAME):
            yield


def _is_input(report: str) -> bool:
    """Whether it is `-`, or PLATFORM=-."""
    return report == STANDARD_INPUT or report.endswith(f"={STANDARD_INPUT}")


def _copy(stream: BinaryIO, path: Path) -> None:
    """All of it; of what nobody reads only the beginning, by which readers refuse it: it may have no end."""
    from ncu_roofline.base.files import no_room
    from ncu_roofline.formats.inputs import recognised
    from ncu_roofline.formats.inputs.text import HEAD_BYTES
    from ncu_roofline.formats.report.compressed import bounded, is_compressed
    from ncu_roofline.formats.report.schema import MAGIC

    try:
        with path.open("wb") as file:
            head = stream.read(HEAD_BYTES)
            file.write(head)
            file.flush()
            if head.startswith(MAGIC) or is_compressed(head) or recognised(path):
                file.seek(0)
                file.writelines(bounded(NAME, head, stream))
    except OSError as error:
        raise no_room(error) from error
