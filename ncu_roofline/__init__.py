"""Hierarchical rooflines of NVIDIA GPUs from Nsight Compute reports, offline.

from ncu_roofline import read_report, roofline, render
"""

from __future__ import annotations

from ncu_roofline.version import __version__

TYPE_CHECKING = False  # not from typing, which takes time before the program can answer Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    from ncu_roofline.analyses import render as render
    from ncu_roofline.analyses.compare.frames import Comparison as Comparison
    from ncu_roofline.analyses.compare.frames import compare as compare
    from ncu_roofline.analyses.fma_mix import fma_mix as fma_mix
    from ncu_roofline.analyses.instruction import InstructionRoofline as InstructionRoofline
    from ncu_roofline.analyses.instruction import instruction_roofline as instruction_roofline
    from ncu_roofline.analyses.phases.frames import PhaseRoofline as PhaseRoofline
    from ncu_roofline.analyses.phases.frames import phase_roofline as phase_roofline
    from ncu_roofline.analyses.portability import Portability as Portability
    from ncu_roofline.analyses.portability import portability as portability
    from ncu_roofline.analyses.ranks import Ranks as Ranks
    from ncu_roofline.analyses.ranks import ranks as ranks
    from ncu_roofline.analyses.source.build import source_roofline as source_roofline
    from ncu_roofline.analyses.source.frames import SourceRoofline as SourceRoofline
    from ncu_roofline.analyses.time.frames import TimeRoofline as TimeRoofline
    from ncu_roofline.analyses.time.frames import time_roofline as time_roofline
    from ncu_roofline.base.errors import RooflineError as RooflineError
    from ncu_roofline.formats.ceilings import Ceilings as Ceilings
    from ncu_roofline.formats.ceilings import read_ceilings as read_ceilings
    from ncu_roofline.formats.report import Kernel as Kernel
    from ncu_roofline.formats.report import Report as Report
    from ncu_roofline.formats.report import read_report as read_report
    from ncu_roofline.formats.report import write_report as write_report
    from ncu_roofline.model import Roofline as Roofline
    from ncu_roofline.model import Selection as Selection
    from ncu_roofline.model import roofline as roofline

# Where they are.
_NAMES = {
    "analyses": "render",
    "analyses.compare.frames": "Comparison compare",
    "analyses.fma_mix": "fma_mix",
    "analyses.instruction": "InstructionRoofline instruction_roofline",
    "analyses.phases.frames": "PhaseRoofline phase_roofline",
    "analyses.portability": "Portability portability",
    "analyses.ranks": "Ranks ranks",
    "analyses.source.build": "source_roofline",
    "analyses.source.frames": "SourceRoofline",
    "analyses.time.frames": "TimeRoofline time_roofline",
    "base.errors": "RooflineError",
    "formats.ceilings": "Ceilings read_ceilings",
    "formats.report": "Kernel Report read_report write_report",
    "model": "Roofline Selection roofline",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *sorted(_HOMES)]

if not TYPE_CHECKING:  # type checkers would take any name for one of the package

    def __getattr__(name: str) -> Any:
        # Lazy: `ncu-roofline --help` must not pay for numpy, pandas and protobuf.
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        found = getattr(importlib.import_module(f"ncu_roofline.{_HOMES[name]}"), name)
        if _HOMES[name].startswith(("model", "analyses.")):
            displayed = importlib.import_module("ncu_roofline.model.roofline").Displayed
            displayed.shown_by = staticmethod(lambda: importlib.import_module("ncu_roofline.analyses.notebook"))
        globals()[name] = found  # next time Python finds it without asking
        return found

    def __dir__() -> list[str]:
        return __all__
