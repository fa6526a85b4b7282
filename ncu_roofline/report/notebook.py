"""A report as a notebook shows it: what was profiled where, and its first launches."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ncu_roofline.errors import printable
from ncu_roofline.units import format_value

if TYPE_CHECKING:
    from ncu_roofline.report.reader import Report

MOST_LAUNCHES = 20
_NAME_LENGTH = 100
_TIME = "gpu__time_duration.sum"


def report_html(report: Report) -> str:
    """A table of the first launches as html; nothing of the report reaches it unescaped.  Raises RooflineError for damage."""
    devices = ", ".join(device.name for device in report.devices) or "no GPU named"
    release = f"Nsight Compute {report.ncu_version}" if report.ncu_version else "Nsight Compute of unknown release"
    heading = f"{report.path}: {len(report)} launches, {devices}, {release}"
    rows = "".join(_row(report, index) for index in range(min(len(report), MOST_LAUNCHES)))
    more = len(report) - MOST_LAUNCHES
    rest = f"<p>and {more} more in <code>report.kernels</code></p>" if more > 0 else ""
    header = "".join(f"<th>{name}</th>" for name in ("launch", "kernel", "grid", "block", "time"))
    return f"<p>{_text(heading)}</p><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _row(report: Report, index: int) -> str:
    kernel = report.kernels[index]
    nanoseconds = kernel.metrics.get(_TIME)
    seconds = nanoseconds * 1e-9 if isinstance(nanoseconds, (int, float)) else float("nan")
    name = kernel.name if len(kernel.name) <= _NAME_LENGTH else f"{kernel.name[: _NAME_LENGTH - 3]}..."
    sizes = ["x".join(map(str, size)) if size else "" for size in (kernel.launch.grid, kernel.launch.block)]
    cells = [str(index), name, *sizes, format_value(seconds, "second")]
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _text(value: str) -> str:
    return escape(printable(value))
