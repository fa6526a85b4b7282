"""Hierarchical rooflines of NVIDIA GPUs from Nsight Compute reports, offline.

from ncu_roofline import read_report, roofline, render
"""

from __future__ import annotations

from ncu_roofline.version import __version__

TYPE_CHECKING = False  # not from typing, which takes time before the program can answer Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    from ncu_roofline.analyses import render
    from ncu_roofline.analyses.compare.frames import compare
    from ncu_roofline.analyses.fma_mix import fma_mix
    from ncu_roofline.analyses.instruction.frames import instruction_roofline
    from ncu_roofline.analyses.portability.frames import portability
    from ncu_roofline.analyses.ranks.frames import ranks
    from ncu_roofline.analyses.time.frames import time_roofline
    from ncu_roofline.model import Roofline, roofline
    from ncu_roofline.report import Report, read_report

__all__ = [
    "Report",
    "Roofline",
    "__version__",
    "compare",
    "fma_mix",
    "instruction_roofline",
    "portability",
    "ranks",
    "read_report",
    "render",
    "roofline",
    "time_roofline",
]

_HOMES = {
    "Report": "ncu_roofline.report",
    "Roofline": "ncu_roofline.model",
    "compare": "ncu_roofline.analyses.compare.frames",
    "fma_mix": "ncu_roofline.analyses.fma_mix",
    "instruction_roofline": "ncu_roofline.analyses.instruction.frames",
    "portability": "ncu_roofline.analyses.portability.frames",
    "ranks": "ncu_roofline.analyses.ranks.frames",
    "read_report": "ncu_roofline.report",
    "render": "ncu_roofline.analyses",
    "roofline": "ncu_roofline.model",
    "time_roofline": "ncu_roofline.analyses.time.frames",
}


def __getattr__(name: str) -> Any:
    # Lazy: `ncu-roofline --help` must not pay for numpy, pandas and protobuf.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_HOMES[name]), name)
    if _HOMES[name].startswith(("ncu_roofline.model", "ncu_roofline.analyses.")):
        importlib.import_module("ncu_roofline.model.columns").Displayed.html = staticmethod(_html)
    globals()[name] = found  # next time Python finds it without asking
    return found


def _html(result: Any) -> str:
    from ncu_roofline.analyses import notebook_html

    return notebook_html(result)
