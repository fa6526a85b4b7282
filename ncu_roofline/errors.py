"""The one exception that users see.

Every failure that a user can do something about is a `RooflineError`; the command line prints it as one sentence and exits
with its code.  Anything else that escapes is a bug.
"""

from __future__ import annotations

from os import PathLike


def printable(text: str) -> str:
    """``text`` on one line and without anything that a terminal would obey: control characters, changes of direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class RooflineError(Exception):
    """A failure we can explain: what failed, on what, why, and what to do next.

    The text reads ``{what} {path}: {reason}. {next_step}`` on a single line.
    """

    exit_code = 1

    def __init__(self, what: str, path: str | PathLike[str], reason: str, next_step: str) -> None:
        self.what = what
        self.path = str(path)
        self.reason = reason
        self.next_step = next_step
        super().__init__(str(self))

    def __str__(self) -> str:
        return printable(f"{self.what} {self.path}: {self.reason.rstrip('.')}. {self.next_step}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        # Errors travel between the processes that read several reports at once.
        return type(self), (self.what, self.path, self.reason, self.next_step)


class UsageError(RooflineError):
    """The command line itself is wrong: exit code 2."""

    exit_code = 2


class Terminated(KeyboardInterrupt):
    """A signal asked the program to end: ``number``.  Whoever lets Ctrl-C through lets this through, too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
