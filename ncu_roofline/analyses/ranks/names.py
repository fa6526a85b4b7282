"""Which rank a report belongs to: told by its path, else by the process that it was made of."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import expression

# rank0, rank_12, task.3, procid=4, pe7, r12: what mpirun, srun and ncu users call their files and folders.
_WORD = re.compile(r"(?:^|[^a-zA-Z])(?:mpi[-_.]?)?(?:rank|task|procid|proc|pe|r)[-_.=]?(\d+)", re.IGNORECASE)
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class RankSource:
    """One process on one GPU in one report: ``gpu`` is its PCI address, ``pid`` 0 and texts '' where the report is silent."""

    report: str
    host: str = ""
    pid: int = 0
    gpu: str = ""


@dataclass(frozen=True)
class RankNames:
    """The rank of each source as text, and in words where that was taken from."""

    ranks: tuple[str, ...]
    origin: str

    def ordered(self) -> list[str]:
        """The distinct ranks, numbers in the order of their values."""
        return sorted(dict.fromkeys(self.ranks), key=natural)


def natural(text: str) -> list[tuple[int, int, str]]:
    """A sort key that orders r2 before r10."""
    parts = ((part, part.lstrip("0")) for part in _DIGITS.split(text) if part)
    return [(0, len(number), number) if part.isdecimal() else (1, 0, part) for part, number in parts]


def rank_names(sources: Sequence[RankSource], pattern: str = "") -> RankNames:
    """The rank of each source.

    ``pattern`` is a regular expression searched in the report's path; its first group (without one, the whole match) is the
    rank.  Without it, in this order: the processes, where a report holds several; a number after a word such as rank in all
    paths; the one number in which all paths differ; host and process id; the file name.
    Raises RooflineError for a report whose path does not match ``pattern``.
    """
    reports = list(dict.fromkeys(source.report for source in sources))
    if pattern:
        wanted = expression(pattern)
        return _by_report(sources, {report: _matched(report, wanted) for report in reports}, f"--rank {pattern}")
    processes = Counter(report for report, _, _ in {(one.report, one.host, one.pid) for one in sources})
    if max(processes.values(), default=0) > 1:
        return RankNames(_processes(sources), "processes in the reports")
    found = _by_word(reports)
    if found:
        return _by_report(sources, found, "ranks in the paths")
    found = _by_number(reports)
    if found:
        pids = {source.report: str(source.pid) for source in sources}
        what = "process ids" if found == pids else "numbers"
        return _by_report(sources, found, f"{what} in the paths")
    labels = _processes(sources)
    known = all(source.pid for source in sources)
    if known and len(set(zip(labels, (one.report for one in sources), strict=True))) == len(set(labels)) and len(reports) > 1:
        return RankNames(labels, "host and process id")
    return _by_report(sources, _file_names(reports), "file names")


def _by_report(sources: Sequence[RankSource], ranks: dict[str, str], origin: str) -> RankNames:
    return RankNames(tuple(ranks[source.report] for source in sources), origin)


def _matched(report: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(report)
    text = (match.group(1) if match.re.groups else match.group()) if match else None
    if not text:
        next_step = "Give a regular expression whose first group is the rank in every path, such as 'node(\\d+)'."
        raise RooflineError("Cannot tell the rank of", report, f"--rank {pattern.pattern} finds none in its path", next_step)
    return _plain(text)


def _plain(number: str) -> str:
    """007 and 7 are one rank."""
    return str(int(number)) if number.isdecimal() else number


def _by_word(reports: Sequence[str]) -> dict[str, str]:
    found = {report: matches[-1] for report in reports if (matches := _WORD.findall(report))}
    if len(found) < len(reports) or (len(reports) > 1 and len(set(found.values())) == 1):
        return {}
    return {report: _plain(number) for report, number in found.items()}


def _by_number(reports: Sequence[str]) -> dict[str, str]:
    """The one number that tells all paths apart; of several the one that counts from 0 or 1."""
    split = [_DIGITS.split(report) for report in reports]
    if len(reports) < 2 or len({tuple(parts[::2]) for parts in split}) > 1:
        return {}
    columns = [[int(number) for number in column] for column in zip(*(parts[1::2] for parts in split), strict=True)]
    distinct = [column for column in columns if len(set(column)) == len(reports)]
    if len(distinct) > 1:
        distinct = [one for one in distinct if sorted(one) in (list(range(len(one))), list(range(1, len(one) + 1)))]
    return dict(zip(reports, map(str, distinct[0]), strict=True)) if len(distinct) == 1 else {}


def _processes(sources: Sequence[RankSource]) -> tuple[str, ...]:
    several = len({source.host for source in sources}) > 1
    return tuple(f"{source.host}:{source.pid}" if several else str(source.pid) for source in sources)


def _file_names(reports: Sequence[str]) -> dict[str, str]:
    names = {report: os.path.basename(report) for report in reports}
    return names if len(set(names.values())) == len(reports) else {report: report for report in reports}
