"""The report `-`: what comes on standard input, as a file for the time of a command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.temporary import no_room, temporary_folder
from ncu_roofline.cli.outputs import PLATFORM_FILE, REPORT, STANDARD_INPUT, called

if TYPE_CHECKING:
    from dataclasses import Field

NAME = "standard input"
"""What outputs and messages call it."""


@contextmanager
def kept(request: Any) -> Iterator[Any]:
    """``request`` with a file in the place of each report `-`, gone afterwards.

    Raises UsageError where it is named twice, is a terminal or is for other machines, RooflineError where it can't be kept.
    """
    asked = sum(_is_input(item, one) for item, one in _reports(request))
    if not asked:
        yield request
        return
    if asked > 1:
        raise UsageError("Cannot read", NAME, "it is named twice and can be read once", "Write it to a file and name that.")
    stream = _open_input(request)
    with temporary_folder() as folder:
        path = folder / NAME
        _copy(stream, path)
        with called(str(path), NAME):
            yield _with(request, str(path))


def _reports(request: Any) -> Iterator[tuple[Field[Any], str]]:
    """What it reads, each with where it is named."""
    for item in fields(request):
        value = getattr(request, item.name)
        if is_dataclass(value):
            yield from _reports(value)
        elif _is_report(item):
            yield from ((item, one) for one in (value if isinstance(value, tuple) else (value,)))


def _is_report(item: Field[Any]) -> bool:
    return item.metadata.get("metavar") in (REPORT, PLATFORM_FILE)


def _is_input(item: Field[Any], text: str) -> bool:
    of_platform = item.metadata["metavar"] == PLATFORM_FILE and text.endswith(f"={STANDARD_INPUT}")
    return text == STANDARD_INPUT or of_platform


def _with(request: Any, path: str) -> Any:
    changed: dict[str, Any] = {}
    for item in fields(request):
        value = getattr(request, item.name)
        if is_dataclass(value):
            changed[item.name] = _with(value, path)
        elif _is_report(item):
            several = value if isinstance(value, tuple) else (value,)
            found = tuple(one[: -len(STANDARD_INPUT)] + path if _is_input(item, one) else one for one in several)
            changed[item.name] = found if isinstance(value, tuple) else found[0]
    return replace(request, **changed)


def _open_input(request: Any) -> BinaryIO:
    scheduler = getattr(getattr(request, "reports", None), "dask", None)
    if scheduler:
        reason = "standard input is on this machine, not where its workers are"
        raise UsageError("Cannot use --dask", scheduler, reason, "Write it to a file that they see and name that.")
    if sys.stdin is None:
        raise UsageError("Cannot read", NAME, "it is closed", "Leave it open, or name a file.")
    if sys.stdin.isatty():
        raise UsageError("Cannot read", NAME, "it is a terminal", "Send a report there: `cat FILE | ncu-roofline show -`.")
    return sys.stdin.buffer


def _copy(stream: BinaryIO, path: Path) -> None:
    """All of it; of what nobody reads only the beginning, by which readers refuse it: it may have no end."""
    from ncu_roofline.formats.inputs.opening import recognised
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
