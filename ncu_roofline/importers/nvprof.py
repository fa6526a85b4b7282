"""``nvprof --csv``: metrics, times or both, for GPUs up to Volta.

One file gives what it has: ``--metrics`` counts without times, ``--print-gpu-trace`` and ``--print-gpu-summary`` times without
counts.  `joined` puts files of one application together.  Which metrics count what: `nvprof_metrics`; layouts: `nvprof_text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath

from ncu_roofline.importers.cells import damaged
from ncu_roofline.importers.nvprof_points import points_of, warnings_of
from ncu_roofline.importers.nvprof_rows import parts_of
from ncu_roofline.importers.nvprof_runs import Part, kernels_of, runs_of
from ncu_roofline.importers.nvprof_text import holds_table, tables_of
from ncu_roofline.importers.tables import PointTable
from ncu_roofline.importers.text import text_of

FORMAT = "nvprof"


@dataclass(frozen=True)
class NvprofTable(PointTable):
    """The points of one or several files, with the parts they were made of, so that they can be joined with others."""

    parts: tuple[Part, ...] = ()
    reading: tuple[str, ...] = ()
    """Sentences on what was left out while reading, whatever the parts are joined with."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the parts are from."""
        return tuple(dict.fromkeys(part.path for part in self.parts))


def recognises(head: str) -> bool:
    """A log with the heading of one of nvprof's tables."""
    return holds_table(head)


def read(path: str | PathLike[str]) -> NvprofTable:
    """The kernels of one file.  Raises RooflineError for damaged tables, and for logs without any kernel."""
    name = fspath(path)
    tables = tables_of(text_of(path), name)
    parts, reading = parts_of(tables, name)
    if not any(part.counted or part.timed for part in parts):
        seen = " and ".join(dict.fromkeys(table.layout for table in tables))
        next_step = "Profile again with `nvprof --csv --metrics ...` or `--print-gpu-summary`, and check nvprof's filters."
        raise damaged(path, f"its tables ({seen}) hold no kernel", next_step)
    return _table(name, parts, reading)


def joined(tables: Sequence[NvprofTable]) -> list[NvprofTable]:
    """Tables of several files, those that complete each other as one: counts of one run, times of another.

    Kernels are the same where name and device are (a summary names no device).  A table that fits to no other one comes back as
    it is; in a sweep, where all files have the same kernels, the first metrics go with the first times, and so on.
    """
    given: dict[str, NvprofTable] = {}
    for table in tables:
        given.setdefault(table.path, table)
    parts: dict[tuple[str, ...], list[Part]] = {}
    for run in runs_of(part for table in given.values() for part in table.parts):
        parts.setdefault(run.paths, []).extend(run.parts)
    result = []
    for paths, several in parts.items():
        reading = [sentence for path in paths for sentence in given[path].reading]
        whole = len(paths) == 1 and len(several) == len(given[paths[0]].parts)
        result.append(given[paths[0]] if whole else _table(" + ".join(paths), several, reading))
    return result


def _table(path: str, parts: Sequence[Part], reading: Sequence[str]) -> NvprofTable:
    runs = runs_of(parts)
    kernels = [kernel for run in runs for kernel in kernels_of(run)]
    warnings = [*reading, *(sentence for run in runs for sentence in run.warnings), *warnings_of(kernels)]
    return NvprofTable(
        path=path,
        format=FORMAT,
        points=tuple(points_of(kernels)),
        warnings=tuple(f"{path}: {sentence}." for sentence in dict.fromkeys(warnings)),
        parts=tuple(parts),
        reading=tuple(reading),
    )
