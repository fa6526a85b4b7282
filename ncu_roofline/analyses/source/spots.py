"""The place in the code that matters most for what limits a kernel, for the sentence on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from ntpath import basename

import numpy as np

from ncu_roofline.analyses.hierarchical.answer import leading
from ncu_roofline.analyses.hierarchical.usage import Usage
from ncu_roofline.analyses.source.build import LaunchFrames
from ncu_roofline.analyses.source.code import Cubins, SourceTexts
from ncu_roofline.analyses.source.counts import Counts, counted
from ncu_roofline.analyses.source.performance import launch_roofs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.code_limits import INSTRUCTIONS
from ncu_roofline.chips.verdict import LATENCY, as_percent
from ncu_roofline.formats.report import Report
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.roofline import Roofline, closing_input
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.verdicts import bounds_of

_WORDS = {
    "excess": "uncoalesced accesses",
    "tensor-feed": "uncoalesced loads for tensor instructions",
    "gaps": "accesses by few lanes",
    "spill": "local memory",
    "bank-conflict": "bank conflicts",
    "divergence": "inactive lanes",
    "stall": "waiting warps",
    "called-library": "slow paths of the compiler's library",
    "unfused": "multiplications and additions apart",
    "fp64-by-accident": "FP64 among FP32",
    "conversion": "slow conversions",
    "integer": "integer arithmetic",
    "address": "address arithmetic",
}
_MEMORY = ("spill", "excess", "tensor-feed", "gaps", "bank-conflict")
_SLOW = ("called-library", "divergence", "unfused", "fp64-by-accident", "conversion", "integer", "address")
_COLUMNS = ("finding", "file", "line", "cause", "share", "of", "message")
_PLACE = re.compile(r"\S+:\d+(?=[ :])")  # what a message begins with: of a library's line the one that uses it
# By the beginning of a verdict: findings that are about what limits a kernel.
_ABOUT = {"memory": (*_MEMORY, "called-library"), "compute": _SLOW, LATENCY: ("stall", *_SLOW)}


def spots(roofline: Roofline, m: Measurements, paths: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """By GPU and kernel the place that matters most, of the kernel that comes first on each GPU, if its code was counted.

    ``roofline`` is that of ``m``; ``paths``: where the reports with counts by instruction lie, by their names in ``m``.
    """
    found: dict[tuple[str, str], str] = {}
    for kernel, launch in leading(roofline, m, paths):
        with suppress(RooflineError):  # of code that can't be read there is nothing to say
            if text := _spot(kernel, launch, paths):
                found[kernel.device, kernel.kernel] = text
    return found


def _spot(kernel: Usage, launch: Measurements, paths: Mapping[str, str]) -> str:
    """The finding on a launch that touches most of those that are about what limits the kernel, in a few words."""
    with closing_input(paths[launch.report[0]]) as report:
        if not isinstance(report, Report):
            return ""
        code = report.kernels[int(launch.launch[0])]
        if not counted(code.metrics.names()):
            return ""
        counts = Counts.of(code.metrics)
        if not 0 < len(counts.addresses) <= INSTRUCTIONS:
            return ""
        bound = bounds_of([(kernel.verdict, kernel.limit)])
        roofs = launch_roofs(launch, Roofs(launch, (), "profiled"), load_spec(), bound)[0]
        with np.errstate(all="ignore"):
            table = LaunchFrames(code, counts, roofs, Cubins(None), SourceTexts(()), launch, 0).findings()
    about = _ABOUT.get(kernel.verdict.partition(":")[0], ())
    for finding, file, line, cause, share, of, message in zip(*(table[name] for name in _COLUMNS), strict=True):
        if finding in about and line > 0:
            named = _PLACE.match(clean(message))
            place = named[0] if named else f"{shorten(clean(basename(file)))}:{line}"
            return f"{place}: {cause or _WORDS[finding]}, {as_percent(share)} of {of}"
    return ""
