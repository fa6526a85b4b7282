"""Hierarchical rooflines of NVIDIA GPUs from Nsight Compute reports, offline.

from ncu_roofline import read_report, roofline, render
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncu_roofline.model import Roofline, roofline
    from ncu_roofline.rendering import render
    from ncu_roofline.report import Report, read_report

__all__ = ["Report", "Roofline", "__version__", "read_report", "render", "roofline"]
__version__ = "0.1.0"

_HOMES = {
    "Report": "ncu_roofline.report",
    "Roofline": "ncu_roofline.model",
    "read_report": "ncu_roofline.report",
    "render": "ncu_roofline.rendering",
    "roofline": "ncu_roofline.model",
}


def __getattr__(name: str) -> Any:
    # Lazy: `ncu-roofline --help` must not pay for numpy, pandas and protobuf.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_HOMES[name])
    if _HOMES[name] == "ncu_roofline.model":
        module.Roofline.notebook = _notebook
    return getattr(module, name)


def _notebook(result: Any) -> str:
    from ncu_roofline.rendering.notebook import notebook_html

    return notebook_html(result)
