"""Where results go: a file, or standard output; messages and progress go to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TextIO, TypeVar

from ncu_roofline.base.errors import TRACEBACK, RooflineError, UnexpectedError, UsageError
from ncu_roofline.base.texts import advice, block, one_line, printable

T = TypeVar("T")

STANDARD_INPUT = STANDARD_OUTPUT = "-"
AUTO = "auto"
"""The value of --ceilings that leaves the choice to the program."""
REPORT = "REPORT"
"""What the help calls a report of the command line."""
PLATFORM_FILE = "[PLATFORM=]FILE"
"""What it calls a file that may be said to be of a platform."""
PLACES = ("FILE", "FILE|auto", "DIR", "PATH")
"""What it calls the value of an option that names a file or folder."""
at_end = ExitStack()
"""What is tidied up when a command has ended."""
_CALLED: dict[str, str] = {}


def check_output(path: str, force: bool, inputs: Iterable[str]) -> None:
    """Raise RooflineError early, before the work, if ``path`` can't be written, or is one of the ``inputs``."""
    from ncu_roofline.base.files import check_target

    if path != STANDARD_OUTPUT:
        check_unread(path, inputs)
        check_target(path, force)


def check_unread(path: str, inputs: Iterable[str]) -> None:
    """Raise RooflineError if ``path`` is, by whatever name, one of ``inputs``: what a command reads is never replaced."""
    for one in inputs:
        with suppress(OSError, ValueError):  # no file, or a NUL in the path
            if os.path.samefile(path, one):
                reason = f"it is one of the files that the command reads{'' if one == path else f' ({one})'}"
                raise RooflineError("Cannot write", path, reason, "Give the result another name.")


def targets(args: Any, known: Collection[str], inputs: Callable[[], Iterable[str]]) -> dict[str, str]:
    """Where the results of a command go, each with its format, before the work: files, or "" for the terminal.

    The format is what --json, --format or the suffix says, text where nothing does.  Raises UsageError for one that is not
    ``known``, for --json beside --output and for a file that is named twice, and what `check_output` does.
    """
    from ncu_roofline.analyses import format_for

    found: dict[str, str] = {}
    as_json = getattr(args, "json", False)
    for path in args.output or [""]:
        if path in found:
            raise UsageError("Cannot write", path, "it is named twice", "Give each result a name of its own.")
        if args.format and len(args.output) > 1:
            raise UsageError("Cannot use --format", args.format, "there are several results", "Let their suffixes say it.")
        if as_json and path:
            raise UsageError("Cannot use --json", path, "-o says where results go", "Leave out --json, or -o.")
        found[path] = chosen = "json" if as_json else args.format or (format_for(path) if path else "text")
        if chosen not in known:
            reason = f"{chosen or 'its suffix'} is none of {', '.join(known)}"
            word = chosen or os.path.splitext(path)[1].lstrip(".")
            raise UsageError("Cannot render", path or chosen, reason, advice("Name one with --format", word, known))
    if getattr(args, "theme", None) == "auto" and {"png", "pdf"}.intersection(found.values()):
        raise UsageError("Cannot use --theme", "auto", "colours of a png or pdf are fixed", "Write an .svg or a page.")
    for path in filter(None, found):
        check_output(path, args.force, inputs())
    return found


def looks(args: Any) -> dict[str, Any]:
    """Title and colours, where they were given."""
    return {name: given for name in ("title", "theme") if (given := getattr(args, name, None)) is not None}


def write_output(path: str, data: bytes, force: bool) -> None:
    """Write all of ``data`` or nothing.  Raises RooflineError."""
    if path == STANDARD_OUTPUT:
        with standard_output() as stream:
            stream.flush()
            stream.buffer.write(data)
    else:
        from ncu_roofline.base.files import write_atomically

        write_atomically(path, [data], overwrite=force)


def deliver(path: str, data: bytes, force: bool, output_format: str = "") -> None:
    """Write a result and say so of a file; if ``path`` is "", print it, in the letters that a console has where it is text."""
    if output_format in ("text", "csv", "nersc"):  # the others escape what is no letter, as their kind has it
        data = block(data.decode("utf-8", "replace")).encode()
    if output_format == "text" and not path:
        write_text(data.decode().rstrip("\n"))
    else:
        write_output(path or STANDARD_OUTPUT, data, force)
    if path not in ("", STANDARD_OUTPUT):
        say(f"Wrote {path}")


def write_results(frames: Any, outputs: Mapping[str, str], args: Any) -> None:
    """Write what was found to each of its `targets`, as a command line wants it."""
    from ncu_roofline.analyses import render

    width = getattr(args, "width", None) or terminal_width()
    for path, output_format in outputs.items():
        data = render(frames, output_format, table=getattr(args, "table", None), width=width, **looks(args))
        deliver(path, data, args.force, output_format)


def coloured(stream: TextIO | None) -> bool:
    """Whether colours may go to a stream: to terminals, unless the environment says otherwise (no-color.org, bixense.com)."""
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    return forced or (has_cursor(stream) and os.environ.get("CLICOLOR") != "0")


def has_cursor(stream: TextIO | None) -> bool:
    """Whether it is a terminal that can write over a line."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width(unknown: int = 120) -> int:
    """Characters of a line of the terminal, or ``unknown``; what is narrower than 60 wraps by itself."""
    import shutil

    return max(shutil.get_terminal_size((unknown, 24)).columns, 60)


def write_text(text: str) -> None:
    """Print ``text`` and a line end to standard output, whatever it may hold; a terminal gets our colours.

    Raises RooflineError.
    """
    from ncu_roofline.rendering.table import as_shown

    with standard_output() as stream:
        lines = map(as_shown if coloured(stream) else one_line, _as_called(text).split("\n"))
        stream.write("\n".join(lines) + "\n")


def call(path: str, name: str) -> None:
    """From now on texts, messages and errors call the file ``path``, which the user did not name, ``name``."""
    _CALLED[path] = name


def _as_called(text: str) -> str:
    for path, name in _CALLED.items():
        text = text.replace(path, name)
    return text


def say(message: str) -> None:
    """A line for people, beside the data."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable(_as_called(message)), file=sys.stderr)


def tell(error: RooflineError) -> None:
    """An error as a line, and where it came from if it is a bug and the environment asks for that."""
    warn([str(error)])
    if isinstance(error, UnexpectedError) and os.environ.get(TRACEBACK):
        for line in error.trace.splitlines():
            say(line)


def warn(messages: Iterable[str]) -> None:
    """A line for each message, said once."""
    for message in dict.fromkeys(messages):
        say(f"ncu-roofline: {message}")


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """The stream, whose content is out at the end.  Raises RooflineError, BrokenPipeError."""
    if sys.stdout is None:
        raise RooflineError("Cannot write", "standard output", "it is closed", "Leave it open, or write to a file.")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        # What is still in the buffer can't be written either; Python would try once more when it exits, and complain.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", "standard output", reason, "Send it to a place with space on its disk.") from error


def progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """``items`` as they are, with a bar on standard error: from one second on, and only where somebody looks."""
    if not has_cursor(sys.stderr):
        yield from items
        return
    from tqdm import tqdm

    with tqdm(items, what, total, delay=1.0, leave=False, file=sys.stderr) as bar:
        yield from bar
