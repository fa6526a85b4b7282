"""The reports a command line names: files, globs and folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from ncu_roofline.errors import RooflineError
from ncu_roofline.files import REPORT_SUFFIXES, natural_order


def expand(arguments: Sequence[str]) -> list[str]:
    """Report paths in a stable order (inside folders and patterns nw2 before nw10), each file once, however it was named.

    A folder stands for all reports below it; a pattern for what it matches (shells on Windows leave that to programs).
    Raises RooflineError for an argument that names nothing.
    """
    found: dict[str, str] = {}
    for argument in arguments:
        for path in _expand_one(argument):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _expand_one(argument: str) -> list[str]:
    if not argument:  # an unset variable of a script; as a path it would be the current folder
        raise RooflineError("Cannot read", "''", "the name is empty", "Give the path of a report.")
    if os.path.isdir(argument):
        inside = _reports_below(argument)
        if not inside:
            raise RooflineError(
                "Cannot read",
                argument,
                "the folder holds no report",
                f"Give a folder with {' or '.join(REPORT_SUFFIXES)} files.",
            )
        return inside
    if not os.path.exists(argument) and glob.has_magic(argument):
        matches = sorted(glob.glob(argument, recursive=True), key=natural_order)
        found = [one for match in matches for one in (_reports_below(match) if os.path.isdir(match) else [match])]
        if not found:
            raise RooflineError("Cannot read", argument, "no file matches the pattern", "Check the pattern.")
        return found
    return [argument]


def _reports_below(folder: str) -> list[str]:
    files = ((where, name) for where, _, found in os.walk(folder) for name in found)
    names = ((where, name) for where, name in files if name.lower().endswith(REPORT_SUFFIXES))
    paths = (os.path.join(where, name) for where, name in names)
    return sorted((os.path.normpath(path) for path in paths if os.path.isfile(path)), key=natural_order)
