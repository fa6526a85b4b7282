"""Reading and writing `.ncu-rep` and `.ncu-repz` files, the reports of Nsight Compute, with nothing of NVIDIA's installed."""

from __future__ import annotations

from ncu_roofline.formats.report.metrics import Code, CodeFunction, ImportedFile, Instances, Metrics, Value
from ncu_roofline.formats.report.reader import Device, FocusMetric, Kernel, Launch, Report, RuleMessage, RuleResult, read_report
from ncu_roofline.formats.report.session import Process, Session

# Looked up when it is asked for: most runs only read.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ncu_roofline.formats.report.writer import KernelData, ReportData, encode_report, write_report

__all__ = ["Code", "CodeFunction", "Device", "FocusMetric", "ImportedFile", "Instances", "Kernel", "Launch", "Metrics"]
__all__ += ["Process", "Report", "RuleMessage", "RuleResult", "Session", "Value", "read_report"]
__all__ += ["KernelData", "ReportData", "encode_report", "write_report"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ncu_roofline.formats.report import writer

    return getattr(writer, name)
