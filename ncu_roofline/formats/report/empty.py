"""Records of results that say nothing: no name, no launch, no metrics.

Nsight Compute writes none; a short last record, which its own reader takes for a kernel, and made-up files have them.  A result
without metrics alone is real: ncu writes the kernel that it could not profile.
"""

from __future__ import annotations

from os import PathLike

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report.framing import RawFile
from ncu_roofline.formats.report.schema import Kind

SHORT = 1024
"""Bytes of a record that says next to nothing; the shortest of 1,643 real ones has 16 kB."""
_MOST_SHORT = 100_000  # in one report; every kernel takes memory and a row, whatever it says
_SILENT = ("thread_id", "created", "context", "stream", "clock")  # what a launch has besides, of no use alone
EMPTY = "no name, no launch and no metrics"
"""What such a record has, for a sentence."""


def is_empty(raw: RawFile, kind: Kind, offset: int, length: int) -> bool:
    """Whether the result of ``length`` bytes at ``offset`` says nothing; damaged ones say so when they are read."""
    if length == 0:
        return True
    if length > SHORT:
        return False
    data = raw.data[offset : offset + length]
    try:
        seen = [raw.decode(name, data, offset) for name in (kind.head_message, kind.body_message, kind.metrics_message)]
    except RooflineError:
        return False
    return not any(field.name not in _SILENT for one in seen for field, _ in one.ListFields())


def check_short(path: str, short: int) -> None:
    """Raise RooflineError for a report with more ``short`` records (of up to `SHORT` bytes) than any profiler writes."""
    if short > _MOST_SHORT:
        reason = f"over {_MOST_SHORT:,} of its records of kernels have no more than {SHORT:,} bytes, real ones 16,000 or more"
        raise RooflineError("Cannot read", path, f"{reason}: it is damaged or made up", "Profile again.")


def check_content(what: str, path: str | PathLike[str], launches: int, metrics: int, empty: int = 0) -> None:
    """Raise RooflineError, beginning with ``what``, for a report of which nothing could be drawn or said.

    ``launches`` and ``metrics`` are how many it holds, ``empty`` how many records of it are.
    """
    if not launches and empty:
        reason = f"all of its {empty:,} records of kernels are empty ({EMPTY}): it is damaged or made up"
        raise RooflineError(what, path, reason, "Profile again.")
    if not launches:
        next_step = "Profile again, and check that ncu's filters let some kernel pass."
        raise RooflineError(what, path, "it holds no profiled kernel", next_step)
    if not metrics:
        next_step = "Profile again with metrics, for instance with `ncu --set full`."
        raise RooflineError(what, path, "its kernels carry no metrics", next_step)
