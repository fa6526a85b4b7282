"""The one exception that users see.

Every failure that a user can do something about is a `RooflineError`; the command line prints it as one sentence and exits
with its code.  Anything else that escapes is a bug, and becomes an `UnexpectedError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from ncu_roofline.base.texts import printable

TRACEBACK = "NCU_ROOFLINE_TRACEBACK"
"""The environment variable that asks for the traceback of a bug, beside its sentence."""


class RooflineError(Exception):
    """A failure we can explain: what failed, on what, why, and what to do next.

    The text reads ``{what} {path}: {reason}. {next_step}`` on a single line.
    """

    exit_code = 1

    def __init__(self, what: str, path: str | PathLike[str], reason: str, next_step: str) -> None:
        super().__init__(what, str(path), reason, next_step)  # as it travels between processes
        self.what, self.path, self.reason, self.next_step = what, str(path), reason, next_step

    def __str__(self) -> str:
        return printable(f"{self.what} {self.path}: {self.reason.rstrip('.')}. {self.next_step}")


class UsageError(RooflineError):
    """The command line itself is wrong: exit code 2."""

    exit_code = 2


class UnexpectedError(RooflineError):
    """A failure that we can't explain, told all the same; ``trace`` is its traceback."""

    trace = ""


class Terminated(KeyboardInterrupt):
    """A signal asked the program to end: ``number``.  Whoever lets Ctrl-C through lets this through, too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def explained(what: str, path: str | PathLike[str], next_step: str) -> Iterator[None]:
    """Makes a RooflineError of an OSError."""
    try:
        yield
    except OSError as error:
        raise RooflineError(what, path, error.strerror or str(error), next_step) from error


def unexpected(what: str, path: str | PathLike[str], error: Exception) -> UnexpectedError:
    """The sentence for an exception of any type that nobody foresaw.

    Raises KeyboardInterrupt (or Terminated) where that is what it was before somebody made another one of it, as imports do.
    """
    import traceback

    before: BaseException | None = error
    while before is not None:
        if isinstance(before, KeyboardInterrupt):
            raise type(before)(*before.args) from error
        before = before.__cause__ or before.__context__
    said = " ".join(str(error).split())[:200].rstrip(".")
    if isinstance(error, MemoryError):
        reason, next_step = "memory ran out", "Free some, or give fewer or smaller reports at a time."
    elif isinstance(error, ImportError):
        reason = f"a Python package can't be loaded ({said})"
        next_step = "`ncu-roofline doctor` says what is missing or broken."
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if os.path.dirname(os.path.dirname(__file__)) in frame.filename] or frames
        place = f" in {os.path.basename(own[-1].filename)}, line {own[-1].lineno}" if own else ""
        reason = f"ncu-roofline itself failed: {type(error).__name__}{said and f' ({said})'}{place}"
        next_step = (
            f"This is a bug: please report this line, with the file if you may share it; {TRACEBACK}=1 prints where it was."
        )
    found = UnexpectedError(what, path, reason, next_step)
    found.trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return found
