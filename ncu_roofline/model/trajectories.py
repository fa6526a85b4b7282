"""Parameter sweeps: which launches are one step of a sweep, and what the step is called.

A trajectory joins the dots of one kernel over the steps, as figure 2 of Yang, Kurth, Williams, "Hierarchical Roofline Analysis
for GPUs" (2019) does with GPP for nw = 1 ... 6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, natural_order
from ncu_roofline.base.texts import expression, first_found
from ncu_roofline.model.measurements import Measurements, objects

NVTX = "nvtx"
_WHAT = "Cannot draw a trajectory of"
_PIECES = re.compile(r"[^\W_]+(?:[=.][^\W_]+)*|[\W_]")  # words, "nw=1" and "0.5" among them, and what stands between


def as_trajectory(measurements: Measurements, label: str = "") -> Measurements:
    """The measurements with ``label`` and ``step`` set; launches of one step share both, whichever report they come from.

    ``label`` says what names a step: "" the part of the file names that differs, "nvtx" the NVTX range path, "nvtx:REGEX" what
    REGEX finds in that path, anything else a regular expression searched in the report's path; of an expression its first
    group counts, else the whole match.  Labels that an imported file gives its points stay.
    Steps follow the order of the reports and of the launches in them; reports in the order in which a shell sorts them (nw1,
    nw10, nw2) are taken in natural order (nw1, nw2, nw10).  Launches in no matching range get step -1.
    Raises RooflineError where nothing labels the steps or fewer than two are found; ValueError for a wrong expression.
    """
    m = measurements
    text = label[len(NVTX) + 1 :] if _by_nvtx(label) else label
    pattern = expression(text) if text else None
    found = _nvtx_labels(m, pattern) if _by_nvtx(label) else _report_labels(m, pattern)
    labels = objects([own or other for own, other in zip(m.label, found, strict=True)])  # its own are an imported file's
    steps: dict[str, int] = {}
    for i in np.argsort(_report_ranks(m), kind="stable"):
        if labels[i]:
            steps.setdefault(labels[i], len(steps))
    if len(steps) < 2:
        raise _too_few(m, label, list(steps))
    return replace(m, label=labels, step=np.array([steps.get(one, -1) for one in labels], dtype=np.int64))


def _by_nvtx(label: str) -> bool:
    return label == NVTX or label.startswith(f"{NVTX}:")


def _nvtx_labels(m: Measurements, pattern: re.Pattern[str] | None) -> list[str]:
    paths = list(dict.fromkeys(path for path in m.nvtx if path))
    texts = [first_found(pattern, path).strip() for path in paths] if pattern else differing(paths)
    by_path = dict(zip(paths, texts, strict=True))
    return [by_path.get(path, "") for path in m.nvtx]


def _report_labels(m: Measurements, pattern: re.Pattern[str] | None) -> list[str]:
    """Labels of the reports' paths.  A report that the expression does not fit is refused: it would be missing unseen."""
    unlabelled = {report for report, own in zip(m.report, m.label, strict=True) if not own}
    reports = [report for report in dict.fromkeys(m.report) if report in unlabelled]
    texts = [first_found(pattern, report).strip() for report in reports] if pattern else file_labels(reports)
    for report, text in zip(reports, texts, strict=True):
        if pattern and not text:
            reason = f"the pattern {pattern.pattern!r} finds nothing in its path"
            raise RooflineError(_WHAT, report, reason, "Change --label, or leave the report out.")
    by_report = dict(zip(reports, texts, strict=True))
    return [by_report.get(report, "") for report in m.report]


def _report_ranks(m: Measurements) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each launch the place of its report in the sweep."""
    reports = list(dict.fromkeys(m.report))
    # A list as `nw*.ncu-rep` gives it carries no wish of a person; any other order does.
    if reports in (sorted(reports), sorted(reports, key=str.casefold)):
        reports.sort(key=natural_order)
    rank = {report: i for i, report in enumerate(reports)}
    return np.array([rank[report] for report in m.report], dtype=np.int64)


def file_labels(paths: Sequence[str]) -> list[str]:
    """What tells report files apart: gpp-nw1.ncu-rep and gpp-nw2.ncu-rep are "nw1" and "nw2"; "" for a single file."""
    if len(paths) < 2:
        return [""] * len(paths)
    names = [_without_suffix(PurePath(path).name) for path in paths]
    if len(set(names)) == len(names):
        return differing(names)
    folders = [PurePath(_without_suffix(path)).as_posix() for path in paths]
    return differing(folders)


def _without_suffix(name: str) -> str:
    suffix = next((one for one in REPORT_SUFFIXES if name.endswith(one)), PurePath(name).suffix)
    return name[: len(name) - len(suffix)] if suffix else name


def differing(texts: Sequence[str]) -> list[str]:
    """Distinct texts without the words that all begin or end with; a bare number keeps the word before it."""
    pieces = [_PIECES.findall(text) for text in texts]
    shortest = min(map(len, pieces), default=0)
    if len(texts) < 2 or shortest == 0:
        return list(texts)
    start = _common(pieces, shortest - 1)
    end = _common([part[::-1] for part in pieces], shortest - 1 - start)
    middles = [part[start : len(part) - end] for part in pieces]
    if start >= 2 and any(middle[0].replace(".", "").isdecimal() for middle in middles):
        middles = [[*part[start - 2 : start], *middle] for part, middle in zip(pieces, middles, strict=True)]
    return ["".join(middle).strip(" -_./\\") or text for middle, text in zip(middles, texts, strict=True)]


def _common(pieces: Sequence[Sequence[str]], most: int) -> int:
    """How many first pieces all have in common, ``most`` at most."""
    count = 0
    while count < most and len({part[count] for part in pieces}) == 1:
        count += 1
    return count


def _too_few(m: Measurements, label: str, found: Sequence[str]) -> RooflineError:
    """The sentence for a sweep of fewer than two steps."""
    reports = list(dict.fromkeys(m.report))
    about = reports[0] if len(reports) == 1 else f"{len(reports)} reports"
    if _by_nvtx(label):
        where = "NVTX ranges" if label == NVTX else f"NVTX ranges that match {label[len(NVTX) + 1 :]!r}"
        reason = f"all its {where} give one label, {found[0]!r}" if found else f"its launches lie in no {where}"
        return RooflineError(_WHAT, about, reason, "Profile with `ncu --nvtx` and a range around each step, or change --label.")
    if found:
        return RooflineError(
            _WHAT, about, f"all of it has one label, {found[0]!r}", "Give reports of other steps, or change --label."
        )
    next_step = "Give several reports, or use --label nvtx for a sweep inside one report."
    return RooflineError(_WHAT, about, "it is one report, and nothing labels its steps", next_step)
