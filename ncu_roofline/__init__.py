"""Hierarchical rooflines of NVIDIA GPUs from Nsight Compute reports, offline.

from ncu_roofline import read_report, roofline, render
"""

from __future__ import annotations

from ncu_roofline.version import __version__

TYPE_CHECKING = False  # not from typing, which takes time before the program can answer Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    from ncu_roofline.analyses import render
    from ncu_roofline.analyses.compare.frames import Comparison, compare
    from ncu_roofline.analyses.fma_mix import fma_mix
    from ncu_roofline.analyses.instruction.frames import InstructionRoofline, instruction_roofline
    from ncu_roofline.analyses.phases.frames import PhaseRoofline, phase_roofline
    from ncu_roofline.analyses.portability.frames import Portability, portability
    from ncu_roofline.analyses.ranks.frames import Ranks, ranks
    from ncu_roofline.analyses.source.build import source_roofline
    from ncu_roofline.analyses.source.frames import SourceRoofline
    from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
    from ncu_roofline.base.errors import RooflineError
    from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
    from ncu_roofline.formats.report import Kernel, Report, read_report, write_report
    from ncu_roofline.model import Roofline, Selection, roofline

__all__ = [
    "Ceilings",
    "Comparison",
    "InstructionRoofline",
    "Kernel",
    "PhaseRoofline",
    "Portability",
    "Ranks",
    "Report",
    "Roofline",
    "RooflineError",
    "Selection",
    "SourceRoofline",
    "TimeRoofline",
    "__version__",
    "compare",
    "fma_mix",
    "instruction_roofline",
    "phase_roofline",
    "portability",
    "ranks",
    "read_ceilings",
    "read_report",
    "render",
    "roofline",
    "source_roofline",
    "time_roofline",
    "write_report",
]

_HOMES = {
    "Ceilings": "ncu_roofline.formats.ceilings",
    "Comparison": "ncu_roofline.analyses.compare.frames",
    "InstructionRoofline": "ncu_roofline.analyses.instruction.frames",
    "Kernel": "ncu_roofline.formats.report",
    "PhaseRoofline": "ncu_roofline.analyses.phases.frames",
    "Portability": "ncu_roofline.analyses.portability.frames",
    "Ranks": "ncu_roofline.analyses.ranks.frames",
    "Report": "ncu_roofline.formats.report",
    "Roofline": "ncu_roofline.model",
    "RooflineError": "ncu_roofline.base.errors",
    "Selection": "ncu_roofline.model",
    "SourceRoofline": "ncu_roofline.analyses.source.frames",
    "TimeRoofline": "ncu_roofline.analyses.time.frames",
    "compare": "ncu_roofline.analyses.compare.frames",
    "fma_mix": "ncu_roofline.analyses.fma_mix",
    "instruction_roofline": "ncu_roofline.analyses.instruction.frames",
    "phase_roofline": "ncu_roofline.analyses.phases.frames",
    "portability": "ncu_roofline.analyses.portability.frames",
    "ranks": "ncu_roofline.analyses.ranks.frames",
    "read_ceilings": "ncu_roofline.formats.ceilings",
    "read_report": "ncu_roofline.formats.report",
    "render": "ncu_roofline.analyses",
    "roofline": "ncu_roofline.model",
    "source_roofline": "ncu_roofline.analyses.source.build",
    "time_roofline": "ncu_roofline.analyses.time.frames",
    "write_report": "ncu_roofline.formats.report",
}


if not TYPE_CHECKING:  # type checkers would take any name for one of the package

    def __getattr__(name: str) -> Any:
        # Lazy: `ncu-roofline --help` must not pay for numpy, pandas and protobuf.
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        found = getattr(importlib.import_module(_HOMES[name]), name)
        if _HOMES[name].startswith(("ncu_roofline.model", "ncu_roofline.analyses.")):
            displayed = importlib.import_module("ncu_roofline.model.roofline").Displayed
            displayed.html, displayed.said = staticmethod(_html), staticmethod(_said)
        globals()[name] = found  # next time Python finds it without asking
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def _html(result: Any) -> str:
    from ncu_roofline.analyses.notebook import notebook_html

    return notebook_html(result)


def _said(result: Any) -> Any:
    from ncu_roofline.analyses.notebook import said

    return said(result)
